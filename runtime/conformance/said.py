"""One call of a conformance test, what its adapter has said, and who hears it when it raises."""

import traceback
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, TypeVar

from reattach.adapters.contract import Adapter, Learn
from reattach.models.invocation import Invocation
from reattach.runtime.proxy.faults import Exchange

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Call:
    """One call of a test.

    Args:
        expected: how many executions there must be at the end of all tests; None for at most one.
        why: what that number follows from.
    """

    id: str
    inv: Invocation
    expected: int | None = None
    why: str = ""
    most: int = 1


@dataclass(frozen=True, slots=True)
class Said:
    """What an adapter has answered, and the requests that this took."""

    answer: Any
    learned: tuple[str, ...] = ()
    requests: tuple[Exchange, ...] = ()

    def __str__(self) -> str:
        told = f", and named the run {self.learned[0]!r} before" if self.learned else ""
        sent = "; ".join(map(str, self.requests)) or "none"
        return f"{self.answer!r}{told}\n  requests: {sent}"


class Witness:
    """An adapter whose exceptions are noted before the kit takes them for an answer in doubt."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self.raised: list[str] = []

    async def _note(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except Exception:
            self.raised.append(traceback.format_exc())
            raise

    async def probe(self, inv: Invocation) -> Any:
        return await self._note(self._adapter.probe(inv))

    async def submit(self, inv: Invocation, learn: Learn) -> Any:
        return await self._note(self._adapter.submit(inv, learn))

    async def fetch(self, inv: Invocation) -> Any:
        return await self._note(self._adapter.fetch(inv))

    async def cancel(self, inv: Invocation) -> Any:
        return await self._note(self._adapter.cancel(inv))

    async def fence(self, inv: Invocation) -> Any:
        return await self._note(self._adapter.fence(inv))

    async def respond(self, inv: Invocation) -> Any:
        return await self._note(self._adapter.respond(inv))
