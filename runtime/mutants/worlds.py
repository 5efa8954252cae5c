"""The small worlds of the trials, and hosts that are faulty themselves."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from reattach.models.events import CheckpointCompleted, ThreadEvent
from reattach.runtime.explore import search
from reattach.runtime.explore.canon import Canon
from reattach.runtime.explore.kinds import forgetful
from reattach.runtime.explore.moves import Moves
from reattach.runtime.explore.runs import UNITS, named, scenario
from reattach.runtime.explore.scenario import START_MS, Move, Scenario, settled
from reattach.runtime.explore.world import Life, Snapshot, World
from reattach.runtime.mutants.patching import Patch, attribute, together
from reattach.runtime.simulation.remotes import Remote


def trial(
    remote: str | Remote,
    *,
    turns: int = 1,
    crashes: int = 0,
    checkpoints: int = 0,
    losses: int = 0,
    zombies: int = 0,
    script: tuple[ThreadEvent, ...] | None = None,
    options: dict[str, Any] | None = None,
    **policy: Any,
) -> Scenario:
    """A world in which nothing goes wrong but what is named.

    Args:
        options: of the scenario; policy: settings that differ.
    """
    return scenario(
        named(remote) if isinstance(remote, str) else remote,
        turns=turns,
        crashes=crashes,
        checkpoints=checkpoints,
        losses=losses,
        zombies=zombies,
        policy=replace(UNITS, **policy),
        script=script,
        **{"same_outcome": False, **(options or {})},
    )


def forgetting(name: str, memory_ms: int, *, crashes: int = 0, losses: int = 0) -> Scenario:
    """A world in which the remote forgets everything when its declared retention has passed."""
    remote = forgetful(named(name), memory_ms)
    return trial(remote, crashes=crashes, losses=losses, options={"forgets_at_ms": START_MS + memory_ms})


def only_late() -> Patch:
    """A world in which answers are late and never lost, so that nobody needs to be asked for a decision."""
    post = Moves._post

    def kept(self: Moves, world: World, number: int) -> Iterator[Move]:
        return (move for move in post(self, world, number) if not move.fault)

    def ended(scenario: Scenario, world: World) -> bool:
        state = world.host.state
        return settled(scenario, world) and (state is None or state.active is None)

    return together(attribute(Moves, "_post", kept), attribute(search, "settled", ended))


def endless() -> Patch:
    """A world whose runs never end by themselves."""
    remote = Moves._remote

    def running(self: Moves, world: World) -> Iterator[Move]:
        return (move for move in remote(self, world) if move.what[0] != "finish")

    return attribute(Moves, "_remote", running)


def emitted_before_stored() -> Patch:
    """A faulty host: a checkpoint can fall between what a step says and what it stores."""
    feed = Moves._feed

    def fed(self: Moves, world: World, life: Life, which: int, what: tuple[object, ...], fault: bool = False) -> Move:
        move = feed(self, world, life, which, what, fault)
        after = move.world
        if not isinstance(after, World) or not after.left.checkpoints or life.born != world.host.born:
            return move
        if len(after.host.emitted) == len(life.emitted):
            return move
        torn = Snapshot(life.state, life.position, after.host.emitted)
        left = after.left._replace(checkpoints=after.left.checkpoints - 1)
        return move._replace(world=after._replace(checkpoints=(*after.checkpoints, torn), left=left))

    return attribute(Moves, "_feed", fed)


def any_checkpoint_will_do() -> Patch:
    """A faulty host: a checkpoint that was triggered before the intent is taken for one that holds it."""
    checkpoint = Moves._checkpoint

    def completed(self: Moves, world: World) -> Iterator[Move]:
        hold = world.host.hold
        for move in checkpoint(self, world):
            after = move.world
            if world.triggered is not None and hold is not None and isinstance(after, World):
                host = world.host._replace(hold=None)
                after = after._replace(host=self.lives.hear(host, CheckpointCompleted(hold)))
            yield move._replace(world=after)

    return attribute(Moves, "_checkpoint", completed)


class _Timed(Snapshot):
    """A checkpoint that also knows when it was triggered."""

    at_ms: int


def write_ahead_by_time() -> Patch:
    """A faulty host: a checkpoint that is no older than the intent, by the clock, is taken for one that holds it."""
    checkpoint, form = Moves._checkpoint, Canon.form

    def completed(self: Moves, world: World) -> Iterator[Move]:
        for move in checkpoint(self, world):
            after = move.world
            assert isinstance(after, World)
            if after.triggered is not None:
                timed = _Timed(*after.triggered)
                timed.at_ms = world.now_ms
                after = after._replace(triggered=timed)
            elif world.triggered is not None and _not_later(world):
                assert world.host.hold is not None
                believed = CheckpointCompleted(world.host.hold)
                after = after._replace(host=self.lives.hear(world.host._replace(hold=None), believed))
            yield move._replace(world=after)

    def told(self: Canon, world: World) -> tuple[int, ...]:
        triggered = world.triggered
        now = isinstance(triggered, _Timed) and triggered.at_ms == world.now_ms
        return (*form(self, world), now, _not_later(world))

    return together(attribute(Moves, "_checkpoint", completed), attribute(Canon, "form", told))


def _not_later(world: World) -> bool:
    """The intent is held, and by the clock it was written before the checkpoint was triggered."""
    state, triggered = world.host.state, world.triggered
    if world.host.hold is None or state is None or state.active is None or not isinstance(triggered, _Timed):
        return False
    return state.active.entered_ms <= triggered.at_ms


def lineage_regained() -> Patch:
    """A faulty host: a restore from the newest checkpoint is proof, however far the job went back before."""
    restore = Moves._restore

    def restored(self: Moves, world: World, snapshot: Snapshot | None, newest: bool, zombie: bool) -> World:
        after = restore(self, world, snapshot, newest, zombie)
        return after._replace(host=after.host._replace(lineage=newest))

    return attribute(Moves, "_restore", restored)


def slow_checkpoints() -> Patch:
    """A world in which a checkpoint takes longer than a call that is held sleeps."""
    checkpoint, form = Moves._checkpoint, Canon.form

    def completed(self: Moves, world: World) -> Iterator[Move]:
        return (move for move in checkpoint(self, world) if not _asleep(world))

    def told(self: Canon, world: World) -> tuple[int, ...]:
        return (*form(self, world), _asleep(world))

    return together(attribute(Moves, "_checkpoint", completed), attribute(Canon, "form", told))


def _asleep(world: World) -> bool:
    """The checkpoint that is under way holds an intent, and the call has not been woken since."""
    then, state = world.triggered, world.host.state
    if then is None or then.hold is None or then.state is None or state is None:
        return False
    if then.state.active is None or state.active is None:
        return False
    return state.active.wake_at_ms == then.state.active.wake_at_ms
