"""A report as lines for people, and as JSON."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from reattach.models.journal import JournalEntry
from reattach.models.lifecycle import Leaf
from reattach.runtime.replay.fold import Side, Skipped
from reattach.runtime.replay.reading import Call, Journal
from reattach.runtime.replay.report import BAD_INPUT, DIVERGED, SAME, Divergence, Report, Row
from reattach.runtime.run.inbox import one_line

VALUE_CHARS_MAX: Final = 60
CHANGES_MAX: Final = 20
OTHERS_MAX: Final = 10
VERDICTS: Final = {SAME: "same", DIVERGED: "divergence", BAD_INPUT: "bad input"}


def row_line(row: Row, since_ms: int, mark: str = " ") -> str:
    """One recorded entry as a line.

    Args:
        since_ms: the time from which the line counts.
        mark: one character that makes the line stand out.
    """
    return entry_line(row.entry, row.event, row.number, since_ms, mark) + _noted(row)


def entry_line(entry: JournalEntry, event: str, number: int, since_ms: int, mark: str = " ") -> str:
    """One entry as a line.

    Args:
        number: within its call.
    """
    before = "(nothing)" if entry.before is None else entry.before.value
    # Only a thread that waits for the run of a failed call steps it any more.
    before = "draining" if entry.before is Leaf.FAILED else before
    after = "" if entry.before is entry.after else f" -> {entry.after.value}"
    effects = f"  [{', '.join(entry.effects)}]" if entry.effects else ""
    seconds = (entry.at_ms - since_ms) / 1000
    life = one_line(entry.incarnation, 9)[:8]
    return f"{mark} {number:>4}  {seconds:>+9.3f} s  {life:<8}  {before}: {event}{after}{effects}"


def _noted(row: Row) -> str:
    if isinstance(row.verdict, Skipped):
        return "  (not compared: entries before it are missing)"
    note = row.verdict.note
    return f"  ({note})" if note else ""


def lines(report: Report, journal: Journal, seconds: float) -> Iterator[str]:
    """The findings: the first divergence in full, the others by name, then the figures."""
    if report.divergences:
        yield from divergence_lines(report.divergences[0])
        yield ""
        for other in report.divergences[1 : OTHERS_MAX + 1]:
            yield f"also: {named(other.call)} at entry {other.row.number}, {other.row.place}"
        if len(report.divergences) > OTHERS_MAX + 1:
            yield f"also: {len(report.divergences) - OTHERS_MAX - 1} more calls"
    rate = f"{seconds:.1f} s, {(report.checked + report.skipped + report.lost) / max(seconds, 1e-9):,.0f} entries/s"
    verdict = (
        f"{counted(len(report.divergences), 'call')} diverged" if report.divergences else "every state is the same"
    )
    if not report.checked:
        verdict = "nothing could be compared"
    yield f"replayed {counted(report.checked, 'entry')} of {counted(report.calls, 'call')} in {rate}: {verdict}"
    if report.takeovers or report.restores:
        yield (
            f"  lives: {counted(report.takeovers, 'takeover')}; "
            f"{counted(report.restores, 'restore')} from an older state, {counted(report.undone, 'entry')} undone"
        )
    if journal.repeated:
        yield f"  left out: {counted(journal.repeated, 'entry')} that the journal holds twice"
    if report.skipped:
        yield f"  not compared: {counted(report.skipped, 'entry')} of lives that began before this journal"
    if report.gaps:
        lost = counted(report.lost, "entry")
        yield f"  incomplete: {counted(report.gaps, 'call')} with missing entries, {lost} not compared"


def divergence_lines(found: Divergence) -> Iterator[str]:
    """One divergence with what came before it, both sides, and what today's step changed."""
    row, mismatch = found.row, found.mismatch
    since_ms = (found.context or (row,))[0].entry.at_ms
    yield f"divergence: {named(found.call)}, entry {row.number} of {found.of}"
    yield f"  {row.place}"
    yield from (row_line(one, since_ms) for one in found.context)
    yield row_line(row, since_ms, ">")
    yield f"  recorded: {_side(mismatch.recorded)}"
    yield f"  today:    {_side(mismatch.today)}"
    if mismatch.after is not None:
        same = mismatch.recorded.leaf == mismatch.today.leaf and mismatch.recorded.effects == mismatch.today.effects
        yield f"  {'only the record differs; ' * same}today's step made of the record:"
        changes = list(found.changes.items())
        for name, (before, after) in changes[:CHANGES_MAX]:
            old, new = (one_line(value, VALUE_CHARS_MAX) for value in (before, after))
            yield f"    {name}: {old or '(nothing)'} -> {new}"
        if len(changes) > CHANGES_MAX:
            yield f"    and {len(changes) - CHANGES_MAX} more fields"
        if not changes:
            yield "    (nothing was changed)"


def _side(side: Side) -> str:
    if side.error:
        return f"raised {one_line(side.error, 300)}"
    return f"{side.leaf}  [{', '.join(side.effects)}]  state {side.state}"


def named(call: Call) -> str:
    """A call in words."""
    agent, thread, invocation = (one_line(part, 80) for part in call)
    return f"call {invocation} (agent {agent}, thread {thread})"


def counted(number: int, what: str) -> str:
    """So many of something, in words."""
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}es" if what.endswith("sh") else f"{what}s"
    return f"{number:,} {what if number == 1 else plural}"


def as_json(report: Report, journal: Journal, files: Sequence[Path], seconds: float, **more: Any) -> str:
    """The findings for machines: every divergence, every damage.

    Args:
        more: further fields.
    """
    found = {
        "verdict": VERDICTS[report.code],
        "files": [str(file) for file in files],
        "calls": report.calls,
        "entries": journal.entries,
        "checked": report.checked,
        "repeated": journal.repeated,
        "skipped": report.skipped,
        "lost": report.lost,
        "gaps": report.gaps,
        "takeovers": report.takeovers,
        "restores": report.restores,
        "undone": report.undone,
        "seconds": round(seconds, 3),
        "entries_per_second": round(report.checked / max(seconds, 1e-9)),
        "divergences": [_divergence(one) for one in report.divergences],
        "damages": [
            {
                "file": None if one.place is None else str(one.place.file),
                "line": None if one.place is None else one.place.line,
                "offset": None if one.place is None else one.place.offset,
                "message": one.message,
            }
            for one in report.damages
        ],
        **more,
    }
    return json.dumps(found, indent=2) + "\n"


def _divergence(found: Divergence) -> dict[str, Any]:
    agent, thread, invocation = found.call
    return {
        "agent": agent,
        "thread_id": thread,
        "invocation_id": invocation,
        "entry": found.row.number,
        "entries": found.of,
        **_row(found.row),
        "recorded": _side_json(found.mismatch.recorded),
        "today": _side_json(found.mismatch.today),
        "changes": {name: list(pair) for name, pair in found.changes.items()},
        "context": [{"entry": row.number, **_row(row)} for row in found.context],
    }


def _row(row: Row) -> dict[str, Any]:
    entry = row.entry
    return {
        "file": str(row.place.file),
        "line": row.place.line,
        "offset": row.place.offset,
        "generation": entry.generation,
        "seq": entry.seq,
        "at_ms": entry.at_ms,
        "incarnation": entry.incarnation,
        "event": row.event,
        "before": None if entry.before is None else entry.before.value,
        "after": entry.after.value,
        "effects": list(entry.effects),
    }


def _side_json(side: Side) -> dict[str, Any]:
    return {"leaf": side.leaf, "effects": list(side.effects), "state": side.state, "error": side.error}
