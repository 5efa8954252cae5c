"""What was once stored is still read, and means what it meant."""

import json
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import msgpack  # type: ignore[import-untyped]
import pytest

from reattach.models.codec import CODECS, SCHEMA_VERSION
from reattach.models.record import Kept
from tests.models.golden.samples import HINTS, described
from tests.models.golden.write import write

ROOT = Path(__file__).parent / "golden"
FOLDER = ROOT / f"v{SCHEMA_VERSION}"
BEFORE = ROOT / f"v{SCHEMA_VERSION - 1}"


def lines(kind: str, folder: Path = FOLDER) -> Iterator[tuple[str, bytes, Any]]:
    for line in (folder / f"{kind}.jsonl").read_text().splitlines():
        case = json.loads(line)
        yield case["name"], bytes.fromhex(case["hex"]), case["value"]


@pytest.mark.parametrize("kind", CODECS)
def test_stored_values_are_read_and_stored_alike(kind: str) -> None:
    for name, data, meant in lines(kind):
        value = CODECS[kind].decode(data)
        assert described(value) == meant, name
        assert CODECS[kind].encode(value) == data, name


@pytest.mark.parametrize("kind", CODECS)
def test_values_of_the_schema_before_are_read_and_stored_in_this_one(kind: str) -> None:
    for name, data, meant in lines(kind, BEFORE):
        value = CODECS[kind].decode(data)
        assert described(value) == meant, name
        stored = CODECS[kind].encode(value)
        assert msgpack.unpackb(stored)[0] == SCHEMA_VERSION
        assert CODECS[kind].decode(stored) == value, name


def parts(hint: Any, seen: set[Any]) -> set[str]:
    """Names of every record and enum member that a hint can hold."""
    if hint in seen or hint in (int, str, bytes, bool, NoneType, Ellipsis, Kept):
        return set()
    seen.add(hint)
    if isinstance(hint, UnionType) or get_origin(hint) is tuple:
        return set().union(*(parts(member, seen) for member in get_args(hint)))
    if issubclass(hint, Enum):
        return {f"{hint.__name__}.{member.name}" for member in hint}
    return {hint.__name__}.union(*(parts(inner, seen) for inner in get_type_hints(hint).values()))


def words(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield value.get("class", "")
        for inner in value.values():
            yield from words(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from words(inner)
    elif isinstance(value, str):
        yield value


def test_every_record_and_enum_member_has_a_golden_value() -> None:
    wanted = set().union(*(parts(hint, set()) for hint in HINTS.values()))
    held = {word for kind in CODECS for _, _, meant in lines(kind) for word in words(meant)}
    assert wanted - held == set()


def test_every_kind_has_golden_values_under_its_own_name() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(CODECS) == set(HINTS)


def test_golden_files_are_not_written_again(tmp_path: Path) -> None:
    folder = write(tmp_path)
    assert {path.name for path in folder.iterdir()} == {path.name for path in FOLDER.iterdir()}
    with pytest.raises(FileExistsError):
        write(tmp_path)
    with pytest.raises(FileExistsError):
        write(ROOT)
