"""What a journal becomes as lanes: steps, lives, what was undone, where a call stands and why."""

from dataclasses import replace
from pathlib import Path

import pytest

from reattach.fsm import step as stepping
from reattach.models import events as e
from reattach.models.answers import Absent, Phase, Present, Progress
from reattach.models.events import ProbeAnswered, Progressed
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import Failure, FailureCode
from reattach.models.policy import OnAmbiguous
from reattach.runtime.replay.reading import Journal, read
from reattach.runtime.view.lanes import Lane, select, timeline, timeline_of, waiting_first
from reattach.runtime.view.terminal import bar, spans
from tests.fsm.making import BLIND, terms
from tests.replay.making import Host, break_guard, killed, lines_of
from tests.view.making import BEGAN, journal, lane, many


def lane_of(folder: Path, host: Host) -> Lane:
    (found,) = timeline_of(journal(folder, host)).lanes
    return found


def test_a_call_is_laid_out_step_by_step(tmp_path: Path) -> None:
    counted: list[int] = []
    whole = timeline_of(journal(tmp_path, killed()), counted.append)
    (found,) = whole.lanes
    assert counted == [8]
    assert (found.agent, found.thread_id, found.invocation_id) == ("agent", "t", "call-1")
    assert (found.leaf, found.status, found.generation) == (Leaf.COMPLETED, Status.COMPLETED, 1)
    assert (found.posts, found.probes, found.lives, found.cause) == (1, 3, 3, "")
    assert [step.event for step in found.steps] == [
        "requested", "time_reached", "found_absent", "submit_accepted",
        "restored", "found_completed", "restored", "found_completed",
    ]  # fmt: skip
    assert [step.number for step in found.steps if step.begins_life] == [1, 5, 7]
    assert [step.number for step in found.steps if step.undone] == [5, 6]
    assert [step.number for step in found.steps if step.restored] == [7]
    assert found.steps[4].note == "taken over by a new incarnation"
    assert found.steps[6].note == "restored from an older checkpoint: back to entry 4, 2 entries undone"
    assert (whole.from_ms, whole.until_ms) == (found.steps[0].at_ms, found.steps[-1].at_ms)
    assert [name for name, _ in whole.lives] == ["life-1", "life-2", "life-3"]


def test_the_state_lasts_since_the_first_step_that_led_to_it(tmp_path: Path) -> None:
    host = Host(terms(BLIND))
    host.ask()
    parked_ms = host.now_ms
    checkpoint = host.stored
    for _ in range(3):
        holder = host.holder
        assert holder is not None
        host.on(e.TimeReached(), holder.wake_at_ms)
    found = lane_of(tmp_path, host)
    assert (found.leaf, found.since_ms) == (Leaf.SU_PARKED, parked_ms)
    assert found.cause.startswith("not restored from this job's own latest checkpoint: ")
    holder = host.holder
    assert holder is not None
    host.on(e.AdoptOrdered("call-1", 1, "run-9"))
    host.open(checkpoint)
    host.on(e.Restored())
    assert lane_of(tmp_path, host).since_ms == parked_ms, "what was undone in between is not counted"


def test_how_a_call_failed_is_told(tmp_path: Path) -> None:
    host = Host()
    host.submit()
    host.on(e.WatchEnded(host.ident, ""))
    failure = Failure(FailureCode.REMOTE_FAILED, "out of\ncredits")
    host.on(ProbeAnswered(host.ident, Present(Phase.FAILED, failure=failure)))
    found = lane_of(tmp_path, host)
    assert (found.status, found.cause) == (Status.FAILED, "remote_failed: out of credits")
    assert found.steps[-1].says == "the remote shows that its run failed: out of credits"
    assert found.steps[-1].does == "emits the outcome"


def test_facts_of_a_stream_are_taken_together(tmp_path: Path) -> None:
    host = Host()
    host.submit()
    for _ in range(4):
        host.on(Progressed(host.ident, (Progress(b'"."'),)), host.now_ms + 10)
    host.open(host.stored)
    host.on(e.Restored())
    host.probe(Phase.RUNNING)
    host.on(Progressed(host.ident, (Progress(b'"."'), Progress(b'"."'))))
    found = lane_of(tmp_path, host)
    taken = [step for step in found.steps if step.event == "progressed"]
    assert [(step.number, step.times, step.says) for step in taken] == [
        (5, 4, "stream events, 4 times"),
        (11, 1, "2 stream events"),
    ]


def test_missing_entries_leave_a_gap(tmp_path: Path) -> None:
    entries = killed().entries
    file = tmp_path / "part-0.journal"

    def gaps(*numbers: int) -> list[int]:
        file.write_bytes(lines_of(entries[number - 1] for number in numbers))
        (found,) = timeline_of(journal_in(tmp_path)).lanes
        return [step.number for step in found.steps if step.gap]

    assert gaps(1, 2, 3, 4, 6, 7, 8) == [5], "the life of the fifth has lost its beginning"
    assert gaps(3, 4, 5, 6) == [], "older files may have been deleted"
    assert gaps(1, 2, 3, 5, 6) == [4], "the state that it goes on from is not there"


def journal_in(folder: Path) -> Journal:
    return read([folder / "part-0.journal"])


def test_an_entry_that_contradicts_itself_is_shown_as_it_stands(tmp_path: Path) -> None:
    host = killed()
    basis = host.entries[4].basis
    assert basis is not None
    host.entries[4] = replace(host.entries[4], basis=replace(basis, record=replace(basis.record, leaf=Leaf.RU_PROBING)))
    found = lane_of(tmp_path, host)
    assert (found.steps[4].note, found.steps[4].gap) == ("contradicts itself: its basis is in another leaf", True)
    host.entries = [replace(host.entries[6], basis=replace(basis, terms="{}"))]
    assert lane_of(tmp_path, host).cause == ""


def test_no_cause_is_told_where_todays_code_comes_to_another_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host()
    host.ask()
    host.on(ProbeAnswered(host.ident, Absent("")))
    assert lane_of(tmp_path, host).cause == "an absence is not believed before the quiet time has passed"
    break_guard(monkeypatch, "admissible", True)
    found = lane_of(tmp_path, host)
    assert (found.leaf, found.cause) == (Leaf.NS_QUIET, "")
    host.entries = host.entries[1:]
    assert lane_of(tmp_path, host).cause == ""

    def broken(*_: object) -> stepping.Step:
        raise KeyError("x")

    monkeypatch.setattr(stepping, "step", broken)
    assert lane_of(tmp_path, host).leaf is Leaf.NS_QUIET


def test_lanes_stand_in_the_order_in_which_their_calls_began(tmp_path: Path) -> None:
    first, second = Host(), Host()
    first.ask("call-b")
    second.now_ms += 7
    second.ask("call-a")
    found = timeline_of(journal(tmp_path, second, first))
    assert [lane.invocation_id for lane in found.lanes] == ["call-b", "call-a"]


def test_lanes_are_chosen_by_what_is_asked_for() -> None:
    lanes = many(30)

    def names(**asked: object) -> list[int]:
        return [int(one.invocation_id[6:]) for one in select(lanes, **asked)]  # type: ignore[arg-type]

    assert names() == list(range(30))
    assert names(statuses=[Status.NOT_STARTED, Status.SUBMITTED]) == [0]
    assert names(agent="reader", thread="thread-1") == [11, 13, 15, 17, 19]
    assert names(text="ORDER-2") == [2, *range(20, 30)]
    assert names(text="running.WATCHING") == [21]
    assert names(text="writer", thread="thread-0") == [0, 2, 4, 6, 8]
    assert [one.invocation_id for one in select([lane("x", cause="It Broke")], text="it broke")] == ["x"]


def test_calls_that_go_on_come_first() -> None:
    lanes = [lane("old"), lane("ended", BEGAN + 9), lane("new", BEGAN + 5, steps=4), lane("stuck", BEGAN, steps=4)]
    assert [one.invocation_id for one in waiting_first(lanes)] == ["stuck", "new", "ended", "old"]


def test_a_bar_says_the_same_without_colors() -> None:
    call, later = lane("call"), lane("later", BEGAN + 1_000, steps=6)
    of = timeline([call, later])
    assert bar(call, of, 40).plain == "nP" + "r" * 15 + "!" + "r" * 21 + "C"
    undone = replace(call, steps=tuple(replace(step, undone=step.number in (4, 5)) for step in call.steps))
    assert "." in bar(undone, of, 40).plain
    assert bar(later, of, 40).plain.startswith(" " * 19)
    assert bar(later, of, 40).plain.endswith("r")


def test_spans_never_run_backwards() -> None:
    call = lane("call")
    steps = (*call.steps[:3], replace(call.steps[3], at_ms=BEGAN - 500))
    found = list(spans(replace(call, steps=steps), BEGAN + 10))
    assert [until - step.at_ms for step, until in found] == [40, 30, 0, 510]


def test_an_ambiguous_call_names_its_failure(tmp_path: Path) -> None:
    host = Host(terms(BLIND, on_ambiguous=OnAmbiguous.FAIL))
    host.ask()
    assert lane_of(tmp_path, host).cause.startswith("ambiguous: ")
