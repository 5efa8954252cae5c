"""Compile type hints into functions: a record to plain tuples, and plain tuples to a record.

A thread is read and stored on every step, so nothing is looked up per call: for each dataclass one
function per direction is generated at import, as `dataclasses` itself does, from the hints `int`,
`str`, `bytes`, `bool`, enums, `tuple[X, ...]`, fixed tuples, `X | None`, dataclasses, and unions
of dataclasses. A dataclass becomes the tuple of its fields in order, an enum its value, a member of
a union `(class name, fields)`. A dataclass whose last field is `Kept` may come with more fields than it
has: they go there, unread but for being plain, and go back to where they were.

Both directions check every field: its exact type (`True` is not an `int` here, since equal values
must give equal bytes), whole numbers in `[0, 2**63)` (a Java long, never negative), lengths, and
the invariants of the record. So whatever one direction lets through, the other takes.

This module knows no bytes, no versions and no limit of a whole blob: `reattach.models.codec` does.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

from reattach.models.errors import CodecError, Corrupt, TooLarge
from reattach.models.record import Kept

TEXT_CHARS_MAX: Final = 1024 * 1024
"""Limit for all the strings of one record together, nested records not counted."""
BYTES_MAX: Final = 48 * 1024 * 1024
"""The same for its byte strings."""
ITEMS_MAX: Final = 100_000
"""Limit for the items of one tuple."""

Function = Callable[[Any], Any]
Check = Callable[[Any], str]
Part = tuple[str, Any]

_SCALARS: Final = (int, str, bytes, bool)


class Shapes:
    """One direction: makes the function for a hint, and remembers it.

    Args:
        decoding: from plain tuples to records; else from records to plain tuples.
        checks: by record class, what is wrong with a record ("" for nothing); called on every
            record after its fields were found right.
    """

    def __init__(self, decoding: bool, checks: Mapping[type, Check]) -> None:
        self._decoding = decoding
        self._checks = checks
        self._fault: type[CodecError] = Corrupt if decoding else CodecError
        self._made: dict[Any, Function] = {}

    def function(self, hint: Any) -> Function:
        """Return the function that checks and converts one value of this type.

        Raises:
            TypeError: the hint is none of those that this module knows.
        """
        if hint not in self._made:
            self._made[hint] = self._make(hint)
        return self._made[hint]

    def _make(self, hint: Any) -> Function:
        if hint in _SCALARS:
            return self._generate(_title(hint), [("value", hint)], ["a0 = v"], ["return a0"])
        if isinstance(hint, UnionType):
            return self._union(get_args(hint))
        if get_origin(hint) is tuple:
            items = get_args(hint)
            return self._sequence(items[0]) if items[-1] is Ellipsis else self._fixed(hint, items)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return self._enum(hint)
        if isinstance(hint, type) and is_dataclass(hint):
            hints = get_type_hints(hint)
            parts = [(field.name, hints[field.name]) for field in fields(hint)]
            keeps = bool(parts) and parts[-1][1] is Kept
            make = self._join if self._decoding else self._split
            return make(hint, parts[:-1] if keeps else parts, parts[-1][0] if keeps else "")
        raise TypeError(f"no stored form for {hint!r}")

    def _enum(self, enum: type[Enum]) -> Function:
        fault, title = self._fault, enum.__name__
        members = {member.value: member for member in enum}
        stored_as = type(next(iter(members)))

        def encode(value: Any) -> Any:
            if type(value) is not enum:
                raise fault(f"{title}: got {_title(type(value))}")
            # `.value` is a property, five times as slow.
            return value._value_

        def decode(value: Any) -> Any:
            # The type comes first: True would find the member 1.
            member = members.get(value) if type(value) is stored_as else None
            if member is None:
                raise fault(f"{title}: no such member: {_brief(value)}")
            return member

        return decode if self._decoding else encode

    def _sequence(self, hint: Any) -> Function:
        item, fault, title = self.function(hint), self._fault, f"tuple[{_title(hint)}, ...]"
        plain = hint in _SCALARS

        def convert(value: Any) -> Any:
            if type(value) is not tuple:
                raise fault(f"{title}: got {_title(type(value))}")
            if len(value) > ITEMS_MAX:
                raise TooLarge(f"{title}: {len(value)} items, the limit is {ITEMS_MAX}")
            if not plain:
                return tuple([item(each) for each in value])
            for each in value:
                item(each)
            return value

        return convert

    def _union(self, members: tuple[Any, ...]) -> Function:
        if NoneType in members:
            (hint,) = (member for member in members if member is not NoneType)
            inner = self.function(hint)
            return lambda value: None if value is None else inner(value)
        fault, title = self._fault, " | ".join(map(_title, members))[:80]
        by_type = {member: (member.__name__, self.function(member)) for member in members}
        by_name = dict(by_type.values())

        def encode(value: Any) -> Any:
            found = by_type.get(type(value))
            if found is None:
                raise fault(f"{title}: got {_title(type(value))}")
            return found[0], found[1](value)

        def decode(value: Any) -> Any:
            if type(value) is not tuple or len(value) != 2:
                raise fault(f"{title}: a pair of a name and fields expected, got {_brief(value)}")
            found = by_name.get(value[0])
            if found is None:
                raise fault(f"{title}: no such member: {_brief(value[0])}")
            return found(value[1])

        return decode if self._decoding else encode

    def _fixed(self, hint: Any, items: tuple[Any, ...]) -> Function:
        parts = [(f"[{index}]", item) for index, item in enumerate(items)]
        return self._generate(_title(hint), parts, _unpacking(parts), [f"return ({_converted(parts)},)"])

    def _split(self, cls: type, parts: list[Part], kept: str) -> Function:
        head = ["if type(v) is not cls: raise misshapen(v)"]
        head += [f"a{index} = v.{name}" for index, (name, _) in enumerate(parts)]
        comma = "," if parts else ""
        # The invariants may look into nested records, so those are checked first.
        tail = [f"r = ({_converted(parts)}{comma})"]
        tail += [f"if v.{kept}: r += keep(v.{kept})"] if kept else []
        tail += ["fault = check(v)", "if fault: raise broken(fault)"] if cls in self._checks else []
        return self._generate(cls.__name__, parts, head, [*tail, "return r"], cls)

    def _join(self, cls: type, parts: list[Part], kept: str) -> Function:
        tail = [f"r = cls({_converted(parts)}{', kept' if kept else ''})"]
        tail += ["fault = check(r)", "if fault: raise broken(fault)"] if cls in self._checks else []
        return self._generate(cls.__name__, parts, _unpacking(parts, keeps=bool(kept)), [*tail, "return r"], cls)

    def _generate(self, title: str, parts: list[Part], head: list[str], tail: list[str], cls: Any = None) -> Function:
        fault = self._fault

        def misshapen(value: Any) -> CodecError:
            return fault(f"{title} with {len(parts)} fields expected, got {_brief(value)}")

        def mistyped(*values: Any) -> CodecError:
            wrong = next(
                f"{title}.{name}: {_title(hint)} expected, got {_title(type(value))}"
                for (name, hint), value in zip(parts, values, strict=True)
                if hint in _SCALARS and type(value) is not hint
            )
            return fault(wrong)

        def out_of_range(*values: Any) -> CodecError:
            name = next(n for (n, h), v in zip(parts, values, strict=True) if h is int and v >> 63)
            return fault(f"{title}.{name}: not in the range from 0 to 2**63 - 1")

        def too_long(kind: type, limit: int) -> CodecError:
            return TooLarge(f"{title}: more than {limit} of {kind.__name__} in one record")

        def broken(invariant: str) -> CodecError:
            return fault(f"{title}: {invariant}")

        def keep(more: tuple[Any, ...]) -> tuple[Any, ...]:
            if not _plain(more):
                raise fault(f"{title}: a field beyond the {len(parts)} known ones is not plain")
            return more

        names: dict[str, Any] = {
            "cls": cls, "check": self._checks.get(cls), "misshapen": misshapen, "mistyped": mistyped,
            "out_of_range": out_of_range, "too_long": too_long, "broken": broken,
            "keep": keep,
        }  # fmt: skip
        names |= {f"f{index}": self.function(hint) for index, (_, hint) in enumerate(parts) if hint not in _SCALARS}
        source = "def convert(v):\n" + "".join(f"    {line}\n" for line in (*head, *_checked(parts), *tail))
        exec(compile(source, f"<shape of {title}>", "exec"), names)
        function: Function = names["convert"]
        return function


def _unpacking(parts: list[Part], *, keeps: bool = False) -> list[str]:
    """Take a plain tuple apart: a longer one was written by a release that knows more fields."""
    size = len(parts)
    head = [f"if type(v) is not tuple or len(v) {'<' if keeps else '!='} {size}: raise misshapen(v)"]
    if keeps:
        head += ["kept = ()", f"if len(v) > {size}: kept = keep(v[{size}:]); v = v[:{size}]"]
    return head + ([f"{_all(parts)} = v"] if parts else [])


def _plain(values: tuple[Any, ...]) -> bool:
    """Say whether these can be stored again: see `codec` for what occurs in a blob."""
    # Not by recursion: how deep it goes is the writer's choice.
    waiting: list[Any] = [values]
    while waiting:
        value = waiting.pop()
        if type(value) is tuple:
            waiting.extend(value)
        elif type(value) is int:
            if value >> 63:
                return False
        elif value is not None and type(value) not in (bool, str, bytes):
            return False
    return True


def _checked(parts: list[Part]) -> list[str]:
    """Check the scalars of one record, each kind at once."""
    lines = []
    by_type = {kind: [f"a{index}" for index, (_, hint) in enumerate(parts) if hint is kind] for kind in _SCALARS}
    typed = [f"type({name}) is {kind.__name__}" for kind, names in by_type.items() for name in names]
    if typed:
        lines.append(f"if not ({' and '.join(typed)}): raise mistyped({_all(parts)})")
    if by_type[int]:
        # One shift for all: a negative number, or a 64th bit, survives the `|`.
        lines.append(f"if ({' | '.join(by_type[int])}) >> 63: raise out_of_range({_all(parts)})")
    for kind, limit in ((str, TEXT_CHARS_MAX), (bytes, BYTES_MAX)):
        if by_type[kind]:
            total = " + ".join(f"len({name})" for name in by_type[kind])
            lines.append(f"if {total} > {limit}: raise too_long({kind.__name__}, {limit})")
    return lines


def _all(parts: list[Part]) -> str:
    return "".join(f"a{index}, " for index in range(len(parts)))


def _converted(parts: list[Part]) -> str:
    return ", ".join(_convert(index, hint) for index, (_, hint) in enumerate(parts))


def _convert(index: int, hint: Any) -> str:
    """Convert one field; the cases that are most of all need no call."""
    if hint in _SCALARS:
        return f"a{index}"
    if isinstance(hint, UnionType) and NoneType in get_args(hint):
        return f"None if a{index} is None else f{index}(a{index})"
    if get_origin(hint) is tuple and get_args(hint)[-1] is Ellipsis:
        return f"() if a{index} == () else f{index}(a{index})"
    return f"f{index}(a{index})"


def _title(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)


def _brief(value: Any) -> str:
    """Name a value in an error: its type and length, and only of a short string the words."""
    if type(value) is str:
        return ascii(value[:40])
    return f"{_title(type(value))} of {len(value)}" if type(value) in (tuple, bytes) else _title(type(value))
