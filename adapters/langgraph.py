"""LangGraph Server (Agent Server, LangSmith Deployment): threads, background runs, checkpoints.

    POST {base}/threads                                    makes a thread of our id
    POST {base}/threads/{thread}/runs                      starts a run, answers at once
    GET  {base}/threads/{thread}/runs                      all runs, newest first, page by page
    GET  {base}/threads/{thread}/runs/{run}                pending | running | success | error | timeout | interrupted
    POST {base}/threads/{thread}/history                   checkpoints, by their run
    GET  {base}/threads/{thread}/runs/{run}/stream         server-sent events, resumed by their ids
    POST {base}/threads/{thread}/runs/{run}/cancel

*Evidence.* Each run carries the call's marker in its metadata. Threads are made before their runs: a
thread that a run makes takes over that run's metadata, and gives it to every later run.

*One thread per call.* Making the thread is a test-and-set: only the one request that made it may POST
its run, once. Whoever finds the thread there closes it with a *fence*: a run that would start in ten
years. The server takes no `reject` run while another is pending, so from then on every late POST is
answered with 409, and what the list of runs shows is all that there will ever be. An attempt that was
not accepted is followed by one in the next slot, which is another thread. A fence is never taken away.

*Several calls per thread.* Nothing can be closed there, so an absence counts after the quiet time.

*Whose result.* Never the thread's, which a later turn changes: the newest checkpoint of this very run.

*A question.* A run that was interrupted is a success with a step left to do. The answer is a run of its
own, under the same marker and with the id of the answer.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, ClassVar, Final, Self

import httpx

from reattach.adapters import http
from reattach.adapters.body import MISSING, event_json, read_object, read_value
from reattach.adapters.contract import AgentConfig, Learn, Variant
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.langgraph_api import NO_THREAD, Api
from reattach.adapters.langgraph_options import SHARED, Options, read_options
from reattach.adapters.langgraph_runs import (
    CALL,
    FENCE,
    RESPONSE,
    Run,
    judge_checkpoint,
    judge_ended,
    read_run,
    run_id_of,
    runs_of,
)
from reattach.adapters.verdict import fetched, refused
from reattach.models.answers import (
    Absent,
    CancelAnswer,
    Confirmed,
    FenceAnswer,
    Fenced,
    FetchAnswer,
    Gone,
    Occupied,
    Phase,
    Present,
    ProbeAnswer,
    Progress,
    SubmitAnswer,
    Taken,
    Unknown,
)
from reattach.models.identity import marker_of, thread_id_of, uuid_of
from reattach.models.invocation import Invocation
from reattach.models.policy import Absence

STATE_BYTES_MAX: Final = 4 * 1024 * 1024
FENCE_S: Final = 10 * 365 * 86_400
_OWN: Final = "reattach_"
_NAMED: Final = "the request names a thread, but the option threads is 'per_call': set it to 'shared'"


def _variant(name: str, **options: Any) -> Variant:
    given = {"assistant": "agent", **options}
    # The thread is made by a request of its own, and no status holds the result.
    able = read_options("variant", given).capabilities
    # No status holds the result, and a thread that can be closed is made by a request of its own.
    return Variant(name, able, given, more_requests=1 + (able.absence is Absence.BY_FENCE))


class LangGraphAdapter:
    """See the module's text.

    Args:
        options: as `read_options` gives them.
        result_bytes_max: the policy's limit; the state around a result may be longer by `STATE_BYTES_MAX`.
    """

    protocol: ClassVar[str] = "langgraph"
    variants: ClassVar[tuple[Variant, ...]] = (
        _variant("one thread per call"),
        _variant("several calls per thread", threads=SHARED),
    )

    def __init__(
        self, client: httpx.AsyncClient, endpoint: Endpoint, options: Options, *, result_bytes_max: int = 1024 * 1024
    ) -> None:
        self._api = Api(client, endpoint, options.assistant, STATE_BYTES_MAX + 2 * result_bytes_max)
        self._endpoint = endpoint
        self._options = options
        self.capabilities = options.capabilities

    def __repr__(self) -> str:
        return f"LangGraphAdapter({self._endpoint!r}, assistant={self._options.assistant!r})"

    @classmethod
    def configure(cls, config: AgentConfig, client: httpx.AsyncClient) -> Self:
        options = read_options(f"agents.{config.name}.options", config.options)
        endpoint = Endpoint.configure(config.name, config.url, config.token_env, token_header=options.token_header)
        return cls(client, endpoint, options, result_bytes_max=config.policy.result_bytes_max)

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        if self._misplaced(inv):
            return Unknown(_NAMED, True)
        if not inv.handle:
            return await self._search(inv)
        found = await self._api.run(self._thread(inv), inv.handle)
        if isinstance(found, Run) and found.call not in ("", marker_of(inv.id, inv.generation)):
            return Unknown("the run under the handle is another call's")
        answer = found if found is None or isinstance(found, Unknown) else await self._judge(inv, [found])
        # An answer to its question is another run, and one that asks at once again has no checkpoint of its own.
        return await self._search(inv) if answer is None or _partial(answer) else answer

    async def submit(self, inv: Invocation, learn: Learn) -> SubmitAnswer:
        if self._misplaced(inv):
            return refused(_NAMED)
        thread, parts = self._thread(inv), self._begin(inv)
        if not self._options.fence:
            answer = await self._api.start(thread, parts, learn)
            if answer is not NO_THREAD:
                return answer
        made = await self._api.make_thread(thread, "raise" if self._options.fence else "do_nothing")
        return await self._api.start(thread, parts, learn) if made is None else made

    async def watch(self, inv: Invocation, cursor: str) -> AsyncGenerator[Progress]:
        if not inv.handle:
            return
        modes = self._options.extra["stream_mode"]
        async with aclosing(self._api.events(self._thread(inv), inv.handle, modes, cursor)) as stream:
            async for event in stream:
                if event.event in ("end", "error"):
                    return
                data = b'{"data":%b,"event":%b}' % (event_json(event.data), json.dumps(event.event).encode())
                yield Progress(data, run_id_of(event.id, self._endpoint))

    async def fetch(self, inv: Invocation) -> FetchAnswer:
        return fetched(await self.probe(inv), without=Gone("the server shows no checkpoint of the run any more"))

    async def cancel(self, inv: Invocation) -> CancelAnswer:
        handle = inv.handle
        if not handle:
            found = await self._search(inv)
            if not isinstance(found, Present):
                return found if isinstance(found, Unknown) else Unknown("the server shows no run of this call")
            handle = found.handle
        answer = await self._api.cancel(self._thread(inv), handle)
        if not isinstance(answer, http.Reply):
            return Unknown(answer.cause)
        if answer.status == 200:
            # The server answers with nothing else, and a gateway's page is not that.
            ours = read_value(answer) in ({}, None)
            return Confirmed() if ours else Unknown("HTTP 200, but not the server's own")
        # A 404 is said of a run that has ended as of one that never was: a probe can tell.
        return Taken() if answer.status in (202, 404) else Unknown(f"HTTP {answer.status}")

    async def fence(self, inv: Invocation) -> FenceAnswer:
        if not self._options.fence:
            return Unknown("only a thread of one call is closed by a fence", True)
        thread, mark = self._thread(inv), marker_of(inv.id, inv.generation)
        parts = {"input": None, "metadata": {FENCE: mark}, "after_seconds": FENCE_S}
        reply = await self._api.post_run(thread, parts)
        if isinstance(reply, http.Reply) and reply.status == 404:
            # Nobody has made the thread: it is made here, so that nobody else can win it.
            if await self._api.make_thread(thread, "do_nothing") is not None:
                return Unknown("the thread that is to be closed could not be made")
            reply = await self._api.post_run(thread, parts)
        if not isinstance(reply, http.Reply):
            return Unknown(reply.cause)
        if reply.status == 409:
            runs = await self._api.runs(thread)
            if isinstance(runs, Unknown):
                return runs
            return Fenced() if any(run.fencing for run in runs) else Occupied("a run is on the thread")
        placed = read_run(read_object(reply), self._endpoint) if reply.status == 200 else None
        done = placed is not None and placed.fencing and placed.fence == mark
        if done:
            return Fenced()
        said = self._api.detail(reply) if reply.status >= 400 else "not the fence that was to be placed"
        return Unknown(f"HTTP {reply.status} to the fence: {said}")

    async def respond(self, inv: Invocation) -> SubmitAnswer:
        assert inv.response is not None
        thread = self._thread(inv)
        parts = {
            "command": {"resume": json.loads(inv.response.payload)},
            "metadata": self._marks(inv, **{RESPONSE: inv.response.response_id}),
            **self._run_options(),
        }
        answer = await self._api.start(thread, parts)
        if not isinstance(answer, Occupied) or not self._options.fence:
            return answer
        runs = await self._api.runs(thread)
        if isinstance(runs, Unknown) or any(run.alive and not run.fencing for run in runs):
            return answer
        # The thread was closed to late POSTs of the call, and nothing but that keeps the answer out.
        return await self._api.start(thread, {**parts, "multitask_strategy": "enqueue"})

    def _misplaced(self, inv: Invocation) -> bool:
        return self._options.per_call and inv.request.thread_id != ""

    def _thread(self, inv: Invocation) -> str:
        return uuid_of(thread_id_of(inv.request, inv.generation, inv.slot if self._options.fence else 1))

    def _run_options(self) -> dict[str, Any]:
        return {"stream_resumable": True, **self._options.extra}

    def _begin(self, inv: Invocation) -> dict[str, Any]:
        message = json.loads(inv.request.message)
        if isinstance(message, str):
            message = {"messages": [{"role": "user", "content": message}]}
        return {"input": message, "metadata": self._marks(inv), **self._run_options()}

    def _marks(self, inv: Invocation, **more: str) -> dict[str, Any]:
        metadata: dict[str, Any] = json.loads(inv.request.metadata)
        given = {name: value for name, value in metadata.items() if not name.startswith(_OWN)}
        return {**given, CALL: marker_of(inv.id, inv.generation), **more}

    async def _search(self, inv: Invocation) -> ProbeAnswer:
        runs = await self._api.runs(self._thread(inv))
        if isinstance(runs, Unknown):
            return runs
        mine = runs_of(runs, marker_of(inv.id, inv.generation))
        if not mine and inv.tenure.fenced and not any(run.fencing for run in runs):
            # A server that has lost the fence may have lost the run as well.
            return Unknown("the thread was closed by a fence, which the server does not show any more")
        if not mine:
            return Absent(None)
        answer = await self._judge(inv, mine)
        # It is listed, so it was accepted: what else is to be known of it is asked again by its id.
        return answer if isinstance(answer, Present) else Present(Phase.RUNNING, mine[-1].run_id)

    async def _judge(self, inv: Invocation, mine: list[Run]) -> Present | Unknown:
        """Say where a call stands by its newest run.

        Args:
            mine: its runs, oldest first.
        """
        run = mine[-1]
        if run.alive:
            return Present(Phase.RUNNING, run.run_id)
        if run.status not in ("success", "error"):
            return judge_ended(run, MISSING, self._endpoint)
        snapshot: Any = MISSING
        for one in reversed(mine):
            # A run that asked again at once has written none, and changed that of the run before.
            if snapshot is MISSING:
                snapshot = await self._api.snapshot(self._thread(inv), one.run_id)
        if run.status == "error":
            # The reason is told once, so a checkpoint that could not be read is asked for again.
            return snapshot if isinstance(snapshot, Unknown) else judge_ended(run, snapshot, self._endpoint)
        if snapshot is MISSING:
            return Present(Phase.COMPLETED, run.run_id)
        if isinstance(snapshot, http.Reply):
            # Longer than any result that is allowed, which is all that is asked of it.
            return Present(Phase.COMPLETED, run.run_id, snapshot.body)
        return snapshot if isinstance(snapshot, Unknown) else judge_checkpoint(run.run_id, snapshot, self._options)


def _partial(answer: ProbeAnswer) -> bool:
    """One run alone does not tell where its call stands."""
    if not isinstance(answer, Present):
        return False
    return answer.phase is Phase.AWAITING_INPUT or (answer.phase is Phase.COMPLETED and answer.result is None)
