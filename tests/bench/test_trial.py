"""The benchmark on real processes: what it counts is what was there."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reattach.runtime.bench import compare, growth, trial
from reattach.runtime.bench.systems import SYSTEMS, System, polling
from reattach.runtime.bench.trial import BenchError, Trial
from reattach.runtime.cli.main import main
from reattach.runtime.processes import cpu_s, members, pss_mb
from tests.e2e.harness import until

CALLS = 100
ROW = trial.Row("reattach", 50, 256, 200, 500.0, 1.5, 600.0, 5.0, 20.0, 3.0, 8.0)


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


@pytest.mark.flink
def test_a_service_that_knows_a_key_again_is_asked_twice_for_each_call(tmp_path: Path) -> None:
    row = Trial(SYSTEMS["keyed"], tmp_path / "measure", calls=CALLS, concurrency=20, run_ms=300).measure()
    assert 2.0 <= row.requests_per_call < 3.0


@pytest.mark.flink
def test_calls_that_wait_are_weighed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "SETTLED_S", 0.0)
    system = polling(poll_ms=200, poll_max_ms=200)
    held = Trial(system, tmp_path / "held", calls=5, concurrency=20, run_ms=200, runs=growth.LONG_RUN).hold(3.0)
    assert held.cores > 0 and held.pss_mb > 0 and held.requests_per_s > 1, "each of them is asked about"


def test_a_case_is_told_with_what_it_has() -> None:
    waiting = growth.Case("waiting", 200, cores=0.5, requests_per_s=2.0, pss_mb=600.0)
    assert waiting.cells() == ("waiting", "200", "–", "–", "0.500", "0.2500", "2.0", "600")
    assert len(waiting.cells()) == len(growth.HEADS)
    assert growth.markdown([waiting]).splitlines()[2] == "| waiting | 200 | – | – | 0.500 | 0.2500 | 2.0 | 600 |"


def test_the_cases_of_growth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked for, and in which order; the runs themselves are those of the other tests."""
    monkeypatch.setattr(Trial, "hold", lambda _, __: trial.Held(0.1, 1.0, 500.0))
    monkeypatch.setattr(Trial, "measure", lambda _: ROW)
    page, file = tmp_path / "page.md", tmp_path / "f.json"
    said: list[str] = []
    page.write_text("<!-- growth:begin --><!-- growth:end -->")
    found = growth.cases(tmp_path / "w", calls=50, waiting=(), say=said.append)
    assert [(one.name, one.calls) for one in found] == [
        ("waiting, polled each 30 s", 100), ("waiting, streams", 100), ("waiting, polled each 30 s", 10_000),
        ("waiting, streams", 10_000), ("message of 200 bytes", 50), ("message of 10000 bytes", 50),
        ("message of 100000 bytes", 50), ("state in hashmap", 50), ("state in rocksdb", 50),
        ("waiting, state in rocksdb", 10_000),
    ]  # fmt: skip
    assert len(said) == len(found)
    assert main(["bench", "--growth", "--json", str(file), "--page", str(page)]) == 0
    assert json.loads(file.read_text())[0] == {
        "name": "waiting, polled each 30 s", "calls": 100, "calls_per_second": None, "cpu_s_per_1000": None,
        "cores": 0.1, "requests_per_s": 1.0, "pss_mb": 500.0,
    }  # fmt: skip
    assert "| state in rocksdb |" in page.read_text()
    assert main(["bench", "--growth", "--waiting", "7", "--json", str(file)]) == 0
    assert [one["calls"] for one in json.loads(file.read_text())] == [7, 7]


def test_a_system_that_breaks_is_told_with_its_own_last_line(tmp_path: Path) -> None:
    broken = System("broken", lambda work: [sys.executable, "-c", "raise OSError('no disk')"])
    with pytest.raises(BenchError, match="broken: ended before its first request: OSError: no disk"):
        Trial(broken, tmp_path / "w", calls=CALLS, concurrency=20, run_ms=100).measure()


def test_a_system_that_nobody_knows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--system", "airflow"]) == 2
    assert "known: polling, keyed, streaming, floor, same-client, naive" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_command_that_is_stopped_leaves_nothing_behind(tmp_path: Path, number: int, code: int) -> None:
    arguments = ["bench", "--system", "floor", "--run-ms", "60000", "--calls", "1"]
    with subprocess.Popen(
        [sys.executable, "-m", "reattach", *arguments],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as bench:
        # The system, in a session of its own, and its agent server.
        until(lambda: len(members(bench.pid)) == 3, "what it starts")
        started = members(bench.pid)
        bench.send_signal(number)
        _, said = bench.communicate(timeout=30)
    assert bench.returncode == code and b"Traceback" not in said
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.flink
def test_the_command_measures_and_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "LAG_CALLS", 10)
    monkeypatch.setattr(compare, "LAG_RUNS", "100ms-300ms")
    file, chart, page = tmp_path / "f.json", tmp_path / "f.png", tmp_path / "page.md"
    page.write_text("<!-- bench:begin --><!-- bench:end -->")
    load = ["--calls", str(CALLS), "--run-ms", "100", "--rounds", "1", "--system", "polling"]
    files = ["--json", str(file), "--chart", str(chart), "--page", str(page)]
    assert main(["bench", *load, *files]) == 0
    (row,) = json.loads(file.read_text())
    assert (row["calls"], row["duplicates_after_kill"], row["lost_after_kill"]) == (CALLS, 0, 0)
    assert row["requests_per_call"] >= 3.0
    assert chart.exists() and "reattach, polling" in page.read_text()
