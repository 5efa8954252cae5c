"""Each fault of the simulated world strikes when it is on, and never when it is off."""

import re
from collections import Counter
from dataclasses import fields
from pathlib import Path

import pytest

from reattach.models.errors import ConfigError
from reattach.models.events import AbandonOrdered, AdoptOrdered, ResubmitOrdered
from reattach.runtime.simulation import faults
from reattach.runtime.simulation.faults import ALL, NONE, Faults, faults_of
from reattach.runtime.simulation.report import Report
from reattach.runtime.simulation.world import World

NAMES = [field.name for field in fields(Faults)]
# What the fault needs before it can strike, and how often it does in these worlds.
NEEDS = {
    "linger": "lose=0.3",
    **dict.fromkeys(("zombie", "crash_again", "older", "outage", "skew"), "crash_every_ms=1500"),
    **dict.fromkeys(("repeat_orders",), "cancel=0.2"),
}
ODDS = {
    "ask": "0.3",
    "crash_every_ms": "2000",
    "lose": "0.2",
    "lost_checkpoint": "0.5",
    "stuck": "0.05",
    "zombie": "0.8",
}


def run(names: str, seed: int = 1, calls: int = 120) -> Report:
    return World(seed, faults_of(names), calls=calls).run()


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_strikes_and_breaks_nothing(name: str) -> None:
    needed = NEEDS.get(name, "")
    report = run(",".join(filter(None, (needed, f"{name}={ODDS.get(name, '0.4')}"))))
    assert report.happened[name] >= 2
    assert (report.violations, report.crash, report.stuck) == ((), "", 0)
    struck = {what.partition(":")[0] for what in report.happened} & set(NAMES)
    assert struck == {name, needed.partition("=")[0]} - {""}


def test_a_zombie_steps_and_sends() -> None:
    report = run("crash_every_ms=2000,zombie=1")
    assert report.happened["zombie"] == report.crashes
    assert report.happened["zombie: steps"] > report.happened["zombie: orders"] > 0
    assert report.good
    assert "zombie: steps" not in run("crash_every_ms=2000").happened


def test_crashes_come_several_in_a_row() -> None:
    """A host that dies while it takes its calls over, again and again, gets there in the end."""
    report = run("crash_every_ms=8000,crash_again=0.8")
    assert report.happened["crash_again"] > 2 * report.happened["crash_every_ms"]
    assert report.good


def test_a_late_checkpoint_completes_beside_its_successor() -> None:
    report = run("late_checkpoint=0.5")
    assert report.happened["late_checkpoint: the next one was under way"] > 0
    assert report.good


def test_a_request_outlives_its_sender() -> None:
    assert run("crash_every_ms=1000,delay=0.5").happened["a request outlives its connection"] > 0
    assert "a request outlives its connection" not in run("delay=0.5").happened


def test_a_question_of_a_dead_worker_is_taken_back_and_asked_anew() -> None:
    report = run("ask=0.5,reexecute=0.5")
    assert report.happened["reexecute: a question is taken back"] > 0
    assert report.ended == {"COMPLETED": 120}


def test_a_failed_run_is_retried_where_the_remote_says_so() -> None:
    report = run("fail=0.4")
    assert 0 < report.ended["FAILED remote_failed"] < report.happened["fail"]
    assert report.good


def test_a_run_that_begins_again_is_accepted_once() -> None:
    world = World(1, Faults(reexecute=0.5), calls=60)
    report = world.run()
    assert report.happened["reexecute"] > 20
    assert set(world.ledger.accepted.values()) == {1}
    assert report.ended == {"COMPLETED": 60}


def test_outcomes_of_a_checkpoint_that_nobody_heard_of_become_final_once() -> None:
    """By the next one, or by the restore."""
    world = World(1, Faults(untold=1, crash_every_ms=2_000), calls=120)
    committed: Counter[str] = Counter()
    commit = world.job.commit

    def count(outcome: object, went_back: bool) -> None:
        committed[outcome.invocation_id] += 1  # type: ignore[attr-defined]
        commit(outcome, went_back)  # type: ignore[arg-type]

    world.job.commit = count
    report = world.run()
    assert report.good
    assert report.happened["untold"] > 5
    assert set(committed.values()) == {1}
    assert len(committed) == 120


def test_people_decide_in_every_way_and_repeat_themselves() -> None:
    world = World(2, faults_of("crash_every_ms=1500,older=0.3,lose=0.2,repeat_orders=0.5"), calls=300)
    report = world.run()
    assert report.good
    lines = [line.event for line in world.source.lines]
    for kind in (AdoptOrdered, ResubmitOrdered, AbandonOrdered):
        orders = [event for event in lines if isinstance(event, kind)]
        assert report.happened[f"decision: {kind.__name__}"] > 0
        assert len(orders) > len(set(orders))
    assert "FAILED ambiguous" in report.ended


def test_a_fault_that_is_asked_for_by_name_exists() -> None:
    """The world asks for faults by name; a slip of the pen would be a fault that never strikes."""
    folder = Path(faults.__file__).parent
    asked = {name for file in folder.glob("*.py") for name in re.findall(r'strikes\("(\w+)"\)', file.read_text())}
    assert asked | {"crash_every_ms"} == set(NAMES)


def test_named_ones_are_on_and_all_others_off() -> None:
    assert faults_of("lose,zombie=1") == Faults(lose=ALL.lose, zombie=1)
    assert faults_of("none") == faults_of("") == NONE
    assert faults_of("all") == ALL
    assert all(getattr(ALL, name) > 0 for name in NAMES)
    assert not any(getattr(NONE, name) for name in NAMES)


@pytest.mark.parametrize(
    "names", ["rain", "lose=2", "lose=-1", "lose=x", "lose=nan", "lose=", "crash_every_ms=inf", "crash_every_ms=-5"]
)
def test_nonsense_is_refused_by_name(names: str) -> None:
    with pytest.raises(ConfigError, match=names.partition("=")[0]):
        faults_of(names)
