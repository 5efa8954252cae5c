"""A hostile job service: bounded memory, no guess, nothing escapes; and never a false absence."""

import asyncio
import json
import tracemalloc
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach.adapters.body import LIST_BYTES_MAX
from reattach.adapters.http_job import HttpJobAdapter
from reattach.models import answers
from reattach.models.answers import Absent, Accepted, Phase, Present, Refused, Unknown, Unresolved
from reattach.models.codec import encode_event
from reattach.models.events import FetchAnswered, Ident, ProbeAnswered, SubmitAnswered
from tests.adapters import jobs, wire
from tests.adapters.jobs import BY_HANDLE, BY_ID, BY_LIST, BY_THREAD, OWN, WITH_KEY, against, body, options

MB = 1024 * 1024
KNOWN = wire.invocation(handle="j-7")
LISTED = {name: value for name, value in options(BY_LIST, status_map={"done": "completed"}).items() if name != "status"}
IDENT = Ident("life-1", "call-1", 1, 1)


@pytest.mark.parametrize("given_", [BY_ID, BY_LIST], ids=["status", "list"])
@pytest.mark.parametrize("carrier", ["httptools", "httpx"])
def test_an_endless_answer_is_left_at_the_limit(given_: dict[str, Any], carrier: str) -> None:
    with wire.Server(wire.sends_without_end) as server:
        tracemalloc.start()
        try:
            answer = jobs.on(server.url, given_, lambda adapter: adapter.probe(OWN), carrier=carrier)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert isinstance(answer, Unknown) and "over" in answer.cause
    assert peak < 4 * LIST_BYTES_MAX


BODIES = {
    "deep arrays": (b"[" * 200_000, "nested too deep"),
    "deep objects": (b'{"items":' * 200_000, "nested too deep"),
    "not UTF-8": (b'{"status": "\xff"}', "not UTF-8"),
    "NaN": (b'{"status": "done", "items": [], "result": NaN}', "not JSON"),
    "cut": (b'{"status": "done"', "not JSON"),
    "empty": (b"", "not JSON"),
    "text": (b'"done"', ""),
}


@pytest.mark.parametrize("given_", [BY_ID, LISTED], ids=["status", "list"])
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("status", ["200 OK", "404 Not Found"])
def test_an_answer_that_makes_no_sense_is_unknown(given_: dict[str, Any], name: str, status: str) -> None:
    said, cause = BODIES[name]
    answer = against(wire.reply(said, status), given_, lambda adapter: adapter.probe(OWN))
    if name == "text" and given_ is BY_ID and status.startswith("404"):
        assert answer == Absent(None)
        return
    assert isinstance(answer, Unknown) and answer.cause.isprintable() and len(answer.cause) < 300
    assert status.startswith("404") or cause in answer.cause


@pytest.mark.parametrize("kind", ["text/html", "text/plain", "", "application/octet-stream"])
def test_the_wrong_content_type_proves_nothing(kind: str) -> None:
    for status in ("200 OK", "404 Not Found"):
        reply = wire.reply(b'{"status": "gone", "items": []}', status, kind)
        for given_ in (BY_ID, LISTED):
            assert isinstance(against(reply, given_, lambda adapter: adapter.probe(OWN)), Unknown)


def test_a_page_for_people_accepts_and_cancels_nothing() -> None:
    page = wire.reply(b"<html>please sign in</html>", "200 OK", "text/html; charset=utf-8")
    for given_ in (BY_ID, BY_LIST, WITH_KEY):
        more = options(given_, cancel="/jobs/{handle}/cancel", cancel_confirms=True)
        assert isinstance(against(page, more, lambda one: one.submit(OWN, lambda handle: None)), Unresolved)
        assert isinstance(against(page, more, lambda one: one.cancel(KNOWN)), Unknown)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(code: int) -> None:
    with wire.Server(wire.answers(body('{"status": "gone", "id": 1}'))) as other:
        away = body("{}", f"{code} Away", f"Location: {other.url}/jobs/call-1")

        async def work(adapter: HttpJobAdapter) -> tuple[Any, ...]:
            asked = [await adapter.probe(OWN), await adapter.fetch(OWN), await adapter.cancel(KNOWN)]
            return (*asked, await adapter.submit(OWN, lambda handle: None), [i async for i in adapter.watch(OWN, "")])

        more = options(BY_ID, cancel="/jobs/{handle}", stream="/jobs/{marker}/e")
        probe, fetch, cancel, submit, items = against(away, more, work)
        assert other.connections == 0
    assert isinstance(probe, Unknown) and isinstance(fetch, Unknown) and isinstance(cancel, Unknown) and items == []
    assert isinstance(submit, Refused if code in (307, 308) else Unresolved)


def test_a_long_answer_that_was_cut_is_no_absence() -> None:
    for start in (b'{"status": "gone", "x": "', b'{"items": [], "x": "'):
        reply = wire.reply(start + b"1" * (LIST_BYTES_MAX + MB) + b'"}')
        for given_ in (BY_ID, LISTED):
            answer = against(reply, given_, lambda adapter: adapter.probe(OWN))
            assert isinstance(answer, Unknown)


def test_a_handle_that_makes_no_sense_is_none() -> None:
    for handle in ('"' + "x" * 600 + '"', '"a\\nb"', "1e5", "[]", "{}", "1" * 4_000):
        answer = against(body(f'{{"id": {handle}}}'), BY_ID, lambda adapter: adapter.submit(OWN, lambda handle: None))
        assert answer == Accepted()


def test_a_handle_cannot_leave_its_place_in_a_url() -> None:
    with wire.Server(wire.answers(body('{"status": "queued"}'))) as server:
        for handle in ("../../admin", "a?b=c#d", "http://evil/", "..", "é"):
            inv = wire.invocation(handle=handle)
            jobs.on(server.url, BY_HANDLE, lambda adapter, inv=inv: adapter.probe(inv))  # type: ignore[misc]
        targets = [one.split(b" ")[1].decode() for one in server.whole]
    assert all(one.startswith("/jobs/") and one.count("/") == 2 and "?" not in one for one in targets), targets
    assert targets[3] == "/jobs/%2E%2E"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["done", "queued"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["status", "id", "ref", "result", "error", "items", "next", "message", "x"]), inner
        )
    ),
    max_leaves=12,
)
OBJECT = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(["queued", "done", "bad", "gone", "stopped", "asks", "odd"]) | JSON,
        "id": st.sampled_from(["j-7", 7]) | JSON,
        "ref": st.sampled_from(["call-1", "call-2"]) | JSON,
        "result": JSON,
        "error": JSON,
        "items": st.lists(JSON, max_size=3) | JSON,
        "next": JSON,
    },
)
BYTES = st.binary(max_size=40) | (JSON | OBJECT).map(lambda value: json.dumps(value).encode())
KINDS = ["application/json", "application/problem+json", "text/plain", "text/event-stream"]
HEADERS = st.fixed_dictionaries(
    {"Content-Type": st.sampled_from(KINDS)},
    optional={
        "Location": st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20),
        "Retry-After": st.sampled_from(["1", "-1", "x", "9" * 30]),
        "Age": st.sampled_from(["0", "1", "x"]),
    },
)
CODES = st.sampled_from([200, 201, 202, 204, 301, 308, 400, 404, 409, 410, 422, 429, 500, 503]) | st.integers(200, 599)
EVERYTHING = {
    "paths": {"marker": "ref", "question": "x.0", "question_id": "id", "next": "next"},
    "status_map": {"queued": "running", "done": "completed", "bad": "failed", "gone": "absent", "stopped": "cancelled",
                   "asks": "awaiting_input"},
    "handle_header": "Location",
    "cancel": "/jobs/{handle}/cancel",
    "stream": "/jobs/{handle}/events",
    "stream_resumes": True,
}  # fmt: skip
SHAPES: list[dict[str, Any]] = [
    options(BY_ID, **EVERYTHING, conflict="accepted"),
    options(BY_ID, **EVERYTHING, result="/jobs/{handle}/result", conflict="refused"),
    options(BY_HANDLE, **EVERYTHING),
    options(WITH_KEY, **EVERYTHING, absent={"path": "x", "value": "y"}),
    options(BY_LIST, **EVERYTHING),
    options(BY_LIST, **EVERYTHING, list_next="/jobs?p={page}"),
    options(BY_THREAD, status_map=EVERYTHING["status_map"]),
]


REPLIES = st.lists(st.tuples(CODES, HEADERS, BYTES), min_size=1, max_size=4)


@given(st.sampled_from(SHAPES), REPLIES, st.sampled_from([OWN, KNOWN]))
def test_whatever_a_service_answers_comes_back_as_a_value_that_can_be_stored(
    shape: dict[str, Any], replies: list[tuple[int, dict[str, str], bytes]], inv: Any
) -> None:
    served = 0

    def serve(request: httpx.Request) -> httpx.Response:
        nonlocal served
        code, headers, content = replies[served % len(replies)]
        served += 1
        return httpx.Response(code, headers=headers, content=content)

    async def work() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(serve)) as client:
            adapter = HttpJobAdapter.configure(jobs.config(shape), client)
            learned: list[str] = []
            probe = await adapter.probe(inv)
            fetch = await adapter.fetch(inv)
            submit = await adapter.submit(inv, lambda handle: learned.append(handle))
            cancel = await adapter.cancel(inv)
            items = [item async for item in adapter.watch(inv, "c")]
        encode_event(ProbeAnswered(IDENT, probe))
        encode_event(FetchAnswered(IDENT, fetch))
        encode_event(SubmitAnswered(IDENT, submit))
        assert isinstance(cancel, answers.CancelAnswer)
        assert all(isinstance(item, answers.Progress) for item in items)
        if learned:
            assert submit == Accepted(learned[0]) or isinstance(submit, answers.Occupied)

    asyncio.run(work())


@given(st.sampled_from(SHAPES[:4]), CODES, HEADERS, BYTES)
def test_an_absence_is_only_what_the_options_call_one(
    shape: dict[str, Any], code: int, headers: dict[str, str], content: bytes
) -> None:
    """The one answer that permits a POST: never from an odd status, an odd body or a cache."""

    async def work() -> answers.ProbeAnswer:
        transport = httpx.MockTransport(lambda request: httpx.Response(code, headers=headers, content=content))
        async with httpx.AsyncClient(transport=transport) as client:
            return await HttpJobAdapter.configure(jobs.config(shape), client).probe(KNOWN)

    answer = asyncio.run(work())
    if isinstance(answer, Absent):
        assert "json" in headers["Content-Type"] and headers.get("Age", "0") == "0"
        value = json.loads(content)
        if code == 404:
            assert "absent" not in shape or value["x"] == "y"
        else:
            assert 200 <= code < 300 and value["status"] == "gone"
    if isinstance(answer, Present):
        assert 200 <= code < 300 and answer.phase in Phase


SECRET = "tok-3f9a1c77e0"


def echoing(server: wire.Server, connection: Any) -> None:
    """Say the caller's credentials back in every place that has text."""
    while request := server.request(connection):
        assert SECRET.encode() in request
        if b"/e " in request.split(b"\r\n")[0]:
            connection.sendall(wire.reply(f"id: {SECRET}\ndata: 1\n\n".encode(), "200 OK", "text/event-stream"))
            continue
        job = {"status": "bad", "error": {"message": SECRET}, "id": SECRET, "ref": "call-1"}
        if b"odd" in request:
            job["status"] = SECRET
        if b"asks" in request:
            job["status"] = "asks"
        code = "202 " if request.startswith(b"POST") else "200 "
        text = json.dumps({**job, "items": [job]}).encode()
        connection.sendall(wire.reply(text, code + SECRET, "application/json", f"Location: /jobs/{SECRET}"))


def test_the_token_is_nowhere(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("REATTACH_TEST_TOKEN", SECRET)
    caplog.set_level("DEBUG")
    paths = {"cancel": "/c/{marker}", "stream": "/jobs/{marker}/e", "paths": {"question_id": "id"}}
    words = {"status_map": {"bad": "failed", "done": "completed"}, "paths": {"marker": "ref"}}
    shapes = [options(BY_ID, **{**EVERYTHING, **paths}), options(LISTED, **{**EVERYTHING, **words})]
    said: list[str] = []

    async def work(adapter: HttpJobAdapter) -> None:
        said.append(repr(adapter) + repr(adapter.__dict__))
        for inv in (OWN, wire.invocation("odd"), wire.invocation("asks")):
            said.append(repr([await adapter.probe(inv), await adapter.fetch(inv), await adapter.cancel(inv)]))
            said.append(repr(await adapter.submit(inv, lambda handle: said.append(handle))))
            said.append(repr([item async for item in adapter.watch(inv, "")]))

    with wire.Server(echoing) as server:
        for shape in shapes:
            jobs.on(server.url, shape, work, token_env="REATTACH_TEST_TOKEN")
        assert len(server.whole) > 15
    assert "***" in str(said) and "AWAITING_INPUT" in str(said)
    assert SECRET not in "\n".join((*said, caplog.text))


def test_a_line_without_end_ends_the_stream() -> None:
    def behave(server: wire.Server, connection: Any) -> None:
        server.request(connection)
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: 1\n\ndata: "
        )
        for _ in range(64):
            connection.sendall(b"x" * MB)

    async def work(adapter: HttpJobAdapter) -> list[Any]:
        return [item async for item in adapter.watch(OWN, "")]

    with wire.Server(behave) as server:
        tracemalloc.start()
        try:
            items = jobs.on(server.url, options(BY_ID, stream="/jobs/{marker}/e"), work)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert items == [answers.Progress(b"1")] and peak < 8 * MB
