"""Write-ahead: every interleaving of a write, checkpoints, a restart and stale answers; and each look is needed."""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from reattach.models.events import CheckpointCompleted, Ident
from reattach.runtime.holds import Checkpoints, Holds, _Held

IDENT = Ident("life-1", "call-1", 1, 1)
STALE = 2
TICKS = 5
CHECKPOINTS = 2
# Too old to be shown.
NO_STATS = (-9, Checkpoints(0, 0))
NO_STANDING = (-9, True)


class Checkpoint(NamedTuple):
    """One that was triggered; `holds` what was written when its barrier passed, None before that."""

    savepoint: bool
    attempt: int
    holds: bool | None = None
    completed: bool = False


class World(NamedTuple):
    """A job manager with two caches, a task that holds one call, and perhaps its successor.

    Args:
        current: the task's attempt; ours is 0.
        found: what the successor found when it restored.
        stats, standing: what each cache shows, and when it was computed.
    """

    now: int = 0
    checkpoints: tuple[Checkpoint, ...] = ()
    current: int = 0
    found: bool = False
    written: int = -1
    stats: tuple[int, Checkpoints] = NO_STATS
    standing: tuple[int, bool] = NO_STANDING
    held: tuple[int, int, int] = (0, -1, 0)
    released: bool = False


@dataclass(frozen=True)
class Way:
    """How the looks are taken; the defaults are as shipped."""

    stale: int = STALE
    third: bool = True
    third_stale: bool = False
    above_completed: bool = False
    savepoints: bool = False


def newest_complete(world: World) -> Checkpoint | None:
    """What Flink restores from."""
    return next((one for one in reversed(world.checkpoints) if one.completed and not one.savepoint), None)


def told(world: World, way: Way) -> Checkpoints:
    numbers = [number for number, one in enumerate(world.checkpoints, 1) if one.completed]
    complete = [number for number in numbers if way.savepoints or not world.checkpoints[number - 1].savepoint]
    newest = max(complete, default=0) if way.above_completed else len(world.checkpoints)
    return Checkpoints(newest, max(complete, default=0))


def moves(world: World, way: Way) -> Iterator[World]:
    if world.now < TICKS:
        yield _later(world)
    if world.written < 0 and world.current == 0:
        yield world._replace(written=world.now, held=(world.now, -1, 0))
    if len(world.checkpoints) < CHECKPOINTS:
        for savepoint in (False, True):
            made = Checkpoint(savepoint, world.current)
            yield world._replace(checkpoints=(*world.checkpoints, made))
    yield from _checkpoints_go_on(world)
    if world.current == 0:
        restored = newest_complete(world)
        yield world._replace(current=1, found=restored is not None and bool(restored.holds))
    if world.written >= 0 and not world.released:
        yield from _looks(world, way)


def _later(world: World) -> World:
    """A tick later, without what no cache may show any more."""
    now = world.now + 1
    stats = world.stats if now - world.stats[0] < STALE else NO_STATS
    standing = world.standing if now - world.standing[0] < STALE else NO_STANDING
    return world._replace(now=now, stats=stats, standing=standing)


def _checkpoints_go_on(world: World) -> Iterator[World]:
    for number, one in enumerate(world.checkpoints):
        if one.attempt != world.current or one.completed:
            continue
        # The successor writes the call anew when it likes; what counts is what it found.
        holds = world.written >= 0 if world.current == 0 else world.found
        after = one._replace(holds=holds) if one.holds is None else one._replace(completed=True)
        yield world._replace(checkpoints=(*world.checkpoints[:number], after, *world.checkpoints[number + 1 :]))


def _looks(world: World, way: Way) -> Iterator[World]:
    fresh = (world.now, told(world, way))
    stats = [fresh] + ([world.stats] if world.now - world.stats[0] < STALE else [])
    for answer in stats:
        holds = _holds(world, way)
        holds.see(answer[1], world.now, world.now)
        yield _after(world._replace(stats=answer), holds, way)
    if way.third:
        now = (world.now, world.current == 0)
        for standing in [now] + ([world.standing] if world.now - world.standing[0] < STALE else []):
            holds = _holds(world, way)
            released = standing[1] and holds.confirm(math.inf if way.third_stale else world.now)
            after = _after(world._replace(standing=standing), holds, way)
            yield after._replace(released=True) if released else after


def _holds(world: World, way: Way) -> Holds:
    holds = Holds(way.stale)
    holds._held[("k", IDENT)] = _Held(*world.held)
    return holds


def _after(world: World, holds: Holds, way: Way) -> World:
    """The world with what the holds remember; without a third look nothing else is waited for."""
    if not way.third and holds.completed:
        return world._replace(released=True)
    left = holds._held.get(("k", IDENT))
    return world if left is None else world._replace(held=(left.since_s, left.after, left.completed_s))  # type: ignore[arg-type]


def search(way: Way) -> tuple[int, int, World | None]:
    """Look at every world; the number of them, how many released the call, and the first in which that was wrong."""
    start = World()
    seen, queue, released = {start}, deque([start]), 0
    while queue:
        world = queue.popleft()
        if world.released:
            released += 1
            newest = newest_complete(world)
            if newest is None or not newest.holds or (world.current and not world.found):
                return len(seen), released, world
            continue
        for after in moves(world, way):
            if after not in seen:
                seen.add(after)
                queue.append(after)
    return len(seen), released, None


@pytest.mark.slow
def test_a_call_is_released_only_when_whoever_restores_finds_it_held() -> None:
    worlds, released, wrong = search(Way())
    assert wrong is None, wrong
    assert released > 100 and worlds > 100_000


@pytest.mark.parametrize(
    "way",
    [
        Way(stale=0),
        Way(stale=1),
        Way(third=False),
        Way(third_stale=True),
        Way(above_completed=True),
        Way(savepoints=True),
    ],
    ids=lambda way: ", ".join(f"{name}={value}" for name, value in vars(way).items() if value != getattr(Way(), name)),
)
def test_each_look_is_needed(way: Way) -> None:
    assert search(way)[2] is not None


def test_every_held_call_has_an_answer_of_its_own() -> None:
    other = Ident("life-1", "call-2", 1, 4)
    holds = Holds(1.0)
    holds.add("k", IDENT, 0.0)
    holds.add("k", IDENT, 5.0)
    holds.see(Checkpoints(3, 3), asked_s=1.0, now_s=1.1)
    holds.add("l", other, 1.2)
    holds.see(Checkpoints(4, 4), asked_s=1.3, now_s=1.4)
    assert holds.completed and holds.confirm(2.3) == []
    assert holds.confirm(2.5) == [("k", CheckpointCompleted(IDENT))]
    assert len(holds) == 1 and not holds.completed
