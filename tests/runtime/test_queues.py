"""Where orders wait: whose turn it is, what is turned down, and at which cost."""

import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from reattach.adapters.contract import Limits
from reattach.models import effects as f
from reattach.models.policy import Policy
from reattach.runtime.limits import Kind
from reattach.runtime.queues import DOWN, LATE, SENDS_IN_A_ROW_MAX, Lane, Order, Round, until_s
from tests.runtime.scripted import call, ident

CALL = call("a")
POLICY = Policy(retention_ms=1_000)


def order(key: str, kind: Kind = Kind.READ, *, agent: str = "agent", until: float = 0.0) -> Order:
    inv = CALL if agent == "agent" else replace(CALL, request=replace(CALL.request, agent=agent))
    effect: f.RemoteEffect = f.Probe(ident(inv))
    if kind is Kind.SEND:
        effect = f.Submit(ident(inv), 2**52)
    elif kind is Kind.STREAM:
        effect = f.Watch(ident(inv), "")
    return Order(key, effect, inv, until)


class TestLane:
    def test_sends_go_first_but_not_for_ever(self) -> None:
        lane = Lane("agent", Limits())
        for number in range(10):
            lane.put(order(f"s{number}", Kind.SEND))
            lane.put(order(f"r{number}"))
        kinds = [each.kind for each in _all(lane)]
        assert kinds[: SENDS_IN_A_ROW_MAX + 1] == [Kind.SEND] * SENDS_IN_A_ROW_MAX + [Kind.READ]
        assert kinds.count(Kind.READ) == 10 and kinds.count(Kind.SEND) == 10

    def test_a_newer_read_keeps_the_place_of_the_older(self) -> None:
        lane = Lane("agent", Limits())
        for key in "abc":
            lane.put(order(key))
        newer = order("b", until=9.0)
        lane.put(newer)
        assert len(lane) == 3
        assert [each is newer for each in _all(lane)] == [False, True, False]

    def test_its_slots(self) -> None:
        lane = Lane("agent", Limits(concurrency_max=2))
        for number in range(4):
            lane.put(order(f"r{number}"))
        runs = [_begun(lane) for _ in range(2)]
        assert lane.full and lane.next(0.0) is None
        lane.end(runs[0], 0.0, stopped=False)
        assert lane.next(0.0) is not None

    def test_its_streams_take_no_slots(self) -> None:
        lane = Lane("agent", Limits(concurrency_max=1, streams_max=2))
        for number in range(3):
            lane.put(order(f"w{number}", Kind.STREAM))
        runs = [_begun(lane) for _ in range(3)]
        assert [run.stream for run in runs] == [True, True, False]
        assert lane.in_flight == 0
        for run in runs:
            lane.end(run, 0.0, stopped=False)
        assert lane.streams == 0

    def test_those_whose_time_is_over_are_turned_down(self) -> None:
        lane = Lane("agent", Limits())
        lane.put(order("s", Kind.SEND, until=10.0))
        lane.put(order("r", until=20.0))
        lane.put(order("c"))
        assert lane.refused(10.0) is None
        assert _refused(lane, 10.1) == [("s", LATE)]
        assert _refused(lane, 1_000.0) == [("r", LATE)]
        assert [each.key for each in _all(lane)] == ["c"]

    def test_an_open_breaker_turns_all_down_until_a_read_may_try(self) -> None:
        lane = Lane("agent", Limits(breaker_failures=1, breaker_open_ms=5_000))
        lane.breaker.end(0, True, 100.0)
        for now in (100.0, 105.0):
            lane.put(order("s", Kind.SEND))
            lane.put(order("w", Kind.STREAM))
            lane.put(order("r"))
            told = _refused(lane, now)
            assert ("s", DOWN) in told and ("w", DOWN) in told
            assert (("r", DOWN) in told) == (now == 100.0)
        lane.put(order("r2"))
        _begun(lane, 105.0)
        assert _refused(lane, 105.0) == [("r2", DOWN)]

    def test_where_both_may_try_the_read_does(self) -> None:
        lane = Lane("agent", Limits(breaker_failures=1, breaker_open_ms=5_000))
        lane.breaker.end(0, True, 100.0)
        lane.put(order("s", Kind.SEND))
        lane.put(order("r"))
        assert lane.refused(110.0) is None
        assert _begun(lane, 110.0).order.key == "r"


class TestRound:
    def test_agents_take_turns(self) -> None:
        turns = Round(Lane(name, Limits()) for name in ("agent", "b", "c"))
        for number in range(3):
            for agent in ("agent", "b", "c"):
                turns.put(order(f"{agent}{number}", agent=agent))
        names = []
        while (lane := turns.turn()) is not None:
            if (each := lane.next(0.0)) is None:
                turns.leave(lane, asleep=False)
            else:
                names.append(lane.name)
                lane.drop(each)
        assert names == ["agent", "b", "c"] * 3

    def test_a_lane_that_left_comes_back_when_it_is_let_and_has_orders(self) -> None:
        turns = Round([Lane("agent", Limits())])
        turns.put(order("a"))
        lane = turns.turn()
        assert lane is not None
        turns.leave(lane, asleep=True)
        turns.put(order("b"))
        assert turns.turn() is None and len(turns) == 2
        lane.asleep = False
        turns.join(lane)
        turns.join(lane)
        assert turns.turn() is lane
        turns.leave(lane, asleep=False)
        assert turns.turn() is None, "it was in the round once"

    @pytest.mark.parametrize("waiting", [100, 10_000])
    def test_the_steps_of_an_order_do_not_grow_with_those_that_wait(self, waiting: int) -> None:
        """Counted in lines of code that run, and in looks at the queue: an adversary keeps one agent at its limit."""
        turns = Round([Lane("agent", Limits(concurrency_max=1)), Lane("b", Limits())])
        for number in range(waiting):
            turns.put(order(f"r{number}"))
            turns.put(order(f"s{number}", Kind.SEND))
            turns.put(order(f"b{number}", agent="b"))
        _begun(turns.lanes["agent"])
        begun, lines = _lines_of(lambda: _served(turns, 50))
        assert begun == ["b"] * 50
        assert lines < 50 * 60


class TestValidity:
    def test_sends_by_two_clocks(self) -> None:
        later = f.Submit(ident(CALL), 1_000_000_000)
        assert until_s(later, POLICY, 50.0, 10.0) == 55.0
        assert until_s(f.Respond(ident(CALL), 12_000), POLICY, 50.0, 10.0) == 52.0
        assert until_s(f.Submit(ident(CALL), 9_000), POLICY, 50.0, 10.0) < 50.0

    def test_reads_leave_time_for_their_answer(self) -> None:
        assert until_s(f.Probe(ident(CALL)), POLICY, 50.0, 10.0) == 57.5
        assert until_s(f.Fetch(ident(CALL)), POLICY, 50.0, 10.0) == 67.5

    @pytest.mark.parametrize("effect", [f.Cancel, f.Fence, f.Hold])
    def test_what_changes_something_may_wait(self, effect: Any) -> None:
        assert until_s(effect(ident(CALL)), POLICY, 50.0, 10.0) == 0.0


def _begun(lane: Lane, now: float = 0.0) -> Any:
    each = lane.next(now)
    assert each is not None
    run = lane.begin(each, stream=True)
    lane.drop(each)
    return run


def _all(lane: Lane) -> Iterator[Order]:
    while (each := lane.next(0.0)) is not None:
        lane.drop(each)
        yield each


def _refused(lane: Lane, now: float) -> list[tuple[str, str]]:
    told = []
    while (refused := lane.refused(now)) is not None:
        told.append((refused[0].key, refused[1]))
        lane.drop(refused[0])
    return told


def _served(turns: Round, most: int) -> list[str]:
    """The agents of the next orders, as `Dispatch.start` takes them, in a random order of events."""
    names: list[str] = []
    dice = random.Random(1)
    while len(names) < most and (lane := turns.turn()) is not None:
        assert lane.refused(0.0) is None
        if (each := lane.next(0.0)) is None:
            turns.leave(lane, asleep=False)
        else:
            names.append(lane.name)
            lane.drop(each)
        if dice.random() < 0.1:
            turns.join(turns.lanes["agent"])
    return names


def _lines_of(work: Any) -> tuple[Any, int]:
    count = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return work(), count
    finally:
        sys.settrace(before)
