"""The statechart, compiled: for each leaf and event the lines to try, first match wins.

Compilation walks the declared machine once, at import. A leaf's own lines come first, then those
of the compounds around it, innermost first: the order in which the chart itself would look.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reattach.fsm.draft import Draft
from reattach.fsm.guards import GUARDS
from reattach.fsm.lifecycle import Lifecycle
from reattach.fsm.notes import NOTES
from reattach.models.lifecycle import Leaf
from reattach.models.record import record


@record
@dataclass(frozen=True, slots=True)
class Line:
    """One transition.

    Args:
        guards: names of conditions, with the value each must have.
        target: the leaf to enter; None for a note without a move.
        notes: names of actions.
        checks, acts: the same, as functions.
    """

    guards: tuple[tuple[str, bool], ...]
    target: Leaf | None
    notes: tuple[str, ...]
    checks: tuple[tuple[Callable[[Draft], bool], bool], ...]
    acts: tuple[Callable[[Draft], None], ...]

    def matches(self, draft: Draft) -> bool:
        for check, wanted in self.checks:  # noqa: SIM110 - a generator would double the cost of a step
            if check(draft) is not wanted:
                return False
        return True


Table = Mapping[Leaf, Mapping[str, tuple[Line, ...]]]

# Not an event from outside: `step` tries it whenever a line has been followed.
SETTLING: Final = "ambiguity_found"


def _line(transition: Any) -> Line:
    guards = tuple((spec.func, bool(spec.expected_value)) for spec in transition.cond)
    notes = tuple(spec.func for spec in transition.on if spec.func in NOTES)
    return Line(
        guards=guards,
        target=None if transition.internal else Leaf[transition.target.id.upper()],
        notes=notes,
        checks=tuple((GUARDS[name], wanted) for name, wanted in guards),
        acts=tuple(NOTES[name] for name in notes),
    )


def _walk(states: Any, around: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    for state in states:
        if state.states:
            yield from _walk(state.states, (state, *around))
        else:
            yield state, around


def compile_table(chart: type[Lifecycle] = Lifecycle) -> Table:
    """Flatten the declared chart.

    Raises:
        KeyError: the chart names a guard that does not exist.
    """
    table: dict[Leaf, dict[str, tuple[Line, ...]]] = {}
    for state, around in _walk(chart.states):
        rows: dict[str, list[Line]] = {}
        for owner in (state, *around):
            for transition in owner.transitions:
                if not transition.initial:
                    for event in transition.event.split():
                        lines = rows.setdefault(event, [])
                        # A compound's line is never reached behind a leaf's own that always matches.
                        if not lines or lines[-1].guards:
                            lines.append(_line(transition))
        table[Leaf[state.id.upper()]] = {event: tuple(lines) for event, lines in rows.items()}
    return table


TABLE: Final[Table] = compile_table()
EVENT_NAMES: Final = tuple(sorted({event for rows in TABLE.values() for event in rows} - {SETTLING}))
