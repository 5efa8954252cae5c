"""The calls in a checkpoint as rows: what a job would go on with, what waits for its turn, and what it remembers.

A thread holds one call at most that goes on, or one that has ended here and may go on at the remote; later turns that
have not begun; and a mark for each call that has ended, until its time is over.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf, Status
from reattach.models.thread import Drain, Queued, ThreadState, Tombstone
from reattach.runtime.run.inbox import one_line
from reattach.runtime.view.saying import cut, moment, span
from reattach.runtime.view.terminal import CAUSE_CHARS_MAX, NAME_CHARS_MAX, STYLES

GOES_ON, DRAINS, QUEUED, ENDED = "goes on", "drains", "waits for its turn", "ended"
# Those that somebody may have to do something about come first.
_ORDER: Final = (GOES_ON, DRAINS, QUEUED, ENDED)


@dataclass(frozen=True, slots=True)
class Row:
    """One call.

    Args:
        part: which part of its thread it is: one of `GOES_ON`, `DRAINS`, `QUEUED`, `ENDED`.
        state: its leaf; of a turn that has not begun, `QUEUED`.
        generation: 0 for a turn that has not begun.
        since_ms: when it came to its status, or when its turn was asked for; 0 where that is no longer known.
        wake_at_ms: when the job looks at it next at the latest, or forgets it; 0 for never.
        posts, probes: ordered, in this generation and in all.
        cause: why it waits, or how it has failed.
    """

    agent: str
    thread_id: str
    invocation_id: str
    part: str
    status: Status
    state: str
    generation: int = 0
    since_ms: int = 0
    wake_at_ms: int = 0
    posts: int = 0
    probes: int = 0
    handle: str = ""
    cause: str = ""


def rows_of(threads: Iterable[tuple[str, str, ThreadState]]) -> list[Row]:
    """List every call: those that go on, the longest in their status first; then what waits, and what has ended."""
    rows = [row for agent, thread, state in threads for row in _rows(agent, thread, state)]
    return sorted(rows, key=lambda one: (_ORDER.index(one.part), one.since_ms, one.agent, one.thread_id))


def _rows(agent: str, thread: str, state: ThreadState) -> Iterator[Row]:
    if state.active is not None:
        yield _called(agent, thread, state.active)
    if state.drain is not None:
        yield _drained(agent, thread, state.drain)
    for queued in state.queue:
        yield _waiting(agent, thread, queued)
    for stone in state.tombstones:
        yield _ended(agent, thread, stone)


def _called(agent: str, thread: str, call: Invocation) -> Row:
    return Row(
        agent, thread, call.id, GOES_ON, call.status, call.leaf.value, call.generation, call.entered_ms,
        call.wake_at_ms, call.attempts, call.probes, call.handle, call.cause,
    )  # fmt: skip


def _drained(agent: str, thread: str, drain: Drain) -> Row:
    call, failure = drain.invocation, drain.invocation.failure
    cause = "its thread still waits for the run to end"
    if failure is not None:
        cause = f"{failure.code.value}: {failure.message}; {cause}"
    return Row(
        agent, thread, call.id, DRAINS, call.status, call.leaf.value, call.generation, call.entered_ms,
        drain.wake_at_ms, call.attempts, call.probes, call.handle, cause,
    )  # fmt: skip


def _waiting(agent: str, thread: str, queued: Queued) -> Row:
    request = queued.request
    cause = "a cancel was ordered" if queued.cancelled else ""
    since_ms = request.requested_at_ms
    return Row(agent, thread, request.invocation_id, QUEUED, Status.NOT_STARTED, QUEUED, 0, since_ms, cause=cause)


def _ended(agent: str, thread: str, stone: Tombstone) -> Row:
    leaf = Leaf.COMPLETED if stone.status is Status.COMPLETED else Leaf.FAILED
    return Row(
        agent, thread, stone.invocation_id, ENDED, stone.status, leaf.value, stone.generation,
        wake_at_ms=stone.expires_at_ms, cause="" if stone.code is None else stone.code.value,
    )  # fmt: skip


def select(rows: Iterable[Row], *, statuses: Iterable[Status] = (), agent: str = "", thread: str = "") -> list[Row]:
    """Keep the rows that fit everything that is asked for; what is empty asks for nothing."""
    wanted = frozenset(statuses)
    return [
        row
        for row in rows
        if (not wanted or row.status in wanted) and agent in ("", row.agent) and thread in ("", row.thread_id)
    ]


def counts(rows: Iterable[Row]) -> dict[str, int]:
    """Calls by state, in the order of the lifecycle."""
    found = Counter(row.state for row in rows)
    return {state: found[state] for state in (QUEUED, *(leaf.value for leaf in Leaf)) if found[state]}


def figures(rows: Sequence[Row], now_ms: int) -> Iterator[str]:
    """A line on all rows, and one on each state that there is a call in."""
    statuses = Counter(row.status for row in rows)
    told = " · ".join(f"{status.name} {statuses[status]:,}" for status in Status if statuses[status])
    threads = len({(row.agent, row.thread_id) for row in rows})
    yield (
        f"{len(rows):,} call{'s' * (len(rows) != 1)} on {threads:,} thread{'s' * (threads != 1)}"
        + (f": {told}" if told else "")
    )
    for state, count in counts(rows).items():
        known = [row.since_ms for row in rows if row.state == state and row.since_ms and row.part != ENDED]
        oldest = f", since {moment(min(known))} ({span(now_ms - min(known))} ago)" if known else ""
        yield f"  {state:<26} {count:>7,}{oldest}"


def table(rows: Sequence[Row], now_ms: int, console: Console) -> RenderableType:
    """The rows as a table.

    Args:
        console: it is to fit on.
    """
    agents = len({row.agent for row in rows}) > 1
    shown = Table(box=SIMPLE_HEAD, pad_edge=False, expand=console.is_terminal)
    shown.add_column("call", overflow="fold", max_width=NAME_CHARS_MAX, min_width=8)
    if agents:
        shown.add_column("agent", overflow="fold", max_width=16)
    shown.add_column("thread", overflow="fold", max_width=NAME_CHARS_MAX, min_width=8)
    shown.add_column("state", overflow="fold", min_width=9)
    for name in ("for", "POSTs", "probes"):
        shown.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        state = Text(row.state, STYLES[row.status])
        if row.cause:
            state.append(f"\n{one_line(row.cause, CAUSE_CHARS_MAX)}", "dim")
        begun = row.part in (GOES_ON, DRAINS)
        shown.add_row(
            *(Text(cut(name)) for name in (row.invocation_id, *([row.agent] * agents), row.thread_id)),
            state,
            span(now_ms - row.since_ms) if row.since_ms and row.part != DRAINS else "",
            str(row.posts) if begun else "",
            str(row.probes) if begun else "",
        )
    return shown


def as_data(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows for machines; times that are not known are 0."""
    return [{**asdict(row), "status": row.status.name} for row in rows]
