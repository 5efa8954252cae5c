"""Adapters that lie: `http_job` and `langgraph` with one fault each."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from reattach.adapters.contract import Learn
from reattach.adapters.http_job import HttpJobAdapter
from reattach.adapters.langgraph import LangGraphAdapter
from reattach.models.answers import (
    Accepted,
    CancelAnswer,
    Confirmed,
    FenceAnswer,
    Fenced,
    Phase,
    Present,
    ProbeAnswer,
    Progress,
    SubmitAnswer,
    Unknown,
    Unresolved,
)
from reattach.models.invocation import Invocation


class Forgetful(HttpJobAdapter):
    """Forgets where a stream is to be resumed."""

    async def watch(self, inv: Invocation, cursor: str) -> AsyncGenerator[Progress]:
        async with aclosing(super().watch(inv, "")) as stream:
            async for event in stream:
                yield event


class Skipping(HttpJobAdapter):
    """Leaves out the first event after a resumption."""

    async def watch(self, inv: Invocation, cursor: str) -> AsyncGenerator[Progress]:
        skip = bool(cursor)
        async with aclosing(super().watch(inv, cursor)) as stream:
            async for event in stream:
                if not skip:
                    yield event
                skip = False


class Presumptuous(HttpJobAdapter):
    """Confirms a cancel that it could not bring to the server."""

    async def cancel(self, inv: Invocation) -> CancelAnswer:
        answer = await super().cancel(inv)
        return Confirmed() if isinstance(answer, Unknown) else answer


class Polite(HttpJobAdapter):
    """Confirms a cancel without asking for one."""

    async def cancel(self, inv: Invocation) -> CancelAnswer:
        return Confirmed()


class Keyless(HttpJobAdapter):
    """Sends a key of its own each time."""

    async def submit(self, inv: Invocation, learn: Learn) -> SubmitAnswer:
        self._options = replace(self._options, key_header="")
        return await super().submit(inv, learn)


class Late(HttpJobAdapter):
    """Learns the name of a run from the whole answer only."""

    async def submit(self, inv: Invocation, learn: Learn) -> SubmitAnswer:
        def nobody(handle: str) -> None:
            return

        answer = await super().submit(inv, nobody)
        return Accepted() if isinstance(answer, Accepted) else answer


class Unlocked(LangGraphAdapter):
    """Says that it has closed a thread, and has not."""

    async def fence(self, inv: Invocation) -> FenceAnswer:
        return Fenced()


class Confident(LangGraphAdapter):
    """Takes a thread for closed where nobody has said so."""

    async def fence(self, inv: Invocation) -> FenceAnswer:
        answer = await super().fence(inv)
        return Fenced() if isinstance(answer, Unknown) else answer


class Nameless(LangGraphAdapter):
    """Gives no question a name."""

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        answer = await super().probe(inv)
        asks = isinstance(answer, Present) and answer.phase is Phase.AWAITING_INPUT
        return replace(answer, question_id="") if asks and isinstance(answer, Present) else answer


class Repeating(LangGraphAdapter):
    """Sends an answer again under another name, whatever became of the first."""

    async def respond(self, inv: Invocation) -> SubmitAnswer:
        answer = await super().respond(inv)
        return await super().respond(inv) if isinstance(answer, Unresolved) else answer
