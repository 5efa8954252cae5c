"""Hostile bytes in, plain JSON values out: what every adapter reads answers with.

Anything odd (a wrong content type, bytes that are no UTF-8, NaN, a cached answer, a nest too deep) is
`Unknown` with its reason, never an exception and never half a value.
"""

import json
import math
import re
from typing import Any, Final

from reattach.adapters.http import Reply
from reattach.models.answers import Unknown

Path = tuple[str, ...]
MISSING: Final = object()
# A list is read whole or not at all.
LIST_BYTES_MAX: Final = 4 * 1024 * 1024
_INDEX: Final = re.compile(r"-?[0-9]{1,9}")


def parse_path(dotted: str) -> Path:
    """Split 'a.b.0' into its keys; "" is the whole value.

    Raises:
        ValueError: a key is empty.
    """
    path = tuple(dotted.split(".")) if dotted else ()
    if not all(path):
        raise ValueError(f"{dotted!r} is not a path of keys and dots")
    return path


def find(value: Any, path: Path) -> Any:
    """Follow keys of objects and whole numbers of lists, -1 for the last; `MISSING` when the way ends early."""
    for key in path:
        if isinstance(value, dict):
            value = value.get(key, MISSING)
        elif isinstance(value, list) and _INDEX.fullmatch(key) and -len(value) <= int(key) < len(value):
            value = value[int(key)]
        else:
            return MISSING
    return value


def read_object(reply: Reply) -> dict[str, Any] | Unknown:
    """Read a JSON object; of a body over its limit the whole members at its start."""
    value = read_value(reply)
    if isinstance(value, dict | Unknown):
        return value
    return Unknown(f"{_named(reply)} is not a JSON object")


def kind_of(reply: Reply) -> str:
    """Name the content type of an answer, without its parameters."""
    kind: str = reply.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower()


def is_json(reply: Reply) -> bool:
    """Whether an answer calls itself JSON, which no page of a gateway does."""
    kind = kind_of(reply)
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def is_page(reply: Reply) -> bool:
    """Whether an answer is a page for people: of a gateway that wants a login, and of no job service."""
    return kind_of(reply) in ("text/html", "application/xhtml+xml")


def read_value(reply: Reply) -> Any:
    """Read any JSON value, or say by an `Unknown` why there is none."""
    what = _named(reply)
    if reply.fault and not reply.over:
        return Unknown(f"HTTP {reply.status}, {reply.fault}")
    if not is_json(reply):
        # A gateway without a route says 404 as well, and knows nothing of any thread.
        return Unknown(f"HTTP {reply.status}: {what} is not JSON by its content type")
    if reply.headers.get("age", "0").strip() not in ("", "0"):
        return Unknown(f"{what} comes from a cache")
    if reply.over:
        return _members(reply.body) or Unknown(f"HTTP {reply.status}, {reply.fault}")
    try:
        return _DECODER.decode(reply.body.decode())
    except RecursionError:
        return Unknown(f"{what} is nested too deep")
    except UnicodeDecodeError:
        return Unknown(f"{what} is not UTF-8")
    except ValueError:
        return Unknown(f"{what} is not JSON")


def to_json(value: Any) -> bytes:
    """Encode what was read; lone surrogates, which UTF-8 has no bytes for, stay escapes.

    Raises:
        RecursionError: it is nested too deep to be written.
    """
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def event_json(data: str) -> bytes:
    """Keep a stream event's JSON as it is, and wrap anything else as a string."""
    try:
        return to_json(_DECODER.decode(data))
    except (ValueError, RecursionError):
        return to_json(data)


def error_text(error: Any) -> str:
    """Find the words of an error, given as a text or as an object with a `message`."""
    text = error.get("message") if isinstance(error, dict) else error
    return text if isinstance(text, str) and text else "the remote run failed"


def _named(reply: Reply) -> str:
    return "the 404" if reply.status == 404 else "the answer"


def _members(start: bytes) -> dict[str, Any]:
    """Read the whole members at the start of an object that was too long to be read to its end."""
    text = start.decode(errors="replace")
    members: dict[str, Any] = {}
    opening = re.compile(r"\s*\{\s*").match(text)
    try:
        while opening:
            key, end = _DECODER.raw_decode(text, opening.end())
            colon = re.compile(r"\s*:\s*").match(text, end)
            if colon is None or not isinstance(key, str):
                break
            members[key], end = _DECODER.raw_decode(text, colon.end())
            opening = re.compile(r"\s*,\s*").match(text, end)
    except (ValueError, RecursionError):
        pass
    return members


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _number(text: str) -> float:
    """A number that JSON can hold when it is written again: 1e400 would become Infinity."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large")
    return number


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant, parse_float=_number)
