"""Any HTTP job service, told by its options: where to submit, ask, read, cancel and follow.

*What is told.* URL templates with placeholders, a JSON body, paths into the answers, and what each of
the service's status words means. `http_job_checks` refuses what does not fit together; what a
service can prove follows from the options and from nothing else:

- `status` by an id of ours (`{marker}`, `{key}`; `{thread}` for one job per thread) or a `list` that
  shows ids of ours: absence can be known, so a call is asked about before it is sent.
- `status` by `{handle}` alone: nobody can ask about a POST whose answer was lost.
- `idempotency`: the service knows a key (or an id of ours) again for a stated time, and a POST whose
  answer was lost is sent again under it.

*What accepts a submit.* Every 2xx, unless it is a page for people or names another job. Where only a handle can be
asked about, an answer without one is unresolved: a resend may bring it, and so may an operator.

*What is never guessed.* A status word without a meaning, a result that is not where it should be, and
a list that may have been cut are `Unknown`.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, ClassVar, Final, Self

import httpx

from reattach.adapters import http
from reattach.adapters.body import LIST_BYTES_MAX, event_json, find, is_page
from reattach.adapters.contract import AgentConfig, Learn, Variant
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.http_job_answers import (
    header_handle,
    judge_job,
    judge_result,
    judge_status,
    submitted_handle,
)
from reattach.adapters.http_job_checks import OWN, read_options
from reattach.adapters.http_job_list import search
from reattach.adapters.http_job_options import Options
from reattach.adapters.sse import follow
from reattach.adapters.verdict import fetched, no_status, refused, turned_down
from reattach.adapters.words import handle_of
from reattach.models.answers import (
    Absent,
    Accepted,
    CancelAnswer,
    Confirmed,
    FenceAnswer,
    FetchAnswer,
    Gone,
    NotSent,
    Occupied,
    Phase,
    Present,
    ProbeAnswer,
    Progress,
    SubmitAnswer,
    Taken,
    Unknown,
    Unresolved,
)
from reattach.models.identity import dedup_key_of, marker_of, thread_id_of
from reattach.models.invocation import Invocation
from reattach.models.policy import CancelKind, Evidence, StreamKind

REPLY_BYTES_MAX: Final = 64 * 1024
ROOM_BYTES: Final = 64 * 1024
CURSOR_CHARS_MAX: Final = 512
_SHARED: Final = "a thread of several calls needs a status by {marker}, {key} or {handle}: {thread} tells no two apart"
_PAGE: Final = "but a page for people: a gateway's, not the service's"
_ENDED: Final = frozenset({404, 409, 410})


def _variant(name: str, **options: Any) -> Variant:
    words = {"status_map": {"working": "running", "done": "completed"}}
    given = {"submit": "/jobs", **options, **words}
    return Variant(name, read_options("variant", given).capabilities, given)


class HttpJobAdapter:
    """See the module's text.

    Args:
        options: as `read_options` gives them.
        result_bytes_max: the policy's limit; answers may be twice as long, for their escapes.
    """

    protocol: ClassVar[str] = "http_job"
    variants: ClassVar[tuple[Variant, ...]] = (
        _variant("status by an id of ours", status="/jobs/{marker}"),
        _variant("one thread per call", submit="/threads/{thread}/jobs", status="/threads/{thread}"),
        _variant("list of ids", status="/jobs/{handle}", list="/jobs?ref={marker}", paths={"marker": "ref"}),
        _variant("with a key", status="/jobs/{handle}", idempotency={"lifetime_ms": 86_400_000}),
        _variant(
            "with a key, a stream and a cancel",
            status="/jobs/{handle}",
            idempotency={"lifetime_ms": 86_400_000},
            stream="/jobs/{handle}/events",
            stream_resumes=True,
            cancel="/jobs/{handle}/cancel",
        ),
        _variant("handle only", status="/jobs/{handle}"),
    )

    def __init__(
        self, client: httpx.AsyncClient, endpoint: Endpoint, options: Options, *, result_bytes_max: int = 1024 * 1024
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._options = options
        self._bytes_max = 2 * result_bytes_max + ROOM_BYTES
        self.capabilities = options.capabilities

    def __repr__(self) -> str:
        return f"HttpJobAdapter({self._endpoint!r}, submit={self._options.urls['submit'].text!r})"

    @classmethod
    def configure(cls, config: AgentConfig, client: httpx.AsyncClient) -> Self:
        options = read_options(f"agents.{config.name}.options", config.options)
        endpoint = Endpoint.configure(config.name, config.url, config.token_env)
        return cls(client, endpoint, options, result_bytes_max=config.policy.result_bytes_max)

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        if self._cannot_tell(inv):
            return Unknown(_SHARED, True)
        if "status" in self._options.urls and (inv.handle or not self._options.by_handle):
            return await self._status(inv, inv.handle)
        if "list" in self._options.urls:
            return await self._search(inv)
        return Unknown("only a handle can be asked about, and none is known", True)

    async def submit(self, inv: Invocation, learn: Learn) -> SubmitAnswer:
        options = self._options
        if self._cannot_tell(inv):
            return refused(_SHARED)
        try:
            ids = self._ids(inv)
            url = self._url("submit", ids)
            body = options.body.fill(ids, {"message": inv.request.message, "metadata": inv.request.metadata})
        except ValueError as error:
            return NotSent(f"the call's ids cannot be sent: {type(error).__name__}")
        headers = self._endpoint.headers(Content_Type="application/json", Accept="application/json")
        if options.key_header:
            headers[options.key_header] = ids["key"]
        early = ""

        def on_head(status: int, head: Mapping[str, str]) -> None:
            nonlocal early
            if options.handle_header and 200 <= status < 300:
                early = header_handle(options.handle_header, head.get(options.handle_header, ""), self._endpoint)
                # What was learned is never taken back, so where the body says whose job it is, it is read first.
                if early and "marker" not in options.paths:
                    learn(early)

        answer = await http.send_once(
            self._client, url, headers, body, REPLY_BYTES_MAX, method=options.submit_method, on_head=on_head
        )
        return self._submitted(inv, answer, early) if isinstance(answer, http.Reply) else no_status(answer)

    async def watch(self, inv: Invocation, cursor: str) -> AsyncGenerator[Progress]:
        try:
            url = self._url("stream", self._ids(inv, inv.handle))
        except (ValueError, KeyError):
            return
        resumes = self.capabilities.stream is StreamKind.CURSOR
        headers = self._endpoint.headers(Accept="text/event-stream", Cache_Control="no-store")
        if resumes and cursor:
            headers["Last-Event-ID"] = cursor
        async with aclosing(follow(self._client, url, headers)) as stream:
            async for event in stream:
                if self._options.stream_end and event.event == self._options.stream_end:
                    return
                yield Progress(event_json(event.data), self._cursor(event.id) if resumes else "")

    async def fetch(self, inv: Invocation) -> FetchAnswer:
        if "result" in self._options.urls:
            answer = await self._read("result", inv, inv.handle, self._bytes_max)
            return answer if isinstance(answer, Unknown) else judge_result(answer, self._options)
        return fetched(await self.probe(inv), without=Gone("the job is shown without its result"))

    async def cancel(self, inv: Invocation) -> CancelAnswer:
        if "cancel" not in self._options.urls:
            return Unknown("the option 'cancel' is not set", True)
        try:
            url = self._url("cancel", self._ids(inv, inv.handle))
        except ValueError:
            return Unknown("the job's handle is not known")
        headers = self._endpoint.headers(Content_Type="application/json", Accept="application/json")
        method = self._options.cancel_method
        content = b"" if method == "DELETE" else b"{}"
        answer = await http.send_once(self._client, url, headers, content, REPLY_BYTES_MAX, method=method)
        if not isinstance(answer, http.Reply):
            return Unknown(answer.cause)
        if is_page(answer):
            return Unknown(f"HTTP {answer.status}, {_PAGE}")
        if 200 <= answer.status < 300:
            return Confirmed() if self.capabilities.cancel is CancelKind.CONFIRMED else Taken()
        # Most services say so of a job that has ended; what it came to, only a probe can tell.
        return Taken() if answer.status in _ENDED else Unknown(f"HTTP {answer.status}")

    async def fence(self, inv: Invocation) -> FenceAnswer:
        return Unknown("http_job has no fence", True)

    async def respond(self, inv: Invocation) -> SubmitAnswer:
        return refused("http_job has no way to answer a question: answer it in the service itself")

    def _cannot_tell(self, inv: Invocation) -> bool:
        """The request names its thread, and the service is asked by the thread alone."""
        return self.capabilities.evidence is Evidence.CONTAINER and inv.request.thread_id != ""

    def _ids(self, inv: Invocation, handle: str = "") -> dict[str, str]:
        return {
            "key": dedup_key_of(inv.request, inv.generation),
            "marker": marker_of(inv.id, inv.generation),
            "thread": thread_id_of(inv.request, inv.generation, inv.slot),
            "handle": handle,
        }

    def _mine(self, inv: Invocation) -> frozenset[str]:
        ids = self._ids(inv)
        return frozenset(ids[name] for name in self._options.sent & OWN)

    def _url(self, name: str, ids: Mapping[str, str]) -> str:
        return self._endpoint.base + self._options.urls[name].fill(ids)

    def _cursor(self, event_id: str) -> str:
        return event_id if event_id.isascii() and self._endpoint.clean(event_id, CURSOR_CHARS_MAX) == event_id else ""

    async def _read(
        self, name: str, inv: Invocation, handle: str, bytes_max: int, page: str = ""
    ) -> http.Reply | Unknown:
        try:
            url = self._url(name, {**self._ids(inv, handle), "page": page})
        except ValueError:
            return Unknown("the job's handle is not known" if not handle else "an id of the call cannot be sent")
        answer = await http.read(self._client, url, self._endpoint.fresh(), bytes_max)
        return answer if isinstance(answer, http.Reply) else Unknown(answer.cause)

    async def _status(self, inv: Invocation, handle: str) -> ProbeAnswer:
        answer = await self._read("status", inv, handle, self._bytes_max)
        if isinstance(answer, Unknown):
            return answer
        judged = judge_status(answer, self._options, self._mine(inv), self._endpoint)
        if self._options.by_handle and isinstance(judged, Present) and judged.handle not in ("", handle):
            return Unknown("the answer is about another job")
        return judged

    async def _search(self, inv: Invocation) -> ProbeAnswer:
        async def page_of(name: str, page: str) -> http.Reply | Unknown:
            return await self._read(name, inv, "", LIST_BYTES_MAX, page)

        found = await search(page_of, self._options, self._mine(inv), self._endpoint)
        return found if isinstance(found, Absent | Unknown) else await self._found(inv, found)

    async def _found(self, inv: Invocation, job: Any) -> ProbeAnswer:
        if "status" not in self._options.urls:
            return judge_job(job, self._options, self._mine(inv), self._endpoint)
        handle = handle_of(find(job, self._options.paths["handle"]), self._endpoint)
        if not handle:
            return Unknown("the list shows the job without its handle")
        answer = await self._status(inv, handle)
        if isinstance(answer, Present):
            return Present(answer.phase, handle, answer.result, answer.failure, answer.question_id, answer.question)
        # It is listed, so it was accepted: whatever the status says now will be asked again by the handle.
        return Present(Phase.RUNNING, handle)

    def _submitted(self, inv: Invocation, reply: http.Reply, handle: str) -> SubmitAnswer:
        options, code = self._options, reply.status
        if code == 409 and options.conflict != "accepted":
            if options.conflict == "refused":
                return refused("HTTP 409: the service refuses it")
            return Occupied("HTTP 409: something with this name is there already")
        if not (200 <= code < 300 or code == 409):
            return turned_down(reply)
        if is_page(reply):
            return Unresolved(f"HTTP {code}, {_PAGE}")
        told = submitted_handle(reply, options, self._mine(inv), self._endpoint)
        if told is None:
            return Occupied("the answer is about another job")
        handle = handle or told
        if not handle and self.capabilities.evidence is Evidence.HANDLE_ONLY:
            return Unresolved(f"HTTP {code}, but no handle that could be read")
        return Accepted(handle)
