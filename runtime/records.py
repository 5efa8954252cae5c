"""How outputs look to people and programs outside: one JSON object per line."""

import json
from typing import Any, Final

from reattach.models.effects import Report
from reattach.models.outcomes import Notice, Outcome
from reattach.models.request import Request

REJECT_CHARS_MAX: Final = 1_000


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _value(data: bytes | None) -> Any:
    return json.loads(data) if data else None


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


def reject_json(value: str | bytes | Request, reason: str) -> str:
    """The rejects output: the line as it came, shortened, and why it was not taken."""
    if isinstance(value, Request):
        value = value.invocation_id
    line = value.decode(errors="replace") if isinstance(value, bytes) else value
    return _line({"reason": reason, "line": line[:REJECT_CHARS_MAX], "chars": len(line)})
