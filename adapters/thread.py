"""The reference protocol: one thread per conversation, POST a message, GET a status, follow a stream.

    POST {base}/api/agents/{agent}/threads/{thread}/messages    starts a run, answers at once
    GET  {base}/api/agents/{agent}/threads/{thread}             not_started | running | completed | failed
    GET  {base}/api/agents/{agent}/threads/{thread}/stream      server-sent events, live only

*What a status proves.* It speaks of a thread, not of a message. On a thread that was derived for one
call alone the two are the same. On any other thread the adapter needs a *marker*: a place in the
status answer that holds the newest message's id, the number of turns, or the list of all ids (oldest
first). Without one it answers `Unknown`, for presence as for absence.

*Which message is running.* A turn that runs may not be in the marker yet, so on a marked thread
"running, and the marker is not ours" is `Unknown` until the run has ended.

*What accepts a submit.* On a derived thread every 2xx of JSON: nothing else is ever sent there. On a shared
one only a body that says `started`: any other status is the short-circuit of a run that was there
before.

The protocol has no cancel, no fence and no questions.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import ClassVar, Final, Self

import httpx

from reattach.adapters import http
from reattach.adapters.body import event_json, is_json
from reattach.adapters.contract import AgentConfig, Learn, Variant
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.sse import follow
from reattach.adapters.thread_status import Status, judge, parse_status
from reattach.adapters.verdict import fetched, no_status, refused, turned_down
from reattach.models.answers import (
    Accepted,
    CancelAnswer,
    FenceAnswer,
    FetchAnswer,
    Gone,
    NotSent,
    Occupied,
    ProbeAnswer,
    Progress,
    SubmitAnswer,
    Unknown,
    Unresolved,
)
from reattach.models.errors import ConfigError
from reattach.models.identity import marker_of, thread_id_of
from reattach.models.invocation import Invocation
from reattach.models.policy import (
    Absence,
    CancelKind,
    Capabilities,
    Evidence,
    StreamKind,
)

# A POST that the server has read is in its status at once; the bound leaves room for a busy one.
ADMISSION_MS: Final = 2_000
SUBMIT_REPLY_BYTES_MAX: Final = 64 * 1024
ROOM_BYTES: Final = 64 * 1024

_OPTIONS: Final = {"agent", "marker"}


def _able(evidence: Evidence) -> Capabilities:
    return Capabilities(
        evidence=evidence,
        absence=Absence.AFTER_QUIET,
        admission_ms=ADMISSION_MS,
        stream=StreamKind.LIVE,
        cancel=CancelKind.NONE,
    )


class ThreadAdapter:
    """See the module's text.

    Args:
        agent: the remote's name for the agent.
        marker: dotted path of the marker in the status answer, "" for none.
        result_bytes_max: the policy's limit; answers may be twice as long, for their escapes.
    """

    protocol: ClassVar[str] = "thread"
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("one thread per call", _able(Evidence.CONTAINER)),
        Variant("several calls per thread", _able(Evidence.MARKER), {"marker": "last_message_id"}),
    )

    def __init__(
        self,
        client: httpx.AsyncClient,
        endpoint: Endpoint,
        *,
        agent: str,
        marker: str = "",
        result_bytes_max: int = 1024 * 1024,
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._agent = agent
        self._marker = tuple(marker.split(".")) if marker else ()
        self._bytes_max = 2 * result_bytes_max + ROOM_BYTES
        self.capabilities = _able(Evidence.MARKER if marker else Evidence.CONTAINER)

    def __repr__(self) -> str:
        return f"ThreadAdapter({self._endpoint!r}, agent={self._agent!r}, marker={'.'.join(self._marker)!r})"

    @classmethod
    def configure(cls, config: AgentConfig, client: httpx.AsyncClient) -> Self:
        where = f"agents.{config.name}"
        for key in config.options:
            if key not in _OPTIONS:
                raise ConfigError(f"{where}.options.{key}: no such option (known: {', '.join(sorted(_OPTIONS))})")
        agent = config.options.get("agent", config.name)
        if not isinstance(agent, str) or not agent or not agent.isprintable():
            raise ConfigError(f"{where}.options.agent: must be the remote's name of the agent, a string")
        marker = config.options.get("marker", "")
        if not isinstance(marker, str) or (marker and not all(marker.split("."))):
            raise ConfigError(f"{where}.options.marker: must be a path in the status answer, such as 'last_message_id'")
        return cls(
            client,
            Endpoint.configure(config.name, config.url, config.token_env),
            agent=agent,
            marker=marker,
            result_bytes_max=config.policy.result_bytes_max,
        )

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        if not self._marker and inv.request.thread_id:
            return Unknown("a thread of several turns needs the option 'marker': its status names no message", True)
        status = await self._status(inv)
        return status if isinstance(status, Unknown) else judge(status, inv)

    async def submit(self, inv: Invocation, learn: Learn) -> SubmitAnswer:
        request = inv.request
        try:
            url = self._url(inv, "messages")
            marker = json.dumps(marker_of(inv.id, inv.generation)).encode()
        except ValueError as error:
            return NotSent(f"the thread's id cannot be sent: {type(error).__name__}")
        body = b'{"message":%b,"message_id":%b,"metadata":%b}' % (request.message, marker, request.metadata)
        headers = self._endpoint.headers(Content_Type="application/json", Accept="application/json")
        answer = await http.send_once(self._client, url, headers, body, SUBMIT_REPLY_BYTES_MAX)
        return self._submitted(inv, answer) if isinstance(answer, http.Reply) else no_status(answer)

    async def watch(self, inv: Invocation, cursor: str) -> AsyncGenerator[Progress]:
        try:
            url = self._url(inv, "stream")
        except ValueError:
            return
        headers = self._endpoint.headers(Accept="text/event-stream", Cache_Control="no-store")
        async with aclosing(follow(self._client, url, headers)) as stream:
            async for event in stream:
                if event.event == "end":
                    return
                if event.event == "progress":
                    yield Progress(event_json(event.data))

    async def fetch(self, inv: Invocation) -> FetchAnswer:
        return fetched(await self.probe(inv), without=Gone("a later turn has taken the place of the result"))

    async def cancel(self, inv: Invocation) -> CancelAnswer:
        return Unknown("the thread protocol has no cancel", True)

    async def fence(self, inv: Invocation) -> FenceAnswer:
        return Unknown("the thread protocol has no fence", True)

    async def respond(self, inv: Invocation) -> SubmitAnswer:
        return refused("the thread protocol has no questions")

    def _url(self, inv: Invocation, *more: str) -> str:
        thread = thread_id_of(inv.request, inv.generation, inv.slot)
        return self._endpoint.url("api", "agents", self._agent, "threads", thread, *more)

    async def _status(self, inv: Invocation) -> Status | Unknown:
        try:
            url = self._url(inv)
        except ValueError as error:
            return Unknown(f"the thread's id cannot be sent: {type(error).__name__}", True)
        answer = await http.read(self._client, url, self._endpoint.fresh(), self._bytes_max)
        match answer:
            case http.Unsent(cause) | http.Lost(cause):
                return Unknown(cause)
        return parse_status(answer, self._marker, thread_id_of(inv.request, inv.generation, inv.slot), self._endpoint)

    def _submitted(self, inv: Invocation, reply: http.Reply) -> SubmitAnswer:
        code = reply.status
        if 200 <= code < 300:
            return self._taken(inv, reply)
        if code == 409:
            return Occupied("HTTP 409: something runs on this thread")
        return turned_down(reply)

    def _taken(self, inv: Invocation, reply: http.Reply) -> SubmitAnswer:
        if not is_json(reply):
            return Unresolved(f"HTTP {reply.status}, but not the server's own: it is not JSON")
        if not inv.request.thread_id:
            return Accepted()
        status = parse_status(reply, (), inv.request.thread_id, self._endpoint)
        if isinstance(status, Unknown):
            return Unresolved(f"HTTP {reply.status}, but {status.cause}")
        return Accepted() if status.name == "started" else Occupied(f"the thread was {status.name} already")
