"""What became of a POST, by status code and body; each over a real socket."""

import asyncio
import json

import pytest

from reattach.adapters import http
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.thread import ThreadAdapter
from reattach.models.answers import Accepted, NotSent, Occupied, Refused, SubmitAnswer, Unknown, Unresolved
from reattach.models.invocation import Invocation
from reattach.models.outcomes import FailureCode, RemoteFate
from tests.adapters import wire

OWN = wire.invocation()
SHARED = wire.invocation(thread_id="t")


def submit(url: str, inv: Invocation, *, token: str = "") -> SubmitAnswer:
    async def work() -> SubmitAnswer:
        client = http.open_client()
        adapter = ThreadAdapter(client, Endpoint(url, token), agent="a", marker="last_message_id")
        try:
            async with asyncio.timeout(20):
                return await adapter.submit(inv, lambda handle: None)
        finally:
            await client.aclose()

    return asyncio.run(work())


def submit_to(reply: bytes, inv: Invocation) -> SubmitAnswer:
    with wire.Server(wire.answers(reply)) as server:
        answer = submit(server.url, inv)
        assert len(server.whole) == 1
    return answer


STARTED = b'{"thread_id": "t", "status": "started"}'


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "202 Accepted"])
def test_started_is_accepted(status: str) -> None:
    assert submit_to(wire.reply(STARTED, status), SHARED) == Accepted()


@pytest.mark.parametrize("body", [b"", b"nonsense", b'{"status": "running"}', b'{"status": "completed"}', b"{"])
def test_on_a_thread_of_its_own_any_2xx_is_accepted(body: bytes) -> None:
    assert submit_to(wire.reply(body), OWN) == Accepted()


@pytest.mark.parametrize("kind", ["text/html", "text/plain", ""])
def test_a_page_of_a_gateway_accepts_nothing(kind: str) -> None:
    for inv in (OWN, SHARED):
        assert isinstance(submit_to(wire.reply(STARTED, "200 OK", kind), inv), Unresolved)


@pytest.mark.parametrize("status", ["running", "completed", "failed", "not_started"])
def test_on_a_shared_thread_another_status_is_the_short_circuit_of_another_run(status: str) -> None:
    body = json.dumps({"thread_id": "t", "status": status}).encode()
    assert isinstance(submit_to(wire.reply(body), SHARED), Occupied)


@pytest.mark.parametrize("body", [b"", b"nonsense", b'{"status": "odd"}', b'{"thread_id":"u","status":"started"}'])
def test_on_a_shared_thread_a_2xx_without_sense_is_unresolved(body: bytes) -> None:
    assert isinstance(submit_to(wire.reply(body), SHARED), Unresolved)


def test_a_cut_2xx_is_accepted_only_where_the_status_alone_says_so() -> None:
    for inv, expected in ((OWN, Accepted), (SHARED, Unresolved)):
        with wire.Server(wire.cuts_the_body) as server:
            assert isinstance(submit(server.url, inv), expected)


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 406, 410, 411, 413, 414, 415, 422, 431, 307, 308])
def test_a_definite_no(code: int) -> None:
    answer = submit_to(wire.reply(b'{"error": "no"}', f"{code} No"), OWN)
    assert isinstance(answer, Refused)
    failure = answer.failure
    assert (failure.code, failure.remote, failure.retryable) == (FailureCode.REJECTED, RemoteFate.NONE, False)
    assert str(code) in failure.message


@pytest.mark.parametrize("code", [408, 425, 429, 418, 499, 500, 501, 502, 503, 504, 520, 599, 300, 301, 302, 303, 304])
def test_all_else_is_unresolved(code: int) -> None:
    answer = submit_to(wire.reply(b"", f"{code} Hm"), OWN)
    assert isinstance(answer, Unresolved) and str(code) in answer.cause


def test_503_with_retry_after_is_unresolved() -> None:
    """A proxy says so also for a request that it has passed on."""
    answer = submit_to(wire.reply(b"", "503 Busy", "text/plain", "Retry-After: 1"), OWN)
    assert isinstance(answer, Unresolved)


@pytest.mark.parametrize(
    ("value", "pause_ms"), [("3", 3_000), ("0", 0), ("99999999", 86_400_000), ("Wed, 21 Oct 2026 07:28:00 GMT", 0)]
)
def test_429_with_retry_after_is_refused_for_now(value: str, pause_ms: int) -> None:
    answer = submit_to(wire.reply(b"", "429 Slow", "text/plain", f"Retry-After: {value}"), OWN)
    assert isinstance(answer, Refused)
    assert answer.failure.retryable and answer.retry_after_ms == pause_ms


def test_409_is_occupied() -> None:
    assert isinstance(submit_to(wire.reply(b"{}", "409 Conflict"), OWN), Occupied)


def test_what_is_sent() -> None:
    inv = wire.invocation('call "7"', thread_id="t", generation=2, message=b'{"q":["\xc3\xbc"]}')
    with wire.Server(wire.answers(wire.reply(STARTED))) as server:
        submit(server.url, inv, token="s3cret")
        head, _, body = server.whole[0].partition(b"\r\n\r\n")
    assert json.loads(body) == {"message": {"q": ["ü"]}, "message_id": 'call "7"#2', "metadata": {}}
    lines = head.decode().lower().split("\r\n")
    assert lines[0] == "post /api/agents/a/threads/t/messages http/1.1"
    assert "authorization: bearer s3cret" in lines and "content-type: application/json" in lines
    assert sum(line.startswith("content-type:") for line in lines) == 1


def test_nothing_listens() -> None:
    assert isinstance(submit("http://127.0.0.1:9", OWN), NotSent)


def test_what_the_protocol_lacks() -> None:
    async def work() -> None:
        client = http.open_client()
        adapter = ThreadAdapter(client, Endpoint("http://127.0.0.1:9"), agent="a")
        assert isinstance(await adapter.cancel(OWN), Unknown) and isinstance(await adapter.fence(OWN), Unknown)
        assert isinstance(await adapter.respond(OWN), Refused)
        unmarked = await adapter.probe(SHARED)
        assert isinstance(unmarked, Unknown) and unmarked.final and "marker" in unmarked.cause
        assert isinstance(await adapter.fetch(SHARED), Unknown)
        await client.aclose()

    asyncio.run(work())
