"""One deterministic value of every form that can be stored, made from the records' own type hints.

Used to write the golden files of a *new* schema (`python -m tests.models.golden.write`), and to see
that the committed ones still cover every record, union member and enum member. Never used to decide
whether a committed file is right: that is what the file itself says.
"""

from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from reattach.models.effects import Effect
from reattach.models.events import ThreadEvent
from reattach.models.invocation import Invocation
from reattach.models.journal import JournalEntry
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import Failure, FailureCode, Notice, Outcome
from reattach.models.record import NOTHING_KEPT, Kept
from reattach.models.request import Request
from reattach.models.thread import Drain, ThreadState

HINTS: dict[str, Any] = {
    "thread": ThreadState,
    "invocation": Invocation,
    "request": Request,
    "event": ThreadEvent,
    "effect": Effect,
    "outcome": Outcome,
    "notice": Notice,
    "entry": JournalEntry,
}

_TEXTS = ("", "call-1", "grüße \u2192 \U0001f600", "x" * 40)
_NUMBERS = (1, 0, 127, 128, 65_536, 1_700_000_000_000, 2**53)
_BYTES = (b"{}", b'{"text":"\xc3\xbc"}', b"", b"\x00" * 16)


def samples(kind: str) -> list[tuple[str, Any]]:
    """Named values of one kind, all different."""
    hint = HINTS[kind]
    values = list(_of(hint))
    if hint is ThreadState:
        values = [ThreadState(), *_threads()]
    return [(f"{index:03d} {type(value).__name__}", value) for index, value in enumerate(values)]


def _of(hint: Any) -> Iterator[Any]:
    """Values of a hint: enough of them that every part of it occurs in every form."""
    if hint is int:
        yield from _NUMBERS
    elif hint is str:
        yield from _TEXTS
    elif hint is bytes:
        yield from _BYTES
    elif hint is bool:
        yield from (False, True)
    elif hint is Kept:
        yield from (NOTHING_KEPT, Kept((None, 7, "later", (True, b"\x01", ()))))
    elif hint is Invocation:
        yield from _invocations()
    elif isinstance(hint, UnionType):
        for member in get_args(hint):
            if member is NoneType:
                yield None
            else:
                yield from _of(member)
    elif get_origin(hint) is tuple:
        yield from _tuples(get_args(hint))
    elif issubclass(hint, Enum):
        yield from hint
    else:
        yield from _records(hint)


def _tuples(items: tuple[Any, ...]) -> Iterator[Any]:
    if items[-1] is Ellipsis:
        each = list(_of(items[0]))
        yield from ((), tuple(each[:1]), tuple(each[:3]))
    else:
        yield from (tuple(1000 * (index + 1) for index in range(len(items))), (0,) * len(items))


def _records(cls: type[Any]) -> Iterator[Any]:
    """As many records as the field with the most values needs; the others go round."""
    assert is_dataclass(cls)
    hints = get_type_hints(cls)
    columns = {field.name: list(_of(hints[field.name])) for field in fields(cls)}
    if all(field.default is not MISSING for field in fields(cls)) and columns:
        yield cls()
    for row in range(max(map(len, columns.values()), default=1)):
        yield cls(**{name: column[(row + at) % len(column)] for at, (name, column) in enumerate(columns.items())})


def _invocations() -> Iterator[Invocation]:
    """One per leaf, each keeping the invariants."""
    hints = get_type_hints(Invocation)
    columns = {name: list(_of(hint)) for name, hint in hints.items() if hint is not Leaf}
    for row, leaf in enumerate(Leaf):
        drawn = {name: column[(row + at) % len(column)] for at, (name, column) in enumerate(columns.items())}
        drawn |= {"leaf": leaf, "generation": row + 1, "slot": 1 + row % 2}
        drawn["wake_at_ms"] = 0 if leaf.terminal else 1_700_000_000_000 + row
        drawn["failure"] = Failure(FailureCode.LOST, "gone") if leaf is Leaf.FAILED else None
        drawn["response"] = columns["response"][row % len(columns["response"])]
        if leaf.value.startswith("running.responding"):
            drawn["response"] = columns["response"][0]
        if leaf.status in (Status.RUNNING, Status.COMPLETED):
            drawn["tenure"] = replace(drawn["tenure"], permit=False)
        yield Invocation(**drawn)


def _threads() -> Iterator[ThreadState]:
    calls = list(_invocations())
    columns = {
        name: list(_of(hint)) for name, hint in get_type_hints(ThreadState).items() if name not in ("active", "drain")
    }
    for row, call in enumerate(calls):
        drawn = {name: column[(row + at) % len(column)] for at, (name, column) in enumerate(columns.items())}
        if call.leaf is Leaf.FAILED:
            yield ThreadState(drain=Drain(call, 5, 1_700_000_000_000), **drawn)
        else:
            yield ThreadState(active=None if call.leaf.terminal else call, **drawn)


def described(value: Any) -> Any:
    """The value as JSON that a person can read: records by class and field, bytes as hex."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: described(getattr(value, field.name)) for field in fields(value)}
        if named.get("kept") == []:
            # As what was written before there was such a field.
            del named["kept"]
        return {"class": type(value).__name__, **named}
    if isinstance(value, tuple):
        return [described(each) for each in value]
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    return value
