"""`reattach demo`: its promise, its file, and that the other job shows what it is compared with."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from reattach.runtime.cli.main import main
from reattach.runtime.demo import compare
from reattach.runtime.demo.trial import Counts, TrialError

KEYS = {"calls", "posts", "turns", "duplicates", "lost", "reattached", "read_after_crash", "seconds"}


@pytest.mark.flink
def test_no_call_runs_twice_with_reattach_and_some_do_without(tmp_path: Path) -> None:
    file = tmp_path / "counts.json"
    command = [sys.executable, "-m", "reattach", "demo", "--calls", "100", "--seed", "7", "--json", str(file)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    counts = json.loads(file.read_text())
    assert counts["seconds"] > 0
    ours, naive = counts["reattach"], counts["naive"]
    assert set(ours) == set(naive) == KEYS
    assert (ours["calls"], ours["posts"], ours["turns"], ours["duplicates"], ours["lost"]) == (100, 100, 100, 0, 0)
    assert ours["reattached"] > 0
    assert ours["read_after_crash"] >= ours["reattached"]
    assert naive["duplicates"] == naive["turns"] - 100 > 0, "the comparison must be able to fail"
    assert "duplicates: runs started again" in result.stdout
    assert "\x1b[" not in result.stdout


def trial_with(counts: Counts) -> type:
    class Played:
        def __init__(self, *_: object, **__: object) -> None: ...

        def run(self) -> Counts:
            return counts

    return Played


@pytest.mark.parametrize(("duplicates", "lost", "good"), [(0, 0, True), (1, 0, False), (0, 1, False)])
def test_a_duplicate_or_a_loss_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, duplicates: int, lost: int, good: bool
) -> None:
    monkeypatch.setattr(compare, "Trial", trial_with(Counts(10, 10, 10, duplicates, lost, 5, 5, 1.0)))
    console = Console(file=(tmp_path / "shown").open("w"), width=100)
    assert compare.compare(calls=10, seed=1, json_file=None, keep=tmp_path, console=console) is good


def test_a_process_that_does_not_do_its_part_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "COMMANDS", {"broken": [sys.executable, "-c", "raise SystemExit('no luck today')"]})
    console = Console(file=(tmp_path / "shown").open("w"), width=100)
    with pytest.raises(TrialError, match=r"^broken: ended with code 1 before .*: no luck today$"):
        compare.compare(calls=10, seed=1, json_file=None, keep=tmp_path, console=console)


def test_a_file_that_cannot_be_written_is_refused_before_the_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compare, "compare", lambda **_: pytest.fail("it runs"))
    assert main(["demo", "--json", "no/such"]) == 2
    assert capsys.readouterr().err == "error: --json: no/such: cannot be written: No such file or directory\n"
