"""A hostile server cannot fill the memory: bodies, lines, events and nesting have limits."""

import asyncio
import json
import tracemalloc
from collections.abc import AsyncGenerator, Callable

import pytest

from reattach.adapters import http
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.sse import EVENT_BYTES_MAX, EventTooLong, events
from reattach.adapters.thread import ThreadAdapter
from reattach.adapters.wire import Arrived
from reattach.models.answers import Absent, Phase, Present, ProbeAnswer, Progress, Unknown
from tests.adapters import wire

CARRIERS = ["httptools", "httpx"]
MB = 1024 * 1024


def probe(url: str, carrier: str = "httptools", *, thread_id: str = "", marker: str = "") -> ProbeAnswer:
    async def work() -> ProbeAnswer:
        client = http.open_client(carrier=carrier)
        adapter = ThreadAdapter(client, Endpoint(url), agent="a", marker=marker, result_bytes_max=MB)
        try:
            async with asyncio.timeout(20):
                return await adapter.probe(wire.invocation(thread_id=thread_id))
        finally:
            await client.aclose()

    return asyncio.run(work())


def watch(url: str, carrier: str = "httptools") -> list[Progress]:
    async def work() -> list[Progress]:
        client = http.open_client(carrier=carrier)
        adapter = ThreadAdapter(client, Endpoint(url), agent="a")
        try:
            async with asyncio.timeout(30):
                return [item async for item in adapter.watch(wire.invocation(), "")]
        finally:
            await client.aclose()

    return asyncio.run(work())


def peak_bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("carrier", CARRIERS)
def test_an_endless_body_is_left_at_the_limit(carrier: str) -> None:
    def work() -> None:
        answer = probe(server.url, carrier)
        assert isinstance(answer, Unknown) and "over 2162688 bytes" in answer.cause

    with wire.Server(wire.sends_without_end) as server:
        assert peak_bytes(work) < 12 * MB


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_result_over_the_limit_is_known_to_be_one(carrier: str) -> None:
    """Else the call would ask for it until its deadline. Only its length is used, by `result_too_large`."""
    for start, end in (
        (b'{"status": "completed", "result": "', b'"}'),
        (b'{ "a" :[1], "status":"completed","result":[[', b"]]}"),
    ):
        body = start + b"1" * 5 * MB + end
        with wire.Server(wire.answers(wire.reply(body))) as server:
            answer = probe(server.url, carrier)
        assert isinstance(answer, Present) and answer.result is not None and len(answer.result) > MB


OVERLONG = [
    b'{"status": "running", "x": "' + b"1" * 5 * MB + b'"}',
    b'{"result": "' + b"1" * 5 * MB + b'", "status": "completed"}',
    b'{"status": "completed", "thread_id": "t-other", "x": "' + b"1" * 5 * MB + b'"}',
    b'{"status": "not_started", "x": "' + b"1" * 5 * MB + b'"}',
    b" " * 5 * MB,
    b"[" * 5 * MB,
    b'{"a":' * MB,
]


@pytest.mark.parametrize("status", ["200 OK", "404 Not Found"])
@pytest.mark.parametrize("body", OVERLONG, ids=range(len(OVERLONG)))
def test_another_answer_over_the_limit_is_no_absence(body: bytes, status: str) -> None:
    with wire.Server(wire.answers(wire.reply(body, status))) as server:
        answer = probe(server.url)
    assert answer == Present(Phase.RUNNING) or (isinstance(answer, Unknown) and answer.cause)


def test_an_overlong_answer_says_nothing_of_a_shared_thread_without_its_marker() -> None:
    body = b'{"status": "completed", "result": "' + b"1" * 5 * MB + b'", "last_message_id": "call-1"}'
    with wire.Server(wire.answers(wire.reply(body))) as server:
        assert isinstance(probe(server.url, thread_id="t", marker="last_message_id"), Unknown)


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_compressed_body_is_not_unpacked(carrier: str) -> None:
    with wire.Server(
        wire.answers(wire.reply(b"\x1f\x8b" + b"0" * 99, "200 OK", "application/json", "Content-Encoding: gzip"))
    ) as server:
        answer = probe(server.url, carrier)
        assert b"accept-encoding: identity" in server.whole[0].lower()
    assert isinstance(answer, Unknown) and "compressed" in answer.cause


BODIES = {
    "deep arrays": (b"[" * 200_000, "nested too deep"),
    "deep objects": (b'{"a":' * 200_000, "nested too deep"),
    "not UTF-8": (b'{"status": "\xff\xfe"}', "not UTF-8"),
    "UTF-16": ('{"status": "not_started"}'.encode("utf-16"), "not UTF-8"),
    "not JSON": (b"<html>", "not JSON"),
    "empty": (b"", "not JSON"),
    "a list": (b"[]", "not a JSON object"),
    "NaN": (b'{"status": "completed", "result": NaN}', "not JSON"),
    "huge number": (b'{"status": "completed", "result": ' + b"1" * 10_000 + b"}", "not JSON"),
    "no status": (b"{}", "unknown status None"),
    "other status": (b'{"status": "exploded\\nbadly"}', r"unknown status 'exploded\nbadly'"),
    "status of a wrong kind": (b'{"status": {"a": 1}}', "unknown status"),
    "started": (b'{"status": "started"}', "not an answer"),
    "another thread": (b'{"status": "not_started", "thread_id": "t-other"}', "another thread"),
}


@pytest.mark.parametrize("name", BODIES)
def test_an_answer_that_makes_no_sense_is_unknown(name: str) -> None:
    body, cause = BODIES[name]
    with wire.Server(wire.answers(wire.reply(body))) as server:
        answer = probe(server.url)
    assert isinstance(answer, Unknown), answer
    assert cause in answer.cause and answer.cause.isprintable() and len(answer.cause) < 300
    assert not answer.final


@pytest.mark.parametrize(("body", "kind"), [(b"<h1>404</h1>", "text/html"), (b"{}", "text/plain"), (b"", "")])
def test_a_gateways_404_is_no_absence(body: bytes, kind: str) -> None:
    page = wire.reply(body, "404 Not Found", kind)
    with wire.Server(wire.answers(page)) as server:
        assert isinstance(probe(server.url), Unknown)


def test_the_agent_servers_404_is_an_absence() -> None:
    with wire.Server(wire.answers(wire.reply(b'{"detail": "no such thread"}', "404 Not Found"))) as server:
        assert probe(server.url) == Absent(None)
        assert probe(server.url, thread_id="t", marker="last_message_id") == Absent("")


def test_a_cached_answer_is_no_absence() -> None:
    body = wire.reply(b'{"status": "not_started"}', "200 OK", "application/json", "Age: 30")
    with wire.Server(wire.answers(body)) as server:
        answer = probe(server.url)
        assert b"cache-control: no-cache" in server.whole[0].lower()
    assert isinstance(answer, Unknown) and "cache" in answer.cause


def test_lone_surrogates_in_a_result_stay_escapes() -> None:
    body = b'{"status": "completed", "result": "\\ud800 \xc3\xbc"}'
    with wire.Server(wire.answers(wire.reply(body))) as server:
        answer = probe(server.url)
    assert isinstance(answer, Present) and answer.result is not None
    assert json.loads(answer.result) == "\ud800 ü"


def stream(*chunks: bytes, repeat: int = 1) -> Callable[..., None]:
    def behave(server: wire.Server, connection: object) -> None:
        import socket

        assert isinstance(connection, socket.socket)
        server.request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for _ in range(repeat):
            for chunk in chunks:
                connection.sendall(chunk)

    return behave


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_line_of_100_mb_is_not_buffered(carrier: str) -> None:
    def work() -> None:
        assert watch(server.url, carrier) == [Progress(b"1")]

    with wire.Server(stream(b"event: progress\ndata: 1\n\nevent: progress\ndata: ", *[b"x" * MB] * 100)) as server:
        assert peak_bytes(work) < 8 * MB


@pytest.mark.parametrize("line", [b"data: 1\n", b"data: 1\r\n", b"data: 1\r", b": c\n", b"retry: 1\r\n"])
def test_an_event_without_end_is_not_buffered(line: bytes) -> None:
    with wire.Server(stream(b"event: progress\n", line * 5_000, repeat=400)) as server:
        assert peak_bytes(lambda: watch(server.url)) < 16 * MB


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_a_long_stream_of_short_events_passes(end: bytes) -> None:
    event = b"event: progress\ndata: {}" + end
    with wire.Server(stream(event * 1_000, b": heartbeat" + end, repeat=20)) as server:
        assert len(watch(server.url)) == 20_000


def test_events_pass_whatever_their_chunks() -> None:
    text = (
        'event: progress\ndata: {"ü": 1}\n\nevent: other\ndata: 2\n\nevent: progress\ndata: not json\n\nevent: end\n\n'
    )

    async def chunks(size: int) -> list[str]:
        async def pieces() -> AsyncGenerator[bytes]:
            data = text.encode()
            for start in range(0, len(data), size):
                yield data[start : start + size]

        return [event.data async for event in events(_Pieces(pieces()))]

    for size in range(1, len(text)):
        assert asyncio.run(chunks(size)) == ['{"ü": 1}', "2", "not json", ""]


def test_one_long_line_raises() -> None:
    async def work() -> None:
        async def pieces() -> AsyncGenerator[bytes]:
            while True:
                yield b"x" * 1000

        with pytest.raises(EventTooLong):
            async for _ in events(_Pieces(pieces()), 10_000):
                pass

    asyncio.run(work())
    assert EVENT_BYTES_MAX < MB


class _Pieces(Arrived):
    """The answer of nobody, in these pieces."""

    def __init__(self, pieces: AsyncGenerator[bytes]) -> None:
        self.status, self.headers = 200, {}
        self._pieces = pieces

    async def chunk(self) -> bytes:
        return await anext(self._pieces, b"")

    async def aclose(self) -> None:
        await self._pieces.aclose()


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=zlib_codec\r\nContent-Length: 0\r\n\r\n",
        b"\x00",
    ],
)
def test_what_is_no_event_stream_just_ends(head: bytes) -> None:
    with wire.Server(wire.answers(head)) as server:
        assert watch(server.url) == []
