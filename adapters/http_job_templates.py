"""Templates of the `http_job` protocol: URLs and bodies with placeholders, checked at load, filled per call.

A placeholder is `{name}`. In a URL its value is percent-encoded, so that no id can leave its place; in a
body a string that is nothing but `{message}` or `{metadata}` becomes that JSON value, and the other
placeholders may stand anywhere within a string.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reattach.adapters.endpoint import escape

URL_CHARS_MAX: Final = 2048
IDS: Final = ("key", "marker", "thread")
VALUES: Final = ("message", "metadata")
_PLACE: Final = re.compile(r"\{([A-Za-z_]+)\}")


@dataclass(frozen=True, slots=True)
class UrlTemplate:
    """What follows the agent's base URL.

    Args:
        names: the placeholders that it holds.
    """

    text: str
    names: frozenset[str]

    @classmethod
    def parse(cls, text: Any, allowed: tuple[str, ...]) -> "UrlTemplate":
        """Check a template.

        Raises:
            ValueError: says what to write.
        """
        if not isinstance(text, str) or not text.startswith("/") or len(text) > URL_CHARS_MAX:
            raise ValueError("must be a path below the agent's url that begins with '/', such as '/jobs/{marker}'")
        if re.search(r"[^!-~]|[#\\\"<>^`|]", text):
            raise ValueError("must be printable ASCII, percent-encoded where it has to be, and without '#'")
        names = frozenset(_PLACE.findall(text))
        _known(names, allowed)
        bare = _PLACE.sub("x", text)
        if "{" in bare or "}" in bare:
            raise ValueError("has a brace that belongs to no placeholder")
        parts = bare.partition("?")[0].split("/")[1:]
        if "" in parts[:-1] or {".", ".."} & set(parts):
            raise ValueError("must have no empty part and no '.' or '..' in its path")
        return cls(text, names)

    def fill(self, values: Mapping[str, str]) -> str:
        """Put the values in, each percent-encoded.

        Raises:
            ValueError: a value is empty or not Unicode text.
        """
        return _PLACE.sub(lambda found: escape(values[found[1]]), self.text)


@dataclass(frozen=True, slots=True)
class _Hole:
    """A place of a body that is filled per call.

    Args:
        parts: literal text and names of placeholders by turns, beginning with text.
    """

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BodyTemplate:
    """A JSON body, encoded but for its holes."""

    pieces: tuple[bytes | _Hole, ...]
    names: frozenset[str]

    @classmethod
    def parse(cls, value: Any) -> "BodyTemplate":
        """Check a template that was read from TOML.

        Raises:
            ValueError: says what to write.
        """
        if not isinstance(value, dict):
            raise ValueError("must be a table")
        pieces: list[bytes | _Hole] = []
        names: set[str] = set()
        for piece in _pieces(value, ""):
            if isinstance(piece, _Hole):
                names.update(piece.parts[1::2])
                pieces.append(piece)
            elif pieces and isinstance(pieces[-1], bytes):
                pieces[-1] += piece
            else:
                pieces.append(piece)
        if "message" not in names:
            raise ValueError('must hold the message: write a member such as input = "{message}"')
        return cls(tuple(pieces), frozenset(names))

    def fill(self, texts: Mapping[str, str], values: Mapping[str, bytes]) -> bytes:
        """Encode the body of one call.

        Args:
            texts: what the placeholders within strings stand for.
            values: JSON bytes of `{message}` and `{metadata}`.
        """
        return b"".join(piece if isinstance(piece, bytes) else _filled(piece, texts, values) for piece in self.pieces)


def _filled(hole: _Hole, texts: Mapping[str, str], values: Mapping[str, bytes]) -> bytes:
    if hole.parts[1] in values:
        return values[hole.parts[1]]
    return json.dumps("".join(texts[part] if place % 2 else part for place, part in enumerate(hole.parts))).encode()


def _pieces(value: Any, where: str) -> Iterator[bytes | _Hole]:
    """Yield the encoding of a value, piece by piece."""
    if isinstance(value, dict):
        yield b"{"
        for number, (key, member) in enumerate(value.items()):
            yield (b"," if number else b"") + json.dumps(key).encode() + b":"
            yield from _pieces(member, f"{where}{key}.")
        yield b"}"
    elif isinstance(value, list):
        yield b"["
        for number, member in enumerate(value):
            if number:
                yield b","
            yield from _pieces(member, f"{where}{number}.")
        yield b"]"
    elif isinstance(value, str):
        yield _text(value, where)
    elif isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        yield json.dumps(value).encode()
    else:
        raise ValueError(f"{where[:-1]}: JSON has no {type(value).__name__} like this")


def _text(text: str, where: str) -> bytes | _Hole:
    parts = tuple(_PLACE.split(text))
    names = parts[1::2]
    if not names:
        return json.dumps(text).encode()
    try:
        _known(frozenset(names), (*IDS, *VALUES))
    except ValueError as error:
        raise ValueError(f"{where[:-1]}: {error}") from None
    if set(names) & set(VALUES) and parts != ("", names[0], ""):
        raise ValueError(f"{where[:-1]}: {{message}} and {{metadata}} are JSON values and must stand alone")
    return _Hole(parts)


def _known(names: frozenset[str], allowed: tuple[str, ...]) -> None:
    for name in sorted(names - set(allowed)):
        raise ValueError(
            f"no placeholder {{{name}}} here (known: {', '.join(f'{{{one}}}' for one in sorted(allowed))})"
        )
