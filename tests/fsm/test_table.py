"""Totality: every pair of leaf and event is either decided or known to be impossible."""

from typing import Any

import pytest

from reattach.fsm import draft, guards, lifecycle, notes
from reattach.fsm.orders import ORDERS
from reattach.fsm.table import EVENT_NAMES, SETTLING, TABLE
from reattach.models.invocation import Invocation, Tenure
from reattach.models.lifecycle import Leaf

# Which orders a leaf has under way, written down apart from the chart: their answers are legal, no others.
PROBES = {
    "found_absent", "found_running", "found_waiting", "found_completed", "found_failed", "found_cancelled",
    "probe_unanswered",
}  # fmt: skip
SUBMITS = {
    "submit_accepted", "submit_occupied", "submit_refused", "submit_not_sent", "submit_unresolved", "handle_learned",
}  # fmt: skip
LATE_PROOF = {"submit_accepted", "handle_learned"}
ANSWERS = {
    Leaf.NS_PROBING: PROBES,
    Leaf.SU_HOLDING: {"checkpoint_completed"},
    Leaf.SU_SENDING: SUBMITS,
    Leaf.SU_PROBING: PROBES | LATE_PROOF,
    Leaf.SU_QUIET: LATE_PROOF,
    Leaf.SU_FENCING: {"fenced", "fence_occupied", "fence_unanswered"} | LATE_PROOF,
    Leaf.SU_BACKING_OFF: LATE_PROOF,
    Leaf.SU_PARKED: PROBES | LATE_PROOF,
    Leaf.RU_WATCHING: {"progressed", "watch_ended"},
    Leaf.RU_PROBING: PROBES,
    Leaf.RU_FETCHING: {"result_fetched", "result_not_ready", "result_gone", "fetch_unanswered"},
    Leaf.RU_CANCELLING: {"cancel_confirmed", "cancel_taken", "cancel_unanswered"},
    Leaf.RU_RESPONDING_SENDING: {"respond_accepted", "respond_refused", "respond_not_sent", "respond_unresolved"},
    Leaf.RU_RESPONDING_PROBING: PROBES,
}
OUTSIDE = {
    "time_reached", "restored", "cancel_ordered", "adopt_ordered", "resubmit_ordered", "abandon_ordered",
    "response_given",
}  # fmt: skip


@pytest.mark.parametrize("event", EVENT_NAMES)
@pytest.mark.parametrize("leaf", list(Leaf))
def test_every_pair_is_decided(leaf: Leaf, event: str) -> None:
    expected = not leaf.terminal and (event in OUTSIDE or event in ANSWERS.get(leaf, set()))
    assert (event in TABLE[leaf]) == expected


@pytest.mark.parametrize(("leaf", "event"), [(leaf, event) for leaf in TABLE for event in TABLE[leaf]])
def test_the_last_line_always_matches(leaf: Leaf, event: str) -> None:
    lines = TABLE[leaf][event]
    if event == SETTLING:
        assert all(line.guards for line in lines), "parked is left by policy only"
    else:
        assert not lines[-1].guards
        assert all(line.guards for line in lines[:-1]), "a line after one that always matches is dead"


def test_every_leaf_has_an_order() -> None:
    assert set(ORDERS) == set(TABLE) == set(Leaf)


def test_nothing_is_declared_in_vain() -> None:
    lines = [line for rows in TABLE.values() for group in rows.values() for line in group]
    assert {name for line in lines for name, _ in line.guards} <= set(guards.GUARDS)
    assert {name for line in lines for name in line.notes} == set(notes.NOTES)
    used_by_guards = {"overdue", "admissible"}
    assert set(guards.GUARDS) - {name for line in lines for name, _ in line.guards} <= used_by_guards


def test_every_leaf_can_be_reached() -> None:
    seen, todo = {Leaf.NS_QUIET}, [Leaf.NS_QUIET]
    while todo:
        for lines in TABLE[todo.pop()].values():
            for line in lines:
                if line.target is not None and line.target not in seen:
                    seen.add(line.target)
                    todo.append(line.target)
    assert seen == set(Leaf)


def test_the_draft_mirrors_the_record() -> None:
    record = set(Invocation.__slots__) - {"tenure"} | set(Tenure.__slots__)
    own = {"event", "answer", "env", "effects", "pause_ms", "ask", "result", "source"}
    assert set(draft.Draft.__slots__) == record | own


def test_the_chart_declares_what_is_compiled() -> None:
    declared: Any = lifecycle.Lifecycle.events
    assert {event.id for event in declared} == {*EVENT_NAMES, SETTLING}
