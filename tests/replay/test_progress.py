"""The bar: on a terminal, for long journals, and nowhere else."""

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from reattach.runtime.replay import progress as module
from reattach.runtime.replay.progress import Progress


def shown(monkeypatch: pytest.MonkeyPatch, folder: Path, *, delay_s: float, terminal: bool) -> str:
    monkeypatch.setattr(module, "DELAY_S", delay_s)
    file = folder / "x.journal"
    file.write_bytes(b"x" * 3_000_000)
    out = io.StringIO()
    with Progress(Console(file=out, force_terminal=terminal, width=80)) as progress:
        progress.reading([file, folder / "gone"])(1_500_000)
        replaying = progress.replaying(2_000)
        for _ in range(1_000):
            replaying(1)
        crashing = progress.supposing(4)
        for _ in range(3):
            crashing(1)
    return out.getvalue()


def test_a_long_journal_shows_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, tmp_path, delay_s=0, terminal=True)
    assert "reading" in text and "replaying" in text and "50 %" in text
    assert "crashing" in text and "75 %" in text


def test_a_short_one_and_a_file_show_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, tmp_path, delay_s=60, terminal=True) == ""
    assert shown(monkeypatch, tmp_path, delay_s=0, terminal=False) == ""


def test_lines_for_a_file_go_into_the_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(module, "DELAY_S", 0)
    out = io.StringIO()
    with Progress(Console(file=out, force_terminal=True, width=80)) as progress:
        progress.supposing(2)(1)
        sys.stdout.write("a line\n")
    assert "crashing" in out.getvalue()
    assert "a line" not in out.getvalue()
    assert capsys.readouterr().out == "a line\n"
