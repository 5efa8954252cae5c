"""`reattach simulate` as people and CI meet it: figures, failures that reproduce, exit codes."""

import json
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from reattach.runtime.cli.main import main
from reattach.runtime.driver import Driver
from reattach.runtime.mutants.catalogue import MUTANTS
from reattach.runtime.simulation import many
from reattach.runtime.simulation.host import Host
from tests.stopping import STOPS, begun, ended


@pytest.fixture
def broken() -> Iterator[None]:
    """A shipped code without its quiet time."""
    with MUTANTS["no-quiet-time"].apply():
        yield


def test_a_good_run_says_what_it_did_and_ends_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "figures.json"
    arguments = ["simulate", "--seed", "4", "--calls", "60", "--faults", "all", "--jobs", "1", "--json", str(file)]
    assert main(arguments) == 0
    output = capsys.readouterr().out
    assert "60 calls in 1 worlds" in output
    assert "0 violations, 0 stuck" in output
    figures = json.loads(file.read_text())
    assert (figures["seed"], figures["calls"], figures["faults"], figures["jobs"]) == (4, 60, "all", 1)
    assert (figures["violations"], figures["stuck"], figures["exceptions"]) == (0, 0, 0)
    assert sum(figures["ended"].values()) == 60
    assert figures["crashes"] > 0
    assert figures["checkpoints"] > 0
    assert figures["happened"]["lose"] > 0
    assert figures["calls_per_second"] == pytest.approx(60 / figures["seconds"], rel=0.05)


def test_the_figures_of_a_seed_do_not_depend_on_the_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "WORLD_CALLS_MAX", 20)
    figures = []
    for jobs in ("1", "2"):
        file = tmp_path / f"{jobs}.json"
        assert main(["simulate", "--calls", "70", "--faults", "all", "--jobs", jobs, "--json", str(file)]) == 0
        read = json.loads(file.read_text())
        figures.append({name: read[name] for name in read.keys() - {"jobs", "seconds", "calls_per_second"}})
    assert figures[0] == figures[1]


@pytest.mark.usefixtures("broken")
def test_a_violation_ends_with_1_its_history_and_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--calls", "4000", "--faults", "all", "--remote", "marker-list", "--jobs", "1"]) == 1
    lines = capsys.readouterr().out.splitlines()
    told = [line for line in lines if line.startswith("safety: accepted twice: marker-list-")]
    commands = [line.removeprefix("reproduce: ") for line in lines if line.startswith("reproduce: ")]
    assert len(told) == len(commands) == 3
    assert any(line.startswith("also: reattach simulate") for line in lines)
    assert any("submitted.sending  [Submit]" in line for line in lines)
    # The command alone brings the same failure back.
    assert main(shlex.split(commands[1])[1:]) == 1
    assert told[1] in capsys.readouterr().out.splitlines()


@pytest.mark.usefixtures("broken")
def test_a_terminal_shows_how_far_it_is_and_what_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert main(["simulate", "--calls", "2000", "--faults", "all", "--remote", "marker-list", "--jobs", "1"]) == 1
    shown = capsys.readouterr()
    assert "simulating worlds, 2 failed" in shown.err
    assert "simulating" not in shown.out


def test_a_stuck_call_ends_with_3(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(Host, "_fire", lambda *_: None)
    assert main(["simulate", "--calls", "6", "--remote", "status-only"]) == 3
    output = capsys.readouterr().out
    assert "liveness: 6 calls never end: status-only-0, status-only-1" in output
    assert "reproduce: reattach simulate --seed 1 --calls 6 --faults none --remote status-only" in output


def test_an_exception_ends_with_4_and_its_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("of the test")

    monkeypatch.setattr(Driver, "apply", fail)
    assert main(["simulate", "--calls", "7", "--faults", "lose"]) == 4
    output = capsys.readouterr().out
    assert "crash: Traceback" in output
    assert "ZeroDivisionError: of the test" in output
    assert "reproduce: reattach simulate --seed 1 --calls 7 --faults lose" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--faults", "rain"], "error: --faults rain: no such fault (known: all, none, ask,"),
        (["--remote", "status-only,rain"], "error: --remote rain: no such model remote (known: status-only,"),
        (
            ["--calls", "1001", "--journal", "j"],
            "error: --journal: a journal is of one world; use --calls 1000 at most",
        ),
        (["--calls", "1", "--journal", "no/such/j"], "error: --journal: no/such/j: cannot be written: No such file"),
        (["--calls", "1", "--json", "no/such/j"], "error: --json: no/such/j: cannot be written: No such file"),
        (["--calls", "0"], "error: Invalid value for '--calls'"),
        (["--calls", "9", "--json", "."], "error: --json: .: cannot be written: Is a directory"),
        (["--calls", "9", "--journal", "."], "error: --journal: .: cannot be written: Is a directory"),
        (["--faults", "all,lose=0"], "error: --faults all,lose=0: all stands alone"),
        (["--faults", "lose,lose=0.1"], "error: --faults lose: named twice"),
    ],
)
def test_wrong_input_is_one_line_and_2(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith(message)
    assert error.count("\n") == 1


def test_a_file_that_cannot_be_written_is_told_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the figures of an hour are lost, and a violation ends as wrong usage."""
    monkeypatch.setattr(many, "run_all", lambda *_: pytest.fail("it ran"))
    assert main(["simulate", "--json", "no/such/file"]) == 2


@pytest.mark.usefixtures("broken")
def test_a_full_disk_is_no_fault_of_the_simulated_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--calls", "50", "--journal", "/dev/full"]) == 2
    assert capsys.readouterr().err == "error: --journal: /dev/full: cannot be written: No space left on device\n"


def test_the_journal_can_be_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "world.journal"
    assert main(["simulate", "--calls", "30", "--faults", "all", "--journal", str(file)]) == 0
    assert main(["replay", str(file)]) == 0
    assert "of 30 calls" in capsys.readouterr().out


@pytest.mark.parametrize(("how", "code"), STOPS)
def test_workers_end_with_a_command_that_is_stopped(how: signal.Signals, code: int) -> None:
    with begun(["simulate", "--calls", "10000000", "--jobs", "2"], rb"[1-9]\d*/10000") as process:
        process.send_signal(how)
        ended(process, code)
