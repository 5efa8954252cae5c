"""One line of input: a message for a remote agent, and the id that makes it this call and no other."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reattach.models.errors import InvalidRequest
from reattach.models.policy import METADATA_BYTES_MAX
from reattach.models.record import NOTHING_KEPT, Kept, record

ID_CHARS_MAX: Final = 256
TIME_MS_MAX: Final = 2**53
TURN_MAX: Final = 1_000_000

# Made once: `json.dumps` with settings makes one for each value.
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_KNOWN: Final = frozenset(
    {
        "invocation_id",
        "agent",
        "message",
        "requested_at_ms",
        "thread_id",
        "deadline_ms",
        "turn",
        "generation",
        "metadata",
    }
)


@record
@dataclass(frozen=True, slots=True)
class Request:
    """A checked request.

    Args:
        invocation_id: 1 to 256 characters, a pure function of the input; never random, never a clock.
        agent: a name from the configuration.
        message: canonical JSON bytes of the message, any JSON value.
        requested_at_ms: when it was asked for, by the input's own record.
        thread_id: the conversation; "" for one thread per invocation.
        deadline_ms: absolute; 0 for the policy's default.
        turn: 1-based ordinal of this message on its thread; 0 when the input does not say.
        generation: starts at 1; a higher one is a retry ordered by the input.
        metadata: canonical JSON bytes of an object, passed through to the outcome's reader.
    """

    invocation_id: str
    agent: str
    message: bytes
    requested_at_ms: int
    thread_id: str = ""
    deadline_ms: int = 0
    turn: int = 0
    generation: int = 1
    metadata: bytes = b"{}"
    kept: Kept = NOTHING_KEPT


def canonical_json(value: object) -> bytes:
    """Encode JSON so that equal values give equal bytes.

    Raises:
        InvalidRequest: the value holds NaN, infinities, lone surrogates or things JSON does not know.
    """
    try:
        return _ENCODER.encode(value).encode()
    except (ValueError, TypeError, RecursionError, UnicodeEncodeError) as error:
        raise InvalidRequest(f"not plain JSON: {error}") from None


def parse_request(line: bytes | str, *, message_bytes_max: int) -> Request:
    """Read one JSON line of input.

    Args:
        line: one JSON object, UTF-8.
        message_bytes_max: limit for the message's canonical encoding, in bytes.

    Raises:
        InvalidRequest: names the field and what is wrong with it.
    """
    return request_from_mapping(read_object(line, message_bytes_max), message_bytes_max=message_bytes_max)


def refuse_long(line: bytes | str, value_bytes_max: int) -> None:
    """Refuse a line that is too long to hold anything that is allowed.

    Raises:
        InvalidRequest: says how long it is.
    """
    if len(line) > 4 * value_bytes_max + 64 * 1024:
        raise InvalidRequest(f"line of {len(line)} bytes is longer than any message that is allowed")


def read_object(line: bytes | str, value_bytes_max: int) -> dict[str, Any]:
    """Read a line that is one JSON object.

    Args:
        value_bytes_max: limit for the canonical encoding of the largest value in it, in bytes.

    Raises:
        InvalidRequest: says what is wrong with it.
    """
    refuse_long(line, value_bytes_max)
    try:
        text = line if isinstance(line, str) else line.decode(json.detect_encoding(line), "surrogatepass")
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidRequest("not a JSON object")
    return value


def request_from_mapping(value: Mapping[str, Any], *, message_bytes_max: int) -> Request:
    """Check a decoded request; see `parse_request`."""
    refuse_unknown(value, _KNOWN)
    if "message" not in value:
        raise InvalidRequest("message: required")
    metadata = value.get("metadata", {})
    if not isinstance(metadata, dict):
        raise InvalidRequest("metadata: must be an object")
    message = canonical_json(value["message"])
    if len(message) > message_bytes_max:
        raise InvalidRequest(f"message: {len(message)} bytes, the limit is {message_bytes_max}")
    packed = canonical_json(metadata)
    if len(packed) > METADATA_BYTES_MAX:
        raise InvalidRequest(f"metadata: {len(packed)} bytes, the limit is {METADATA_BYTES_MAX}")
    thread_id = value.get("thread_id")
    return Request(
        invocation_id=text_field(value, "invocation_id"),
        agent=text_field(value, "agent"),
        message=message,
        requested_at_ms=number_field(value, "requested_at_ms", 1, TIME_MS_MAX),
        thread_id="" if thread_id is None else text_field(value, "thread_id"),
        deadline_ms=number_field(value, "deadline_ms", 1, TIME_MS_MAX, default=0),
        turn=number_field(value, "turn", 1, TURN_MAX, default=0),
        generation=number_field(value, "generation", 1, TURN_MAX, default=1),
        metadata=packed,
    )


def refuse_unknown(value: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse an object with a field that means nothing.

    Raises:
        InvalidRequest: names the first such field, and those that are known.
    """
    for name in value:
        if name not in known:
            raise InvalidRequest(f"{str(name)[:40]}: no such field (known: {', '.join(sorted(known))})")


def text_field(value: Mapping[str, Any], name: str, chars_max: int = ID_CHARS_MAX) -> str:
    """A required printable string of 1 to `chars_max` characters.

    Raises:
        InvalidRequest: names the field.
    """
    text = value.get(name)
    if text is None:
        raise InvalidRequest(f"{name}: required")
    if not isinstance(text, str) or not 1 <= len(text) <= chars_max:
        raise InvalidRequest(f"{name}: must be a string of 1 to {chars_max} characters")
    if not text.isprintable():
        raise InvalidRequest(f"{name}: holds a character that cannot be printed")
    return text


def number_field(value: Mapping[str, Any], name: str, least: int, most: int, default: int | None = None) -> int:
    """A whole number within bounds; required when there is no default.

    Raises:
        InvalidRequest: names the field.
    """
    number = value.get(name)
    if number is None:
        if default is None:
            raise InvalidRequest(f"{name}: required")
        return default
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise InvalidRequest(f"{name}: must be a whole number from {least} to {most}")
    return number


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant)
