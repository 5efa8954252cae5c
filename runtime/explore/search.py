"""Breadth-first search, so that the first counterexample is a shortest one; then liveness.

Liveness is asked of the graph without its fault moves: from every world that was reached, also
mid-crash, a settled world must be reachable once nothing goes wrong any more. On a finite graph
that is what every fair schedule comes to.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from reattach.runtime.explore.canon import Canon
from reattach.runtime.explore.moves import Moves, same_after_crash
from reattach.runtime.explore.scenario import Move, Scenario, Violation, first, settled
from reattach.runtime.explore.strangers import check_strangers
from reattach.runtime.explore.world import World

NONE = 0xFFFFFFFF


@dataclass
class Found:
    """A property that does not hold, and the shortest way there."""

    name: str
    text: str
    path: list[Move]


@dataclass
class Searched:
    """What one search came to."""

    states: int
    edges: int
    seconds: float
    depth: int
    settled: int
    stuck: int
    complete: bool
    violations: list[Found] = field(default_factory=list)


def search(
    scenario: Scenario,
    *,
    states_max: int = 20_000_000,
    violations_max: int = 1,
    liveness: bool = True,
    reduce: bool = True,
    progress: Callable[[int, int, int], None] | None = None,
) -> Searched:
    """Visit every reachable world of a scenario.

    Args:
        violations_max: stop after so many different properties were found broken.
        reduce: visit one world for many that have the same future, by what is proven of the core as it ships;
            without, nothing is taken for granted.
        progress: told (states, edges, depth) after each layer.
    """
    began = time.monotonic()
    moves = Moves(scenario, reduce)
    canon = Canon(scenario, reduce, partial(check_strangers, terms=scenario.terms) if reduce else None)
    crashes_alike = reduce and not scenario.foreign
    start = first(scenario)
    index: dict[bytes, int] = {canon.key(start): 0}
    parents, ordinals = array("I", [NONE]), array("H", [0])
    goals = bytearray([settled(scenario, start)])
    sources, targets = array("I"), array("I")
    layer: list[tuple[int, World, bool]] = [(0, start, True)]
    edges = depth = 0
    found: dict[str, Found] = {}
    complete = True
    while layer and complete:
        following: list[tuple[int, World, bool]] = []
        for number, world, clean_crash in layer:
            for ordinal, move in enumerate(moves.of(world, clean_crash)):
                edges += 1
                after = move.world
                if isinstance(after, Violation):
                    if after.name not in found:
                        path = trace(scenario, parents, ordinals, number, ordinal, reduce)
                        found[after.name] = Found(after.name, after.text, path)
                    continue
                try:
                    key = canon.key(after)
                except Violation as broken:
                    path = trace(scenario, parents, ordinals, number, ordinal, reduce)
                    found.setdefault(broken.name, Found(broken.name, broken.text, path))
                    continue
                target = index.get(key)
                if target is None:
                    target = len(index)
                    index[key] = target
                    parents.append(number)
                    ordinals.append(ordinal)
                    goals.append(settled(scenario, after))
                    # A crash that leads where it led a move ago is not tried again.
                    following.append((target, after, not (crashes_alike and same_after_crash(world, after))))
                if not move.fault and liveness and target != number:
                    sources.append(number)
                    targets.append(target)
            if len(found) >= violations_max or len(index) >= states_max:
                complete = False
                break
        layer = following
        depth += 1
        if progress is not None:
            progress(len(index), edges, depth)
    stuck = 0
    if liveness and complete and not found:
        alive = reach_back(len(index), sources, targets, goals)
        stuck = len(alive) - sum(alive)
        if stuck:
            number = alive.index(0)
            found["stuck"] = Found(
                "stuck",
                f"{stuck} worlds from which no end is reachable",
                trace(scenario, parents, ordinals, number, None, reduce),
            )
    return Searched(
        len(index), edges, time.monotonic() - began, depth, sum(goals), stuck, complete, list(found.values())
    )


def reach_back(count: int, sources: array[int], targets: array[int], goals: bytearray) -> bytearray:
    """Mark every world from which a goal can be reached."""
    offsets = array("I", bytes(4 * (count + 1)))
    for target in targets:
        offsets[target + 1] += 1
    for number in range(count):
        offsets[number + 1] += offsets[number]
    slots = array("I", offsets)
    before = array("I", bytes(4 * len(sources)))
    for source, target in zip(sources, targets, strict=True):
        before[slots[target]] = source
        slots[target] += 1
    marked = bytearray(goals)
    stack = [number for number in range(count) if goals[number]]
    while stack:
        number = stack.pop()
        for place in range(offsets[number], offsets[number + 1]):
            source = before[place]
            if not marked[source]:
                marked[source] = 1
                stack.append(source)
    return marked


def trace(
    scenario: Scenario,
    parents: array[int],
    ordinals: array[int],
    number: int,
    last: int | None = None,
    reduce: bool = True,
) -> list[Move]:
    """Play the moves that lead to a world once more."""
    way: list[int] = [] if last is None else [last]
    while parents[number] != NONE:
        way.append(ordinals[number])
        number = parents[number]
    moves = Moves(scenario, reduce)
    world = first(scenario)
    path = [Move(("start",), False, world)]
    for ordinal in reversed(way):
        move = moves.of(world)[ordinal]
        path.append(move)
        if not isinstance(move.world, Violation):
            world = move.world
    return path
