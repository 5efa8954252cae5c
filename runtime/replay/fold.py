"""One call's entries through today's `step`: the record is rebuilt, and every state compared.

*Where a record comes from.* The first entry that an incarnation makes of a call carries the record
that it started from, so each life of the host stands for itself. How lives hang together is a
matter of record, too: the state that a life started from is looked up among the states before. The
latest one: it was taken over. An older one: an older checkpoint was restored, and what came after
that state never happened as far as the job knows. That is history, and no divergence.

*What is compared.* The leaf, the names of the effects, and the digest of the whole record. Facts
about the thread (which turn comes next, what is absorbed) are `step_thread`'s and are not replayed.

*What a gap is.* Within a life the record's count of steps rises by one, or stays where a fact was
dropped. Any other step means that entries are missing; the call is then not compared until the next
life begins, since a difference would say nothing.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final

from reattach.fsm import drain as draining
from reattach.fsm import step as stepping
from reattach.fsm.env import Env
from reattach.models.answers import Present, Result
from reattach.models.effects import Effect
from reattach.models.events import Event, FetchAnswered, ProbeAnswered, Requested, Restored, ThreadEvent
from reattach.models.invocation import Invocation
from reattach.models.journal import Basis, JournalEntry
from reattach.models.lifecycle import Leaf
from reattach.models.policy import Terms
from reattach.models.terms import terms_of
from reattach.models.thread import Drain
from reattach.runtime.driver import state_digest
from reattach.runtime.replay.lives import Lives, Restore

_LENGTH: Final = re.compile(rb'"sha256:[0-9a-f]{16}/([0-9]{1,10})"')


@dataclass(frozen=True, slots=True)
class Side:
    """What one entry came to: as recorded, or today.

    Args:
        error: today's step raised this instead.
    """

    leaf: str
    effects: tuple[str, ...]
    state: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Today's step comes to something else.

    Args:
        before: the record that both started from.
        after: what today's step made of it, None when it raised.
    """

    recorded: Side
    today: Side
    before: Invocation | None
    after: Invocation | None


@dataclass(frozen=True, slots=True)
class Checked:
    """An entry that was replayed.

    Args:
        note: how this life hangs together with the one before, "" within a life.
        taken_over: it went on from the latest state.
        gap: entries are missing before this one.
    """

    note: str = ""
    taken_over: bool = False
    restore: Restore | None = None
    gap: bool = False
    mismatch: Mismatch | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """An entry that cannot be replayed: what came before it is not in the journal.

    Args:
        gap: entries are missing between two that are there; else the journal begins after this life did.
    """

    gap: bool


Verdict = Checked | Skipped


class Fold:
    """Replays one call, entry by entry.

    Args:
        terms: reads the terms that a basis carries; the same few texts come again and again.
        states: digests of all the call's entries, for lives whose clocks put them in the wrong order.
    """

    def __init__(self, terms: Callable[[str], Terms] = terms_of, states: Collection[bytes] = frozenset()) -> None:
        self._read_terms = terms
        self._terms: Terms | None = None
        self._record: Invocation | None = None
        self._drain: Drain | None = None
        self._incarnation = ""
        self._lives = Lives(states)
        self._checked = False

    @property
    def record(self) -> Invocation | None:
        """The call behind the latest entry; None where that cannot be rebuilt."""
        return self._record

    @property
    def drain(self) -> Drain | None:
        """The thread's wait for the run of this call, if it has ended and is waited for."""
        return self._drain

    @property
    def terms(self) -> Terms | None:
        """What was in force at the latest entry; None before the first life that can be rebuilt."""
        return self._terms

    def add(self, entry: JournalEntry) -> Verdict:
        """Replay the next entry. After a mismatch nothing more must be added.

        Raises:
            Corrupt: the entry contradicts itself, or its terms cannot be read.
        """
        verdict = self._add(entry)
        self._lives.follow(entry)
        return verdict

    def _add(self, entry: JournalEntry) -> Verdict:
        if entry.basis is None:
            if not self._continues(entry):
                self._record = None
                return Skipped(gap=self._checked)
            return Checked(mismatch=self._compare(entry))
        linked = self._begin_life(entry, entry.basis)
        self._checked = True
        return replace(linked, mismatch=self._compare(entry))

    def _continues(self, entry: JournalEntry) -> bool:
        record, latest = self._record, self._lives.latest
        if record is None or latest is None or entry.before is None:
            return False
        same_life = entry.incarnation == self._incarnation
        return same_life and entry.before is record.leaf and entry.seq - latest.seq in (0, 1)

    def _begin_life(self, entry: JournalEntry, basis: Basis) -> Checked:
        self._record, self._drain = None, None
        self._terms = self._read_terms(basis.terms)
        self._incarnation = entry.incarnation
        link = self._lives.link(entry, basis)
        self._record = basis.record
        if entry.before is Leaf.FAILED:
            self._drain = Drain(basis.record, 0, basis.until_ms)
        return Checked(link.note, link.taken_over, link.restore, link.gap)

    def _compare(self, entry: JournalEntry) -> Mismatch | None:
        """Apply the entry's fact; None when it comes to what was recorded."""
        before = None if entry.before is None else self._record
        recorded = Side(entry.after.value, entry.effects, entry.state.hex())
        try:
            after, effects = self._apply(entry)
            digest = state_digest(after)
        # Whatever today's code raises is what differs; it must not hide the rest of the journal.
        except Exception as error:
            text = (str(error).splitlines() or [""])[0]
            return Mismatch(recorded, Side("", (), "", f"{type(error).__name__}: {text}"), before, None)
        self._record = after
        names = tuple([type(effect).__name__ for effect in effects])
        if digest == entry.state and after.leaf is entry.after and names == entry.effects:
            return None
        return Mismatch(recorded, Side(after.leaf.value, names, digest.hex()), before, after)

    def _apply(self, entry: JournalEntry) -> tuple[Invocation, tuple[Effect, ...]]:
        record, terms, event = self._record, self._terms, entry.event
        assert record is not None and terms is not None, "set when its life began"
        env = Env(entry.at_ms, entry.opened_ms, entry.incarnation, terms, entry.lineage)
        if isinstance(event, Requested):
            return _begun(event, record, env), ()
        if entry.before is Leaf.FAILED:
            return self._drained(record, event, env)
        result = stepping.step(record, with_length(event, terms), env)
        return result.invocation, result.effects

    def _drained(self, record: Invocation, event: ThreadEvent, env: Env) -> tuple[Invocation, tuple[Effect, ...]]:
        assert not isinstance(event, Requested)
        if self._drain is None and isinstance(event, Restored) and draining.needs_drain(record):
            self._drain, effects = draining.begin_drain(record, env)
        elif self._drain is not None:
            self._drain, effects = draining.step_drain(self._drain, event, env)
        else:
            raise LookupError("the thread of this call is not draining any more")
        return record if self._drain is None else self._drain.invocation, effects


def _begun(event: Requested, basis: Invocation, env: Env) -> Invocation:
    """What `begin` makes today of a request, in the thread as it was."""
    fresh = stepping.begin(
        event.request, env, epoch=basis.epoch, sends_end_ms=basis.tenure.sends_end_ms, after=basis.after
    )
    return replace(fresh, cancelled=True) if basis.cancelled else fresh


def with_length(event: ThreadEvent, terms: Terms) -> Event:
    """Give a redacted result its length back, the one thing of it that a step looks at."""
    assert not isinstance(event, Requested)
    if isinstance(event, FetchAnswered) and isinstance(event.answer, Result):
        sized = _sized(event.answer.value, terms)
        return event if sized is None else replace(event, answer=Result(sized))
    if isinstance(event, ProbeAnswered) and isinstance(event.answer, Present) and event.answer.result is not None:
        sized = _sized(event.answer.result, terms)
        return event if sized is None else replace(event, answer=replace(event.answer, result=sized))
    return event


def _sized(payload: bytes, terms: Terms) -> bytes | None:
    """Bytes on the same side of the limit as the payload was; None where its digest is so as well."""
    found, most = _LENGTH.fullmatch(payload), terms.policy.result_bytes_max
    if found is None or (int(found[1]) > most) == (len(payload) > most):
        return None
    return bytes(min(int(found[1]), most + 1))
