"""A look at a running job: as a table, as lines where nobody sees a table, and as data."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reattach.models.lifecycle import Leaf, Status
from reattach.runtime.run.inbox import one_line
from reattach.runtime.view.saying import cut, moment, span
from reattach.runtime.view.terminal import CAUSE_CHARS_MAX, NAME_CHARS_MAX, STYLES
from reattach.runtime.view.waits import waits_for
from reattach.runtime.view.watching import Look, Waiting

# A screen has some forty lines.
PEOPLE_SHOWN: Final = 4


def table(look: Look) -> RenderableType:
    """All that a look holds."""
    parts: list[RenderableType] = [Text(headline(look), "bold")]
    parts += [Text(cut(note), "yellow") for note in look.notes]
    if look.counts:
        parts.append(_counts(look))
    parts += [Text(text) for text in _people(look)]
    if look.oldest:
        parts.append(_oldest(look))
    return Group(*parts)


def headline(look: Look) -> str:
    """One line: how many calls by status, and outcomes per second."""
    told = " · ".join(f"{status.name} {count:,}" for status, count in _by_status(look).items() if count) or "no call"
    rate = "" if look.per_s is None else f" · {look.per_s:.1f} outcomes/s"
    if look.state:
        return f"{look.state}: {told}{rate}"
    if not look.until_ms:
        return told
    return f"{told}{rate} · the journal ends at {moment(look.until_ms)}, {span(look.at_ms - look.until_ms)} ago"


def _by_status(look: Look) -> dict[Status, int]:
    return {status: sum(count for leaf, count in look.counts.items() if leaf.status is status) for status in Status}


def _counts(look: Look) -> Table:
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("state", no_wrap=True)
    shown.add_column("calls", justify="right", no_wrap=True)
    shown.add_column("waits", overflow="fold")
    for leaf in Leaf:
        if count := look.counts.get(leaf, 0):
            waits = "" if leaf.terminal else waits_for(leaf)
            shown.add_row(Text(leaf.value, STYLES[leaf.status]), f"{count:,}", Text(waits, "dim"))
    return shown


def _oldest(look: Look) -> Table:
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("longest in their state", overflow="fold", max_width=NAME_CHARS_MAX)
    shown.add_column("agent", overflow="fold", max_width=16)
    shown.add_column("state", overflow="fold")
    shown.add_column("for", justify="right", no_wrap=True)
    for one in look.oldest:
        state = Text(one.leaf.value, STYLES[one.leaf.status])
        if one.cause:
            state.append(f"\n{one_line(one.cause, CAUSE_CHARS_MAX)}", "dim")
        names = (Text(one_line(name, 2 * NAME_CHARS_MAX)) for name in (one.invocation_id, one.agent))
        shown.add_row(*names, state, span(look.at_ms - one.since_ms))
    return shown


def _people(look: Look) -> Iterator[str]:
    if look.people:
        yield "Waits for people"
    for one in look.people[:PEOPLE_SHOWN]:
        yield from asking(one, look.at_ms)
    if more := len(look.people[PEOPLE_SHOWN:]) + look.people_more:
        yield f"  and {more:,} more: reattach timeline shows all"


def asking(one: Waiting, at_ms: int) -> Iterator[str]:
    """Lines on a call that waits for people: why, and the orders that it would obey."""
    why = f": {one_line(one.cause, CAUSE_CHARS_MAX)}" if one.cause else ""
    yield f"  {one_line(one.invocation_id, 200)}  {one.leaf.value} for {span(at_ms - one.since_ms)}{why}"
    for option in one.options:
        yield f"    {option.command}"


class Lines:
    """A look as plain lines: one when something has changed, and those of calls that began to wait for people."""

    def __init__(self) -> None:
        self._said = ""
        self._asked: frozenset[tuple[str, str, str, Leaf, int]] = frozenset()
        self._notes: tuple[str, ...] = ()

    def of(self, look: Look) -> Iterator[str]:
        counts = " · ".join(f"{leaf.value} {look.counts[leaf]:,}" for leaf in Leaf if look.counts.get(leaf))
        said = f"{look.state} {counts}".strip() or "no call"
        if said != self._said:
            self._said = said
            rate = "" if look.per_s is None else f" · {look.per_s:.1f} outcomes/s"
            oldest = ""
            if look.oldest:
                first = look.oldest[0]
                oldest = f" · oldest: {one_line(first.invocation_id, 80)}, for {span(look.at_ms - first.since_ms)}"
            yield f"{moment(look.at_ms)}: {said}{rate}{oldest}"
        if look.notes != self._notes:
            self._notes = look.notes
            yield from (f"  {cut(note)}" for note in look.notes)
        asked = {(one.agent, one.thread_id, one.invocation_id, one.leaf, one.since_ms): one for one in look.people}
        for key, one in asked.items():
            if key not in self._asked:
                yield from asking(one, look.at_ms)
        self._asked = frozenset(asked)


def as_data(look: Look) -> dict[str, Any]:
    """A look for machines."""
    return {
        "at_ms": look.at_ms,
        "known_until_ms": look.until_ms,
        "state": look.state,
        "outcomes_per_s": look.per_s,
        "counts": {leaf.value: look.counts[leaf] for leaf in Leaf if look.counts.get(leaf)},
        "oldest": [_call(one) for one in look.oldest],
        "people": [_call(one) for one in look.people],
        "people_more": look.people_more,
        "notes": list(look.notes),
    }


def _call(one: Waiting) -> dict[str, Any]:
    return {**asdict(one), "leaf": one.leaf.value}
