"""A hostile agent: bounded memory, no guess, nothing escapes; and never a false absence."""

import asyncio
import json
import tracemalloc
from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from reattach.adapters import http
from reattach.adapters.a2a import A2AAdapter
from reattach.adapters.body import LIST_BYTES_MAX
from reattach.models import answers
from reattach.models.answers import Absent, Accepted, Phase, Present, Result, Unknown, Unresolved
from reattach.models.codec import encode_event
from reattach.models.events import FetchAnswered, Ident, ProbeAnswered, RespondAnswered, SubmitAnswered
from tests.adapters import wire
from tests.adapters.a2a_agents import (
    CONTEXT,
    KNOWN,
    NEW,
    OLD,
    OWN,
    REST,
    RPC,
    WIRES,
    against,
    config,
    on,
    sent,
    task,
    told,
)
from tests.adapters.test_a2a_tasks import RESPONDING

MB = 1024 * 1024
IDENT = Ident("life-1", "call-1", 1, 1)
every = pytest.mark.parametrize("given", WIRES.values(), ids=WIRES)
every_new = pytest.mark.parametrize("given", NEW.values(), ids=NEW)


@pytest.mark.parametrize("inv", [OWN, KNOWN], ids=["list", "task"])
@pytest.mark.parametrize("carrier", ["httptools", "httpx"])
@every_new
def test_an_endless_answer_is_left_at_the_limit(given: dict[str, Any], carrier: str, inv: Any) -> None:
    with wire.Server(wire.sends_without_end) as server:
        tracemalloc.start()
        try:
            found = on(server.url, given, lambda adapter: adapter.probe(inv), carrier=carrier)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert isinstance(found, Unknown)
    assert peak < 4 * LIST_BYTES_MAX


@every
def test_a_result_that_is_too_long_is_told_by_its_beginning(given: dict[str, Any]) -> None:
    """The state stands before the artifacts: it is known that the task is completed, and with too long a result."""
    long = [{"parts": [{"text": "x" * (3 * MB)}]}]
    shown = task("completed", given=given, artifacts=long)
    found = against(told(given, shown), given, lambda adapter: adapter.probe(KNOWN))
    assert isinstance(found, Present) and found.phase is Phase.COMPLETED
    assert found.result is not None and len(found.result) > MB
    fetched = against(told(given, shown), given, lambda adapter: adapter.fetch(KNOWN))
    assert isinstance(fetched, Result) and len(fetched.value) > MB
    # Of an error's page nothing is read.
    failed = told(given, shown, "500 No")
    assert isinstance(against(failed, given, lambda adapter: adapter.probe(KNOWN)), Unknown)
    # With the state behind what was cut, nothing is known.
    turned = {name: shown[name] for name in reversed(shown)}
    assert isinstance(against(told(given, turned), given, lambda adapter: adapter.probe(KNOWN)), Unknown)


@every
def test_a_history_that_is_too_long_hides_no_result(given: dict[str, Any]) -> None:
    long = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x" * (3 * MB)}]}

    def behave(server: wire.Server, connection: Any) -> None:
        while request := server.request(connection):
            whole = b"10" in request.partition(b"historyLength")[2][:5]
            connection.sendall(told(given, task("completed", given=given, history=[long] if whole else [])))

    with wire.Server(behave) as server:
        found = on(server.url, given, lambda adapter: adapter.probe(KNOWN))
        assert len(server.whole) == 2
    assert isinstance(found, Present) and found.result == b'{"artifacts":[],"message":null,"history":[]}'


@every
def test_a_long_answer_to_a_message_names_its_task_all_the_same(given: dict[str, Any]) -> None:
    """An agent that waits for the end may answer with all of it."""
    shown = task("completed", given=given, artifacts=[{"parts": [{"text": "x" * (3 * MB)}]}])
    reply = told(given, shown if given is OLD else {"task": shown})
    assert against(reply, given, lambda adapter: adapter.submit(OWN, lambda handle: None)) == Accepted("t-7")


@every_new
def test_a_list_that_is_too_long_is_no_absence(given: dict[str, Any]) -> None:
    reply = told(given, {"tasks": [], "x": "y" * (LIST_BYTES_MAX + MB)})
    assert isinstance(against(reply, given, lambda adapter: adapter.probe(OWN)), Unknown)


BODIES = {
    "deep arrays": b"[" * 200_000,
    "deep objects": b'{"result":' * 200_000,
    "not UTF-8": b'{"jsonrpc":"2.0","id":1,"result":{"tasks":"\xff"},"tasks":[]}',
    "NaN": b'{"jsonrpc":"2.0","id":1,"result":{"tasks":[],"x":NaN},"tasks":[]}',
    "cut": b'{"jsonrpc":"2.0","id":1,"result":{"tasks":[]}',
    "empty": b"",
    "text": b'"tasks"',
    "list": b"[]",
    "neither": b'{"jsonrpc":"2.0","id":1}',
    "odd result": b'{"jsonrpc":"2.0","id":1,"result":[],"tasks":{}}',
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("status", ["200 OK", "404 Not Found", "500 No"])
@every
def test_an_answer_that_makes_no_sense_is_unknown(given: dict[str, Any], name: str, status: str) -> None:
    async def work(adapter: A2AAdapter) -> list[Any]:
        asked = [await adapter.probe(OWN), await adapter.probe(KNOWN), await adapter.fetch(KNOWN)]
        return [*asked, await adapter.cancel(KNOWN), await adapter.submit(OWN, lambda handle: None)]

    *asked, submitted = against(wire.reply(BODIES[name], status), given, work)
    for found in asked:
        assert isinstance(found, Unknown) and found.cause.isprintable() and len(found.cause) < 300
    assert isinstance(submitted, answers.Refused if status.startswith("404") else Unresolved)


@pytest.mark.parametrize("kind", ["text/html", "text/plain", "", "application/octet-stream"])
@every_new
def test_the_wrong_content_type_proves_nothing(given: dict[str, Any], kind: str) -> None:
    body = json.dumps({"tasks": [], "result": {"tasks": []}}).encode()
    for status in ("200 OK", "404 Not Found"):
        for inv in (OWN, KNOWN):
            found = against(wire.reply(body, status, kind), given, lambda adapter, inv=inv: adapter.probe(inv))  # type: ignore[misc]
            assert isinstance(found, Unknown)


@every_new
def test_an_answer_out_of_a_cache_proves_nothing(given: dict[str, Any]) -> None:
    body = json.dumps({"tasks": [], "result": {"tasks": []}}).encode()
    reply = wire.reply(body, "200 OK", "application/json", "Age: 7")
    assert isinstance(against(reply, given, lambda adapter: adapter.probe(OWN)), Unknown)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@every
def test_no_redirect_is_followed(given: dict[str, Any], code: int) -> None:
    with wire.Server(wire.answers(told(given, {"tasks": []}))) as other:
        away = wire.reply(b"{}", f"{code} Away", "application/json", f"Location: {other.url}/x")

        async def work(adapter: A2AAdapter) -> list[Any]:
            asked = [await adapter.probe(OWN), await adapter.fetch(KNOWN), await adapter.cancel(KNOWN)]
            sent = await adapter.submit(OWN, lambda handle: None)
            return [*asked, sent, [item async for item in adapter.watch(KNOWN, "")]]

        probed, fetched, cancelled, submitted, items = against(away, given, work)
        assert other.connections == 0
    assert all(isinstance(one, Unknown) for one in (probed, fetched, cancelled)) and items == []
    assert isinstance(submitted, answers.Refused if code in (307, 308) else Unresolved)


def test_a_task_id_cannot_leave_its_place_in_a_url() -> None:
    with wire.Server(wire.answers(told(REST, {}))) as server:
        for handle in ("../../admin", "a?b=c#d", "http://evil/", "..", "é", "x:cancel"):
            inv = wire.invocation(handle=handle)
            on(server.url, REST, lambda adapter, inv=inv: adapter.probe(inv))  # type: ignore[misc]
            on(server.url, REST, lambda adapter, inv=inv: adapter.cancel(inv))  # type: ignore[misc]
        targets = [one.split(b" ")[1].decode() for one in server.whole]
    assert len(targets) == 12
    for target in targets:
        path = target.removesuffix(":cancel").partition("?")[0]
        assert path.startswith("/a/tasks/") and path.count("/") == 3 and ":" not in path, target


@pytest.mark.parametrize("handle", ["\ud800", "a\nb"])
@every
def test_an_id_that_is_no_text_is_not_asked_about(given: dict[str, Any], handle: str) -> None:
    """An operator may adopt anything."""
    inv = wire.invocation(handle=handle)

    async def work(adapter: A2AAdapter) -> list[Any]:
        asked = [await adapter.probe(inv), await adapter.fetch(inv), await adapter.cancel(inv)]
        return [*asked, await adapter.respond(inv), [item async for item in adapter.watch(inv, "")]]

    with wire.Server(wire.answers(b"")) as server:
        *asked, responded, items = on(server.url, given, work)
        assert server.connections == 0
    assert all(isinstance(one, Unknown) for one in asked)
    assert isinstance(responded, answers.Refused) and items == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["t-7", "call-1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["status", "state", "id", "tasks", "history", "message", "messageId", "role", "x"]), inner
        )
    ),
    max_leaves=12,
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "messageId": st.sampled_from(["call-1", "q-1", "m"]) | JSON,
        "role": st.sampled_from(["ROLE_USER", "ROLE_AGENT", "user"]) | JSON,
        "parts": st.lists(JSON, max_size=2) | JSON,
    },
)
WORDS = [f"TASK_STATE_{word}" for word in ("WORKING", "COMPLETED", "FAILED", "INPUT_REQUIRED", "CANCELED", "ODD")]
TASKS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.just("t-7") | JSON,
        "contextId": st.just(CONTEXT) | JSON,
        "kind": st.sampled_from(["task", "message"]) | JSON,
        "status": st.fixed_dictionaries(
            {"state": st.sampled_from([*WORDS, "working", "completed"]) | JSON},
            optional={"message": MESSAGES | JSON, "timestamp": JSON},
        )
        | JSON,
        "artifacts": st.lists(JSON, max_size=2) | JSON,
        "history": st.lists(MESSAGES, max_size=3) | JSON,
    },
)
ERRORS = st.fixed_dictionaries(
    {},
    optional={
        "code": st.sampled_from([-32001, -32002, -32004, -32601, -32603, 404]) | JSON,
        "message": JSON,
        "details": st.lists(st.fixed_dictionaries({"reason": st.just("TASK_NOT_FOUND") | JSON}) | JSON, max_size=2)
        | JSON,
    },
)
RESULTS = (
    TASKS
    | st.fixed_dictionaries({"task": TASKS | JSON})
    | st.fixed_dictionaries({"message": MESSAGES | JSON})
    | st.fixed_dictionaries(
        {"tasks": st.lists(TASKS, max_size=3) | JSON}, optional={"nextPageToken": JSON, "totalSize": JSON}
    )
    | st.fixed_dictionaries({"error": ERRORS | JSON})
    | JSON
)
BYTES = st.binary(max_size=40) | (
    RESULTS | RESULTS.map(lambda value: {"result": value}) | ERRORS.map(lambda value: {"error": value})
).map(lambda value: json.dumps(value).encode())
KINDS = ["application/json", "application/a2a+json", "text/plain", "text/event-stream"]
HEADERS = st.fixed_dictionaries(
    {"Content-Type": st.sampled_from(KINDS)}, optional={"Age": st.sampled_from(["0", "1", "x"])}
)
CODES = st.sampled_from([200, 202, 204, 301, 308, 400, 404, 405, 409, 429, 500, 503]) | st.integers(200, 599)
REPLIES = st.lists(st.tuples(CODES, HEADERS, BYTES), min_size=1, max_size=4)


@drawn(st.sampled_from(list(WIRES.values())), REPLIES, st.sampled_from([OWN, KNOWN, RESPONDING]))
def test_whatever_an_agent_answers_comes_back_as_a_value_that_can_be_stored(
    given: dict[str, Any], replies: list[tuple[int, dict[str, str], bytes]], inv: Any
) -> None:
    served = 0

    def serve(request: httpx.Request) -> httpx.Response:
        nonlocal served
        code, headers, content = replies[served % len(replies)]
        served += 1
        return httpx.Response(code, headers=headers, content=content)

    async def work() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(serve)) as client:
            for options in (given, {**given, "endpoint": "http://127.0.0.1:9/a"}):
                adapter = A2AAdapter.configure(config(options), client)
                encode_event(ProbeAnswered(IDENT, await adapter.probe(inv)))
                encode_event(FetchAnswered(IDENT, await adapter.fetch(inv)))
                encode_event(SubmitAnswered(IDENT, await adapter.submit(inv, lambda handle: None)))
                encode_event(RespondAnswered(IDENT, await adapter.respond(inv)))
                assert isinstance(await adapter.cancel(inv), answers.CancelAnswer)
                items = [item async for item in adapter.watch(inv, "c")]
                assert all(isinstance(item, answers.Progress) for item in items)

    asyncio.run(work())


@drawn(st.sampled_from(list(NEW.values())), CODES, HEADERS, BYTES)
def test_an_absence_is_only_a_whole_list_without_the_call(
    given: dict[str, Any], code: int, headers: dict[str, str], content: bytes
) -> None:
    """The one answer that permits a POST: never from an odd status, an odd body or a cache."""

    async def work() -> answers.ProbeAnswer:
        transport = httpx.MockTransport(lambda request: httpx.Response(code, headers=headers, content=content))
        async with httpx.AsyncClient(transport=transport) as client:
            return await A2AAdapter.configure(config({**given, "endpoint": "http://127.0.0.1:9/a"}), client).probe(OWN)

    answer = asyncio.run(work())
    if isinstance(answer, Absent):
        assert 200 <= code < 300 and "json" in headers["Content-Type"] and headers.get("Age", "0") == "0"
        value = json.loads(content)
        value = value if given is REST else value["result"]
        tasks = value.get("tasks", [])
        assert not value.get("nextPageToken")
        assert all(one["id"] and one.get("contextId", CONTEXT) != CONTEXT for one in tasks)
    if isinstance(answer, Present):
        assert 200 <= code < 300 and answer.handle and answer.result is None


SECRET = "tok-3f9a1c77e0"


def echoing(server: wire.Server, connection: Any) -> None:
    """Say the caller's credentials back in every place that has text."""
    number = 0
    said = {"messageId": SECRET, "role": "ROLE_AGENT", "parts": [{"text": f"it is {SECRET}"}]}
    while request := server.request(connection):
        assert SECRET.encode() in request
        number += 1
        words = ["failed", "input-required", SECRET, "completed"]
        shown = {**task(words[number % 4], said=said), "id": SECRET if number % 3 else "t-7"}
        shown["status"]["state"] = SECRET if words[number % 4] == SECRET else shown["status"]["state"]
        if number % 4 == 0:
            shown = {"error": {"code": -32603, "message": SECRET, "details": [{"reason": SECRET}]}}
        whole = {**shown, "result": {**shown, "task": shown, "tasks": [shown]}, "task": shown, "tasks": [shown]}
        connection.sendall(wire.reply(json.dumps(whole).encode(), f"{200 if number % 5 else 400} {SECRET}"))


def test_the_token_is_nowhere(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("REATTACH_TEST_TOKEN", SECRET)
    caplog.set_level("DEBUG")
    said: list[str] = []

    async def work(adapter: A2AAdapter) -> None:
        said.append(repr(adapter) + repr(adapter.__dict__))
        for inv in (OWN, KNOWN, RESPONDING, KNOWN):
            found = await adapter.probe(inv)
            # A result and a question are the agent's own words, passed on as they are.
            said.append(repr(replace(found, result=None, question=b"") if isinstance(found, Present) else found))
            said.append(repr([await adapter.cancel(inv), await adapter.respond(inv)]))
            said.append(repr(await adapter.submit(inv, lambda handle: said.append(handle))))

    with wire.Server(echoing) as server:
        for given in WIRES.values():
            on(server.url, given, work, token_env="REATTACH_TEST_TOKEN")
        assert len(server.whole) > 30
    assert "***" in str(said)
    assert SECRET not in "\n".join((*said, caplog.text))


@every_new
def test_a_line_without_end_ends_the_stream(given: dict[str, Any]) -> None:
    first = {"x": 1} if given is REST else {"result": {"x": 1}}

    def behave(server: wire.Server, connection: Any) -> None:
        server.request(connection)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        connection.sendall(head + b"data: " + json.dumps(first).encode() + b"\n\ndata: ")
        for _ in range(64):
            connection.sendall(b"x" * MB)

    async def work(adapter: A2AAdapter) -> list[Any]:
        return [item async for item in adapter.watch(KNOWN, "")]

    with wire.Server(behave) as server:
        tracemalloc.start()
        try:
            items = on(server.url, given, work)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert items == [answers.Progress(b'{"x":1}')] and peak < 8 * MB


def test_a_subscription_over_json_rpc_leaves_once() -> None:
    """It is a POST, and like each POST it is not sent again."""
    with wire.Server(wire.hangs_up_after_the_request) as server:

        async def work(adapter: A2AAdapter) -> list[Any]:
            return [item async for item in adapter.watch(KNOWN, "")]

        assert on(server.url, RPC, work) == [] and server.connections == 1


def test_a_read_by_post_waits_for_its_answer_as_every_read_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long result takes its time, and the caller has a limit of its own; only a send is cut short."""
    monkeypatch.setattr(http, "BODY_S", 0.05)

    def behave(server: wire.Server, connection: Any) -> None:
        while request := server.request(connection):
            head, _, body = (sent if b"SendMessage" in request else told)(RPC, task()).partition(b"\r\n\r\n")
            connection.sendall(head + b"\r\n\r\n")
            server.done.wait(0.5)
            connection.sendall(body)

    with wire.Server(behave) as server:
        assert on(server.url, RPC, lambda adapter: adapter.probe(KNOWN)) == Present(Phase.RUNNING, "t-7")
        assert isinstance(on(server.url, RPC, lambda adapter: adapter.submit(OWN, lambda handle: None)), Unresolved)
