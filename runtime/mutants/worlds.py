"""The small worlds of the trials."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from reattach.models.answers import Absent, Accepted, Phase, ProbeAnswer, SubmitAnswer
from reattach.models.events import Answered, CheckpointCompleted, ThreadEvent
from reattach.models.identity import marker_of
from reattach.models.invocation import Invocation
from reattach.models.policy import CancelKind, StreamKind
from reattach.runtime.explore import search
from reattach.runtime.explore.canon import Canon
from reattach.runtime.explore.lives import hear
from reattach.runtime.explore.moves import Moves
from reattach.runtime.explore.runs import UNITS, named, scenario
from reattach.runtime.explore.scenario import START_MS, Move, Scenario, settled
from reattach.runtime.explore.world import Life, Snapshot, World
from reattach.runtime.mutants.patching import Patch, attribute, together
from reattach.runtime.simulation.remotes import Memory, Remote, Turn

MEMORY_MS = 6


def trial(
    remote: str | Remote,
    *,
    turns: int = 1,
    crashes: int = 0,
    checkpoints: int = 0,
    losses: int = 0,
    zombies: int = 0,
    script: tuple[ThreadEvent, ...] | None = None,
    same_outcome: bool = False,
    refusals: bool = False,
    **policy: Any,
) -> Scenario:
    """A world in which nothing goes wrong but what is named."""
    return scenario(
        named(remote) if isinstance(remote, str) else remote,
        turns=turns,
        crashes=crashes,
        checkpoints=checkpoints,
        losses=losses,
        zombies=zombies,
        policy=replace(UNITS, **policy),
        script=script,
        same_outcome=same_outcome,
        refusals=refusals,
    )


def streaming(name: str) -> Remote:
    """A remote with a stream."""
    remote = named(name)
    return replace(remote, capabilities=replace(remote.capabilities, stream=StreamKind.LIVE))


def cancelling(name: str) -> Remote:
    """A remote that can end a run on demand."""
    remote = named(name)
    return replace(remote, capabilities=replace(remote.capabilities, cancel=CancelKind.CONFIRMED))


@dataclass(frozen=True)
class Forgetful(Remote):
    """A remote that forgets everything `MEMORY_MS` after the start, as it has declared.

    It reads the time from the stamps of the order, since a model remote has no clock of its own.
    """

    def probe(self, memory: Memory, inv: Invocation) -> ProbeAnswer:
        return Absent() if inv.tenure.ordered_at_ms >= START_MS + MEMORY_MS else super().probe(memory, inv)

    def submit(self, memory: Memory, inv: Invocation, hidden_until_ms: int) -> tuple[Memory, SubmitAnswer]:
        ordered_at_ms = inv.tenure.sends_end_ms - UNITS.submit_validity_ms - UNITS.submit_timeout_ms
        if ordered_at_ms < START_MS + MEMORY_MS:
            return super().submit(memory, inv, hidden_until_ms)
        turn = Turn(marker_of(inv.id, inv.generation), self.thread(inv), Phase.RUNNING, hidden_until_ms)
        return memory._replace(turns=(*memory.turns, turn)), Accepted(f"r{len(memory.turns)}")


def forgetful(name: str) -> Remote:
    """A remote with a short memory, of runs and of keys."""
    remote = named(name)
    lifetime = None if remote.capabilities.key_lifetime_ms is None else MEMORY_MS
    capabilities = replace(remote.capabilities, retention_ms=MEMORY_MS, key_lifetime_ms=lifetime)
    return Forgetful(f"forgetful {name}", capabilities, remote.exclusive, remote.staged, remote.history)


def slow(name: str) -> Remote:
    """A remote that may take two units to show what it has accepted."""
    remote = named(name)
    return replace(remote, capabilities=replace(remote.capabilities, admission_ms=2))


def told_time() -> Patch:
    """For a remote that forgets: worlds differ while its memory still reaches back to the start."""
    form = Canon.form

    def told(self: Canon, world: World) -> tuple[int, ...]:
        return (*form(self, world), min(world.now_ms - START_MS, MEMORY_MS))

    return attribute(Canon, "form", told)


def late_answers() -> Patch:
    """A world in which the answers of a dead incarnation still reach its successor."""
    restore, told = Moves._restore, Canon._answer

    def restored(self: Moves, world: World, snapshot: Snapshot | None, newest: bool, zombie: bool) -> World:
        after = restore(self, world, snapshot, newest, zombie)
        host = after.host
        for answer in world.host.inbox:
            host = hear(host, answer)
        return after._replace(host=host)

    def answered(self: Canon, event: Answered, epoch: int) -> tuple[Any, ...]:
        return (*told(self, event, epoch), event.ident.incarnation, event.ident.epoch)

    return together(
        attribute(Moves, "_restore", restored),
        attribute(Canon, "_answer", answered),
        # With the inbox kept, a clean crash does not wipe out every difference.
        attribute(search, "same_after_crash", lambda *_: False),
    )


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
