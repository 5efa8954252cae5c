"""Lanes on a terminal: a row for each call, with its states as a bar over time.

The bar says the same without colours: a letter for each status, `P` where a POST was ordered, `!` where a
new incarnation began, `.` for what a later one has undone.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from reattach.models.lifecycle import Status
from reattach.runtime.run.inbox import one_line
from reattach.runtime.view.lanes import POSTS, Lane, Step, Timeline
from reattach.runtime.view.saying import moment, span

LETTERS: Final = {
    Status.NOT_STARTED: "n",
    Status.SUBMITTED: "s",
    Status.RUNNING: "r",
    Status.COMPLETED: "C",
    Status.FAILED: "F",
}
STYLES: Final = {
    Status.NOT_STARTED: "bright_black",
    Status.SUBMITTED: "yellow",
    Status.RUNNING: "blue",
    Status.COMPLETED: "green",
    Status.FAILED: "red",
}
POST, LIFE, UNDONE = "P", "!", "."
BAR_CELLS_MIN, BAR_CELLS_MAX = 24, 120
NAME_CHARS_MAX: Final = 40
CAUSE_CHARS_MAX: Final = 100
PLAIN_COLUMNS: Final = 160


def figures(timeline: Timeline) -> str:
    """One line on all lanes."""
    counts = {status: sum(lane.status is status for lane in timeline.lanes) for status in Status}
    told = " · ".join(f"{status.name} {count:,}" for status, count in counts.items() if count)
    calls, lives = len(timeline.lanes), len(timeline.lives)
    whole = span(timeline.until_ms - timeline.from_ms)
    return (
        f"{calls:,} call{'s' * (calls != 1)} in {lives:,} {'life' if lives == 1 else 'lives'} of the host, "
        f"{moment(timeline.from_ms)} to {moment(timeline.until_ms)} ({whole}): {told}"
    )


def legend() -> Text:
    """What the letters of a bar mean."""
    text = Text()
    for status in Status:
        text.append(LETTERS[status], STYLES[status]).append(f" {status.name}   ")
    text.append(POST, "bold").append(" a POST   ").append(LIFE, "bold").append(" a new life of the host   ")
    return text.append(UNDONE, "dim").append(" undone")


def table(lanes: Sequence[Lane], of: Timeline, console: Console) -> RenderableType:
    """The lanes as a table.

    Args:
        of: whose times the bars span.
        console: it is to fit on.
    """
    agents = len({lane.agent for lane in of.lanes}) > 1
    turns = Counter((lane.agent, lane.thread_id) for lane in of.lanes)
    threads = any(count > 1 for count in turns.values())
    shown = Table(box=SIMPLE_HEAD, pad_edge=False, expand=console.is_terminal)
    shown.add_column("call", overflow="fold", max_width=NAME_CHARS_MAX, min_width=8)
    if agents:
        shown.add_column("agent", overflow="fold", max_width=16)
    if threads:
        shown.add_column("thread", overflow="fold", max_width=16)
    shown.add_column("state", overflow="fold", min_width=9)
    for name in ("for", "POSTs", "probes", "lives"):
        shown.add_column(name, justify="right", no_wrap=True)
    cells = max(BAR_CELLS_MIN, min(BAR_CELLS_MAX, console.width - 84 - 17 * agents - 17 * threads))
    shown.add_column("time", no_wrap=True, width=cells)
    for lane in lanes:
        # A thread that is one call's own has a name that says nothing.
        thread = lane.thread_id if turns[lane.agent, lane.thread_id] > 1 else ""
        names = [lane.invocation_id, *([lane.agent] * agents), *([thread] * threads)]
        state = Text(lane.leaf.value, STYLES[lane.status])
        if lane.cause:
            state.append(f"\n{one_line(lane.cause, CAUSE_CHARS_MAX)}", "dim")
        shown.add_row(
            *(Text(one_line(name, 2 * NAME_CHARS_MAX)) for name in names),
            state,
            "" if lane.leaf.terminal else span(of.until_ms - lane.since_ms),
            str(lane.posts), str(lane.probes), str(lane.lives),
            bar(lane, of, cells),
        )  # fmt: skip
    return shown


def bar(lane: Lane, of: Timeline, cells: int) -> Text:
    """A lane as so many cells; what was undone is dim, what goes on runs to the end."""
    shown: list[tuple[str, str]] = [(" ", "")] * cells
    whole_ms = max(1, of.until_ms - of.from_ms)

    def cell(at_ms: int) -> int:
        return min(cells - 1, max(0, (at_ms - of.from_ms) * cells // whole_ms))

    for step, until_ms in spans(lane, of.until_ms):
        letter, style = LETTERS[step.after.status], STYLES[step.after.status]
        letter, style = (UNDONE, f"{style} dim") if step.undone else (letter, style)
        last = cell(step.at_ms) if step.after.terminal else cell(until_ms)
        for at in range(cell(step.at_ms), last + 1):
            shown[at] = letter, style
    for step in lane.steps:
        at, style = cell(step.at_ms), "bold"
        if step.begins_life and step.number > 1:
            shown[at] = LIFE, style
        if not POSTS.isdisjoint(step.effects):
            shown[at] = POST, style
    if lane.leaf.terminal:
        # How it ended is what is looked for first.
        shown[cell(lane.steps[-1].at_ms)] = LETTERS[lane.status], STYLES[lane.status]
    return Text.assemble(*shown)


def spans(lane: Lane, until_ms: int) -> Iterator[tuple[Step, int]]:
    """Each step with the time until which it left the call where it is."""
    for step, then in zip(lane.steps, (*lane.steps[1:], None), strict=True):
        yield step, max(step.at_ms, until_ms if then is None else then.at_ms)


def as_data(lanes: Sequence[Lane], of: Timeline) -> dict[str, Any]:
    """The lanes for machines."""
    return {
        "from_ms": of.from_ms,
        "until_ms": of.until_ms,
        "lives": [{"incarnation": name, "opened_ms": opened_ms} for name, opened_ms in of.lives],
        "calls": [
            {
                "agent": lane.agent,
                "thread_id": lane.thread_id,
                "invocation_id": lane.invocation_id,
                "generation": lane.generation,
                "status": lane.status.name,
                "leaf": lane.leaf.value,
                "since_ms": lane.since_ms,
                "cause": lane.cause,
                "posts": lane.posts,
                "probes": lane.probes,
                "lives": lane.lives,
                "steps": [step_data(step) for step in lane.steps],
            }
            for lane in lanes
        ],
    }


def step_data(step: Step) -> dict[str, Any]:
    """One step for machines."""
    return {
        "entry": step.number,
        "times": step.times,
        "at_ms": step.at_ms,
        "incarnation": step.incarnation,
        "generation": step.generation,
        "before": None if step.before is None else step.before.value,
        "event": step.event,
        "after": step.after.value,
        "effects": list(step.effects),
        "says": step.says,
        "note": step.note,
        "undone": step.undone,
        "gap": step.gap,
    }
