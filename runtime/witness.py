"""Sees what an agent's requests come to, below its adapter, and says so to the breaker and the rate.

What an adapter answers does not tell a remote that is down from one that is honest: "a turn runs, but
I cannot say whose" is `Unknown` too. The wire does: a request that brought no status, or one of 500 and
above, failed; any other status came from a remote that is up. An adapter that speaks to its remote by
other means than the client that it is given is never seen to fail, and has no breaker.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar

import httpx

from reattach.adapters.http import Client, cause_of
from reattach.adapters.wire import Arrived, Patience, Wire

SERVER_ERROR = 500


class Sight:
    """What has been seen of one order.

    Attributes:
        failed: how its last request ended, None before the first. A request without an end has failed.
        cause: of that failure, in a few words of ours.
        requests: how many it has begun.
    """

    __slots__ = ("cause", "failed", "requests")

    def __init__(self) -> None:
        self.failed: bool | None = None
        self.cause = ""
        self.requests = 0


SIGHT: ContextVar[Sight | None] = ContextVar("reattach_sight", default=None)


class Witness:
    """Carry requests over `wire`, and note in the running order's `SIGHT` what they come to.

    Args:
        one_more: called for each request of an order beyond its first.
    """

    def __init__(self, wire: Wire, one_more: Callable[[], None]) -> None:
        self._wire = wire
        self._one_more = one_more

    async def carry(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, patience: Patience
    ) -> Arrived:
        sight = SIGHT.get()
        if sight is None:
            return await self._wire.carry(method, url, headers, content, patience)
        sight.requests += 1
        if sight.requests > 1:
            self._one_more()
        sight.failed, sight.cause = True, "no answer in time"
        try:
            arrived = await self._wire.carry(method, url, headers, content, patience)
        except Exception as error:
            sight.cause = cause_of(error)
            raise
        sight.failed, sight.cause = arrived.status >= SERVER_ERROR, f"status {arrived.status}"
        return arrived

    async def aclose(self) -> None:
        """The wire belongs to who opened it."""


def witnessed(client: httpx.AsyncClient, one_more: Callable[[], None]) -> httpx.AsyncClient:
    """Build a client for one agent over the connections of the one that all share, whose owner closes it."""
    assert isinstance(client, Client)
    return Client(Witness(client.wire, one_more))
