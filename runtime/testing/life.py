"""One incarnation of the job under test, and what a checkpoint holds of it."""

from dataclasses import dataclass, field
from typing import NamedTuple

from reattach.models.codec import decode_thread
from reattach.models.events import Answered, Ident, Restored, ThreadEvent, TimeReached
from reattach.models.outcomes import Outcome
from reattach.models.policy import Terms
from reattach.models.thread import ThreadState
from reattach.runtime.driver import Applied, Driver, Key


class Line(NamedTuple):
    """One record of the input."""

    key: Key
    event: ThreadEvent


class Fact(NamedTuple):
    """Something that an incarnation may apply next.

    Args:
        kind: `restored`, `answer`, `timer` or `input`.
        place: which answer of the inbox.
    """

    kind: str
    key: Key
    event: ThreadEvent
    place: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one checkpoint holds: all that a restore brings back."""

    number: int
    states: dict[Key, bytes] = field(default_factory=dict)
    timers: dict[Key, int] = field(default_factory=dict)
    position: int = 0
    holds: dict[Key, Ident] = field(default_factory=dict)
    emitted: tuple[Outcome, ...] = ()


class Life:
    """From `open()` to death.

    Args:
        lineage: it and all its ancestors were restored from their newest checkpoints.
    """

    def __init__(self, agent: str, terms: Terms, born: int, now_ms: int, snapshot: Snapshot, *, lineage: bool) -> None:
        self.born = born
        self.opened_ms = now_ms
        self.lineage = lineage
        self.dies_at_ms = 0
        self.states = dict(snapshot.states)
        self.timers = dict(snapshot.timers)
        self.position = snapshot.position
        self.recovering = list(snapshot.states)
        self.inbox: list[tuple[Key, Answered]] = []
        self.holds: dict[Key, Ident] = {}
        self.emitted = list(snapshot.emitted)
        self.driver = Driver({agent: terms}, incarnation=self.name, opened_ms=now_ms, lineage=lineage)

    @property
    def name(self) -> str:
        return f"life-{self.born}"

    @property
    def superseded(self) -> bool:
        """It was given up for dead and still acts."""
        return self.dies_at_ms > 0

    def facts(self, lines: list[Line], now_ms: int) -> list[Fact]:
        """All that it may apply next, what is most natural first."""
        due = [key for key, at_ms in self.timers.items() if at_ms <= now_ms]
        return [
            *(Fact("restored", key, Restored()) for key in self.recovering),
            *(Fact("answer", key, event, place) for place, (key, event) in enumerate(self.inbox)),
            *(Fact("timer", key, TimeReached()) for key in due),
            *(Fact("input", *line) for line in lines[self.position : self.position + 1]),
        ]

    def take(self, fact: Fact) -> None:
        """It is going to apply this fact: it cannot come again."""
        match fact.kind:
            case "restored":
                self.recovering.remove(fact.key)
            case "answer":
                del self.inbox[fact.place]
            case "timer":
                del self.timers[fact.key]
            case "input":
                self.position += 1

    def store(self, key: Key, applied: Applied) -> None:
        """Write what a step came to, and set the key's timer."""
        if applied.stored is None:
            self.states.pop(key, None)
        else:
            self.states[key] = applied.stored
        if applied.wake_at_ms:
            self.timers[key] = applied.wake_at_ms
        else:
            self.timers.pop(key, None)

    def snapshot(self, number: int) -> Snapshot:
        return Snapshot(
            number, dict(self.states), dict(self.timers), self.position, dict(self.holds), tuple(self.emitted)
        )

    def threads(self) -> dict[Key, ThreadState]:
        """Its stored threads, decoded."""
        return {key: decode_thread(stored) for key, stored in self.states.items()}
