"""`reattach run` over the example's own configuration, killed in the middle: counted by its server."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harness import Process, until
from tests.examples.test_http_job import EXAMPLE, example

CALLS = 8
FAST = "submit_validity_ms = 1_000\npolicy.submit_timeout_ms = 2_000\npolicy.admission_ms = 0\npolicy.slack_ms = 500"


@pytest.mark.flink
def test_the_example_survives_a_kill_and_lost_answers(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    for name in ("job.toml", "ask.py"):
        shutil.copy(EXAMPLE / name, folder)
    with example(tmp_path, "--seconds", "4", "--lose", "3") as made:
        config = (folder / "job.toml").read_text().replace("http://127.0.0.1:8321", made.url)
        config = config.replace("policy.retention_ms", f"policy.{FAST}\npolicy.retention_ms")
        (folder / "job.toml").write_text(config)
        subprocess.run([sys.executable, "ask.py", str(CALLS)], cwd=folder, check=True, timeout=60)
        run = [sys.executable, "-m", "reattach", "run", "job.toml"]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        first = Process(run, tmp_path / "first.out", cwd=folder, env=environment)
        try:
            until(lambda: made.started().total() >= CALLS // 2 or first.child.poll() is not None, "jobs under way")
        finally:
            first.kill()
        before = made.started()
        second = Process(run, tmp_path / "second.out", cwd=folder, env=environment)
        try:
            until(lambda: second.child.poll() is not None, "the job's own end")
        finally:
            second.kill()
        assert second.child.returncode == 0, second.text()[-3_000:]
        started = made.started()
    assert before.total() >= CALLS // 2, first.text()[-3_000:]
    assert len(started) == CALLS and set(started.values()) == {1}
    lines = [line for path in (folder / "outcomes").glob("part-*.jsonl") for line in path.read_text().splitlines()]
    outcomes = {outcome["invocation_id"]: outcome for outcome in map(json.loads, lines)}
    assert len(lines) == len(outcomes) == CALLS
    assert all(one["status"] == "COMPLETED" for one in outcomes.values())
    assert {one["result"]["echo"]["order"] for one in outcomes.values()} == set(range(1, CALLS + 1))
