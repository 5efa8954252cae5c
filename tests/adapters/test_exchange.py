"""What an exchange came to, over real sockets, for both carriers: the mapping that a POST's safety rests on.

Every case is judged by what the *server* had: if it had the whole request, the answer must not say
`Unsent`, and whatever happens it has it once.
"""

import asyncio
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from reattach.adapters import http
from reattach.adapters.wire import Patience
from tests.adapters import wire
from tests.adapters.loop import run

CARRIERS = ["httptools", "httpx"]
FAULTS: dict[Callable[[wire.Server, socket.socket], None], type] = {
    wire.hangs_up_after_the_request: http.Lost,
    wire.resets_after_the_request: http.Lost,
    wire.resets_after_ten_bytes: http.Lost,
    wire.hangs_up_at_once: http.Lost,
    wire.cuts_the_head: http.Lost,
    wire.speaks_no_http: http.Lost,
    wire.sends_a_huge_head: http.Lost,
    wire.cuts_the_body: http.Reply,
    wire.sends_without_end: http.Reply,
}


async def post(client: httpx.AsyncClient, url: str, content: bytes = b'{"a":1}') -> http.Answer:
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    return await http.send_once(client, url + "/x", headers, content, 1000)


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("size", [10, 3_000_000])
def test_a_post_is_had_once_at_most_and_never_called_unsent(
    fault: Callable[[wire.Server, socket.socket], None], carrier: str, size: int
) -> None:
    with wire.Server(fault) as server:
        answer = run(lambda client: post(client, server.url, b"1" * size), carrier)
    assert isinstance(answer, FAULTS[fault]), answer
    assert server.connections == 1
    assert len(server.whole) <= 1


@pytest.mark.parametrize("carrier", CARRIERS)
def test_s8_accepted_then_dropped_is_one_post(carrier: str) -> None:
    """S8: the server accepts, then drops the connection. Nothing below the engine sends it again."""

    async def work(client: httpx.AsyncClient) -> http.Answer:
        # A warm pool first: the retry that other clients do is for connections that were kept.
        await asyncio.gather(*(http.read(client, server.url + "/warm", {}, 1000) for _ in range(4)))
        answer = await post(client, server.url)
        await asyncio.sleep(0.3)
        return answer

    def behave(server: wire.Server, connection: socket.socket) -> None:
        while request := server.request(connection):
            if request.startswith(b"POST"):
                return
            connection.sendall(wire.reply())

    with wire.Server(behave) as server:
        answer = run(work, carrier)
        assert isinstance(answer, http.Lost)
        assert sum(request.startswith(b"POST") for request in server.whole) == 1


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_kept_connection_that_dies_costs_no_second_post(carrier: str) -> None:
    async def work(client: httpx.AsyncClient) -> tuple[http.Answer, http.Answer]:
        return await post(client, server.url), await post(client, server.url)

    with wire.Server(wire.dies_on_reuse) as server:
        first, second = run(work, carrier)
        assert isinstance(first, http.Reply) and first.status == 200
        assert isinstance(second, http.Lost)
        assert len(server.whole) == 2 and server.connections == 1


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("pause_s", [0.0, 0.001, 0.05])
def test_a_connection_closed_while_idle_never_makes_a_whole_post_unsent(carrier: str, pause_s: float) -> None:
    async def work(client: httpx.AsyncClient) -> list[http.Answer]:
        answers = []
        for _ in range(20):
            answers.append(await post(client, server.url))
            await asyncio.sleep(pause_s)
        return answers

    with wire.Server(wire.closes_idle) as server:
        answers = run(work, carrier)
        assert len(server.whole) <= len(answers)
        assert not any(isinstance(answer, http.Unsent) for answer in answers)
        assert sum(isinstance(answer, http.Reply) for answer in answers) == len(server.whole)


def test_a_read_may_be_repeated_by_the_carrier_and_a_post_is_not() -> None:
    """The reason for two functions: a GET is sent again when a kept connection dies."""

    async def work(client: httpx.AsyncClient) -> tuple[http.Answer, http.Answer]:
        await http.read(client, server.url, {}, 1000)
        return await http.read(client, server.url, {}, 1000), await post(client, server.url)

    with wire.Server(wire.dies_on_reuse) as server:
        again, posted = run(work, "httptools")
        assert isinstance(again, http.Reply) and isinstance(posted, http.Lost)
        gets = sum(request.startswith(b"GET") for request in server.whole)
        posts = sum(request.startswith(b"POST") for request in server.whole)
        assert (gets, posts) == (3, 1)


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("fault", [wire.hangs_up_after_the_request, wire.dies_on_reuse], ids=["fresh", "kept"])
def test_no_method_that_sends_once_is_sent_again(
    carrier: str, method: str, fault: Callable[[wire.Server, socket.socket], None]
) -> None:
    """HTTP calls PUT and DELETE idempotent, and carriers repeat such; what a job service makes of it, nobody knows."""
    kept = fault is wire.dies_on_reuse

    async def work(client: httpx.AsyncClient) -> http.Answer:
        if kept:
            await post(client, server.url)
        return await http.send_once(client, server.url, {}, b"{}", 1000, method=method)

    with wire.Server(fault) as server:
        answer = run(work, carrier)
        assert isinstance(answer, http.Lost)
        assert len(server.whole) == 1 + kept and server.connections == 1


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_refused_connection_is_unsent(carrier: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    answer = run(lambda client: post(client, url), carrier)
    assert isinstance(answer, http.Unsent)
    assert "refused" in answer.cause


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_name_that_does_not_resolve_is_unsent(carrier: str) -> None:
    answer = run(lambda client: post(client, "http://nobody.invalid"), carrier)
    assert isinstance(answer, http.Unsent)


@pytest.mark.parametrize("carrier", CARRIERS)
def test_no_connection_in_time_is_unsent(carrier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PATIENCE", Patience(connect_s=0.3, pool_s=5.0))
    with _full_backlog() as url:
        answer = run(lambda client: post(client, url), carrier)
    assert answer == http.Unsent("ConnectTimeout: no connection in time")


@contextlib.contextmanager
def _full_backlog() -> Iterator[str]:
    """A listener whose queue is full: the kernel drops further SYNs."""
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("carrier", CARRIERS)
def test_no_free_connection_in_time_is_unsent(carrier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PATIENCE", Patience(connect_s=5.0, pool_s=0.3))

    async def work(client: httpx.AsyncClient) -> http.Answer:
        first = asyncio.create_task(post(client, server.url))
        await asyncio.sleep(0.1)
        second = await post(client, server.url)
        first.cancel()
        return second

    with wire.Server(wire.is_silent) as server:
        answer = run(work, carrier, connections_max=1)
        assert isinstance(answer, http.Unsent)
        assert len(server.whole) == 1


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("url", ["ftp://127.0.0.1/x", "http:///x", "http://[::1/x", "nonsense", "http://[::1]/a b"])
def test_a_url_that_cannot_be_requested_is_unsent(carrier: str, url: str) -> None:
    answer = run(lambda client: http.send_once(client, url, {}, b"{}", 1000), carrier)
    assert isinstance(answer, http.Unsent), answer


@pytest.mark.parametrize("size", [1_000_000, 24_000_000])
@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_cancelled_post_stops_leaving(carrier: str, size: int) -> None:
    """A closed transport goes on writing its buffer: the POST would land, whole, after its caller gave up.

    Over the carrier that a job uses, also what the kernel holds is dropped, so that a POST of 1 MB of
    which the server has read nothing is gone; over plain httpx the kernel still delivers that much.
    """

    async def work(client: httpx.AsyncClient) -> None:
        task = asyncio.create_task(post(client, server.url, b"1" * size))
        await asyncio.sleep(0.3)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await asyncio.get_running_loop().run_in_executor(None, server.done.wait, 5)

    with wire.Server(wire.reads_late(1.0), receive_buffer=8192) as server:
        run(work, carrier)
        assert server.received < (100_000 if carrier == "httptools" else 12_000_000)


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (wire.hangs_up_after_the_request, "RemoteProtocolError"),
        (wire.resets_after_the_request, "ReadError"),
        (wire.resets_after_ten_bytes, "ReadError"),
        (wire.cuts_the_head, "RemoteProtocolError"),
        (wire.speaks_no_http, "RemoteProtocolError"),
    ],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_the_transport_names_faults_as_httpx_does(
    fault: Callable[[wire.Server, socket.socket], None], name: str
) -> None:
    async def work(client: httpx.AsyncClient) -> str:
        with pytest.raises(httpx.TransportError) as caught:
            await client.post(server.url, content=b"{}")
        return type(caught.value).__name__

    with wire.Server(fault) as server:
        assert run(work, "httptools") == name


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_body_that_stalls_after_its_status_is_a_reply(carrier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BODY_S", 0.3)
    with wire.Server(wire.stalls_in_the_body) as server:
        answer = run(lambda client: post(client, server.url), carrier)
    assert isinstance(answer, http.Reply)
    assert answer.status == 200 and answer.fault == "the body did not end within 0.3 s"


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_no_redirect_is_followed(carrier: str, status: str) -> None:
    with wire.Server(wire.answers(wire.reply(b"", status, "text/plain", "Location: /elsewhere"))) as server:
        answer = run(lambda client: post(client, server.url), carrier)
        assert isinstance(answer, http.Reply) and str(answer.status) == status[:3]
        assert len(server.whole) == 1


@pytest.mark.parametrize("carrier", CARRIERS)
def test_an_interim_answer_is_not_the_answer(carrier: str) -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    with wire.Server(wire.answers(interim + wire.reply(b"{}"))) as server:
        answer = run(lambda client: post(client, server.url), carrier)
    assert isinstance(answer, http.Reply) and answer.status == 200 and answer.body == b"{}"


@pytest.mark.parametrize("carrier", CARRIERS)
def test_the_environment_offers_no_proxy(carrier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with wire.Server(wire.answers(wire.reply())) as server:
        answer = run(lambda client: post(client, server.url), carrier)
    assert isinstance(answer, http.Reply)


@pytest.mark.parametrize("carrier", CARRIERS)
def test_an_untrusted_certificate_is_unsent(carrier: str) -> None:
    """TLS fails before the request: nothing left."""

    def behave(server: wire.Server, connection: socket.socket) -> None:
        connection.recv(10)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with wire.Server(behave) as server:
        answer = run(lambda client: post(client, server.url.replace("http:", "https:")), carrier)
    assert isinstance(answer, http.Unsent), answer
    assert not server.whole


@pytest.mark.parametrize("carrier", CARRIERS)
def test_after_close_nothing_is_sent(carrier: str) -> None:
    async def work(client: httpx.AsyncClient) -> http.Answer:
        await post(client, server.url)
        await client.aclose()
        return await post(client, server.url)

    with wire.Server(wire.answers(wire.reply())) as server:
        answer = run(work, carrier) if carrier == "httptools" else http.Unsent("")
        assert isinstance(answer, http.Unsent)
        assert len(server.whole) <= 1


def test_the_client_gives_up_a_silent_server_when_cancelled() -> None:
    async def work(client: httpx.AsyncClient) -> float:
        began = time.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                await post(client, server.url)
        return time.monotonic() - began

    with wire.Server(wire.is_silent) as server:
        assert run(work, "httptools") < 2


def test_without_httptools_plain_httpx_carries() -> None:
    code = (
        "import sys; sys.modules['httptools'] = None\n"
        "from reattach.adapters import http\n"
        "print(type(http.open_client().wire).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "HttpxWire"
