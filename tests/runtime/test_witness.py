"""What is seen of an order's requests below its adapter."""

import asyncio
from typing import Any

import httpx
import pytest

from reattach.adapters import http
from reattach.runtime.witness import SIGHT, Sight, witnessed
from tests.runtime.wired import Net


def seen(*statuses: Any) -> tuple[Sight, int]:
    """Make these requests, one after the other, as one order would."""
    net, sight, more = Net(), Sight(), 0

    def one_more() -> None:
        nonlocal more
        more += 1

    async def order() -> None:
        SIGHT.set(sight)
        client = witnessed(net.open_client(connections_max=1), one_more)
        for status in statuses:
            net["remote"].status = status
            await http.read(client, "http://remote/", {}, 100)

    asyncio.run(order())
    assert len(net["remote"].asked) == len(statuses)
    return sight, more


@pytest.mark.parametrize(
    ("statuses", "failed"),
    [
        ((), None),
        ((200,), False),
        ((499,), False),
        ((500,), True),
        ((httpx.ConnectError("no"),), True),
        ((503, 200), False),
        ((200, httpx.ReadError("broke")), True),
    ],
    ids=repr,
)
def test_the_last_request_decides(statuses: Any, failed: bool | None) -> None:
    assert seen(*statuses)[0].failed is failed


def test_each_request_beyond_the_first_is_told() -> None:
    assert [seen(*[200] * count)[1] for count in (0, 1, 2, 5)] == [0, 0, 1, 4]


def test_what_is_no_orders_request_is_only_carried() -> None:
    net = Net()
    client = witnessed(net.open_client(connections_max=1), lambda: pytest.fail("told"))
    for _ in range(3):
        asyncio.run(http.read(client, "http://remote/", {}, 100))
    assert len(net["remote"].asked) == 3
