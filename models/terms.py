"""Terms as text: what was in force when a step was taken, for whoever replays it.

Only what differs from `ASSUMED` is written, so that a call's first journal entry stays small. That
list is a fact about the text and not about today's defaults: when a default of `Policy` changes,
the text begins to carry the new value, and what was written before still means what it meant.
A setting that is not listed is always written.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from typing import Any, Final, get_args, get_type_hints

from reattach.models.errors import ConfigError, Corrupt
from reattach.models.policy import Capabilities, Policy, Terms

Values = Mapping[str, int | str | None]

ASSUMED: Final[Mapping[str, Values]] = {
    "capabilities": {
        "deduplication": "none",
        "evidence": "marker",
        "absence": "after_quiet",
        "admission_ms": 0,
        "stream": "none",
        "cancel": "none",
        "retention_ms": None,
        "key_lifetime_ms": None,
        "responds": False,
    },
    "policy": {
        "submit_validity_ms": 5_000,
        "submit_timeout_ms": 10_000,
        "probe_timeout_ms": 10_000,
        "fetch_timeout_ms": 30_000,
        "slack_ms": 5_000,
        "admission_ms": None,
        "overlap_ms": 60_000,
        "skew_max_ms": 60_000,
        "deadline_ms": 86_400_000,
        "drain_max_ms": 600_000,
        "watch": True,
        "watch_silence_ms": 60_000,
        "poll_ms": 1_000,
        "poll_max_ms": 30_000,
        "park_probe_ms": 60_000,
        "backoff_ms": 200,
        "backoff_max_ms": 30_000,
        "recovery_spread_ms": 1_000,
        "submit_attempts_max": 20,
        "cancels_max": 5,
        "generations_max": 1,
        "on_ambiguous": "park",
        "submit_after": "auto",
        "cancel_on_deadline": False,
        "retention_ms": None,
        "tombstone_ttl_ms": 86_400_000,
        "queue_max": 100,
        "tombstones_max": 1_000,
        "message_bytes_max": 262_144,
        "result_bytes_max": 1_048_576,
    },
}
_RECORDS: Final[Mapping[str, type]] = {"capabilities": Capabilities, "policy": Policy}


def terms_text(terms: Terms) -> str:
    """Write terms as JSON, the same text for equal terms."""
    told = {name: _told(name, getattr(terms, name)) for name in _RECORDS}
    return json.dumps(told, separators=(",", ":"), sort_keys=True)


def _told(part: str, record: Capabilities | Policy) -> dict[str, int | str | None]:
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    plain = {name: value.value if isinstance(value, Enum) else value for name, value in values.items()}
    assumed = ASSUMED[part]
    return {name: value for name, value in plain.items() if name not in assumed or value != assumed[name]}


def terms_of(text: str) -> Terms:
    """Read what `terms_text` wrote, in this release or in an earlier one.

    Raises:
        Corrupt: this is no such text, or it tells a setting that this release does not know.
    """
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        raise Corrupt("terms: not JSON") from None
    if not isinstance(told, dict) or set(told) != set(_RECORDS):
        raise Corrupt("terms: an object with capabilities and policy expected")
    try:
        return Terms(**{name: cls(**_values(name, cls, told[name])) for name, cls in _RECORDS.items()})
    except ConfigError as error:
        raise Corrupt(f"terms: {error}") from None


def _values(part: str, cls: type, told: Any) -> dict[str, Any]:
    hints = get_type_hints(cls)
    if not isinstance(told, dict):
        raise Corrupt(f"terms: {part}: an object expected")
    for name in told:
        if name not in hints:
            raise Corrupt(f"terms: this release knows no setting {part}.{name[:40]!a}")
    return {name: _value(f"{part}.{name}", hints[name], value) for name, value in {**ASSUMED[part], **told}.items()}


def _value(where: str, hint: Any, value: Any) -> Any:
    kinds = get_args(hint) or (hint,)
    for kind in kinds:
        if type(value) is kind:
            return value
        if issubclass(kind, Enum):
            try:
                return kind(value)
            except ValueError:
                break
    raise Corrupt(f"terms: {where}: such a value is not known")
