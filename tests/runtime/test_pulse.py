"""A process that stood still for too long sends nothing any more."""

from typing import Any

import pytest

from reattach.models.answers import NotSent
from reattach.models.effects import Probe, Respond, Submit
from reattach.runtime import pulse
from reattach.runtime.pulse import Pulse
from tests.runtime.scripted import Script, call, facts, ident

LATER = 2**52


class Clocks:
    """Both clocks, as a test sets them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monotonic, self.wall = 100.0, 1_000.0
        monkeypatch.setattr(Pulse, "_now", staticmethod(lambda: (self.monotonic, self.wall)))

    def go(self, seconds: float) -> None:
        self.monotonic += seconds
        self.wall += seconds


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


def test_it_beats_and_is_awake(clocks: Clocks) -> None:
    heart = Pulse(60_000)
    assert (heart.limit_s, heart.every_s) == (30.0, 7.5)
    for _ in range(100):
        clocks.go(30.0)
        heart.beat()
        assert heart.awake


@pytest.mark.parametrize("which", ["both clocks", "a suspended machine", "a clock that stood"])
def test_after_a_long_sleep_it_never_wakes_again(clocks: Clocks, which: str) -> None:
    heart = Pulse(60_000)
    if which != "a suspended machine":
        clocks.monotonic += 30.1
    if which != "a clock that stood":
        clocks.wall += 30.1
    assert not heart.awake, "also before its next beat"
    for _ in range(3):
        heart.beat()
        assert not heart.awake, "also when beats come again"


def test_a_wall_clock_that_is_set_back_is_no_sleep(clocks: Clocks) -> None:
    heart = Pulse(60_000)
    clocks.wall -= 3_600
    heart.beat()
    assert heart.awake


def test_a_job_in_one_process_has_no_successor(clocks: Clocks) -> None:
    heart = Pulse(0)
    clocks.go(10_000)
    assert heart.awake and heart.every_s == 0


def test_a_busy_machine_is_not_taken_for_a_frozen_one() -> None:
    assert Pulse(30).limit_s == pulse.LEAST_S


def test_an_executor_that_has_slept_sends_nothing_and_goes_on_asking(make: Any, script: Script, clocks: Clocks) -> None:
    executor, inv = make(policy={"overlap_ms": 60_000}), call("a")
    assert executor.awake
    clocks.go(31)
    for effect in (Submit(ident(inv), LATER), Respond(ident(inv), LATER)):
        executor.order("k", effect, inv)
        ((_, fact),) = facts(executor, 1)
        assert isinstance(fact.answer, NotSent) and "stood still" in fact.answer.cause
    assert script.asked == [] and not executor.awake
    executor.order("k", Probe(ident(inv)), inv)
    facts(executor, 1)
    assert script.asked == [("probe", "a")]
