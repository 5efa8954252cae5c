"""A frozen record that is made as fast as an open one.

A frozen dataclass sets each field through `object.__setattr__`, which makes the records of one step
cost more than the step. So an open twin with the same slots is filled, and then becomes the record.
"""

from dataclasses import MISSING, fields
from typing import Any, Final, NewType, TypeVar

T = TypeVar("T")

Kept = NewType("Kept", tuple[Any, ...])
"""The last field of a stored record: fields that a later release has added to it, given back as they came."""
NOTHING_KEPT: Final = Kept(())


def record(cls: type[T]) -> type[T]:
    """Give a frozen, slotted dataclass a faster constructor; nothing else about it changes.

    Raises:
        TypeError: a field is made in a way that this constructor does not know (keyword only, a
            default factory), or the class checks itself in `__post_init__`.
    """
    each: Any = fields(cls)  # type: ignore[arg-type]
    names = [field.name for field in each]
    if hasattr(cls, "__post_init__") or any(f.kw_only or not f.init or f.default_factory is not MISSING for f in each):
        raise TypeError(f"{cls.__name__}: only plain fields make a record")
    # Its own constructor takes any arguments as long as there is no `__init__` beside `__new__`.
    twin = type(f"_Open{cls.__name__}", (), {"__slots__": names})
    known = {f"default_{field.name}": field.default for field in each if field.default is not MISSING}
    parameters = [f"{n}=default_{n}" if f"default_{n}" in known else n for n in names]
    lines = [f"def __new__({', '.join(('_', *parameters))}):", " new = twin()"]
    lines += [f" new.{name} = {name}" for name in names]
    lines += [" new.__class__ = cls", " return new"]
    made: dict[str, Any] = {"twin": twin, "cls": cls, **known}
    exec(compile("\n".join(lines), f"<constructor of {cls.__name__}>", "exec"), made)
    members: Any = cls
    members.__new__ = made["__new__"]
    members.__reduce__ = lambda self: (cls, tuple(getattr(self, name) for name in names))
    del members.__init__
    return cls
