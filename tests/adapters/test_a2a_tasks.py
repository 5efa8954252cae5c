"""Whose task it is and which question it asks: the two readings on which no duplicate depends."""

import json
from dataclasses import replace
from typing import Any

import pytest

from reattach.adapters.a2a_tasks import HISTORIES, PAGES_MAX, response_marker
from reattach.models.answers import Absent, Phase, Present, Unknown
from reattach.models.invocation import Invocation, Response
from tests.adapters import wire
from tests.adapters.a2a_agents import (
    CONTEXT,
    KNOWN,
    NEW,
    OWN,
    REST,
    RPC,
    SHARED,
    WIRES,
    against,
    fault,
    listed,
    message,
    mine,
    on,
    task,
    told,
    waiting,
)

every = pytest.mark.parametrize("given", WIRES.values(), ids=WIRES)
every_new = pytest.mark.parametrize("given", NEW.values(), ids=NEW)


def search(replies: bytes | list[bytes], given: dict[str, Any] = RPC, inv: Invocation = OWN) -> Any:
    return against(replies, given, lambda adapter: adapter.probe(inv))


def theirs(name: str, marker: str = "call-0", **more: Any) -> dict[str, Any]:
    """A task of another call on the named thread."""
    return task("completed", name=name, contextId="t", history=[message(marker, mine=True)], **more)


@every_new
def test_the_list_is_asked_for_page_by_page(given: dict[str, Any]) -> None:
    replies = [listed(given, theirs("t-2"), token="p/2 é"), listed(given), listed(given, theirs("t-2"))]
    with wire.Server(wire.answers(*replies)) as server:
        assert on(server.url, given, lambda adapter: adapter.probe(SHARED)) == Absent(None)
        heads = [whole.partition(b"\r\n")[0].decode() for whole in server.whole]
        bodies = [whole.partition(b"\r\n\r\n")[2] for whole in server.whole]
    params = [{"contextId": "t", "historyLength": HISTORIES[0], "pageSize": 100}] * 3
    params[1] = {**params[1], "pageToken": "p/2 é"}
    if given is REST:
        query = f"contextId=t&historyLength={HISTORIES[0]}&pageSize=100"
        ends = ["", "&pageToken=p%2F2+%C3%A9", ""]
        assert heads == [f"GET /a/tasks?{query}{end} HTTP/1.1" for end in ends]
    else:
        assert [json.loads(body)["params"] for body in bodies] == params
        assert {json.loads(body)["method"] for body in bodies} == {"ListTasks"}


@every_new
def test_the_task_that_holds_the_message_is_the_calls(given: dict[str, Any]) -> None:
    assert search(listed(given), given) == Absent(None)
    assert search(told(given, {"pageSize": 100}), given) == Absent(None)
    assert isinstance(search(told(given, {}), given), Unknown)
    assert isinstance(search(told(given, {"ok": True, "nextPageToken": ""}), given), Unknown)
    assert search(listed(given, mine()), given) == Present(Phase.RUNNING, "t-7")
    assert search(listed(given, mine(word="completed")), given) == Present(Phase.COMPLETED, "t-7")
    shared = mine(context="t")
    assert search(listed(given, theirs("t-1"), shared, theirs("t-2")), given, SHARED) == Present(Phase.RUNNING, "t-7")
    assert search(listed(given, theirs("t-1")), given, SHARED) == Absent(None)


def test_a_listed_result_is_read_from_the_task_itself() -> None:
    """Lists leave artifacts out: what they show of a result is none."""
    shown = {**mine(word="completed"), "artifacts": [{"parts": [{"text": "half"}]}]}
    assert search(listed(RPC, shown)) == Present(Phase.COMPLETED, "t-7")


def test_a_message_of_the_agent_with_our_marker_proves_nothing() -> None:
    shown = {**theirs("t-1"), "history": [message("call-0", mine=True), message("call-1")]}
    assert search(listed(RPC, shown), inv=SHARED) == Absent(None)


def test_the_same_marker_in_another_context_is_another_call() -> None:
    assert search(listed(RPC, mine(context="elsewhere"))) == Absent(None)
    assert search(listed(RPC, mine(context="elsewhere")), inv=SHARED) == Absent(None)
    without = {name: value for name, value in mine().items() if name != "contextId"}
    assert search(listed(RPC, without)) == Present(Phase.RUNNING, "t-7")


def test_on_a_thread_of_its_own_every_task_is_the_calls() -> None:
    """An agent that keeps no messages is not sent the call a second time."""
    for history in ([], None, [message("m-1")]):
        shown = task(contextId=CONTEXT, history=history)
        assert search(listed(RPC, shown)) == Present(Phase.RUNNING, "t-7")


def test_of_several_the_one_that_rests_longest_counts() -> None:
    assert search(listed(RPC, mine("t-9"), mine("t-8"))) == Present(Phase.RUNNING, "t-8")
    pages = [listed(RPC, mine("t-9"), token="2"), listed(RPC, mine("t-8"), task(name="t-1", contextId=CONTEXT))]
    assert search(pages) == Present(Phase.RUNNING, "t-8")


def test_a_listed_task_that_says_nothing_clear_was_accepted_all_the_same() -> None:
    odd = {**mine(), "status": {"state": "odd"}}
    assert search(listed(RPC, odd)) == Present(Phase.RUNNING, "t-7")
    asks = {**mine(word="input-required")}
    asks["status"] = {**asks["status"], "message": {"messageId": "q\n"}}
    assert search(listed(RPC, asks)) == Present(Phase.RUNNING, "t-7")


@every_new
def test_a_listed_question_is_told_at_once(given: dict[str, Any]) -> None:
    shown = mine(word="input-required")
    shown["status"]["message"] = message("q-1", "which?")
    found = search(listed(given, shown), given)
    assert isinstance(found, Present) and (found.phase, found.question_id) == (Phase.AWAITING_INPUT, "q-1")


def test_a_task_that_begins_to_work_between_two_pages_is_not_missed() -> None:
    """Lists are ordered by the latest change: it goes from the last page to the first, and is on neither."""
    first, second = listed(RPC, theirs("t-1"), token="2"), listed(RPC, theirs("t-2"))
    moved = listed(RPC, mine(context="t"), theirs("t-1"), token="2")
    found = search([first, second, moved], inv=SHARED)
    assert isinstance(found, Unknown) and "changed" in found.cause
    assert search([first, second, first], inv=SHARED) == Absent(None)
    assert isinstance(search([first, second, wire.reply(b"", "503 No")], inv=SHARED), Unknown)


def test_a_list_that_may_be_cut_is_no_absence() -> None:
    found = search(listed(RPC, theirs("t-1"), totalSize=2), inv=SHARED)
    assert isinstance(found, Unknown) and "1 of 2" in found.cause
    assert search(listed(RPC, theirs("t-1"), totalSize=1), inv=SHARED) == Absent(None)
    assert search(listed(RPC, mine(), totalSize=5)) == Present(Phase.RUNNING, "t-7")
    for broken in (wire.reply(b"", "503 No"), wire.reply(b"{}", "200 OK", "text/html"), told(RPC, {"tasks": 7})):
        assert isinstance(search([listed(RPC, theirs("t-1"), token="2"), broken], inv=SHARED), Unknown)


def test_a_list_without_end_is_left() -> None:
    with wire.Server(wire.answers(listed(RPC, theirs("t-1"), token="again"))) as server:
        found = on(server.url, RPC, lambda adapter: adapter.probe(SHARED))
        assert isinstance(found, Unknown) and "pages" in found.cause and len(server.whole) == PAGES_MAX
    assert search([listed(RPC, mine(), token="again")]) == Present(Phase.RUNNING, "t-7")


def test_a_history_that_may_have_lost_its_first_message_is_no_absence() -> None:
    long = theirs("t-1")
    long["history"] = [message("call-0", mine=True)] + [message(f"m-{n}") for n in range(HISTORIES[0] - 1)]
    found = search(listed(RPC, long), inv=SHARED)
    assert isinstance(found, Unknown) and found.final and "cut" in found.cause
    long["history"].pop()
    assert search(listed(RPC, long), inv=SHARED) == Absent(None)
    for history in (None, [], [message("m-1")], [7], "odd"):
        found = search(listed(RPC, {**theirs("t-1"), "history": history}), inv=SHARED)
        assert isinstance(found, Unknown) and found.final and "thread_id" in found.cause


@every_new
def test_an_agent_without_lists_says_so_once_and_for_all(given: dict[str, Any]) -> None:
    for reply in (fault(given, -32601, "METHOD_NOT_FOUND"), fault(given, -32004, "UNSUPPORTED_OPERATION")):
        found = search(reply, given)
        assert isinstance(found, Unknown) and found.final and "options.lists = false" in found.cause
    other = search(fault(given, -32603, "INTERNAL", "500 No"), given)
    assert isinstance(other, Unknown) and not other.final


@pytest.mark.parametrize("code", [405, 501])
def test_a_route_that_is_not_there_is_the_same_over_rest(code: int) -> None:
    found = search(wire.reply(b"", f"{code} No", "text/plain"), REST)
    assert isinstance(found, Unknown) and found.final
    gateway = search(wire.reply(b"", "404 No", "text/plain"), REST)
    assert isinstance(gateway, Unknown) and not gateway.final


@pytest.mark.parametrize(
    "odd", [7, None, {}, {"id": 7}, {"id": ""}, {"id": "a\nb"}, {"id": "message:1"}, {"id": "x" * 600}, ["t"]]
)
def test_an_item_that_is_no_task_makes_the_list_useless(odd: Any) -> None:
    assert isinstance(search(listed(RPC, odd)), Unknown)


@pytest.mark.parametrize("token", [7, [], "x" * 3_000])
def test_a_token_that_makes_no_sense(token: Any) -> None:
    assert isinstance(search(told(RPC, {"tasks": [], "nextPageToken": token})), Unknown)


def test_an_agent_that_refuses_long_histories_is_asked_for_short_ones() -> None:
    """LangGraph's own A2A takes ten at most. What is cut there is found by the shorter measure."""
    few = [message(f"m-{n}", mine=True) for n in range(HISTORIES[1])]
    for history, kind in ((few[1:], Absent), (few, Unknown)):

        def behave(server: wire.Server, connection: Any, history: Any = history) -> None:
            while request := server.request(connection):
                short = b'"historyLength": 10,' in request
                shown = listed(RPC, {**theirs("t-1"), "history": history})
                connection.sendall(shown if short else fault(RPC, -32602, "INVALID_PARAMS"))

        with wire.Server(behave) as server:
            assert isinstance(on(server.url, RPC, lambda adapter: adapter.probe(SHARED)), kind)
            assert len(server.whole) == 2
    refused = search(fault(RPC, -32602, "INVALID_PARAMS"))
    assert isinstance(refused, Unknown) and not refused.final


def test_a_history_may_show_the_messages_of_other_tasks() -> None:
    """LangGraph's own A2A shows those of the whole context, each with its task."""
    both = [{**message("call-0", mine=True), "taskId": "t-1"}, {**message("call-1", mine=True), "taskId": "t-2"}]
    tasks = [{**theirs("t-2"), "history": both}, {**theirs("t-1"), "history": both}]
    assert search(listed(RPC, *tasks), inv=SHARED) == Present(Phase.COMPLETED, "t-2")
    assert search(listed(RPC, tasks[1], theirs("t-0")), inv=SHARED) == Absent(None)
    foreign = search(listed(RPC, {**theirs("t-3"), "history": both}), inv=SHARED)
    assert isinstance(foreign, Unknown) and foreign.final


def test_generations_are_told_apart_on_a_named_thread() -> None:
    second = wire.invocation(thread_id="t", generation=2)
    assert search(listed(RPC, mine(context="t")), inv=second) == Absent(None)
    assert search(listed(RPC, mine(context="t", marker="call-1#2")), inv=second) == Present(Phase.RUNNING, "t-7")


def asked(shown: dict[str, Any], given: dict[str, Any] = RPC, inv: Invocation = KNOWN) -> Any:
    return against(told(given, shown), given, lambda adapter: adapter.probe(inv))


@every
def test_a_question_is_named_by_its_time_else_its_message_else_its_number(given: dict[str, Any]) -> None:
    said = message("q-1", "which?")
    by_time = asked(task("input-required", given=given, said=said, at="T1"), given)
    assert isinstance(by_time, Present) and by_time.question_id == "@T1"
    assert json.loads(by_time.question) == said
    by_message = asked(task("input-required", given=given, said=said), given)
    assert isinstance(by_message, Present) and by_message.question_id == "q-1"
    silent = asked(task("auth-required", given=given, at="T1"), given)
    assert isinstance(silent, Present) and "state" in json.loads(silent.question)
    history = [{"messageId": name, "role": role} for name, role in (("a", "user"), ("b", "agent"), ("c", "user"))]
    by_number = asked(task("input-required", given=given, history=history), given)
    assert isinstance(by_number, Present) and by_number.question_id == "#2"


def test_a_question_without_a_name_that_can_be_one_is_unknown() -> None:
    assert isinstance(asked(task("input-required", said=message("q\n1"))), Unknown)
    assert isinstance(asked(task("input-required", said=message("q" * 600))), Unknown)


RESPONSE = Response("r-1", "q-1", b'"blue"')
OURS = {"messageId": response_marker(KNOWN, "r-1"), "role": "ROLE_USER", "parts": []}
FIRST = message("call-1", mine=True)
QUESTION = message("q-1", "which?")
RESPONDING = replace(waiting("q-1"), response=RESPONSE)
TIMED = replace(waiting("@T1"), response=replace(RESPONSE, question_id="@T1"))
BOTH = pytest.mark.parametrize(
    "inv", [RESPONDING, waiting("q-1"), TIMED, waiting("@T1")], ids=["by message", "after it", "by time", "after that"]
)


def at_of(inv: Invocation) -> str:
    return "T1" if inv.question_id == "@T1" else ""


@BOTH
def test_a_question_that_was_answered_is_not_open_any_more(inv: Invocation) -> None:
    """The status lags behind the history: what stands in it is not asked any more, and is not answered again."""
    kept = task("input-required", said=QUESTION, at=at_of(inv), history=[FIRST, QUESTION, OURS])
    cleared = task("input-required", at=at_of(inv), history=[FIRST, QUESTION, OURS])
    for shown in (kept, cleared):
        assert asked(shown, inv=inv) == Present(Phase.RUNNING, "t-7")


def test_an_answer_of_ours_in_the_history_closes_its_question() -> None:
    """Where the agent does not move its question into the history."""
    for inv in (RESPONDING, TIMED):
        at = at_of(inv)
        shown = task("input-required", said=QUESTION, at=at, history=[FIRST, OURS])
        assert asked(shown, inv=inv) == Present(Phase.RUNNING, "t-7")
        for history in ([FIRST], [FIRST, {**OURS, "messageId": "x"}], []):
            found = asked(task("input-required", said=QUESTION, at=at, history=history), inv=inv)
            assert isinstance(found, Present) and found.question_id == inv.question_id, history
    silent = asked(task("input-required", at="T1", history=[FIRST]), inv=TIMED)
    assert isinstance(silent, Present) and silent.question_id == "@T1"


@BOTH
def test_the_next_question_is_another_one(inv: Invocation) -> None:
    at = at_of(inv) and "T2"
    shown = task("input-required", said=message("q-2", "and?"), at=at, history=[FIRST, QUESTION, OURS])
    found = asked(shown, inv=inv)
    assert isinstance(found, Present) and (found.phase, found.question_id) == (
        Phase.AWAITING_INPUT,
        "@T2" if at else "q-2",
    )


def test_a_question_without_words_is_the_next_one_when_its_time_is() -> None:
    found = asked(task("input-required", at="T2", history=[FIRST, OURS]), inv=TIMED)
    assert isinstance(found, Present) and found.question_id == "@T2"


def test_no_two_calls_give_their_answers_the_same_name() -> None:
    names = {
        response_marker(wire.invocation(call, generation=generation), response)
        for call in ("a", "a#2")
        for generation in (1, 2)
        for response in ("r", "s")
    }
    assert len(names) == 8


@pytest.mark.parametrize("context", ["", None])
@every_new
def test_a_task_that_names_no_thread_is_the_calls_if_it_shows_its_message(given: dict[str, Any], context: Any) -> None:
    """Each such list once led to the message being sent again."""
    assert search(listed(given, mine(context=context)), given) == Present(Phase.RUNNING, "t-7")
    assert search(listed(given, mine(context=context)), given, SHARED) == Present(Phase.RUNNING, "t-7")
    strangers = mine(context=context, marker="call-0")
    assert search(listed(given, strangers), given) == Absent(None)


@every_new
def test_the_task_of_a_server_that_does_not_filter_is_nobodys(given: dict[str, Any]) -> None:
    assert search(listed(given, mine(context="elsewhere", marker="call-0")), given) == Absent(None)
    shown = task("completed", contextId="elsewhere", history=[message("call-0", mine=True)])
    found = against(told(given, shown), given, lambda adapter: adapter.probe(KNOWN))
    assert found == Unknown("the answer is about another task")


@every_new
def test_a_number_of_tasks_may_be_written_as_a_text(given: dict[str, Any]) -> None:
    page = {"tasks": [], "pageSize": 100, "nextPageToken": "", "totalSize": "1"}
    assert isinstance(search(told(given, page), given), Unknown)
