"""Outcomes as rows in SQL: each field is a column of its own type."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reattach.models.lifecycle import Status
from reattach.models.outcomes import Failure, FailureCode, Outcome, RemoteFate
from reattach.runtime.flink.table import OUTCOME
from reattach.runtime.records import outcome_json
from tests.packaging.layers import ROOT

pytestmark = pytest.mark.flink

DONE = Outcome(
    "a", "echo", "t-1", 1, Status.COMPLETED, '{"n":7,"ü":"\\ud834 日"}'.encode(), None, "r", 1, 3, (1, 2, 2**40), 9
)
LOST = Failure(FailureCode.LOST, "half a pair: \ud834", RemoteFate.UNKNOWN, retryable=True)
FAILED = Outcome("b", "echo", "t-2", 2, Status.FAILED, None, LOST, "", 2, 4, (5, 0, 0), 2**41)


def answer(folder: Path, query: str) -> list[list[Any]]:
    (folder / "outcomes.jsonl").write_text("".join(outcome_json(one) + "\n" for one in (DONE, FAILED)))
    done = subprocess.run(
        [sys.executable, "-m", "tests.flink.tables", str(folder), query],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-6_000:]
    return [json.loads(line.removeprefix("row ")) for line in done.stdout.splitlines() if line.startswith("row ")]


def test_a_select_over_outcomes(tmp_path: Path) -> None:
    query = """
        SELECT invocation_id, agent, thread_id, generation, status, handle, attempts, probes, finished_at_ms,
            outcomes.spent_ms.running_ms, outcomes.failure.code, outcomes.failure.message, outcomes.failure.remote,
            outcomes.failure.retryable, JSON_VALUE(`result`, '$.n' RETURNING INTEGER) + 1, JSON_VALUE(`result`, '$.ü')
        FROM outcomes
    """
    done, failed = answer(tmp_path, query)
    assert done == ["a", "echo", "t-1", 1, "COMPLETED", "r", 1, 3, 9, 2**40, None, None, None, None, 8, "? 日"]
    lost = ["lost", "half a pair: ?", "unknown", True]
    assert failed == ["b", "echo", "t-2", 2, "FAILED", "", 2, 4, 2**41, 0, *lost, None, None]


def test_every_field_is_a_column() -> None:
    assert OUTCOME.get_field_names() == list(json.loads(outcome_json(DONE)))
