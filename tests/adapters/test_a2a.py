"""The `a2a` adapter's exchanges: what is sent, and what each answer proves, over JSON-RPC, REST and 0.3."""

import json
from dataclasses import replace
from typing import Any

import pytest

from reattach.adapters.a2a import A2AAdapter
from reattach.adapters.a2a_tasks import ONLY_A_MESSAGE
from reattach.models.answers import (
    Absent,
    Accepted,
    Confirmed,
    Gone,
    NotReady,
    NotSent,
    Phase,
    Present,
    Refused,
    Result,
    Taken,
    Unknown,
    Unresolved,
)
from reattach.models.invocation import Invocation, Response
from reattach.models.outcomes import FailureCode, RemoteFate
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
    fault,
    message,
    on,
    sent,
    task,
    told,
)

every = pytest.mark.parametrize("given", WIRES.values(), ids=WIRES)
every_new = pytest.mark.parametrize("given", NEW.values(), ids=NEW)


def probe(inv: Invocation = KNOWN) -> Any:
    return lambda adapter: adapter.probe(inv)


def submit(adapter: A2AAdapter) -> Any:
    return adapter.submit(OWN, lambda handle: None)


def requests_of(given: dict[str, Any], work: Any, reply: bytes) -> list[tuple[str, dict[str, str], Any]]:
    """The requests that some work sends: the line, the headers, the body."""
    with wire.Server(wire.answers(reply)) as server:
        on(server.url, given, work)
        found = []
        for whole in server.whole:
            head, _, body = whole.partition(b"\r\n\r\n")
            first, *lines = head.decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            found.append((first.removesuffix(" HTTP/1.1"), headers, json.loads(body) if body else None))
        return found


def test_a_message_of_1_0_over_json_rpc() -> None:
    ((line, headers, body),) = requests_of(RPC, submit, sent(RPC, task()))
    assert line == "POST /a" and headers["a2a-version"] == "1.0" and headers["content-type"] == "application/json"
    assert body == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {
            "message": {
                "messageId": "call-1",
                "contextId": CONTEXT,
                "role": "ROLE_USER",
                "parts": [{"text": "hi"}],
            },
            "configuration": {"returnImmediately": True},
        },
    }


def test_a_message_of_1_0_over_rest() -> None:
    ((line, headers, body),) = requests_of(REST, submit, sent(REST, task()))
    assert line == "POST /a/message:send" and headers["a2a-version"] == "1.0"
    assert body["configuration"] == {"returnImmediately": True} and body["message"]["contextId"] == CONTEXT


def test_a_message_of_0_3() -> None:
    ((line, headers, body),) = requests_of(OLD, submit, sent(OLD, task(given=OLD)))
    assert line == "POST /a" and "a2a-version" not in headers and body["method"] == "message/send"
    assert body["params"]["configuration"] == {"blocking": False}
    assert body["params"]["message"] == {
        "kind": "message",
        "messageId": "call-1",
        "contextId": CONTEXT,
        "role": "user",
        "parts": [{"kind": "text", "text": "hi"}],
    }


@pytest.mark.parametrize(
    ("content", "new", "old"),
    [
        (b'"a \\"b\\""', {"text": 'a "b"'}, {"kind": "text", "text": 'a "b"'}),
        (b'{"a":[1]}', {"data": {"a": [1]}}, {"kind": "data", "data": {"a": [1]}}),
        (b"[1,2]", {"data": [1, 2]}, {"kind": "data", "data": {"value": [1, 2]}}),
        (b"null", {"data": None}, {"kind": "data", "data": {"value": None}}),
    ],
)
def test_text_becomes_a_text_part_and_other_json_a_data_part(content: bytes, new: Any, old: Any) -> None:
    inv = wire.invocation(message=content)
    for given, part in ((RPC, new), (REST, new), (OLD, old)):
        ((_, _, body),) = requests_of(given, lambda adapter: adapter.submit(inv, lambda handle: None), told(given, {}))
        assert body.get("params", body)["message"]["parts"] == [part]


@every
def test_metadata_goes_along_and_a_named_thread_keeps_its_name(given: dict[str, Any]) -> None:
    inv = wire.invocation("call-9", thread_id="talk/é", generation=2)
    inv = replace(inv, request=replace(inv.request, metadata=b'{"k":[1]}'))
    ((_, _, body),) = requests_of(given, lambda adapter: adapter.submit(inv, lambda handle: None), told(given, {}))
    said = body.get("params", body)["message"]
    assert (said["messageId"], said["contextId"], said["metadata"]) == ("call-9#2", "talk/é", {"k": [1]})


@every
def test_a_task_is_an_acceptance_whatever_its_state(given: dict[str, Any]) -> None:
    for word in ("submitted", "working", "completed", "failed", "input-required"):
        assert against(sent(given, task(word, given=given)), given, submit) == Accepted("t-7")


@every
def test_a_message_and_no_task_ran_and_is_never_sent_again(given: dict[str, Any]) -> None:
    said = {**message("m-5"), "kind": "message"}
    accepted = against(told(given, said if given is OLD else {"message": said}), given, submit)
    assert accepted == Accepted("message:m-5")
    inv = replace(OWN, handle="message:m-5")

    async def work(adapter: A2AAdapter) -> list[Any]:
        items = [item async for item in adapter.watch(inv, "")]
        return [await adapter.probe(inv), await adapter.fetch(inv), await adapter.cancel(inv), items]

    with wire.Server(wire.answers(b"")) as server:
        found, fetched, cancelled, items = on(server.url, given, work)
        assert server.connections == 0
    assert isinstance(found, Present) and found.phase is Phase.FAILED and found.failure is not None
    assert found.failure.message == ONLY_A_MESSAGE and found.failure.remote is RemoteFate.ENDED
    assert not found.failure.retryable and fetched == Gone(ONLY_A_MESSAGE) and cancelled == Confirmed() and not items


@every
def test_an_answer_that_names_nothing_is_unresolved(given: dict[str, Any]) -> None:
    shown: dict[str, Any]
    for shown in ({}, {"task": 7}, {"task": {}}, {"message": "hi"}, {"kind": "odd", "id": "t"}):
        assert isinstance(against(told(given, shown), given, submit), Unresolved), shown
    for name in (7, None, "", "message:x", "a\nb", "x" * 600, ["t"]):
        shown = {**task(given=given), "id": name}
        assert isinstance(against(sent(given, shown), given, submit), Unresolved), name


@pytest.mark.parametrize(
    ("code", "reason", "taken"),
    [
        (-32602, "INVALID_PARAMS", Refused),
        (-32004, "UNSUPPORTED_OPERATION", Refused),
        (-32009, "VERSION_NOT_SUPPORTED", Refused),
        (-32005, "CONTENT_TYPE_NOT_SUPPORTED", Refused),
        (-32001, "TASK_NOT_FOUND", Refused),
        (-32603, "INTERNAL", Unresolved),
        (-32006, "INVALID_AGENT_RESPONSE", Unresolved),
        (-31000, "WHATEVER", Unresolved),
    ],
)
@every
def test_errors_of_the_protocol(given: dict[str, Any], code: int, reason: str, taken: type) -> None:
    status = "400 Bad Request" if taken is Refused else "500 Internal Server Error"
    answer = against(fault(given, code, reason, status), given, submit)
    assert isinstance(answer, taken)
    assert not isinstance(answer, Refused) or reason in answer.failure.message


@pytest.mark.parametrize(("status", "taken"), [("401 No", Refused), ("404 No", Refused), ("502 No", Unresolved)])
@every
def test_other_answers_are_judged_by_their_status(given: dict[str, Any], status: str, taken: type) -> None:
    for reply in (wire.reply(b"<html>", status, "text/html"), wire.reply(b'{"error":{"code":502}}', status)):
        assert isinstance(against(reply, given, submit), taken)


@pytest.mark.parametrize(
    "behave",
    [wire.hangs_up_after_the_request, wire.resets_after_the_request, wire.hangs_up_at_once, wire.cuts_the_head],
)
@every
def test_a_lost_answer_is_unresolved_and_leaves_once(given: dict[str, Any], behave: Any) -> None:
    with wire.Server(behave) as server:
        assert isinstance(on(server.url, given, submit), Unresolved)
        assert server.connections == 1


@every
def test_nobody_there_is_not_sent(given: dict[str, Any]) -> None:
    assert isinstance(on("http://127.0.0.1:9", given, submit), NotSent)


PHASES = {
    "submitted": Phase.RUNNING,
    "working": Phase.RUNNING,
    "completed": Phase.COMPLETED,
    "failed": Phase.FAILED,
    "rejected": Phase.FAILED,
    "canceled": Phase.CANCELLED,
    "input-required": Phase.AWAITING_INPUT,
    "auth-required": Phase.AWAITING_INPUT,
}


@pytest.mark.parametrize("word", PHASES)
@every
def test_states(given: dict[str, Any], word: str) -> None:
    found = against(told(given, task(word, given=given)), given, probe())
    assert isinstance(found, Present) and (found.phase, found.handle) == (PHASES[word], "t-7")
    assert (found.failure is not None) == (found.phase is Phase.FAILED)
    assert bool(found.question_id) == (found.phase is Phase.AWAITING_INPUT)


def test_an_unknown_state_proves_nothing() -> None:
    for status in ({"state": "TASK_STATE_UNSPECIFIED"}, {"state": "done"}, {"state": 7}, {}, None, "working"):
        assert isinstance(against(told(RPC, {"id": "t-7", "status": status}), RPC, probe()), Unknown), status


@every
def test_a_result_is_the_artifacts_and_the_last_message(given: dict[str, Any]) -> None:
    artifacts = [{"artifactId": "a", "parts": [{"text": "grüß"}]}]
    shown = task("completed", given=given, artifacts=artifacts, said=message("m-9", "bye"))
    result = {"artifacts": artifacts, "message": message("m-9", "bye")}
    found = against(told(given, shown), given, probe())
    assert isinstance(found, Present) and found.result is not None and json.loads(found.result) == result
    assert against(told(given, shown), given, lambda adapter: adapter.fetch(KNOWN)) == Result(found.result)
    empty = against(told(given, task("completed", given=given)), given, probe())
    assert isinstance(empty, Present) and empty.result == b'{"artifacts":[],"message":null,"history":[]}'
    history = [message("call-1", mine=True), message("m-1", "the answer"), {**message("m-0"), "taskId": "t-6"}]
    kept = against(told(given, task("completed", given=given, history=history)), given, probe())
    assert isinstance(kept, Present) and kept.result is not None
    assert json.loads(kept.result)["history"] == [message("m-1", "the answer")]
    assert isinstance(against(told(given, task("completed", given=given, artifacts=7)), given, probe()), Unknown)
    assert against(told(given, task(given=given)), given, lambda adapter: adapter.fetch(KNOWN)) == NotReady()


def test_a_failure_says_why() -> None:
    failed = against(told(RPC, task("failed", said=message("m", "no\nluck"))), RPC, probe())
    rejected = against(told(RPC, task("rejected", said=message("m", "x" * 5_000))), RPC, probe())
    silent = against(told(RPC, task("failed")), RPC, probe())
    assert isinstance(failed, Present) and isinstance(rejected, Present) and isinstance(silent, Present)
    assert failed.failure is not None and rejected.failure is not None and silent.failure is not None
    assert (failed.failure.code, failed.failure.message) == (FailureCode.REMOTE_FAILED, "no luck")
    assert rejected.failure.code is FailureCode.REJECTED and len(rejected.failure.message) < 1_000
    assert silent.failure.message == "the agent gave no reason"


@every
def test_an_unknown_task_is_absent_and_another_one_is_nothing(given: dict[str, Any]) -> None:
    assert against(fault(given, -32001, "TASK_NOT_FOUND", "404 Not Found"), given, probe()) == Absent(None)
    assert isinstance(against(told(given, task(name="t-8", given=given)), given, probe()), Unknown)
    assert isinstance(against(fault(given, -32603, "INTERNAL", "500 No"), given, probe()), Unknown)
    for reply in (wire.reply(b"no", "404 No", "text/plain"), wire.reply(b'{"error":{"code":404}}', "404 No")):
        assert isinstance(against(reply, given, probe()), Unknown)


def test_without_lists_only_a_task_can_be_asked_about() -> None:
    for given in (OLD, {**RPC, "lists": False}, {**REST, "lists": False}):
        with wire.Server(wire.answers(b"")) as server:
            found = on(server.url, given, probe(OWN))
            assert isinstance(found, Unknown) and found.final and server.connections == 0


@every
def test_cancel(given: dict[str, Any]) -> None:
    def cancel(reply: bytes, inv: Invocation = KNOWN) -> Any:
        return against(reply, given, lambda adapter: adapter.cancel(inv))

    assert cancel(told(given, task("canceled", given=given))) == Confirmed()
    assert cancel(told(given, task("completed", given=given))) == Confirmed()
    assert cancel(told(given, task("working", given=given))) == Taken()
    assert isinstance(cancel(told(given, {})), Unknown)
    assert cancel(fault(given, -32002, "TASK_NOT_CANCELABLE")) == Confirmed()
    assert isinstance(cancel(fault(given, -32001, "TASK_NOT_FOUND", "404 No")), Unknown)
    assert isinstance(cancel(wire.reply(b"", "503 No")), Unknown)
    assert isinstance(cancel(b"", OWN), Unknown)


@every
def test_what_is_asked_of_a_task(given: dict[str, Any]) -> None:
    async def work(adapter: A2AAdapter) -> None:
        await adapter.probe(KNOWN)
        await adapter.fetch(KNOWN)
        await adapter.cancel(KNOWN)

    asked = requests_of(given, work, told(given, task(given=given)))
    lines = [line for line, _, _ in asked]
    if given is REST:
        assert lines == ["GET /a/tasks/t-7?historyLength=10"] * 2 + ["POST /a/tasks/t-7:cancel"]
        return
    assert lines == ["POST /a"] * 3
    get, end = ("tasks/get", "tasks/cancel") if given is OLD else ("GetTask", "CancelTask")
    assert [(body["method"], body["params"]) for _, _, body in asked] == [
        (get, {"id": "t-7", "historyLength": 10}),
        (get, {"id": "t-7", "historyLength": 10}),
        (end, {"id": "t-7"}),
    ]


def test_there_is_no_fence() -> None:
    found = against(b"", RPC, lambda adapter: adapter.fence(OWN))
    assert isinstance(found, Unknown) and found.final


def stream(given: dict[str, Any], *values: Any, kind: str = "text/event-stream") -> bytes:
    shown = [value if given is REST else {"jsonrpc": "2.0", "id": 1, "result": value} for value in values]
    return wire.reply("".join(f"data: {json.dumps(one)}\n\n" for one in shown).encode(), "200 OK", kind)


def watched(reply: bytes, given: dict[str, Any], inv: Invocation = KNOWN) -> list[Any]:
    async def work(adapter: A2AAdapter) -> list[Any]:
        return [json.loads(item.data) async for item in adapter.watch(inv, "")]

    return against(reply, given, work)


@every_new
def test_a_stream_is_a_snapshot_and_what_follows(given: dict[str, Any]) -> None:
    events = [{"task": task()}, {"artifactUpdate": {"artifact": {}}}, {"statusUpdate": {"status": {"state": "odd"}}}]
    assert watched(stream(given, *events), given) == events
    for word in ("completed", "canceled", "input-required", "auth-required"):
        last = {"statusUpdate": {"status": {"state": f"TASK_STATE_{word.upper().replace('-', '_')}"}}}
        assert watched(stream(given, events[0], last, events[1]), given) == [events[0], last]
    assert watched(stream(given, events[0], kind="application/json"), given) == []
    assert watched(fault(given, -32004, "UNSUPPORTED_OPERATION"), given) == []
    assert watched(stream(given, events[0], 7, events[1]), given) == [events[0]]
    assert watched(stream(given, {"error": {}}), given) == []


@every_new
def test_how_a_stream_is_asked_for(given: dict[str, Any]) -> None:
    async def work(adapter: A2AAdapter) -> None:
        async for _ in adapter.watch(KNOWN, ""):
            pass

    ((line, headers, body),) = requests_of(given, work, stream(given))
    assert headers["accept"] == "text/event-stream" and headers["a2a-version"] == "1.0"
    if given is REST:
        assert (line, body) == ("GET /a/tasks/t-7:subscribe", None)
    else:
        assert line == "POST /a" and (body["method"], body["params"]) == ("SubscribeToTask", {"id": "t-7"})


def test_nothing_is_watched_over_0_3_or_without_a_task() -> None:
    with wire.Server(wire.answers(stream(RPC, {}))) as server:
        for given, inv in ((OLD, KNOWN), (RPC, OWN)):

            async def work(adapter: A2AAdapter, inv: Invocation = inv) -> list[Any]:
                return [item async for item in adapter.watch(inv, "")]

            assert on(server.url, given, work) == []
        assert server.connections == 0


def test_an_event_that_breaks_off_is_left_out() -> None:
    assert watched(wire.reply(b"data: {\n\ndata: 1\n\n", "200 OK", "text/event-stream"), REST) == []


ASKED = replace(KNOWN, question_id="q-1", response=Response("r-1", "q-1", b'"blue"'))


@every
def test_an_answer_to_a_question_is_a_message_to_its_task(given: dict[str, Any]) -> None:
    ((_, _, body),) = requests_of(given, lambda adapter: adapter.respond(ASKED), sent(given, task(given=given)))
    said = body.get("params", body)["message"]
    assert (said["taskId"], said["contextId"]) == ("t-7", CONTEXT)
    assert said["parts"][0]["text"] == "blue" and said["messageId"] not in ("call-1", "r-1")


@every
def test_what_became_of_an_answer_to_a_question(given: dict[str, Any]) -> None:
    def respond(reply: bytes, inv: Invocation = ASKED) -> Any:
        return against(reply, given, lambda adapter: adapter.respond(inv))

    assert respond(sent(given, task(given=given))) == Accepted("t-7")
    assert isinstance(respond(sent(given, task(name="t-8", given=given))), Unresolved)
    said = {**message("m"), "kind": "message"}
    assert respond(told(given, said if given is OLD else {"message": said})) == Accepted("t-7")
    assert isinstance(respond(fault(given, -32004, "UNSUPPORTED_OPERATION")), Refused)
    assert isinstance(respond(wire.reply(b"", "502 No")), Unresolved)
    assert isinstance(respond(b"", replace(ASKED, handle="")), Refused)
    assert isinstance(respond(b"", KNOWN), Refused)


@every_new
def test_a_tenant_of_the_card_goes_along(given: dict[str, Any]) -> None:
    binding = "HTTP+JSON" if given is REST else "JSONRPC"

    async def work(adapter: A2AAdapter) -> None:
        await adapter.submit(OWN, lambda handle: None)
        await adapter.probe(KNOWN)

    def card(server: wire.Server, connection: Any) -> None:
        while server.request(connection):
            one = {"url": f"{server.url}/a", "protocolBinding": binding, "protocolVersion": "1.0", "tenant": "x/y"}
            connection.sendall(wire.reply(json.dumps({"supportedInterfaces": [one]}).encode()))

    with wire.Server(card) as server:
        on(server.url, {**given, "endpoint": ""}, work)
        whole = [one.decode() for one in server.whole]
    if given is REST:
        assert "POST /a/x%2Fy/message:send" in whole[1] and "GET /a/x%2Fy/tasks/t-7" in whole[2]
    else:
        assert all('"params":{"tenant":"x/y",' in one.replace('": ', '":') for one in whole[1:])
