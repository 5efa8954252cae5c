"""One thread's recorded history, entry by entry: what was stored then, and what the remote knew.

The job's side is rebuilt by the shipped driver: every recorded fact is applied to the thread as it
was, so that what a checkpoint after an entry would hold is what one did hold. Entries of one step
belong together, since nothing is ever stored between them.

The remote's side is what the facts prove (`knowledge`).

What a journal does not hold is not here either: requests that were waiting in the thread's queue,
and what re-delivered input was absorbed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from reattach.fsm.env import Env
from reattach.fsm.thread import ThreadStep, Transition, step_thread
from reattach.models.answers import Absent
from reattach.models.effects import Emit, Submit
from reattach.models.events import Ordered, Requested, ThreadEvent, TimeReached
from reattach.models.invocation import Invocation
from reattach.models.journal import Basis, JournalEntry
from reattach.models.outcomes import Outcome
from reattach.models.policy import Terms
from reattach.models.terms import terms_of
from reattach.models.thread import Drain, Queued, ThreadState
from reattach.runtime.driver import Key, state_digest
from reattach.runtime.replay.fold import with_length
from reattach.runtime.replay.knowledge import Knowledge, Run


@dataclass(frozen=True, slots=True)
class Point:
    """What a checkpoint after a step holds.

    Args:
        read: numbers of the input's lines that had been read, from 0.
        outcomes: final with it, of the whole thread.
    """

    state: ThreadState | None = None
    read: frozenset[int] = frozenset()
    outcomes: tuple[Outcome, ...] = ()


@dataclass(frozen=True, slots=True)
class Moment:
    """The world right after one step.

    Args:
        record: of the call that the entry is about, as it is then.
        begun: what was there before the call began; None where the journal does not show it.
        posted: what was there before the first and before the latest POST of this generation.
        runs: in the order of their POSTs.
        fenced: records whose slots the remote has closed.
        released: calls whose run may still act beside later turns, as people were told.
    """

    entry: JournalEntry
    terms: Terms
    record: Invocation
    now: Point
    begun: Point | None
    posted: tuple[Point, ...]
    runs: tuple[Run, ...]
    fenced: tuple[Invocation, ...]
    released: frozenset[str]


@dataclass(frozen=True, slots=True)
class Past:
    """The history of one thread.

    Args:
        lines: its input, with the time at which each was first read.
        moments: by the entry's place, where it could be rebuilt.
        newest_only: its remote was seen to show only a thread's newest turn.
    """

    key: Key
    lines: tuple[tuple[int, Requested | Ordered], ...]
    moments: dict[int, Moment]
    incarnations: frozenset[str]
    newest_only: bool


def past_of(entries: Sequence[JournalEntry]) -> Past:
    """Rebuild one thread's history from all of its entries.

    Args:
        entries: each call's own in their order; the moments are found by their places here.
    """
    walk = _Walk(entries[0])
    places = sorted(range(len(entries)), key=_order(entries))
    moments = {place: moment for place in places if (moment := walk.take(entries[place])) is not None}
    first = entries[0]
    names = frozenset(entry.incarnation for entry in entries)
    newest = any(isinstance(a := getattr(one.event, "answer", None), Absent) and a.after is not None for one in entries)
    return Past((first.agent, first.thread_id), tuple(walk.lines), moments, names, newest)


def _order(entries: Sequence[JournalEntry]) -> Callable[[int], tuple[int, str, int, int, int]]:
    """Put the calls of one thread in line: within an instant, what ends comes before what begins."""
    begun = {
        (entry.incarnation, entry.invocation_id, entry.at_ms): 1 + entry.basis.record.epoch
        for entry in entries
        if entry.before is None and entry.basis is not None
    }

    def key(place: int) -> tuple[int, str, int, int, int]:
        entry = entries[place]
        rank = begun.get((entry.incarnation, entry.invocation_id, entry.at_ms), 0)
        return entry.opened_ms, entry.incarnation, entry.at_ms, rank, place

    return key


class _Walk:
    """Goes through a thread's entries, in the order in which they were made."""

    def __init__(self, first: JournalEntry) -> None:
        self.key: Key = (first.agent, first.thread_id)
        self.lines: list[tuple[int, Requested | Ordered]] = []
        self._numbers: dict[ThreadEvent, int] = {}
        self._life = ""
        self._terms: Terms | None = None
        self._at: Point | None = Point()
        self._seen: dict[bytes, Point] = {}
        self._begun: dict[str, Point] = {}
        self._posted: dict[tuple[str, int], tuple[Point, ...]] = {}
        self._knowledge = Knowledge()
        self._ahead: list[Transition] = []
        self._latest: Moment | None = None

    def take(self, entry: JournalEntry) -> Moment | None:
        """Go on by one entry; None where the state before it is not known, or comes out otherwise today."""
        try:
            if self._ahead and self._latest is not None and _same(self._ahead.pop(0), entry):
                return self._latest
            self._ahead = []
            self._latest = self._step(entry)
        # What today's code raises here, the comparison of the replay shows as a divergence.
        except Exception:
            self._latest = None
        if self._latest is None:
            self._ahead, self._at = [], None
        return self._latest

    def _step(self, entry: JournalEntry) -> Moment | None:
        at, terms = self._find(entry), self._terms
        if at is None or terms is None:
            return None
        line = self._line(entry)
        event: ThreadEvent = TimeReached() if entry.before is None else with_length(entry.event, terms)
        state = at.state if entry.before is not None else _waiting(at.state, entry)
        env = Env(entry.at_ms, entry.opened_ms, entry.incarnation, terms, entry.lineage)
        result = step_thread(state, event, env)
        if not result.transitions or not _same(result.transitions[0], entry):
            return None
        self._ahead = list(result.transitions[1:])
        return self._note(entry, at, result, at.read | line)

    def _line(self, entry: JournalEntry) -> frozenset[int]:
        """The number of the input's line that this entry has read, if it has read one."""
        event = entry.event
        if not isinstance(event, Requested | Ordered):
            return frozenset()
        number = self._numbers.setdefault(event, len(self.lines))
        if number == len(self.lines):
            self.lines.append((entry.at_ms, event))
        return frozenset({number})

    def _find(self, entry: JournalEntry) -> Point | None:
        """What was stored before this step."""
        basis = entry.basis
        if basis is None:
            return self._at if self._life == entry.incarnation else None
        self._terms = terms_of(basis.terms)
        self._life = entry.incarnation
        if entry.before is not None:
            return self._seen.get(state_digest(basis.record)) or self._middle(basis)
        at = self._at or Point()
        if _knows(at.state, entry):
            at = self._begun.get(entry.invocation_id, Point())
        self._begun[entry.invocation_id] = at
        return at

    def _middle(self, basis: Basis) -> Point:
        """Begin with a record of which the journal does not show where it comes from."""
        record = basis.record
        ended = record.leaf.terminal
        drain = Drain(record, 0, basis.until_ms) if ended else None
        self._knowledge.begin(record)
        return Point(
            ThreadState(None if ended else record, drain, epoch=record.epoch), frozenset(range(len(self.lines)))
        )

    def _note(self, entry: JournalEntry, at: Point, result: ThreadStep, read: frozenset[int]) -> Moment:
        assert self._terms is not None
        outcomes = tuple(effect.outcome for effect, _ in result.effects if isinstance(effect, Emit))
        self._at = point = Point(result.state, read, (*at.outcomes, *outcomes))
        for made in result.transitions:
            self._knowledge.learn(made, self._terms, entry.at_ms)
            if any(isinstance(effect, Submit) for effect in made.effects):
                name = (made.after.id, made.after.generation)
                self._posted[name] = (*self._posted.get(name, ())[:1], at)
        if holder := _holder(result.state):
            self._seen[state_digest(holder)] = point
        if at.state is not None and at.state.drain is not None:
            released = result.state is None or result.state.drain is None
            self._knowledge.drained(at.state.drain, released, result)
        record = result.transitions[-1].after
        begun, posted = self._begun.get(record.id), self._posted.get((record.id, record.generation), ())
        known = self._knowledge
        runs = tuple(known.runs.values())
        return Moment(
            entry, self._terms, record, point, begun, posted, runs, tuple(known.fenced), frozenset(known.released)
        )


def _holder(state: ThreadState | None) -> Invocation | None:
    """The record that a new life of the thread goes on from."""
    if state is None or state.drain is None:
        return None if state is None else state.active
    return state.drain.invocation


def _waiting(state: ThreadState | None, entry: JournalEntry) -> ThreadState:
    """The thread in the instant before a turn begins, as the turn's record tells it."""
    assert entry.basis is not None and isinstance(entry.event, Requested)
    record, state = entry.basis.record, state or ThreadState()
    return replace(
        state,
        active=None,
        drain=None,
        queue=(Queued(entry.event.request, record.cancelled),),
        tombstones=tuple(stone for stone in state.tombstones if stone.invocation_id != record.id),
        epoch=record.epoch,
        incarnation=entry.incarnation,
        sends_end_ms=record.tenure.sends_end_ms,
        after=record.after,
    )


def _knows(state: ThreadState | None, entry: JournalEntry) -> bool:
    """The thread is busy, or has buried this very generation: it cannot be what this turn began in."""
    if state is None:
        return False
    if state.active is not None or state.drain is not None:
        return True
    name, generation = entry.invocation_id, entry.generation
    return any(stone.invocation_id == name and stone.generation >= generation for stone in state.tombstones)


def _same(made: Transition, entry: JournalEntry) -> bool:
    names = tuple([type(effect).__name__ for effect in made.effects])
    return made.after.id == entry.invocation_id and names == entry.effects and state_digest(made.after) == entry.state
