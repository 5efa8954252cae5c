"""The windows of one call in which a crash may fall, and what comes of each: a picture and a table.

What is counted is runs at a remote that takes a repeated POST for a new one. The others are told as their documentation
and measurements have it; docs/comparison.md names the sources.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from reattach.runtime.pictures.svg import BOLD, LINE, Drawing, fitted


class Verdict(Enum):
    """How a window ends. The value is the kind of its box in the picture."""

    ONCE = "good"
    TWICE = "bad"
    DEPENDS = "doubt"


@dataclass(frozen=True, slots=True)
class Ending:
    """What one system makes of one window.

    Args:
        short: the count, in a word or two.
        words: how it comes about.
    """

    verdict: Verdict
    short: str
    words: str


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a call's way.

    Args:
        name: where the call stands when the process dies.
        known: what there is of it, and where.
        endings: one for each of `SYSTEMS`.
        test: the one that shows it for this library, as pytest names it.
    """

    name: str
    known: str
    endings: tuple[Ending, ...]
    test: str


SYSTEMS: Final = (
    ("One callable,", "called again"),
    ("Flink Agents,", "a durable call with a reconciler"),
    ("Restate, DBOS, Temporal,", "the POST as a step"),
    ("reattach", ""),
)
_ONE, _TWO, _ASK = Verdict.ONCE, Verdict.TWICE, Verdict.DEPENDS
_RECORD: Final = "as before: the whole call is one record"
WINDOWS: Final = (
    Window(
        "before the POST",
        "nothing has left",
        (
            Ending(_ONE, "one run", "called again, which is the first POST"),
            Ending(_ONE, "one run", "the reconciler finds nothing, and has to send it itself"),
            Ending(_ONE, "one run", "the step runs, which is the first POST"),
            Ending(_ONE, "one run", "asked about after the settle time, not there: sent"),
        ),
        "tests/e2e/test_kill.py::test_killed_at_a_random_moment_and_restored_from_the_latest_checkpoint",
    ),
    Window(
        "the POST on its way",
        "it has left, and nobody has it",
        (
            Ending(_TWO, "two runs", "called again at once; the first POST lands too"),
            Ending(_TWO, "two runs", "the reconciler asks too early, finds nothing and sends"),
            Ending(_TWO, "two runs", "no record of the step: it runs again, and both land"),
            Ending(
                _ONE, "one run", "an absence counts only after the settle time: by then it has landed, or never will"
            ),
        ),
        "tests/e2e/test_scenarios.py::test_s3_an_early_absence_is_not_believed",
    ),
    Window(
        "accepted, the answer lost",
        "the remote has it, the job does not know",
        (
            Ending(_TWO, "two runs", "called again"),
            Ending(_ASK, "one run, or two", "the reconciler joins it, where the record of the call was kept"),
            Ending(_TWO, "two runs", "no record of the step: it runs again"),
            Ending(_ONE, "one run", "asked about and joined; parked where the remote cannot be asked"),
        ),
        "tests/e2e/test_scenarios.py::test_s2_a_crash_between_the_post_and_its_answer_is_asked_about",
    ),
    Window(
        "running",
        "both know of it, the checkpoint perhaps not",
        (
            Ending(_TWO, "two runs", "called again, beside the run that goes on"),
            Ending(_ASK, "one run, or two", _RECORD),
            Ending(_ONE, "one run", "the POST is on record: only the waiting is done again"),
            Ending(_ONE, "one run", "asked about and joined: no POST"),
        ),
        "tests/e2e/test_scenarios.py::test_s1_a_restart_while_runs_are_going_on_sends_nothing",
    ),
    Window(
        "done, not yet emitted",
        "the remote has the result",
        (
            Ending(_TWO, "two runs", "called again: a second turn in the conversation"),
            Ending(_ASK, "one run, or two", _RECORD),
            Ending(_ONE, "one run", "the result is read again, or is on record"),
            Ending(_ONE, "one run", "the result is read from the remote: no POST"),
        ),
        "tests/e2e/test_scenarios.py::test_s11_a_result_that_was_read_and_not_stored_is_read_again",
    ),
    Window(
        "emitted, not committed",
        "the job has an outcome that nobody may see yet",
        (
            Ending(_TWO, "two runs", "the outcome goes back with the state: called again"),
            Ending(_ONE, "one run", "the record outlives the checkpoint, and is replayed"),
            Ending(_ASK, "emitted twice", "on record beside Flink: who emits it has to drop the second one"),
            Ending(_ONE, "emitted once", "state and outcome go back together: asked about, emitted again"),
        ),
        "tests/e2e/test_kill.py::test_an_older_checkpoint_emits_again_what_it_emitted_before",
    ),
)

_FOOT: Final = (
    "Counted at a remote that takes a repeated POST for a new one. Where it honours an idempotency key for long enough,"
    " every row has one run."
)

WIDTH: Final = 1220
LEFT: Final = 20
NAMES: Final = 132
GAP: Final = 6
COLUMN: Final = (WIDTH - 2 * LEFT - NAMES) / len(WINDOWS)
INSIDE: Final = COLUMN - GAP - 18
SMALL: Final = 11.5
TIMELINE: Final = 74


def _height(system: int) -> float:
    """Of a row: as high as its longest cell."""
    cells = (len(fitted(window.endings[system].words, INSIDE, SMALL)) for window in WINDOWS)
    names = sum(len(fitted(part, NAMES - 8, 13, BOLD)) for part in SYSTEMS[system])
    return max(30 + max(cells) * SMALL * LINE, 16 + names * 13 * LINE)


def windows() -> str:
    """The picture docs/windows.svg."""
    head = TIMELINE + 24 + max(_lines_of(window) for window in WINDOWS)
    rows = [_height(system) for system in range(len(SYSTEMS))]
    height = round(head + sum(rows) + GAP * len(rows) + 40)
    d = Drawing(
        WIDTH,
        height,
        "Where a crash may fall, and what comes of it",
        "Six windows on the way of one call; for each, how often its run is started by four ways of calling.",
    )
    d.text(LEFT, 38, "Where a crash may fall, and what comes of it", "title", size=18)
    _timeline(d, height - 34)
    y = head
    for system, (names, row) in enumerate(zip(SYSTEMS, rows, strict=True)):
        foot = d.text(LEFT, y + 20, fitted(names[0], NAMES - 8, 13, BOLD), "name")
        d.text(LEFT, foot, fitted(names[1], NAMES - 8, SMALL) if names[1] else [], "small", size=SMALL)
        for index, window in enumerate(WINDOWS):
            ending, x = window.endings[system], _x(index)
            d.box(x, y, COLUMN - GAP, row, ending.verdict.value, 6)
            d.text(x + 9, y + 19, ending.short, f"name {ending.verdict.value}")
            d.text(x + 9, y + 36, fitted(ending.words, INSIDE, SMALL), "small", size=SMALL)
        y += row + GAP
    d.text(LEFT, height - 14, _FOOT, "small", size=SMALL)
    return d.document()


def _x(index: int) -> float:
    return LEFT + NAMES + index * COLUMN


def _lines_of(window: Window) -> float:
    words = len(fitted(window.name, INSIDE, 13, BOLD)) * 13 + len(fitted(window.known, INSIDE, SMALL)) * SMALL
    return words * LINE


def _timeline(d: Drawing, foot: float) -> None:
    """An arrow through all windows, with their names under it."""
    d.arrow(f"M{LEFT + NAMES:g} {TIMELINE:g}H{WIDTH - LEFT:g}")
    d.text(LEFT, TIMELINE + 4, "the call goes on", "small", size=SMALL)
    for index, window in enumerate(WINDOWS):
        x = _x(index)
        d.rule(x - GAP / 2, TIMELINE - 7, x - GAP / 2, foot)
        y = d.text(x + 9, TIMELINE + 22, fitted(window.name, INSIDE, 13, BOLD), "name")
        d.text(x + 9, y, fitted(window.known, INSIDE, SMALL), "small", size=SMALL)


def table() -> str:
    """What happens here, window by window, as Markdown."""
    lines = ["| the process dies | what comes of it | the test |", "|---|---|---|"]
    for window in WINDOWS:
        ending = window.endings[-1]
        lines.append(f"| {window.name}: {window.known} | {ending.short}: {ending.words} | `{window.test}` |")
    return "\n".join(lines) + "\n"
