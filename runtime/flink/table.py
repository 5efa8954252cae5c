"""Outcomes as typed rows, for a `StreamTableEnvironment`:

    tables = StreamTableEnvironment.create(environment)
    tables.create_temporary_view("outcomes", outcome_rows(calls))
    tables.sql_query("SELECT agent, COUNT(*) FROM outcomes WHERE outcomes.failure.code = 'lost' GROUP BY agent")

`calls` is what `ReattachFunction` gives: texts of JSON. Every field of an outcome is a column of the same name; in SQL
`result` needs its backticks. The parts of `spent_ms` are `not_started_ms`, `submitted_ms` and `running_ms`.
"""

import json
from typing import Any, Final

from pyflink.common import Row, Types
from pyflink.datastream import DataStream

_FAILURE: Final = Types.ROW_NAMED(
    ["code", "message", "remote", "retryable"], [Types.STRING(), Types.STRING(), Types.STRING(), Types.BOOLEAN()]
)
_SPENT_MS: Final = Types.ROW_NAMED(
    ["not_started_ms", "submitted_ms", "running_ms"], [Types.LONG(), Types.LONG(), Types.LONG()]
)

OUTCOME: Final = Types.ROW_NAMED(
    [
        "invocation_id",
        "agent",
        "thread_id",
        "generation",
        "status",
        "result",
        "failure",
        "handle",
        "attempts",
        "probes",
        "spent_ms",
        "finished_at_ms",
    ],
    [
        Types.STRING(),
        Types.STRING(),
        Types.STRING(),
        Types.LONG(),
        Types.STRING(),
        Types.STRING(),
        _FAILURE,
        Types.STRING(),
        Types.LONG(),
        Types.LONG(),
        _SPENT_MS,
        Types.LONG(),
    ],
)
"""`result` is JSON text, for SQL's JSON functions, or NULL; `failure` is NULL for a call that completed."""


def outcome_row(text: str) -> Row:
    """One outcome, from its JSON text."""
    outcome = json.loads(text, object_hook=_clean)
    result, failure, spent_ms = outcome["result"], outcome["failure"], outcome["spent_ms"]
    return Row(
        outcome["invocation_id"],
        outcome["agent"],
        outcome["thread_id"],
        outcome["generation"],
        outcome["status"],
        None if result is None else json.dumps(result, separators=(",", ":")),
        None if failure is None else Row(*(failure[name] for name in _FAILURE.get_field_names())),
        outcome["handle"],
        outcome["attempts"],
        outcome["probes"],
        Row(*(spent_ms[name.removesuffix("_ms").upper()] for name in _SPENT_MS.get_field_names())),
        outcome["finished_at_ms"],
    )


def outcome_rows(outcomes: DataStream) -> DataStream:
    """Turn a stream of outcomes as JSON texts into one of rows of the type `OUTCOME`."""
    return outcomes.map(outcome_row, OUTCOME)


def _clean(value: dict[str, Any]) -> dict[str, Any]:
    """Half a surrogate pair has no way into a Java string, and would fail the job again after each restart."""
    return {key: one.encode(errors="replace").decode() if isinstance(one, str) else one for key, one in value.items()}
