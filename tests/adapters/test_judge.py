"""What a status proves about one message: the table, and that no other turn's result is ever claimed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach.adapters.thread_status import Status, judge
from reattach.models.answers import Absent, Phase, Present, ProbeAnswer, Unknown
from tests.adapters.wire import invocation

RUNNING = Present(Phase.RUNNING)
OVER = Present(Phase.COMPLETED)
DONE = Present(Phase.COMPLETED, result=b"1")


def status(name: str, marker: Any = None) -> Status:
    return Status(name, marker, True, b"1" if name == "completed" else None, "bad" if name == "failed" else "")


def same(answer: ProbeAnswer, expected: Any) -> bool:
    if expected in ("wait", "never"):
        return isinstance(answer, Unknown) and answer.final == (expected == "never")
    if expected == "failed":
        return isinstance(answer, Present) and answer.phase is Phase.FAILED and answer.failure is not None
    return bool(answer == expected)


DERIVED = [
    ("not_started", None, Absent(None)),
    ("running", None, RUNNING),
    ("completed", None, DONE),
    ("failed", None, "failed"),
    ("completed", 1, DONE),
    ("not_started", 0, Absent(None)),
    ("completed", "mine", DONE),
    ("completed", ("mine",), DONE),
    # Two turns on a thread of its own: the result may be the second one's.
    ("completed", 2, OVER),
    ("completed", "other", Absent("other")),
]
SHARED = [
    ("not_started", None, Absent("")),
    ("running", None, "wait"),
    ("completed", None, "wait"),
    ("started", None, "wait"),
    # The newest message's id.
    ("not_started", "", Absent("")),
    ("running", "mine", RUNNING),
    ("not_started", "mine", RUNNING),
    ("completed", "mine", DONE),
    ("failed", "mine", "failed"),
    ("completed", "other", Absent("other")),
    ("failed", "other", Absent("other")),
    ("running", "other", "wait"),
    ("running", "", "wait"),
    # The whole history.
    ("not_started", (), Absent(None)),
    ("completed", ("a", "mine"), DONE),
    ("completed", ("mine", "b"), OVER),
    ("running", ("mine", "b"), OVER),
    ("running", ("a", "mine"), RUNNING),
    ("completed", ("a", "b"), Absent(None)),
    ("running", ("a", "b"), "wait"),
    # A count, for turn 2.
    ("completed", 1, Absent(None)),
    ("failed", 1, Absent(None)),
    ("running", 1, "wait"),
    ("running", 2, RUNNING),
    ("completed", 2, DONE),
    ("failed", 2, "failed"),
    ("completed", 3, OVER),
    ("running", 3, OVER),
    ("completed", 0, "never"),
    ("not_started", 0, "never"),
]


@pytest.mark.parametrize(("name", "marker", "expected"), DERIVED)
def test_a_thread_of_its_own(name: str, marker: Any, expected: Any) -> None:
    answer = judge(status(name, marker), invocation("mine"))
    assert same(answer, expected), answer


@pytest.mark.parametrize(("name", "marker", "expected"), SHARED)
def test_a_thread_of_several_turns(name: str, marker: Any, expected: Any) -> None:
    answer = judge(status(name, marker), invocation("mine", thread_id="t", turn=2))
    assert same(answer, expected), answer


def test_a_count_needs_a_turn_and_the_first_generation() -> None:
    assert same(judge(status("completed", 2), invocation("mine", thread_id="t")), "never")
    assert same(judge(status("completed", 2), invocation("mine", thread_id="t", turn=2, generation=2)), "never")


def test_generations_have_markers_of_their_own() -> None:
    retry = invocation("mine", thread_id="t", generation=2)
    assert judge(status("failed", "mine"), retry) == Absent("mine")
    assert judge(status("completed", "mine#2"), retry) == DONE


@given(
    ids=st.lists(st.sampled_from(["mine", "a", "b", "c"]), max_size=6, unique=True),
    name=st.sampled_from(["not_started", "running", "completed", "failed"]),
    kind=st.sampled_from(["last", "list", "count"]),
)
def test_a_result_is_only_claimed_for_the_newest_turn(ids: list[str], name: str, kind: str) -> None:
    turn = ids.index("mine") + 1 if "mine" in ids else len(ids) + 1
    marker: Any = {"last": ids[-1] if ids else "", "list": tuple(ids), "count": len(ids)}[kind]
    answer = judge(status(name, marker), invocation("mine", thread_id="t", turn=turn))
    newest = bool(ids) and ids[-1] == "mine"
    if isinstance(answer, Present):
        assert "mine" in ids
        assert newest or (answer.result is None and answer.failure is None)
    if isinstance(answer, Absent) and answer.after is None:
        assert "mine" not in ids and name != "running"
    if isinstance(answer, Absent) and answer.after:
        assert answer.after == ids[-1] != "mine"
