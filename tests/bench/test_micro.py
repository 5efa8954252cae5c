"""What is measured without I/O is a whole life of one call, and each figure is told."""

import json
from pathlib import Path

import pytest

from reattach.models.events import ProbeAnswered, Requested, SubmitAnswered, WatchEnded
from reattach.runtime.bench import micro
from reattach.runtime.cli.main import main


def test_the_call_is_asked_about_sent_followed_and_read() -> None:
    facts = [type(event) for _, event, _ in micro.steps_of_a_call()]
    assert facts == [Requested, ProbeAnswered, SubmitAnswered, WatchEnded, ProbeAnswered]


def test_each_figure_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(micro, "ROUNDS", 1)
    monkeypatch.setattr(micro, "CALLS", 3)
    assert main(["bench", "--micro", "--json", str(tmp_path / "f.json")]) == 0
    rows = json.loads((tmp_path / "f.json").read_text())
    said = capsys.readouterr().out
    assert all(row["value"] > 0 and row["name"] in said for row in rows)
    assert {row["unit"] for row in rows} == {"steps", "bytes", "µs", "per second"}
