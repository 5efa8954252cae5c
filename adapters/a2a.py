"""Agent2Agent (A2A): 1.0 over JSON-RPC and over REST, and 0.3 over JSON-RPC.

*What proves a submit.* A message carries the call's marker as its `messageId` and goes into the context that
is the call's thread; a task is found again by ListTasks of that context (1.0). The task's id is the
agent's own. An agent that has no ListTasks (`lists = false`, and each of 0.3) can be asked by that id
alone, so a lost answer can never be resolved there.

*What accepts one.* An answer that names a task, in whatever state. An answer that is a message means that the
agent ran and keeps nothing: the call fails with those words, and nothing is sent again.

*Which interface.* The agent card says, and is read at the first request, then every few minutes: `a2a_card`.

*Streams.* 1.0 has SubscribeToTask: a snapshot, then what happens. 0.3 is polled, since re-subscribing changes the
stored result of servers in use.

A2A has no fence, and no agent is known that knows a message again.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import ClassVar, Final, Self

import httpx

from reattach.adapters import http
from reattach.adapters.a2a_card import Cards, Interface, Misfit, Options, read_options
from reattach.adapters.a2a_tasks import (
    MESSAGE,
    ONLY_A_MESSAGE,
    STATES,
    judge_task,
    response_marker,
    search,
    strange,
    submitted,
    task_id_of,
)
from reattach.adapters.a2a_wire import NOT_CANCELABLE, NOT_FOUND, REFUSED, Answer, Fault, Told, Wire, message_of
from reattach.adapters.body import LIST_BYTES_MAX, to_json
from reattach.adapters.contract import AgentConfig, Learn, Variant
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.verdict import fetched, no_status, refused, turned_down
from reattach.models.answers import (
    Absent,
    CancelAnswer,
    Confirmed,
    FenceAnswer,
    FetchAnswer,
    Gone,
    NotReady,
    NotSent,
    Phase,
    Present,
    ProbeAnswer,
    Progress,
    SubmitAnswer,
    Taken,
    Unknown,
    Unresolved,
)
from reattach.models.identity import marker_of, thread_id_of
from reattach.models.invocation import Invocation
from reattach.models.outcomes import Failure, FailureCode, RemoteFate
from reattach.models.policy import Absence, CancelKind, Capabilities, Evidence, StreamKind

# A task is listed some 30 ms after its message was read; the bound leaves room for a busy agent.
ADMISSION_MS: Final = 2_000
ROOM_BYTES: Final = 64 * 1024
PAGE_SIZE: Final = 100
# Messages of a task's history: enough to see what became of the latest question, and not too many for any agent.
HISTORY: Final = 10
_RUNNING: Final = frozenset({"submitted", "working"})


def _able(options: Options) -> Capabilities:
    lists = options.lists and not options.old
    return Capabilities(
        evidence=Evidence.MARKER if lists else Evidence.HANDLE_ONLY,
        absence=Absence.AFTER_QUIET if lists else Absence.NEVER,
        admission_ms=ADMISSION_MS,
        stream=StreamKind.NONE if options.old else StreamKind.LIVE,
        cancel=CancelKind.CONFIRMED,
        responds=True,
    )


def _named(inv: Invocation) -> bool:
    """A task's id is known, and is text that can be sent."""
    return inv.handle.isprintable() and inv.handle != "" and not inv.handle.startswith(MESSAGE)


class A2AAdapter:
    """See the module's text.

    Args:
        result_bytes_max: the policy's limit; answers may be twice as long, for their escapes.
        card_s: how long the agent card may take.
    """

    protocol: ClassVar[str] = "a2a"
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("1.0", _able(Options())),
        Variant("1.0 without lists", _able(Options(lists=False)), {"lists": False}),
        Variant("0.3", _able(Options(version="0.3")), {"version": "0.3"}),
    )

    def __init__(
        self,
        client: httpx.AsyncClient,
        endpoint: Endpoint,
        options: Options,
        *,
        result_bytes_max: int = 1024 * 1024,
        card_s: float = 5.0,
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._options = options
        self._bytes_max = 2 * result_bytes_max + ROOM_BYTES
        self._cards = Cards(client, endpoint, options, card_s)
        self.capabilities = _able(options)

    def __repr__(self) -> str:
        return f"A2AAdapter({self._endpoint!r}, {self._options!r})"

    @classmethod
    def configure(cls, config: AgentConfig, client: httpx.AsyncClient) -> Self:
        options = read_options(config)
        endpoint = Endpoint.configure(config.name, config.url, config.token_env)
        policy = config.policy
        card_s = min(policy.submit_timeout_ms, policy.probe_timeout_ms) / 2_000
        return cls(client, endpoint, options, result_bytes_max=policy.result_bytes_max, card_s=card_s)

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        if inv.handle.startswith(MESSAGE):
            failure = Failure(FailureCode.REMOTE_FAILED, ONLY_A_MESSAGE, RemoteFate.ENDED, False)
            return Present(Phase.FAILED, inv.handle, failure=failure)
        if not inv.handle and self.capabilities.evidence is Evidence.HANDLE_ONLY:
            return Unknown("only a task's id can be asked about, and none is known", True)
        return await self._ask(inv)

    async def submit(self, inv: Invocation, learn: Learn) -> SubmitAnswer:
        marker = marker_of(inv.id, inv.generation)
        context = thread_id_of(inv.request, inv.generation, inv.slot)
        message = message_of(marker, context, "", inv.request.message, inv.request.metadata, old=self._options.old)
        return await self._send(message)

    async def watch(self, inv: Invocation, cursor: str) -> AsyncGenerator[Progress]:
        if self._options.old or not _named(inv):
            return
        wire = await self._wire()
        if isinstance(wire, Unknown):
            return
        async with aclosing(wire.subscribe(inv.handle)) as stream:
            async for event in stream:
                yield Progress(to_json(event))
                told = event.get("task", event.get("statusUpdate"))
                status = told.get("status") if isinstance(told, dict) else None
                state = status.get("state") if isinstance(status, dict) else None
                # The stream of a task that waits for input stays open.
                if isinstance(state, str) and STATES.get(state, "working") not in _RUNNING:
                    return

    async def fetch(self, inv: Invocation) -> FetchAnswer:
        if inv.handle.startswith(MESSAGE):
            return Gone(ONLY_A_MESSAGE)
        return fetched(await self._ask(inv), without=NotReady())

    async def cancel(self, inv: Invocation) -> CancelAnswer:
        if inv.handle.startswith(MESSAGE):
            return Confirmed()
        if not _named(inv):
            return Unknown("the task's id is not known")
        wire = await self._wire()
        if isinstance(wire, Unknown):
            return wire
        match await wire.cancel(inv.handle, self._bytes_max):
            case Fault(code=code) if code == NOT_CANCELABLE:
                return Confirmed()
            case Fault(text=text):
                return Unknown(text)
            case Unknown() as unknown:
                return unknown
            case Told(value=task):
                judged = judge_task(task, inv, inv.handle, self._endpoint)
        if isinstance(judged, Unknown):
            return judged
        # Not confirmed where the task goes on: some agents cancel when they come to it.
        return Taken() if judged.phase in (Phase.RUNNING, Phase.AWAITING_INPUT) else Confirmed()

    async def fence(self, inv: Invocation) -> FenceAnswer:
        return Unknown("A2A has no fence", True)

    async def respond(self, inv: Invocation) -> SubmitAnswer:
        if inv.response is None or not _named(inv):
            return refused("there is no task that waits for this answer")
        context = thread_id_of(inv.request, inv.generation, inv.slot)
        marker = response_marker(inv, inv.response.response_id)
        message = message_of(marker, context, inv.handle, inv.response.payload, b"{}", old=self._options.old)
        return await self._send(message, inv.handle)

    async def _wire(self) -> Wire | Unknown:
        found = await self._cards.where()
        match found:
            case Interface():
                return Wire(self._client, self._endpoint, found)
            case Misfit(cause):
                return Unknown(cause, True)
        return found

    async def _ask(self, inv: Invocation) -> ProbeAnswer:
        wire = await self._wire()
        if isinstance(wire, Unknown):
            return wire
        if not inv.handle:
            return await self._search(wire, inv)
        return await self._task(wire, inv) if _named(inv) else Unknown("the task's id is none", True)

    async def _search(self, wire: Wire, inv: Invocation) -> ProbeAnswer:
        context = thread_id_of(inv.request, inv.generation, inv.slot)

        async def page_of(history: int, token: str) -> Answer:
            return await wire.list(context, history, PAGE_SIZE, token, LIST_BYTES_MAX)

        return await search(page_of, inv, self._endpoint)

    async def _task(self, wire: Wire, inv: Invocation) -> ProbeAnswer:
        answer = await wire.get(inv.handle, HISTORY, self._bytes_max)
        if isinstance(answer, Told) and answer.cut is not None:
            # What made it too long may be its messages, which are not the result.
            answer = await wire.get(inv.handle, 1, self._bytes_max)
        match answer:
            case Fault(code=code) if code == NOT_FOUND:
                return Absent(None)
            case Fault(text=text):
                return Unknown(text)
            case Unknown() as unknown:
                return unknown
            case Told(value=task, cut=cut):
                if cut is None and (task_id_of(task, self._endpoint) != inv.handle or strange(task, inv)):
                    return Unknown("the answer is about another task")
                return judge_task(task, inv, inv.handle, self._endpoint, cut)

    async def _send(self, message: bytes, handle: str = "") -> SubmitAnswer:
        """Send a message; `handle` names the task that it goes to, "" for a new one."""
        found = await self._cards.where()
        if isinstance(found, Misfit):
            return refused(found.cause)
        if isinstance(found, Unknown):
            return NotSent(found.cause)
        wire = Wire(self._client, self._endpoint, found)
        reply = await wire.send(message, self._bytes_max)
        if not isinstance(reply, http.Reply):
            return no_status(reply)
        answer = wire.answer(reply, sent=True)
        match answer:
            case Fault(code=code, text=text):
                return refused(text) if code in REFUSED else Unresolved(text)
            case Unknown(cause=cause):
                return Unresolved(cause) if 200 <= reply.status < 300 else turned_down(reply)
            case Told(value=value):
                return submitted(value, handle, self._endpoint, old=found.old)
