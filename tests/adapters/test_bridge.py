"""Why the published bridge from httpx to aiohttp is not used, and that the seam is safe even over it.

The first two tests pin its faults: when one of them fails, the bridge was mended, and
`adapters/carrier.py` may be worth giving up.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from reattach.adapters import http
from tests.adapters import wire

bridge = pytest.importorskip("httpx_aiohttp")


def run(work: Callable[[httpx.AsyncClient], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with bridge.HttpxAiohttpClient() as client:
            return await work(client)

    return asyncio.run(main())


@pytest.mark.parametrize("fault", [wire.hangs_up_after_the_request, wire.resets_after_the_request])
def test_the_bridge_calls_a_post_that_arrived_a_connect_timeout(fault: Any) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        with pytest.raises(httpx.ConnectTimeout):
            await client.post(server.url, content=b"{}")

    with wire.Server(fault) as server:
        run(work)
        assert len(server.whole) == 1


def test_the_bridge_resolves_dots_in_an_escaped_path() -> None:
    async def work(client: httpx.AsyncClient) -> None:
        await client.get(server.url + "/threads/%2E%2E/messages")

    with wire.Server(wire.answers(wire.reply())) as server:
        run(work)
        assert server.whole[0].startswith(b"GET /messages ")


@pytest.mark.parametrize("fault", [wire.hangs_up_after_the_request, wire.resets_after_the_request])
def test_the_seam_does_not_believe_the_bridge(fault: Any) -> None:
    async def work(client: httpx.AsyncClient) -> http.Answer:
        return await http.send_once(client, server.url, {}, b"{}", 1000)

    with wire.Server(fault) as server:
        assert isinstance(run(work), http.Lost)
        assert len(server.whole) == 1


def test_the_seam_believes_the_bridge_where_it_is_right() -> None:
    async def work(client: httpx.AsyncClient) -> http.Answer:
        return await http.send_once(client, "http://127.0.0.1:9", {}, b"{}", 1000)

    assert isinstance(run(work), http.Unsent)
