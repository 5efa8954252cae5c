"""`reattach run` over the example's own configuration and graph, killed in the middle: counted by the graph."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.harness import Process, until
from tests.examples.host import assert_page
from tests.servers.running import langgraph

EXAMPLE = Path(__file__).parents[2] / "examples" / "langgraph"
CALLS = 8
FAST = "submit_validity_ms = 1_000\npolicy.submit_timeout_ms = 4_000\npolicy.admission_ms = 0\npolicy.slack_ms = 500"


@pytest.mark.flink
def test_the_example_survives_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    for name in ("job.toml", "ask.py"):
        shutil.copy(EXAMPLE / name, folder)
    with langgraph(tmp_path / "server", app=EXAMPLE) as server:
        log = tmp_path / "server" / "executed.log"
        config = (folder / "job.toml").read_text().replace("http://127.0.0.1:8322", server.url)
        (folder / "job.toml").write_text(config.replace("policy.retention_ms", f"policy.{FAST}\npolicy.retention_ms"))
        subprocess.run([sys.executable, "ask.py", str(CALLS)], cwd=folder, check=True, timeout=60)
        run = [sys.executable, "-m", "reattach", "run", "job.toml"]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        first = Process(run, tmp_path / "first.out", cwd=folder, env=environment)
        try:
            until(lambda: executed(log).total() >= CALLS // 2 or first.child.poll() is not None, "runs under way")
        finally:
            first.kill()
        before = executed(log)
        second = Process(run, tmp_path / "second.out", cwd=folder, env=environment)
        try:
            until(lambda: second.child.poll() is not None, "the job's own end")
        finally:
            second.kill()
        assert second.child.returncode == 0, second.text()[-3_000:]
    assert before.total() >= CALLS // 2, first.text()[-3_000:]
    assert executed(log) == Counter(f"question {number}" for number in range(1, CALLS + 1))
    lines = [line for path in (folder / "outcomes").glob("part-*.jsonl") for line in path.read_text().splitlines()]
    outcomes = {outcome["invocation_id"]: outcome for outcome in map(json.loads, lines)}
    assert len(lines) == len(outcomes) == CALLS
    assert {name: one["result"] for name, one in outcomes.items()} == {
        f"question-{number}": f"Done: question {number}" for number in range(1, CALLS + 1)
    }


def executed(log: Path) -> Counter[str]:
    return Counter(log.read_text().splitlines() if log.exists() else ())


def test_what_its_page_names_is_there() -> None:
    assert_page(EXAMPLE)
