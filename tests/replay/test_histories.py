"""Committed histories of real runs: today's step does what the job did then."""

import pytest

from reattach.models.events import Requested, Restored, SubmitAnswered
from reattach.models.lifecycle import Leaf
from reattach.runtime.replay.reading import read
from reattach.runtime.replay.report import Report, Row, replay
from tests.replay.making import break_guard
from tests.replay.record import HISTORIES, SCENARIOS

Played = tuple[Report, list[Row]]


def play(name: str) -> Played:
    rows: list[Row] = []
    journal = read([HISTORIES / f"{name}.journal"])
    return replay(journal, on_row=rows.append), rows


def path_of(rows: list[Row], invocation: str = "call-0") -> list[str]:
    return [row.event for row in rows if row.entry.invocation_id == invocation]


def test_every_scenario_has_its_history() -> None:
    assert {path.stem for path in HISTORIES.glob("*.journal")} == set(SCENARIOS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_history_comes_to_the_same_states_today(name: str) -> None:
    report, _ = play(name)
    assert report.damages == []
    assert report.divergences == []
    assert (report.gaps, report.skipped, report.lost) == (0, 0, 0)
    assert report.code == 0 and report.checked > 0


def taken_over_in(rows: list[Row]) -> set[Leaf | None]:
    return {row.entry.before for row in rows if isinstance(row.entry.event, Restored) and row.entry.basis is not None}


def test_killed_while_running_and_rejoined() -> None:
    report, rows = play("killed-while-running-and-rejoined")
    assert report.takeovers == 2
    assert any(leaf is not None and leaf.value.startswith("running") for leaf in taken_over_in(rows))


def test_killed_between_a_post_and_its_answer() -> None:
    report, rows = play("killed-between-a-post-and-its-answer")
    assert report.takeovers == 2
    assert taken_over_in(rows) == {Leaf.SU_SENDING}
    assert "submit_accepted" not in path_of(rows), "nobody ever learned the answer"


def test_lost_answer_then_found_running() -> None:
    _, rows = play("lost-answer-then-found-running")
    path = path_of(rows)
    assert path[path.index("submit_unresolved") + 1] == "found_running"


def test_lost_post_then_proven_absent() -> None:
    _, rows = play("lost-post-then-proven-absent")
    path = path_of(rows)
    assert path[path.index("submit_unresolved") + 1] == "found_absent"
    assert "submit_accepted" in path


def test_deadline_with_a_stuck_run() -> None:
    _, rows = play("deadline-with-a-stuck-run")
    draining = [row.entry for row in rows if row.entry.before is Leaf.FAILED]
    assert len(draining) >= 3
    assert draining[-1].effects == ("Notify",), "released without knowing"


def test_killed_while_draining() -> None:
    report, rows = play("killed-while-draining")
    assert report.takeovers == 1
    assert taken_over_in(rows) == {Leaf.FAILED}


def test_re_delivered_request() -> None:
    _, rows = play("re-delivered-request")
    assert [isinstance(row.entry.event, Requested) for row in rows].count(True) == 1
    assert sum(isinstance(row.entry.event, SubmitAnswered) for row in rows) <= 1


def test_restored_from_an_older_checkpoint() -> None:
    report, rows = play("restored-from-an-older-checkpoint")
    assert report.restores >= 1
    assert report.undone > 0
    assert {row.entry.after for row in rows if row.entry.effects == ("Emit",)} == {Leaf.COMPLETED}


def test_turns_of_one_thread_with_a_kill_between() -> None:
    report, rows = play("turns-of-one-thread-with-a-kill-between")
    assert report.calls == 3
    assert len({row.entry.thread_id for row in rows}) == 1
    assert report.takeovers >= 1


def test_known_once_and_then_lost() -> None:
    _, rows = play("known-once-and-then-lost")
    path = path_of(rows)
    assert path[-1] == "found_absent"
    assert rows[-1].entry.after is Leaf.FAILED


def test_histories_hold_nobodys_words() -> None:
    for path in HISTORIES.glob("*.journal"):
        for held in read([path]).calls.values():
            assert all(b'"from"' not in one.data and b'"echo":' not in one.data for one in held), path


@pytest.mark.parametrize(
    ("guard", "answer", "finder"),
    [
        ("trusted", False, "lost-post-then-proven-absent"),
        ("permitted", False, "lost-post-then-proven-absent"),
        ("fenceable", True, "lost-answer-then-found-running"),
        ("closing", False, "killed-while-draining"),
        ("twice_absent", True, "known-once-and-then-lost"),
        ("askable", False, "killed-between-a-post-and-its-answer"),
        ("credible", False, "re-delivered-request"),
        ("has_result", False, "restored-from-an-older-checkpoint"),
    ],
)
def test_a_broken_guard_is_found(monkeypatch: pytest.MonkeyPatch, guard: str, answer: bool, finder: str) -> None:
    break_guard(monkeypatch, guard, answer)
    report, _ = play(finder)
    assert report.code == 1
    (first, *_) = report.divergences
    assert first.mismatch.recorded != first.mismatch.today
