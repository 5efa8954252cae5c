"""The fault proxy does what it is told, and no more, to requests that pass it."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from reattach.runtime.proxy.faults import (
    Answer,
    Cut,
    Exchange,
    Hold,
    Silence,
    Split,
    Stall,
    Twice,
    Where,
    writes,
)
from reattach.runtime.proxy.proxy import FaultProxy

EVENTS = b": hello\n\ndata: 1\n\nevent: x\r\ndata: 2\r\n\r\ndata: 3\n\n"
PATIENCE_S = 10.0


class Upstream(BaseHTTPRequestHandler):
    """Echoes bodies; `/events` is a chunked stream."""

    protocol_version = "HTTP/1.1"
    whole: list[tuple[str, str, bytes]]

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(length)
        return body if len(body) == length else b"CUT:" + body

    def do_POST(self) -> None:
        body = self._body()
        self.whole.append((self.command, self.path, body))
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Host", self.headers["Host"])
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.whole.append((self.command, self.path, b""))
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in (EVENTS[:20], EVENTS[20:], b""):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        return


class Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Broken connections are what these tests are about."""


@contextmanager
def upstream() -> Iterator[tuple[str, list[tuple[str, str, bytes]]]]:
    handler = type("Handler", (Upstream,), {"whole": []})
    server = Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/base", handler.whole  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_S)


class Setting:
    def __init__(self, proxy: FaultProxy, whole: list[tuple[str, str, bytes]]) -> None:
        self.proxy, self.whole = proxy, whole
        self.port = int(proxy.url.split(":")[2].partition("/")[0])

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def post(self, body: bytes = b"0123456789") -> tuple[int, bytes]:
        connection = self.connect()
        try:
            connection.request("POST", "/base/jobs?a=b", body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def last(self) -> Exchange:
        exchange = self.proxy.exchanges[-1]
        assert self.proxy.wait(exchange, PATIENCE_S)
        return exchange


@pytest.fixture
def setting() -> Iterator[Setting]:
    with upstream() as (url, whole), FaultProxy(url) as proxy:
        yield Setting(proxy, whole)


def test_requests_pass_on_one_connection_and_are_noted(setting: Setting) -> None:
    connection = setting.connect()
    for number in range(3):
        connection.request("POST", f"/base/{number}", b"x" * number)
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (201, b"x" * number)
        assert answer.headers["X-Host"] == f"127.0.0.1:{setting.proxy.port}"
    connection.close()
    assert [(one.method, one.path, one.forwarded, one.statuses) for one in setting.proxy.exchanges] == [
        ("POST", f"/base/{number}", 1, [201]) for number in range(3)
    ]
    assert bytes(setting.last().answer) == b"xx"


def test_chunked_bodies_pass_both_ways(setting: Setting) -> None:
    connection = setting.connect()
    connection.request("POST", "/base/x", iter([b"ab", b"c"]), encode_chunked=True)
    assert connection.getresponse().read() == b"abc"
    connection.request("GET", "/base/events")
    assert connection.getresponse().read() == EVENTS
    connection.close()


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize(
    ("where", "forwarded", "reached"),
    [
        (Where.BEFORE, 0, False),
        (Where.REQUEST, 0, True),
        (Where.SENT, 1, True),
        (Where.ANSWERED, 1, True),
        (Where.HEAD, 1, True),
    ],
)
def test_cuts_before_a_status_leave_the_client_without_an_answer(
    setting: Setting, where: Where, forwarded: int, reached: bool, reset: bool
) -> None:
    rule = setting.proxy.rule(Cut(where, 4, reset=reset), match=writes)
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        setting.post()
    exchange = setting.last()
    assert rule.hits == [exchange]
    assert (exchange.forwarded, exchange.reached) == (forwarded, reached)
    if where in (Where.ANSWERED, Where.HEAD):
        assert setting.whole == [("POST", "/base/jobs?a=b", b"0123456789")]
    assert setting.post() == (201, b"0123456789")


def test_a_cut_within_the_request_lets_so_many_bytes_pass(setting: Setting) -> None:
    for at, passed in ((4, b"0123"), (-1, b"012345678")):
        setting.proxy.rule(Cut(Where.REQUEST, at))
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            setting.post()
        setting.proxy.clear()
        setting.post(b"after")
        while len(setting.whole) < 2:
            pass
        assert ("POST", "/base/jobs?a=b", b"CUT:" + passed) in setting.whole
        setting.whole.clear()


@pytest.mark.parametrize("at", [0, 3, 10, 99])
def test_a_cut_within_the_answer_lets_so_many_bytes_pass(setting: Setting, at: int) -> None:
    setting.proxy.rule(Cut(Where.BODY, at))
    connection = setting.connect()
    connection.request("POST", "/base/x", b"0123456789")
    answer = connection.getresponse()
    assert answer.status == 201
    assert answer.read(min(at, 10)) == b"0123456789"[:at]
    assert connection.sock is not None
    assert connection.sock.recv(1) == b""
    connection.close()


@pytest.mark.parametrize(("events", "end"), [(1, EVENTS.find(b"event")), (2, EVENTS.find(b"data: 3"))])
def test_a_stream_is_cut_or_stalled_after_whole_events(setting: Setting, events: int, end: int) -> None:
    setting.proxy.rule(Cut(Where.BODY, events=events))
    connection = setting.connect()
    connection.request("GET", "/base/events")
    assert connection.getresponse().read(end) == EVENTS[:end]
    connection.close()
    setting.proxy.clear()
    rule = setting.proxy.rule(Stall(events))
    connection = setting.connect()
    connection.request("GET", "/base/events")
    answer = connection.getresponse()
    assert answer.read(end) == EVENTS[:end]
    assert connection.sock is not None
    connection.sock.settimeout(0.05)
    with pytest.raises(TimeoutError):
        answer.read(1)
    connection.close()
    assert setting.last().client_gone
    rule.release()


def test_what_was_stalled_comes_whole_after_the_release(setting: Setting) -> None:
    for fault in (Stall(1), Silence()):
        rule = setting.proxy.rule(fault)
        threading.Timer(0.05, rule.release).start()
        connection = setting.connect()
        connection.request("GET", "/base/events")
        assert connection.getresponse().read() == EVENTS
        connection.close()
        setting.proxy.clear()


def test_a_held_request_lands_when_it_is_released(setting: Setting) -> None:
    rule = setting.proxy.rule(Hold(reset=True))
    with pytest.raises(ConnectionError):
        setting.post()
    assert not setting.whole and not rule.hits[0].over
    rule.release()
    assert setting.last().statuses == [201]
    assert setting.whole == [("POST", "/base/jobs?a=b", b"0123456789")]


def test_a_request_is_doubled(setting: Setting) -> None:
    setting.proxy.rule(Twice())
    assert setting.post()[0] == 201
    assert setting.last().forwarded == 2 and len(setting.whole) == 2


@pytest.mark.parametrize("forward", [False, True])
def test_it_answers_in_the_servers_stead(setting: Setting, forward: bool) -> None:
    setting.proxy.rule(Answer(504, {"Retry-After": "1"}, b"gateway", forward=forward))
    assert setting.post() == (504, b"gateway")
    assert len(setting.whole) == forward
    assert setting.post() == (201, b"0123456789")


def test_its_own_answers_are_long_endless_or_no_http(setting: Setting) -> None:
    setting.proxy.rule(Answer(200, {}, b"x" * 1000, repeat=50))
    assert setting.post() == (200, b"x" * 50_000)
    setting.proxy.rule(Answer(200, {}, b"x" * 1000, repeat=0))
    connection = setting.connect()
    connection.request("GET", "/")
    assert len(connection.getresponse().read(100_000)) == 100_000
    connection.close()
    setting.proxy.rule(Answer(raw=b"SSH-2.0\r\n\r\n"))
    with pytest.raises(http.client.BadStatusLine):
        setting.post()


def pieces(setting: Setting) -> list[bytes]:
    """The chunks of an answer as they stand on the wire."""
    with socket.create_connection(("127.0.0.1", setting.port), PATIENCE_S) as sock:
        sock.sendall(b"GET /base/events HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        data = b""
        while chunk := sock.recv(65536):
            data += chunk
    body, found = data.partition(b"\r\n\r\n")[2], []
    while body != b"0\r\n\r\n":
        size, _, body = body.partition(b"\r\n")
        found.append(body[: int(size, 16)])
        body = body[int(size, 16) + 2 :]
    return found


def test_bodies_are_split_into_pieces(setting: Setting) -> None:
    setting.proxy.rule(Split(1))
    assert pieces(setting) == [bytes([one]) for one in EVENTS]
    setting.proxy.rule(Split(7))
    assert b"".join(found := pieces(setting)) == EVENTS and max(map(len, found)) == 7


def test_rules_meet_what_they_match_and_as_often_as_they_say(setting: Setting) -> None:
    setting.proxy.rule(Answer(418), match=writes, skip=1, times=2)
    assert [setting.post()[0] for _ in range(4)] == [201, 418, 418, 201]
    setting.proxy.clear()
    setting.proxy.rule(Answer(418), times=0)
    assert [setting.post()[0] for _ in range(3)] == [418] * 3
    setting.proxy.clear()
    assert setting.post()[0] == 201


def test_a_client_that_goes_away_takes_its_request_with_it(setting: Setting) -> None:
    setting.proxy.rule(Silence())
    with socket.create_connection(("127.0.0.1", setting.port), PATIENCE_S) as sock:
        sock.sendall(b"GET /base/events HTTP/1.1\r\nHost: x\r\n\r\n")
        while not (setting.proxy.exchanges and setting.proxy.exchanges[-1].forwarded):
            pass
    assert setting.last().client_gone


def test_a_server_that_is_down_is_a_broken_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with FaultProxy(f"http://127.0.0.1:{port}") as proxy, pytest.raises((ConnectionError, http.client.HTTPException)):
        Setting(proxy, []).post()


@pytest.mark.parametrize("url", ["https://127.0.0.1", "127.0.0.1:80", ""])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="plain http"):
        FaultProxy(url)
