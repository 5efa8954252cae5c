"""Exchanges as a job makes them: one client over either carrier, in uvloop."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx
import pytest

from reattach.adapters import http

T = TypeVar("T")


def run(work: Callable[[httpx.AsyncClient], Awaitable[T]], carrier: str, *, connections_max: int = 8) -> T:
    """Run with the loop of a job, and close the client."""

    async def main() -> T:
        client = http.open_client(connections_max=connections_max, carrier=carrier)
        try:
            async with asyncio.timeout(30):
                return await work(client)
        finally:
            await client.aclose()

    uvloop = pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())
