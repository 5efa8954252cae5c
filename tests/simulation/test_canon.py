"""What the canonical form leaves out makes no difference, and the reduction hides nothing."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from reattach.models.events import CancelOrdered, ResubmitOrdered
from reattach.models.policy import CancelKind
from reattach.runtime.explore.canon import Canon
from reattach.runtime.explore.default import Bounds
from reattach.runtime.explore.moves import Moves
from reattach.runtime.explore.runs import UNITS, named, request, scenario
from reattach.runtime.explore.scenario import START_MS, Scenario, Violation, first
from reattach.runtime.explore.search import search
from reattach.runtime.explore.world import World
from reattach.runtime.mutants.catalogue import MUTANTS


def cancelling() -> Scenario:
    remote = named("marker-list")
    remote = replace(remote, capabilities=replace(remote.capabilities, cancel=CancelKind.CONFIRMED))
    script = (request("a"), CancelOrdered("a", 1))
    return scenario(remote, crashes=1, checkpoints=0, losses=0, zombies=0, script=script, same_outcome=False)


SMALL = {
    "status-only": scenario(named("status-only"), crashes=1, checkpoints=1, losses=1, zombies=0),
    "marker-list, a zombie": scenario(named("marker-list"), crashes=1, checkpoints=0, losses=0, zombies=1),
    "marker-last, two turns": scenario(
        named("marker-last"), turns=2, crashes=1, checkpoints=0, losses=0, zombies=0, same_outcome=False
    ),
    "deduplicating": scenario(named("deduplicating"), crashes=1, checkpoints=1, losses=0, zombies=0),
    "fenceable": scenario(named("fenceable"), crashes=1, checkpoints=1, losses=0, zombies=0),
    "handle-only": scenario(named("handle-only"), crashes=1, checkpoints=1, losses=1, zombies=0),
    "a near deadline": scenario(
        named("marker-list"),
        crashes=1,
        checkpoints=0,
        losses=0,
        zombies=0,
        policy=replace(UNITS, deadline_ms=5),
        same_outcome=False,
    ),
    "a cancel": cancelling(),
    "an order that is made late": scenario(
        named("handle-only"),
        crashes=1,
        checkpoints=1,
        losses=1,
        zombies=0,
        script=(request("a"), ResubmitOrdered("a", 1, START_MS + 5)),
        same_outcome=False,
    ),
    "questions": Bounds("marker-list", crashes=1, checkpoints=0, losses=1, also="questions").scenario,
    "forgetting": Bounds("deduplicating", crashes=1, checkpoints=0, losses=1, also="forgetting").scenario,
    "failures": Bounds("marker-last", crashes=1, checkpoints=0, losses=1, also="failures").scenario,
    "adopt": Bounds("handle-only", crashes=1, checkpoints=1, losses=1, also="adopt").scenario,
    "refusals": scenario(
        named("status-only"), crashes=1, checkpoints=0, losses=2, zombies=0, refusals=True, same_outcome=False
    ),
}
STATES_MAX = 12_000
COMPARED_MAX = 4_000


@pytest.mark.parametrize("name", SMALL)
def test_worlds_of_one_form_have_the_same_future(name: str) -> None:
    """Whenever two different worlds share a form, every move leads from both to the same forms."""
    moves, canon = Moves(SMALL[name]), Canon(SMALL[name])
    compared = 0
    for known, again in twins(moves, canon):
        assert futures(moves, canon, known) == futures(moves, canon, again), (known, again)
        compared += 1
        if compared == COMPARED_MAX:
            break
    assert compared > 100


@pytest.mark.parametrize("name", SMALL)
def test_the_reduction_hides_no_world(name: str) -> None:
    """Every world that is found without any reduction has its form among those found with it."""
    canon = Canon(SMALL[name])
    whole, reduced = forms(SMALL[name], canon, reduce=False), forms(SMALL[name], canon, reduce=True)
    assert whole.shared == reduced.shared
    assert whole.broken == reduced.broken
    assert whole.visited > reduced.visited


@pytest.mark.parametrize("name", ["marker-last, two turns", "fenceable", "handle-only"])
def test_the_verdict_is_the_same(name: str) -> None:
    whole, reduced = search(SMALL[name], reduce=False), search(SMALL[name])
    assert whole.complete and reduced.complete
    assert (whole.stuck, whole.violations) == (reduced.stuck, reduced.violations) == (0, [])
    assert reduced.edges < whole.edges


class Forms(NamedTuple):
    """What a walk found: forms under one canon, properties that broke, and how many worlds it told apart."""

    shared: set[bytes]
    broken: set[str]
    visited: int


def forms(scenario: Scenario, canon: Canon, *, reduce: bool) -> Forms:
    moves, own = Moves(scenario, reduce), Canon(scenario, reduce)
    start = first(scenario)
    seen, shared, broken = {own.key(start)}, {canon.key(start)}, set[str]()
    layer = [start]
    while layer:
        following = []
        for world in layer:
            for move in moves.of(world):
                after = move.world
                if isinstance(after, Violation):
                    broken.add(after.name)
                elif (key := own.key(after)) not in seen:
                    seen.add(key)
                    shared.add(canon.key(after))
                    following.append(after)
        layer = following
    return Forms(shared, broken, len(seen))


def test_a_stranger_that_is_believed_is_found_by_the_reduced_search() -> None:
    """Strangers are left out of the worlds, not out of the proof."""
    broken = MUTANTS["epoch-ignored"]
    with broken.apply():
        searched = search(broken.trial)
    assert [found.name for found in searched.violations] == ["stranger believed"]


def twins(moves: Moves, canon: Canon) -> Iterator[tuple[World, World]]:
    """Pairs of different worlds with one form, breadth first."""
    start = first(moves.scenario)
    known = {canon.key(start): start}
    layer = [start]
    while layer:
        following = []
        for world in layer:
            for move in moves.of(world):
                after = move.world
                if isinstance(after, Violation):
                    continue
                before = known.setdefault(canon.key(after), after)
                if before is after:
                    following.append(after)
                elif before != after:
                    yield before, after
        layer = following if len(known) < STATES_MAX else []


def futures(moves: Moves, canon: Canon, world: World) -> set[Any]:
    return {
        (move.fault, move.world.name if isinstance(move.world, Violation) else canon.key(move.world))
        for move in moves.of(world)
    }
