"""How outputs look to people and programs outside: one JSON object per line.

Nothing here raises, whatever a remote or an adapter has put into a record: an output that cannot be
written would fail the job, and again after each restart.
"""

import json
import math
from typing import Any, Final

from reattach.models.effects import Report
from reattach.models.outcomes import Notice, Outcome
from reattach.models.request import Request

REJECT_CHARS_MAX: Final = 1_000
DEEP: Final = 100


def _line(value: dict[str, Any]) -> str:
    text = _ENCODER.encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Half a surrogate pair has no bytes, and no way into a Java string: it stays an escape.
        return json.dumps(value, separators=(",", ":"))
    return text


def _value(data: bytes | None) -> Any:
    """What the bytes say as JSON; as text where they are none, or where JSON has no such number."""
    if not data:
        return None
    try:
        value = _DECODER.decode(data.decode(json.detect_encoding(data), "surrogatepass"))
        if data.count(b"[") + data.count(b"{") > DEEP:
            # It stands deeper in the output than it came, and reading allows more than writing.
            json.dumps([[[[value]]]])
        return value
    except (ValueError, RecursionError):
        return data.decode(errors="replace")


def _number(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


# Made once: `json.dumps` and `json.loads` with settings make one for each value.
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_DECODER: Final = json.JSONDecoder(parse_constant=str, parse_float=_number)


def outcome_json(outcome: Outcome) -> str:
    """The main output: see `Outcome` for the fields; `spent_ms` by status name."""
    failure = outcome.failure
    return _line(
        {
            "invocation_id": outcome.invocation_id,
            "agent": outcome.agent,
            "thread_id": outcome.thread_id,
            "generation": outcome.generation,
            "status": outcome.status.name,
            "result": _value(outcome.result),
            "failure": None
            if failure is None
            else {
                "code": failure.code.value,
                "message": failure.message,
                "remote": failure.remote.value,
                "retryable": failure.retryable,
            },
            "handle": outcome.handle,
            "attempts": outcome.attempts,
            "probes": outcome.probes,
            "spent_ms": dict(zip(("NOT_STARTED", "SUBMITTED", "RUNNING"), outcome.spent_ms, strict=True)),
            "finished_at_ms": outcome.finished_at_ms,
        }
    )


def report_json(report: Report) -> str:
    """The progress output: the stream events of one batch, oldest first."""
    items = [_value(item.data) for item in report.items]
    return _line({"invocation_id": report.invocation_id, "generation": report.generation, "events": items})


def notice_json(notice: Notice) -> str:
    """The notices output."""
    return _line(
        {
            "kind": notice.kind.value,
            "invocation_id": notice.invocation_id,
            "generation": notice.generation,
            "message": notice.message,
            "detail": _value(notice.detail),
        }
    )


def unheard_json(seconds: int) -> str:
    """A line of the notices output about no call in particular: nobody says which checkpoints have completed."""
    message = (
        f"calls are held: for {seconds} s Flink's REST interface has not told which checkpoints have completed; they "
        "are sent when it does"
    )
    return _of_no_call("write_ahead_stalled", message)


def down_json(agent: str, cause: str) -> str:
    """The same, when an agent's circuit breaker has opened."""
    message = f"{agent}: the last requests all failed, the latest with: {cause}; calls are kept and tried again"
    return _of_no_call("agent_down", message)


def up_json(agent: str) -> str:
    """The same, when it has closed."""
    return _of_no_call("agent_up", f"{agent}: a request got through; calls go on")


def _of_no_call(kind: str, message: str) -> str:
    return _line({"kind": kind, "invocation_id": "", "generation": 0, "message": message, "detail": None})


def reject_json(value: object, reason: str) -> str:
    """The rejects output: the line as it came, shortened, and why it was not taken."""
    if isinstance(value, Request):
        value = value.invocation_id
    if isinstance(value, bytes):
        line = value.decode(errors="replace")
    else:
        line = value if isinstance(value, str) else f"({type(value).__name__})"
    return _line({"reason": reason, "line": line[:REJECT_CHARS_MAX], "chars": len(line)})
