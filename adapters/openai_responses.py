"""The OpenAI Responses API in background mode, and services that speak it.

    POST {base}/responses                        background, stored; starts a run
    GET  {base}/responses/{id}                   its status, and its output
    GET  {base}/responses/{id}?stream=true       its events, after `starting_after`
    POST {base}/responses/{id}/cancel            ends it

*What accepts a submit.* A 2xx that names the response. With `stream` that is the first event, which
comes long before the model has read anything: the adapter learns the id and hangs up, since a run in
the background goes on without a listener. Only a response that was created with a stream has one that
can be resumed.

*What cannot be known.* There is no list, no search by metadata, and no key that the server would
know again: when the answer to the POST was lost, nobody can ask about the run. Such a POST is
`Unresolved`, and is never sent again from here.

*What the end means.* `incomplete` (a limit was met, a filter has cut the output) is a failure that
names the reason: who wants the part that was made reads it under the outcome's handle.

The protocol has no fence and no questions; a model that calls a function has completed its response,
and the call is one of the items of its output.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, ClassVar, Final, Self

import httpx

from reattach.adapters import http
from reattach.adapters.body import event_json
from reattach.adapters.contract import AgentConfig, Learn, Variant
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.openai_responses_answers import (
    LAST_EVENTS,
    created,
    judge,
    judge_cancel,
    judge_created,
    number_of,
    read_event,
)
from reattach.adapters.openai_responses_options import Options, body_of, marker_text, read_options
from reattach.adapters.sse import EVENT_BYTES_MAX, EventTooLong, events, follow, is_event_stream
from reattach.adapters.verdict import fetched, no_status, refused
from reattach.adapters.wire import Arrived
from reattach.models.answers import (
    Accepted,
    CancelAnswer,
    FenceAnswer,
    FetchAnswer,
    NotReady,
    ProbeAnswer,
    Progress,
    Refused,
    SubmitAnswer,
    Unknown,
    Unresolved,
)
from reattach.models.invocation import Invocation
from reattach.models.policy import DAY_MS, Absence, CancelKind, Capabilities, Evidence, StreamKind

# A response can be read as soon as it has an id; the bound leaves room for replicas.
ADMISSION_MS: Final = 2_000
RETENTION_MS: Final = 30 * DAY_MS
REPLY_BYTES_MAX: Final = 64 * 1024
ROOM_BYTES: Final = 64 * 1024
# Events that may come before the one that names the response.
FIRST_EVENTS_MAX: Final = 64
_NO_HANDLE: Final = "the API has no search: without the response's id nobody can be asked"


def _able(options: Options) -> Capabilities:
    return Capabilities(
        evidence=Evidence.HANDLE_ONLY,
        absence=Absence.NEVER,
        admission_ms=ADMISSION_MS,
        stream=StreamKind.CURSOR if options.stream else StreamKind.NONE,
        cancel=CancelKind.CONFIRMED,
        retention_ms=RETENTION_MS,
    )


def _variant(name: str, **options: Any) -> Variant:
    given = {"model": "gpt-5", **options}
    return Variant(name, _able(read_options("variant", given)), given)


class OpenAIResponsesAdapter:
    """See the module's text.

    Args:
        options: as `read_options` gives them.
        result_bytes_max: the policy's limit; answers may be twice as long, for their escapes, and
            longer by what they repeat of the options.
    """

    protocol: ClassVar[str] = "openai_responses"
    variants: ClassVar[tuple[Variant, ...]] = (_variant("streamed"), _variant("polled", stream=False))

    def __init__(
        self, client: httpx.AsyncClient, endpoint: Endpoint, options: Options, *, result_bytes_max: int = 1024 * 1024
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._options = options
        # A response repeats the instructions and the tools, in an encoding of its own.
        repeated = 2 * len(options.fixed)
        self._bytes_max = 2 * result_bytes_max + ROOM_BYTES + repeated
        self._created_bytes_max = REPLY_BYTES_MAX + repeated
        self._event_bytes_max = EVENT_BYTES_MAX + repeated
        self.capabilities = _able(options)

    def __repr__(self) -> str:
        return f"OpenAIResponsesAdapter({self._endpoint!r}, stream={self._options.stream})"

    @classmethod
    def configure(cls, config: AgentConfig, client: httpx.AsyncClient) -> Self:
        options = read_options(f"agents.{config.name}.options", config.options)
        endpoint = Endpoint.configure(config.name, config.url, config.token_env, token_header=options.token_header)
        return cls(client, endpoint, options, result_bytes_max=config.policy.result_bytes_max)

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        try:
            url = self._url(inv)
        except ValueError:
            return Unknown(_NO_HANDLE, True)
        answer = await http.read(self._client, url, self._endpoint.fresh(), self._bytes_max)
        if not isinstance(answer, http.Reply):
            return Unknown(answer.cause)
        return judge(answer, inv.handle, marker_text(inv), self._endpoint)

    async def submit(self, inv: Invocation, learn: Learn) -> SubmitAnswer:
        kinds = "text/event-stream, application/json" if self._options.stream else "application/json"
        headers = self._endpoint.headers(Content_Type="application/json", Accept=kinds)
        body = body_of(self._options, inv)
        # A context that is left ends the connection, whatever has not been read.
        async with http.open_stream(self._client, self._endpoint.url("responses"), headers, content=body) as arrived:
            if not isinstance(arrived, Arrived):
                return no_status(arrived)
            # What came is what counts: some clones stream nothing, some stream unasked.
            if is_event_stream(arrived):
                named: str | Refused | Unresolved = await self._first(arrived, marker_text(inv))
            else:
                reply = await http.rest_of(arrived, self._created_bytes_max, http.BODY_S)
                named = judge_created(reply, marker_text(inv), self._endpoint)
            if isinstance(named, str):
                learn(named)
                return Accepted(named)
            return named

    async def watch(self, inv: Invocation, cursor: str) -> AsyncGenerator[Progress]:
        if not self._options.stream:
            return
        last = number_of(cursor)
        try:
            url = self._url(inv) + "?stream=true" + (f"&starting_after={last}" if last >= 0 else "")
        except ValueError:
            return
        headers = self._endpoint.headers(Accept="text/event-stream", Cache_Control="no-store")
        async with aclosing(follow(self._client, url, headers)) as stream:
            async for event in stream:
                told = read_event(event)
                if event.data == "[DONE]":
                    return
                if told.number is not None:
                    if told.number <= last:
                        # Some clones count "after" from zero, or begin again at the first event.
                        continue
                    last = told.number
                yield Progress(event_json(event.data), str(last) if last >= 0 else "")
                if told.name in LAST_EVENTS:
                    return

    async def fetch(self, inv: Invocation) -> FetchAnswer:
        return fetched(await self.probe(inv), without=NotReady())

    async def cancel(self, inv: Invocation) -> CancelAnswer:
        headers = self._endpoint.headers(Accept="application/json")
        try:
            url = self._url(inv, "cancel")
        except ValueError:
            return Unknown(_NO_HANDLE, True)
        answer = await http.send_once(self._client, url, headers, b"", self._bytes_max)
        if not isinstance(answer, http.Reply):
            return Unknown(answer.cause)
        return judge_cancel(answer, inv.handle, marker_text(inv))

    async def fence(self, inv: Invocation) -> FenceAnswer:
        return Unknown("openai_responses has no fence", True)

    async def respond(self, inv: Invocation) -> SubmitAnswer:
        return refused("openai_responses has no questions: answer a function call with a call of its own")

    def _url(self, inv: Invocation, *more: str) -> str:
        return self._endpoint.url("responses", inv.handle, *more)

    async def _first(self, arrived: Arrived, marker: str) -> str | Unresolved:
        """Read events until one names the response."""
        seen = 0
        try:
            async with aclosing(events(arrived, self._event_bytes_max)) as stream:
                async for event in stream:
                    told = read_event(event)
                    if told.response is not None and told.name.startswith("response."):
                        return created(told.response, marker, self._endpoint)
                    if told.name == "error":
                        code = self._endpoint.clean(told.code)
                        return Unresolved(f"the stream began with an error{f' ({code})' if code else ''}")
                    seen += 1
                    if seen >= FIRST_EVENTS_MAX:
                        return Unresolved(f"none of the first {seen} events names the response")
        except EventTooLong:
            return Unresolved(f"an event is over {self._event_bytes_max} bytes")
        except Exception as error:
            return Unresolved(http.cause_of(error))
        return Unresolved("the stream ended before it named the response")
