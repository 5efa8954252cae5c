"""The benchmark on real processes: what it counts is what was there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reattach.runtime.bench.systems import SYSTEMS, System
from reattach.runtime.bench.trial import BenchError, Trial
from reattach.runtime.cli.main import main
from reattach.runtime.processes import cpu_s, members, pss_mb
from tests.e2e.harness import until

CALLS = 100


def test_processes_of_a_session_are_found_and_weighed() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        until(lambda: len(members(child.pid)) == 2, "the child's child")
        until(lambda: cpu_s(child.pid) > 0.2, "its work")
        assert 1 < pss_mb(child.pid) < 1_000
    finally:
        for pid in members(child.pid):
            subprocess.run(["kill", "-9", str(pid)])
        child.wait()
    until(lambda: members(child.pid) == [], "their end")
    assert cpu_s(child.pid) == pss_mb(child.pid) == 0


def test_the_floor_makes_three_requests_and_sends_again_after_a_crash(tmp_path: Path) -> None:
    floor = SYSTEMS["floor"]
    row = Trial(floor, tmp_path / "measure", calls=CALLS, concurrency=20, run_ms=100).measure()
    assert (row.system, row.calls, row.concurrency, row.run_ms) == (floor.name, CALLS, 20, 100)
    assert row.requests_per_call >= 3.0
    # Twenty at a time, a tenth of a second each.
    assert 0 < row.calls_per_second <= 200
    assert row.cpu_s_per_1000 >= 0 and row.pss_mb > 0 and row.latency_p50_ms <= row.latency_p99_ms
    killed = Trial(floor, tmp_path / "kill", calls=CALLS, concurrency=20, run_ms=100).kill()
    assert killed.lost == 0 and killed.duplicates > 0


def test_a_system_that_breaks_is_told_with_its_own_last_line(tmp_path: Path) -> None:
    broken = System("broken", lambda work: [sys.executable, "-c", "raise OSError('no disk')"])
    with pytest.raises(BenchError, match="broken: ended before its first request: OSError: no disk"):
        Trial(broken, tmp_path / "w", calls=CALLS, concurrency=20, run_ms=100).measure()


def test_a_system_that_nobody_knows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--system", "airflow"]) == 2
    assert "known: polling, streaming, floor, naive" in capsys.readouterr().err


@pytest.mark.flink
def test_the_command_measures_and_kills(tmp_path: Path) -> None:
    file, chart, page = tmp_path / "f.json", tmp_path / "f.png", tmp_path / "page.md"
    page.write_text("<!-- bench:begin --><!-- bench:end -->")
    load = ["--calls", str(CALLS), "--run-ms", "100", "--rounds", "1", "--system", "polling"]
    files = ["--json", str(file), "--chart", str(chart), "--page", str(page)]
    assert main(["bench", *load, *files]) == 0
    (row,) = json.loads(file.read_text())
    assert (row["calls"], row["duplicates_after_kill"], row["lost_after_kill"]) == (CALLS, 0, 0)
    assert row["requests_per_call"] >= 3.0
    assert chart.exists() and "reattach, polling" in page.read_text()
