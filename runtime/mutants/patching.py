"""Ways to break the shipped code for a while, and to leave it exactly as it was.

A fault is put in by name, into the very objects that run: the compiled table, the functions of the
core, a table of names. What is replaced is put back by identity, also after an exception.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from reattach.fsm.draft import Draft
from reattach.fsm.guards import GUARDS
from reattach.fsm.notes import NOTES
from reattach.fsm.table import TABLE, Line
from reattach.models.lifecycle import Leaf

CORE = "reattach.fsm."
Patch = AbstractContextManager[None]
Note = Callable[[Draft], None]


@contextmanager
def attribute(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Give a module or a class another attribute."""
    before = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def item(table: Any, key: Any, value: Any) -> Iterator[None]:
    """Give a dictionary another value."""
    before = table[key]
    table[key] = value
    try:
        yield
    finally:
        table[key] = before


@contextmanager
def swap(original: Callable[..., Any], replacement: Callable[..., Any]) -> Iterator[None]:
    """Replace a function of the core wherever it is held: in modules, in tables, in compiled lines.

    Raises:
        LookupError: nothing holds it, so nothing would be broken.
    """
    with ExitStack() as stack:
        places = 0
        for patch in _places(original, replacement):
            stack.enter_context(patch)
            places += 1
        if not places:
            raise LookupError(f"{original.__name__} is not held by the core")
        yield


def _places(original: Callable[..., Any], replacement: Callable[..., Any]) -> Iterator[Patch]:
    for name, module in sorted(sys.modules.items()):
        if not name.startswith(CORE):
            continue
        for key, value in list(vars(module).items()):
            if value is original:
                yield attribute(module, key, replacement)
    for table in (GUARDS, NOTES, sys.modules[CORE + "orders"].ORDERS):
        for key, value in list(table.items()):
            if value is original:
                yield item(table, key, replacement)
    for rows in TABLE.values():
        for event, lines in list(rows.items()):
            changed = tuple(_swapped(line, original, replacement) for line in lines)
            if any(new is not old for new, old in zip(changed, lines, strict=True)):
                yield item(rows, event, changed)


def _swapped(line: Line, original: Callable[..., Any], replacement: Callable[..., Any]) -> Line:
    if not any(held is original for held in (*line.acts, *(check for check, _ in line.checks))):
        return line
    checks = tuple((replacement if check is original else check, wanted) for check, wanted in line.checks)
    return replace(line, checks=checks, acts=tuple(replacement if act is original else act for act in line.acts))


def line(target: Leaf | None, *notes: str | Note, cond: Sequence[str] = (), unless: Sequence[str] = ()) -> Line:
    """Make a line as the chart would; a note may be a function of the fault's own."""
    guards = tuple((name, True) for name in cond) + tuple((name, False) for name in unless)
    checks = tuple((GUARDS[name], wanted) for name, wanted in guards)
    acts = tuple(NOTES[note] if isinstance(note, str) else note for note in notes)
    return Line(guards, target, tuple(note if isinstance(note, str) else note.__name__ for note in notes), checks, acts)


def reline(leaves: Sequence[Leaf], event: str, *lines: Line) -> Patch:
    """Replace every line of an event in some leaves."""
    return together(*(item(TABLE[leaf], event, lines) for leaf in leaves))


def before_lines(leaves: Sequence[Leaf], event: str, *lines: Line) -> Patch:
    """Try some lines before those that the chart has."""
    return together(*(item(TABLE[leaf], event, (*lines, *TABLE[leaf][event])) for leaf in leaves))


@contextmanager
def together(*patches: Patch) -> Iterator[None]:
    """Put in several faults that make one mutant."""
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield
