"""A record differs from a frozen dataclass in nothing but the time that it takes to make one."""

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace
from typing import Any

import pytest

from reattach.models import answers, effects, events, invocation, journal, outcomes, request, thread
from reattach.models.record import record


@record
@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2


def test_it_takes_what_a_dataclass_takes() -> None:
    assert Point(1) == Point(1, 2) == Point(y=2, x=1)
    assert (Point(1).x, Point(1).y) == (1, 2)
    assert isinstance(Point(1), Point)
    assert type(Point(1)) is Point


@pytest.mark.parametrize("made", [lambda: Point(), lambda: Point(1, 2, 3), lambda: Point(1, z=3)])  # type: ignore[call-arg]
def test_other_arguments_are_refused(made: Any) -> None:
    with pytest.raises(TypeError):
        made()


def test_it_is_frozen_comparable_and_has_a_hash() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    assert hash(point) == hash(Point(1))
    assert point != Point(2)
    assert repr(point).endswith("Point(x=1, y=2)")
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_it_can_be_copied_replaced_and_sent_to_another_process() -> None:
    point = Point(1, 5)
    assert replace(point, x=3) == Point(3, 5)
    assert copy.copy(point) == copy.deepcopy(point) == point
    assert pickle.loads(pickle.dumps(point)) == point


def test_what_it_cannot_make_is_refused_at_import() -> None:
    @dataclass(frozen=True, slots=True)
    class Listing:
        items: list[int] = field(default_factory=list)

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Named:
        name: str

    @dataclass(frozen=True, slots=True)
    class Checked:
        number: int

        def __post_init__(self) -> None:
            raise ValueError

    for cls in (Listing, Named, Checked):
        with pytest.raises(TypeError, match=f"{cls.__name__}: only plain fields"):
            record(cls)


@pytest.mark.parametrize(
    "cls",
    [
        each
        for module in (answers, effects, events, invocation, journal, outcomes, request, thread)
        for each in vars(module).values()
        if isinstance(each, type) and is_dataclass(each) and each.__module__ == module.__name__
    ],
)
def test_every_field_of_every_record_is_kept(cls: type[Any]) -> None:
    """The constructor is generated: each field gets its own argument."""
    names = [each.name for each in fields(cls)]
    made = cls(*names)
    assert [getattr(made, name) for name in names] == names
    assert cls(**{name: name for name in names}) == made
