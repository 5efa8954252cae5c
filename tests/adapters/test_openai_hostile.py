"""A hostile Responses API: bounded memory, no guess, nothing escapes; and never a false absence or a second POST."""

import asyncio
import contextlib
import json
import socket
import tracemalloc
from typing import Any

import pytest

from reattach.adapters.openai_responses import OpenAIResponsesAdapter
from reattach.models.answers import Accepted, Present, Refused, Taken, Unknown, Unresolved
from tests.adapters import responses, wire
from tests.adapters.responses import CREATED, KNOWN, OWN, POLLED, STREAMED, against, body, event, events, response

MB = 1024 * 1024


def streams(chunk: bytes) -> Any:
    """A stream that says the same for as long as somebody reads."""

    def behave(server: wire.Server, connection: socket.socket) -> None:
        server.request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        with contextlib.suppress(OSError):
            while not server.done.is_set():
                connection.sendall(chunk)

    return behave


def peak_of(behave: Any, given_: dict[str, Any], work: Any, carrier: str) -> tuple[Any, int]:
    with wire.Server(behave) as server:
        tracemalloc.start()
        try:
            answer = responses.on(server.url, given_, work, carrier=carrier)
            return answer, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("carrier", ["httptools", "httpx"])
def test_an_endless_answer_is_left_at_the_limit(carrier: str) -> None:
    probed, peak = peak_of(wire.sends_without_end, STREAMED, lambda adapter: adapter.probe(KNOWN), carrier)
    assert isinstance(probed, Unknown) and peak < 12 * MB
    cancelled, peak = peak_of(wire.sends_without_end, STREAMED, lambda adapter: adapter.cancel(KNOWN), carrier)
    assert cancelled == Taken() and peak < 12 * MB
    submitted, peak = peak_of(wire.sends_without_end, POLLED, lambda one: one.submit(OWN, lambda handle: None), carrier)
    assert isinstance(submitted, Unresolved) and peak < 4 * MB


@pytest.mark.parametrize("carrier", ["httptools", "httpx"])
@pytest.mark.parametrize("chunk", [b"x" * 65_536, b'data: {"type":"response.queued"}\n\n' * 100, b"data: x\n" * 1_000])
def test_an_endless_stream_before_the_id_is_left_at_the_limit(chunk: bytes, carrier: str) -> None:
    learned: list[str] = []
    answer, peak = peak_of(
        streams(chunk), STREAMED, lambda one: one.submit(OWN, lambda handle: learned.append(handle)), carrier
    )
    assert isinstance(answer, Unresolved) and learned == [] and peak < 4 * MB


@pytest.mark.parametrize("carrier", ["httptools", "httpx"])
def test_an_endless_line_ends_a_watch(carrier: str) -> None:
    async def work(adapter: OpenAIResponsesAdapter) -> list[Any]:
        return [item async for item in adapter.watch(KNOWN, "")]

    items, peak = peak_of(streams(b"x" * 65_536), STREAMED, work, carrier)
    assert items == [] and peak < 4 * MB


def test_a_stream_that_says_nothing_ends_with_its_time() -> None:
    """Pings are no events: the executor's time limit is what ends such a POST."""

    async def work(adapter: OpenAIResponsesAdapter) -> Any:
        try:
            async with asyncio.timeout(0.5):
                return await adapter.submit(OWN, lambda handle: None)
        except TimeoutError:
            return "stopped"

    with wire.Server(streams(b": ping\n\n" * 100)) as server:
        assert responses.on(server.url, STREAMED, work) == "stopped"
        assert len(server.whole) == 1 and server.connections == 1


BODIES = {
    "deep arrays": (b"[" * 200_000, "nested too deep"),
    "deep objects": (b'{"output":' * 200_000, "nested too deep"),
    "deep output": (
        b'{"id":"resp_7","status":"completed","output":' + b"[" * 2_500 + b"]" * 2_500 + b"}",
        "",
    ),
    "not UTF-8": (b'{"id": "resp_7", "status": "\xff"}', "not UTF-8"),
    "NaN": (b'{"id": "resp_7", "status": "completed", "output": [NaN]}', "not JSON"),
    "cut": (b'{"id": "resp_7", "status": "completed"', "not JSON"),
    "empty": (b"", "not JSON"),
    "text": (b'"completed"', "not a JSON object"),
    "a list": (b'[{"id": "resp_7", "status": "completed"}]', "not a JSON object"),
    "unknown status": (b'{"id": "resp_7", "status": "done\\n"}', "unknown status 'done"),
    "a status that is none": (b'{"id": "resp_7", "status": {"x": 1}}', "none that could be read"),
    "no status": (b'{"id": "resp_7"}', "none that could be read"),
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("status", ["200 OK", "404 Not Found"])
def test_an_answer_that_makes_no_sense_is_unknown(name: str, status: str) -> None:
    said, cause = BODIES[name]
    answer = against(wire.reply(said, status), STREAMED, lambda adapter: adapter.probe(KNOWN))
    if name == "deep output" and isinstance(answer, Present):
        # Where this Python can write as deep as it reads.
        assert status == "200 OK"
        return
    assert isinstance(answer, Unknown) and answer.cause.isprintable() and len(answer.cause) < 300
    assert status.startswith("404") or cause in answer.cause


@pytest.mark.parametrize("name", ["deep arrays", "deep objects", "not UTF-8", "cut", "empty", "text", "a list"])
def test_a_2xx_that_makes_no_sense_accepts_nothing(name: str) -> None:
    answer, learned = responses.submit_to(wire.reply(BODIES[name][0], "200 OK"), POLLED)
    assert isinstance(answer, Unresolved) and learned == []
    assert answer.cause.isprintable() and len(answer.cause) < 300


@pytest.mark.parametrize("kind", ["text/html", "text/plain", "", "application/octet-stream"])
def test_the_wrong_content_type_proves_nothing(kind: str) -> None:
    for status in ("200 OK", "404 Not Found"):
        for value in (response("completed"), {"error": {"message": "Response with id 'resp_7' not found."}}):
            reply = wire.reply(json.dumps(value).encode(), status, kind)
            assert isinstance(against(reply, STREAMED, lambda adapter: adapter.probe(KNOWN)), Unknown)
    for given_ in (STREAMED, POLLED):
        answer, learned = responses.submit_to(wire.reply(json.dumps(response()).encode(), "200 OK", kind), given_)
        assert isinstance(answer, Unresolved) and learned == []


def test_an_answer_from_a_cache_proves_nothing() -> None:
    for reply in (body(response(), "200 OK", "Age: 7"), body({"error": {}}, "404 Not Found", "Age: 7")):
        assert isinstance(against(reply, STREAMED, lambda adapter: adapter.probe(KNOWN)), Unknown)
        assert isinstance(responses.submit_to(body(response(), "200 OK", "Age: 7"), POLLED)[0], Unresolved)


def test_a_long_answer_that_was_cut_is_no_absence() -> None:
    for status in ("200 OK", "404 Not Found"):
        for start in (b'{"error": {"message": "not found"}, "x": "', b'{"id": "resp_7", "x": "'):
            reply = wire.reply(start + b"1" * (4 * MB) + b'"}', status)
            answer = against(reply, STREAMED, lambda adapter: adapter.probe(KNOWN))
            assert isinstance(answer, Unknown)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(code: int) -> None:
    with wire.Server(wire.answers(body(response("completed")))) as other:
        away = body({}, f"{code} Away", f"Location: {other.url}/responses/resp_7")

        async def work(adapter: OpenAIResponsesAdapter) -> tuple[Any, ...]:
            asked = [await adapter.probe(KNOWN), await adapter.fetch(KNOWN), await adapter.cancel(KNOWN)]
            watched = [item async for item in adapter.watch(KNOWN, "")]
            return (*asked, await adapter.submit(OWN, lambda handle: None), watched)

        probe, fetch, cancel, submit, items = against(away, STREAMED, work)
        assert other.connections == 0
    assert isinstance(probe, Unknown) and isinstance(fetch, Unknown) and isinstance(cancel, Unknown) and items == []
    assert isinstance(submit, Refused if code in (307, 308) else Unresolved)


def test_an_id_cannot_leave_its_place_in_a_url() -> None:
    odd = ("../../admin", "a?b=c#d", "http://evil/", "..", "é")
    with wire.Server(wire.answers(body(response()))) as server:
        for handle in odd:
            inv = wire.invocation(handle=handle)

            async def work(adapter: OpenAIResponsesAdapter, inv: Any = inv) -> None:
                await adapter.probe(inv)
                await adapter.cancel(inv)
                assert [item async for item in adapter.watch(inv, "")] == []

            responses.on(server.url, STREAMED, work)
        targets = [one.split(b" ")[1].decode() for one in server.whole]
    assert len(targets) == 3 * len(odd)
    assert all(one.startswith("/responses/") for one in targets), targets
    assert all(one.partition("?")[0].removesuffix("/cancel").count("/") == 2 for one in targets), targets
    assert all(one.partition("?")[2] in ("", "stream=true") for one in targets), targets
    assert targets[9] == "/responses/%2E%2E"


SECRET = "tok-3f9a1c77e0"


def echoing(server: wire.Server, connection: socket.socket) -> None:
    """Say the caller's credentials back in every place that has text."""
    while request := server.request(connection):
        assert SECRET.encode() in request
        line = request.split(b"\r\n")[0]
        error = {"message": f"Incorrect API key provided: {SECRET}", "code": SECRET.replace("-", "_"), "type": SECRET}
        told = {"id": SECRET, "error": error, "incomplete_details": {"reason": SECRET}, "status": SECRET}
        if b"stream=true" in line:
            connection.sendall(events(event(SECRET, 1, delta="x")))
        elif b'"input": "stream"' in request:
            connection.sendall(events({"type": "error", **error}))
        elif b'"input": "id"' in request:
            connection.sendall(body(told, f"200 {SECRET}"))
        elif line.startswith(b"POST"):
            connection.sendall(body({"error": error}, f"400 {SECRET}"))
        else:
            status = line.split(b" ")[1].rpartition(b"_")[2].decode()
            name = f"resp_{status}"
            connection.sendall(body({**told, "id": name, "status": status if status != "odd" else SECRET}))


def test_the_token_is_nowhere(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("REATTACH_TEST_TOKEN", SECRET)
    caplog.set_level("DEBUG")
    said: list[str] = []

    async def work(adapter: OpenAIResponsesAdapter) -> None:
        said.append(repr(adapter))
        for status in ("failed", "incomplete", "completed", "odd"):
            inv = wire.invocation(handle=f"resp_{status}")
            said.append(repr([await adapter.probe(inv), await adapter.fetch(inv), await adapter.cancel(inv)]))
        for message in (b'"stream"', b'"id"', b'"refused"'):
            said.append(
                repr(await adapter.submit(wire.invocation(message=message), lambda handle: said.append(handle)))
            )
        said.append(repr([item.cursor async for item in adapter.watch(KNOWN, "")]))

    with wire.Server(echoing) as server:
        for given_ in (STREAMED, POLLED):
            responses.on(server.url, given_, work, token_env="REATTACH_TEST_TOKEN")
    text = "\n".join([*said, caplog.text])
    assert SECRET not in text, text
    assert "***" in text


def test_one_event_that_is_too_long_does_not_spoil_what_was_learned() -> None:
    long = "data: " + "x" * MB + "\n\n"
    assert responses.submit_to(events(CREATED, long), STREAMED) == (Accepted("resp_7"), ["resp_7"])
