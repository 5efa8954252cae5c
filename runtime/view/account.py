"""All that is known of one call, as values: its steps, what it waits for, what was sent, what may be done."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from reattach.fsm.env import Env
from reattach.models.codec import decode_entry
from reattach.models.errors import CodecError
from reattach.models.events import HandleLearned
from reattach.models.invocation import Invocation
from reattach.models.journal import JournalEntry
from reattach.models.lifecycle import Leaf
from reattach.models.policy import Terms
from reattach.models.thread import Drain
from reattach.runtime.replay.fold import Checked, Fold, Skipped
from reattach.runtime.replay.reading import Call, Journal
from reattach.runtime.view.lanes import Step, since_of, steps_of
from reattach.runtime.view.options import Option, options_of
from reattach.runtime.view.posts import Post, posts_of
from reattach.runtime.view.rests import rests_on
from reattach.runtime.view.waits import deadline_ms, details, waits_for


@dataclass(frozen=True, slots=True)
class Account:
    """One call.

    Args:
        steps: never empty.
        since_ms: when it came to the leaf that it is in; `status_since_ms` is when it came to the status.
        unknown: why the record cannot be rebuilt, "" when it is: then what follows is empty.
        wake_at_ms: when it goes on by itself at the latest, 0 for never.
        known_until_ms: of the latest entry that was read, also of other calls.
    """

    call: Call
    steps: tuple[Step, ...]
    since_ms: int
    known_until_ms: int
    now_ms: int
    waits_for: str
    posts: tuple[Post, ...]
    unknown: str = ""
    status_since_ms: int = 0
    wake_at_ms: int = 0
    deadline_ms: int = 0
    requested_at_ms: int = 0
    handle: str = ""
    details: tuple[str, ...] = ()
    rests_on: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()

    @property
    def leaf(self) -> Leaf:
        return self.steps[-1].after


@dataclass(frozen=True, slots=True)
class Known:
    """A record behind its latest entry, and what it was rebuilt with.

    Args:
        handle: the remote's latest name of its run, in any life.
    """

    record: Invocation
    terms: Terms
    drain: Drain | None
    latest: JournalEntry
    handle: str


def account_of(call: Call, journal: Journal, *, now_ms: int, config: str) -> Account:
    """Find out all that is known of one call.

    Args:
        journal: holds all calls on its thread.
        now_ms: the reader's time.
        config: the job's file, for the commands.
    """
    calls = {
        other: [decode_entry(one.data) for one in held]
        for other, held in journal.calls.items()
        if other[:2] == call[:2]
    }
    entries = calls[call]
    steps = steps_of(entries, (one.state for one in journal.calls[call]))
    known = _known(entries)
    leaf = steps[-1].after
    plain = Account(
        call, tuple(steps), since_of(steps), journal.latest_ms, now_ms, waits_for(leaf), tuple(posts_of(call, calls)),
        unknown=known if isinstance(known, str) else "",
    )  # fmt: skip
    return plain if isinstance(known, str) else _told(plain, known, config)


def _told(plain: Account, known: Known, config: str) -> Account:
    record, terms, latest = known.record, known.terms, known.latest
    # The life that has the call: one that took it over later would do the same with an order.
    env = Env(max(plain.now_ms, latest.at_ms), latest.opened_ms, latest.incarnation, terms, latest.lineage)
    wake_at_ms = record.wake_at_ms if known.drain is None else known.drain.wake_at_ms
    return Account(
        plain.call, plain.steps, plain.since_ms, plain.known_until_ms, plain.now_ms, plain.waits_for, plain.posts,
        status_since_ms=record.entered_ms,
        wake_at_ms=wake_at_ms,
        deadline_ms=deadline_ms(record, terms),
        requested_at_ms=record.request.requested_at_ms,
        handle=record.handle,
        details=tuple(details(record, terms, known.drain)),
        rests_on=tuple(rests_on(record, terms, lineage=latest.lineage, now_ms=plain.now_ms)),
        options=tuple(options_of(record, env, config, known.handle)),
    )  # fmt: skip


def _known(entries: Sequence[JournalEntry]) -> Known | str:
    """The call behind its latest entry, or why that cannot be told."""
    fold = Fold()
    try:
        for number, entry in enumerate(entries, 1):
            verdict = fold.add(entry)
            if isinstance(verdict, Checked) and verdict.mismatch is not None:
                return f"this release comes to another state at entry {number} (reattach replay shows it)"
    except CodecError as error:
        return f"entry {number} cannot be replayed: {error}"
    if isinstance(verdict, Skipped) or fold.record is None or fold.terms is None:
        return "the entry with which its latest life began is not in this journal"
    return Known(fold.record, fold.terms, fold.drain, entries[-1], _handle(entries, fold.record.generation))


def _handle(entries: Sequence[JournalEntry], generation: int) -> str:
    """The latest name that the remote gave the run of a generation."""
    for entry in reversed(entries):
        ident = getattr(entry.event, "ident", None)
        said = entry.event if isinstance(entry.event, HandleLearned) else getattr(entry.event, "answer", None)
        handle: str = getattr(said, "handle", "")
        if handle and ident is not None and ident.generation == generation:
            return handle
    return ""


# Comparing takes some 10 µs a name.
NAMES_MAX: Final = 50_000


def near_names(wanted: str, calls: Iterable[Call], most: int = 3) -> list[str]:
    """Names that somebody may have meant: those that hold the text, then those that look like it."""
    names = list(dict.fromkeys(name for _, _, name in calls))
    folded = wanted.casefold()
    found = [name for name in names if folded and (folded in name.casefold() or name.casefold() in folded)]
    found.sort(key=lambda name: abs(len(name) - len(wanted)))
    if len(found) < most:
        found += difflib.get_close_matches(wanted, names[:NAMES_MAX], n=most, cutoff=0.6)
    return list(dict.fromkeys(found))[:most]
