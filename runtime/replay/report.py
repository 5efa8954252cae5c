"""A whole journal replayed: what was found, as data."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from reattach.fsm.step import event_name
from reattach.models.codec import decode_entry
from reattach.models.errors import CodecError, IllegalEvent
from reattach.models.events import Requested
from reattach.models.invocation import Invocation
from reattach.models.journal import JournalEntry
from reattach.models.terms import terms_of
from reattach.runtime.replay.fold import Checked, Fold, Mismatch, Skipped, Verdict
from reattach.runtime.replay.reading import Call, Damage, Held, Journal, Place

CONTEXT_ENTRIES: Final = 5
SAME, DIVERGED, BAD_INPUT = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Row:
    """One entry and what became of it.

    Args:
        number: 1-based, within the call.
        event: the chart's name of the fact.
    """

    number: int
    place: Place
    entry: JournalEntry
    event: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where today's step leaves the recorded history of one call.

    Args:
        of: how many entries the call has.
        context: the entries before, oldest first.
        changes: by field of the record, what today's step made of it: before and after.
    """

    call: Call
    row: Row
    of: int
    context: tuple[Row, ...]
    mismatch: Mismatch
    changes: Mapping[str, tuple[str, str]]


@dataclass(slots=True)
class Report:
    """What a replay found.

    Args:
        checked: entries whose state was compared.
        skipped: entries of calls that began before the journal does.
        gaps: calls in which entries are missing.
        lost: entries that could not be compared because of that.
        takeovers: lives that went on from the latest state.
        restores: lives that started from an older one.
        undone: entries behind which those went back.
    """

    calls: int = 0
    checked: int = 0
    skipped: int = 0
    gaps: int = 0
    lost: int = 0
    takeovers: int = 0
    restores: int = 0
    undone: int = 0
    divergences: list[Divergence] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)

    @property
    def code(self) -> int:
        """Exit code: a divergence counts more than input that could not be used."""
        if self.divergences:
            return DIVERGED
        return BAD_INPUT if self.damages or self.gaps or not self.checked else SAME


def replay(
    journal: Journal,
    *,
    until: int = 0,
    on_row: Callable[[Row], None] | None = None,
    on_entry: Callable[[int], None] | None = None,
) -> Report:
    """Replay every call of a journal, each up to its first divergence.

    Args:
        until: replay only so many entries of each call; 0 for all.
        on_row: shown every entry.
        on_entry: told how many entries have been replayed since it was last told.
    """
    report = Report(damages=list(journal.damages))
    terms = lru_cache(maxsize=256)(terms_of)
    for call, held in journal.calls.items():
        report.calls += 1
        context: deque[Row] = deque(maxlen=CONTEXT_ENTRIES)
        gap = False
        for row in _rows(Fold(terms, {one.state for one in held}), held[: until or None], report.damages):
            if on_entry is not None:
                on_entry(1)
            if on_row is not None:
                on_row(row)
            gap = _count(report, row.verdict) or gap
            mismatch = row.verdict.mismatch if isinstance(row.verdict, Checked) else None
            if mismatch is not None:
                changes = _changes(mismatch.before, mismatch.after)
                report.divergences.append(Divergence(call, row, len(held), tuple(context), mismatch, changes))
                break
            context.append(row)
        report.gaps += gap
    return report


def _rows(fold: Fold, held: list[Held], damages: list[Damage]) -> Iterator[Row]:
    for number, one in enumerate(held, 1):
        entry = decode_entry(one.data)
        try:
            verdict = fold.add(entry)
        except CodecError as error:
            damages.append(Damage(one.place, f"this call cannot be replayed from here: {error}"))
            return
        yield Row(number, one.place, entry, event_of(entry), verdict)


def _count(report: Report, verdict: Verdict) -> bool:
    """Add to the figures; say whether entries are missing before this one."""
    if isinstance(verdict, Skipped):
        report.lost += verdict.gap
        report.skipped += not verdict.gap
        return verdict.gap
    report.checked += 1
    report.takeovers += verdict.taken_over
    if verdict.restore is not None:
        report.restores += 1
        report.undone += verdict.restore.undone
    return verdict.gap


def event_of(entry: JournalEntry) -> str:
    """The chart's name of an entry's fact."""
    if isinstance(entry.event, Requested):
        return "requested"
    try:
        return event_name(entry.event)
    except IllegalEvent:
        return type(entry.event).__name__


def _changes(before: Invocation | None, after: Invocation | None) -> dict[str, tuple[str, str]]:
    old, new = dict(_flat(before)), dict(_flat(after))
    return {name: (old.get(name, ""), value) for name, value in new.items() if old.get(name, "") != value}


def _flat(record: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The fields of a record as text; those of a record within it by dotted names."""
    if record is None:
        return
    for one in fields(record):
        value = getattr(record, one.name)
        if is_dataclass(value) and one.name != "request":
            yield from _flat(value, f"{prefix}{one.name}.")
        elif one.name != "request":
            yield prefix + one.name, str(value.value) if isinstance(value, Enum) else repr(value)
