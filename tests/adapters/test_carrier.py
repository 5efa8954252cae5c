"""The carrier's own ways with its connections: when one is used again, and when it must not be."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from reattach.adapters import carrier, connection, http
from reattach.adapters.wire import Patience
from tests.adapters import wire
from tests.adapters.loop import run

MB = 1024 * 1024
Behaviour = Callable[[wire.Server, socket.socket], None]


def answering(*answers: bytes, more: bytes = b"") -> Behaviour:
    """Answer one request after the other on a connection, then wait for its end."""

    def behave(server: wire.Server, one: socket.socket) -> None:
        for answer in answers:
            if not server.request(one):
                break
            one.sendall(answer + more)
        assert one.recv(1) == b"", "ended in order"
        server.done.set()

    return behave


def get(url: str) -> Callable[[httpx.AsyncClient], Awaitable[http.Answer]]:
    return lambda client: http.read(client, url, {}, 1_000)


async def twice(client: httpx.AsyncClient, url: str) -> tuple[http.Answer, http.Answer]:
    return await get(url)(client), await get(url)(client)


def test_a_connection_is_used_again() -> None:
    with wire.Server(answering(wire.reply(), wire.reply())) as server:
        answers = run(lambda client: twice(client, server.url), "httptools")
        assert [type(one) for one in answers] == [http.Reply, http.Reply]
        assert (server.connections, len(server.whole)) == (1, 2)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        pytest.param(wire.reply(b"{}") + b"HTTP/1.1 200 OK\r\n\r\n", b"{}", id="a second answer"),
        pytest.param(wire.reply(b"{}") + b"nonsense", b"{}", id="bytes of nothing"),
        pytest.param(wire.reply(b"{}", "200 OK", "text/plain", "Connection: close"), b"{}", id="asked to close"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", b"{}", id="an old protocol"),
    ],
)
def test_a_connection_that_is_not_fit_is_not_used_again(answer: bytes, body: bytes) -> None:
    with wire.Server(answering(answer, answer)) as server:
        answers = run(lambda client: twice(client, server.url), "httptools")
        assert [one.body for one in answers if isinstance(one, http.Reply)] == [body, body]
        assert server.connections == 2


def test_bytes_that_nobody_asked_for_end_a_connection() -> None:
    said = threading.Event()

    def behave(server: wire.Server, one: socket.socket) -> None:
        server.request(one)
        one.sendall(wire.reply())
        if server.connections == 1:
            said.wait(5)
            one.sendall(wire.reply(b'{"of":"nobody"}'))
            assert one.recv(1) == b""
            server.done.set()

    async def work(client: httpx.AsyncClient) -> http.Answer:
        await get(server.url)(client)
        said.set()
        await asyncio.to_thread(server.done.wait, 5)
        return await get(server.url)(client)

    with wire.Server(behave) as server:
        answer = run(work, "httptools")
        assert isinstance(answer, http.Reply) and answer.body == b"{}"
        assert server.connections == 2


def test_a_body_may_last_until_the_connection_ends() -> None:
    def behave(server: wire.Server, one: socket.socket) -> None:
        server.request(one)
        one.sendall(b"HTTP/1.1 200 OK\r\n\r\n{")
        one.sendall(b"}")

    with wire.Server(behave) as server:
        assert run(get(server.url), "httptools") == http.Reply(200, {}, b"{}")


def test_an_answer_that_comes_before_the_request_has_left_ends_the_connection() -> None:
    """Else the rest of this request would be the beginning of the next one."""

    def behave(server: wire.Server, one: socket.socket) -> None:
        one.recv(1_000)
        one.sendall(wire.reply(b"", "413 Too Large"))
        server.done.wait(5)

    async def work(client: httpx.AsyncClient) -> list[http.Answer]:
        post = [await http.send_once(client, server.url, {}, b"1" * 24 * MB, 1_000) for _ in range(2)]
        server.done.set()
        return post

    with wire.Server(behave, receive_buffer=8_192) as server:
        answers = run(work, "httptools")
        assert [one.status for one in answers if isinstance(one, http.Reply)] == [413, 413]
        assert server.connections == 2


def test_an_idle_connection_is_ended_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """By us, before a server would do it while a request is on its way."""
    monkeypatch.setattr(carrier, "KEEPALIVE_S", 0.1)

    async def work(client: httpx.AsyncClient) -> bool:
        await get(server.url)(client)
        return await asyncio.to_thread(server.done.wait, 5)

    with wire.Server(answering(wire.reply())) as server:
        assert run(work, "httptools")


def test_one_that_has_been_idle_for_too_long_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1_000.0
    monkeypatch.setattr("reattach.adapters.carrier.time.monotonic", lambda: now_s)

    async def work(client: httpx.AsyncClient) -> None:
        nonlocal now_s
        await get(server.url)(client)
        now_s += carrier.KEEPALIVE_S
        await get(server.url)(client)

    with wire.Server(answering(wire.reply(), wire.reply())) as server:
        run(work, "httptools")
        assert server.connections == 2


def test_of_the_idle_ones_only_those_are_ended_that_are_old(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1_000.0
    monkeypatch.setattr("reattach.adapters.carrier.time.monotonic", lambda: now_s)

    async def work() -> int:
        nonlocal now_s
        one = carrier.Carrier(connections_max=2, tls=http.verifying())
        client = http.Client(one)
        await asyncio.gather(get(server.url)(client), get(server.url)(client))
        now_s += 2
        await get(server.url)(client)
        now_s += 2
        one._end_idle()
        await asyncio.to_thread(server.done.wait, 5)
        left = sum(map(len, one._idle.values()))
        await client.aclose()
        return left

    with wire.Server(answering(wire.reply(), wire.reply())) as server:
        assert asyncio.run(work()) == 1
        assert server.connections == 2


def test_who_waits_for_a_connection_gets_the_next_free_one() -> None:
    async def work(client: httpx.AsyncClient) -> list[http.Answer]:
        await get(server.url)(client)
        return list(await asyncio.gather(*(get(server.url)(client) for _ in range(4))))

    with wire.Server(answering(*[wire.reply()] * 5)) as server:
        answers = run(work, "httptools", connections_max=1)
        assert {type(one) for one in answers} == {http.Reply}
        assert (server.connections, len(server.whole)) == (1, 5)


def test_an_idle_connection_gives_way_to_one_elsewhere() -> None:
    async def work(client: httpx.AsyncClient) -> http.Answer:
        await get(server.url)(client)
        return await get(other.url)(client)

    with wire.Server(answering(wire.reply())) as server, wire.Server(answering(wire.reply())) as other:
        assert isinstance(run(work, "httptools", connections_max=1), http.Reply)
        assert server.done.wait(5)


def test_who_waits_when_the_client_is_closed_is_told() -> None:
    async def work(client: httpx.AsyncClient) -> tuple[http.Answer, http.Answer]:
        first = asyncio.ensure_future(get(server.url)(client))
        await asyncio.to_thread(server.done.wait, 5)
        second = asyncio.ensure_future(get(server.url)(client))
        while not client.wire._waiting:  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        await client.aclose()
        return await first, await second

    def behave(server: wire.Server, one: socket.socket) -> None:
        server.request(one)
        server.done.set()
        one.recv(1)

    with wire.Server(behave) as server:
        first, second = run(work, "httptools", connections_max=1)
        assert isinstance(first, http.Lost)
        assert second == http.Unsent("ConnectError: no connection")


def test_a_connection_that_comes_about_while_the_client_is_closed_carries_nothing() -> None:
    async def work() -> None:
        one = carrier.Carrier(connections_max=1, tls=http.verifying())
        asked = asyncio.create_task(one.carry("POST", server.url, {}, b"{}", Patience(5, 5)))
        await asyncio.sleep(0)
        assert one._opening
        await one.aclose()
        with pytest.raises(httpx.ConnectError):
            await asked

    with wire.Server(answering(wire.reply())) as server:
        asyncio.run(work())
        assert not server.whole


@pytest.mark.parametrize("name", ["", "a b", "a:", "ä", "a\n"])
def test_a_name_that_no_header_can_have_is_not_sent(name: str) -> None:
    with wire.Server(answering()) as server:
        for one in ("httptools", "httpx"):
            answer = run(lambda client: http.read(client, server.url, {name: "1"}, 10), one)
            assert answer == http.Unsent("the request cannot be written (a header that cannot be sent)")
        assert server.connections == 0


@pytest.mark.parametrize("value", ["a\r\nX: 1", "a\nb", "\0", "a\x7f", "\ud800"])
@pytest.mark.parametrize("carried", ["httptools", "httpx"])
def test_a_value_that_no_header_can_have_is_not_sent(value: str, carried: str) -> None:
    with wire.Server(answering()) as server:
        answer = run(lambda client: http.read(client, server.url, {"a": value}, 10), carried)
        assert isinstance(answer, http.Unsent) and "the request cannot be written" in answer.cause
        assert server.connections == 0


def test_what_is_not_read_holds_the_server_back() -> None:
    """Of an answer without end only so much is held."""
    sent = 0

    def behave(server: wire.Server, one: socket.socket) -> None:
        nonlocal sent
        server.request(one)
        one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n")
        one.settimeout(1)
        try:
            while True:
                sent += one.send(b"x" * MB)
        except OSError:
            server.done.set()

    async def work(client: httpx.AsyncClient) -> tuple[int, int]:
        async with http.open_stream(client, server.url, {}) as arrived:
            assert isinstance(arrived, connection.Incoming)
            await asyncio.to_thread(server.done.wait, 20)
            held = sum(map(len, arrived._chunks))
            return held, len(await arrived.chunk())

    with wire.Server(behave) as server:
        held, taken = run(work, "httptools")
        assert connection.BUFFER_BYTES_MAX < held == taken < 4 * MB
        assert sent < 64 * MB


def test_a_long_body_comes_whole() -> None:
    """Also what was held back."""
    body = bytes(range(256)) * 40_000
    with wire.Server(answering(wire.reply(body), wire.reply())) as server:

        async def work(client: httpx.AsyncClient) -> tuple[bytes, http.Answer]:
            async with http.open_stream(client, server.url, {}) as arrived:
                assert isinstance(arrived, connection.Incoming)
                pieces = []
                while piece := await arrived.chunk():
                    pieces.append(piece)
                    await asyncio.sleep(0)
            return b"".join(pieces), await get(server.url)(client)

        taken, again = run(work, "httptools")
        assert taken == body and isinstance(again, http.Reply)
        assert server.connections == 1


class TestClientOfHttpx:
    """All of httpx's API is there for adapters that want it."""

    def test_answers_come_as_from_httpx_itself(self) -> None:
        async def work(client: httpx.AsyncClient) -> list[Any]:
            answer = await client.post(server.url + "/x", json={"a": 1}, headers={"X-Mine": "1"})
            return [answer.status_code, answer.headers["content-type"], answer.json()]

        with wire.Server(answering(wire.reply(b'{"b":2}'))) as server:
            assert run(work, "httptools") == [200, "application/json", {"b": 2}]
            (request,) = server.whole
            head, _, body = request.partition(b"\r\n\r\n")
            assert body == b'{"a":1}' and b"x-mine: 1" in head.lower()
            assert head.lower().count(b"content-length") == head.lower().count(b"host:") == 1

    def test_its_own_time_limit_counts(self) -> None:
        async def work(client: httpx.AsyncClient) -> str:
            with pytest.raises(httpx.ReadTimeout) as caught:
                await client.get(server.url, timeout=0.2)
            return str(caught.value)

        with wire.Server(wire.is_silent) as server:
            assert run(work, "httptools") == "no answer in time"

    def test_what_cannot_be_requested_is_told(self) -> None:
        async def work(client: httpx.AsyncClient) -> None:
            with pytest.raises(httpx.UnsupportedProtocol):
                await client.get("ftp://127.0.0.1/")

        run(work, "httptools")


def test_headers_of_an_answer_are_found_by_any_case_and_joined() -> None:
    answer = b"HTTP/1.1 200 OK\r\nX-One: a\r\nx-one: b\r\nContent-Length: 0\r\n\r\n"
    with wire.Server(answering(answer)) as server:
        found = run(get(server.url), "httptools")
        assert isinstance(found, http.Reply)
        assert found.headers["X-ONE"] == found.headers.get("x-One") == "a, b"
        assert found.headers.get("Y", "none") == "none"
