"""One incarnation of a simulated job: keyed state, durable timers, a source position, orders.

It does with the shipped driver what the Flink host does: read the bytes, apply, store, set the
timer, send out, and only then give the orders.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from reattach.models.effects import Hold
from reattach.models.events import Answered, CheckpointCompleted, Ident, Restored, ThreadEvent, TimeReached
from reattach.models.journal import JournalEntry
from reattach.models.outcomes import Notice, Outcome
from reattach.models.policy import Terms
from reattach.runtime.driver import Driver, Key
from reattach.runtime.simulation.clock import Clock
from reattach.runtime.simulation.mishaps import Mishaps
from reattach.runtime.simulation.network import Network
from reattach.runtime.simulation.source import Source

RECOVERY_MS = 500


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one checkpoint holds: everything that a restore brings back, and nothing else.

    Args:
        outcomes: become final with it, each with its number in the whole world.
    """

    number: int
    states: dict[Key, bytes] = field(default_factory=dict)
    timers: dict[Key, int] = field(default_factory=dict)
    position: int = 0
    holds: dict[Key, Ident] = field(default_factory=dict)
    outcomes: tuple[tuple[int, Outcome], ...] = ()


@dataclass(slots=True)
class Surroundings:
    """What all incarnations of a job share.

    Args:
        outcomes: how many were emitted by all lives.
        last: the thread that was stepped last.
    """

    clock: Clock
    mishaps: Mishaps
    network: Network
    source: Source
    terms: dict[str, Terms]
    on_outcome: Callable[[Outcome], None]
    on_notice: Callable[[Key, Notice], None]
    on_entry: Callable[[JournalEntry], None] | None = None
    outcomes: int = 0
    last: Key = ("", "")


class Host:
    """One life of the job.

    Args:
        snapshot: what it is restored from.
        lineage: it and all its ancestors were restored from their newest checkpoints.
        skew_ms: its clock is so much ahead of the input's.
    """

    def __init__(
        self, around: Surroundings, number: int, snapshot: Snapshot, lineage: bool = True, skew_ms: int = 0
    ) -> None:
        self.around = around
        self.clock = around.clock
        self.lineage = lineage
        self.skew_ms = skew_ms
        self.dies_at_ms: int | None = None
        self.states = dict(snapshot.states)
        self.timers = dict(snapshot.timers)
        self.position = snapshot.position
        self.holds: dict[Key, Ident] = {}
        self.outcomes: list[tuple[int, Outcome]] = []
        self.steps = 0
        self.driver = Driver(
            around.terms,
            incarnation=f"life-{number}",
            opened_ms=self.clock.now_ms + skew_ms,
            lineage=lineage,
            journal=around.on_entry is not None,
        )
        self._waiting = False

    @property
    def acts(self) -> bool:
        """It is in charge, or a zombie whose time has not come."""
        return self.dies_at_ms is None or self.clock.now_ms <= self.dies_at_ms

    def open(self) -> None:
        """Take over what was restored, and begin to read."""
        now, chance = self.clock.now_ms, self.around.mishaps.chance
        for key in self.states:
            self.clock.at(now + chance.between(0, RECOVERY_MS), self._recover, key)
        for key, at_ms in self.timers.items():
            self.clock.at(at_ms - self.skew_ms, self._fire, key, at_ms)
        self.read()

    def read(self) -> None:
        """Ask for the next record of the input, unless that was done already."""
        lines = self.around.source.lines
        if not self._waiting and self.position < len(lines):
            self._waiting = True
            self.clock.at(lines[self.position].at_ms, self._consume)

    def hear(self, key: Key, event: Answered) -> None:
        """Take an answer of the network."""
        self._apply(key, event)

    def snapshot(self, number: int) -> Snapshot:
        """Write down what a checkpoint holds that is triggered now."""
        states, timers, holds = dict(self.states), dict(self.timers), dict(self.holds)
        return Snapshot(number, states, timers, self.position, holds, tuple(self.outcomes))

    def told(self, snapshot: Snapshot) -> None:
        """A checkpoint of this life is complete: its outcomes are final, and what it was held for may go."""
        final = snapshot.outcomes[-1][0] if snapshot.outcomes else 0
        self.outcomes = [one for one in self.outcomes if one[0] > final]
        for key, ident in snapshot.holds.items():
            if self.holds.get(key) == ident:
                del self.holds[key]
                self._apply(key, CheckpointCompleted(ident))

    def _consume(self) -> None:
        self._waiting = False
        if self.acts:
            line = self.around.source.lines[self.position]
            self.position += 1
            self._apply(line.key, line.event)
            self.read()

    def _recover(self, key: Key) -> None:
        if self.acts and key in self.states:
            self._apply(key, Restored())

    def _fire(self, key: Key, at_ms: int) -> None:
        if self.acts and self.timers.get(key) == at_ms:
            del self.timers[key]
            self._apply(key, TimeReached())

    def _apply(self, key: Key, event: ThreadEvent) -> None:
        around = self.around
        self.steps += 1
        around.last = key
        if self.dies_at_ms is not None:
            around.mishaps.note("zombie: steps")
        applied = self.driver.apply(key, self.states.get(key), event, self.clock.now_ms + self.skew_ms)
        if applied.stored is None:
            self.states.pop(key, None)
        elif applied.changed:
            self.states[key] = applied.stored
        self._wake(key, applied.wake_at_ms)
        for outcome in applied.outcomes:
            around.outcomes += 1
            self.outcomes.append((around.outcomes, outcome))
            around.on_outcome(outcome)
        for notice in applied.notices:
            around.on_notice(key, notice)
        if around.on_entry is not None:
            for entry in applied.journal:
                around.on_entry(entry)
        for effect, inv in applied.orders:
            if isinstance(effect, Hold):
                self.holds[key] = effect.ident
            else:
                if self.dies_at_ms is not None:
                    around.mishaps.note("zombie: orders")
                around.network.send(self, key, effect, inv)

    def _wake(self, key: Key, at_ms: int) -> None:
        if at_ms == 0:
            self.timers.pop(key, None)
        elif self.timers.get(key) != at_ms:
            self.timers[key] = at_ms
            self.clock.at(at_ms - self.skew_ms, self._fire, key, at_ms)
