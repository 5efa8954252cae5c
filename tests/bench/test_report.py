"""What rounds come to, and where it is written."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reattach.models.errors import ConfigError
from reattach.runtime.bench.report import Result, draw, markdown, table, write_into, write_json
from reattach.runtime.bench.trial import Killed, Row

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
ROW = Row(
    "reattach, polling", 2_000, 256, 200, calls_per_second=500.0, cpu_s_per_1000=1.5, pss_mb=600.0, latency_p50_ms=5,
    latency_p99_ms=20, requests_per_call=3.0, start_s=8.0,
)  # fmt: skip
ROUNDS = [ROW, replace(ROW, calls_per_second=400.0, latency_p99_ms=50), replace(ROW, calls_per_second=450.0)]
RESULTS = [Result(ROUNDS, Killed(0, 0, 12.5)), Result([replace(ROW, system="floor")], None)]


def test_medians_of_the_rounds_are_told_and_how_far_they_lie_apart(tmp_path: Path) -> None:
    write_json(tmp_path / "f.json", RESULTS)
    mine, floor = json.loads((tmp_path / "f.json").read_text())
    assert (mine["system"], mine["calls_per_second"], mine["latency_p99_ms"]) == ("reattach, polling", 450.0, 20)
    assert (mine["duplicates_after_kill"], mine["lost_after_kill"], mine["recovery_s"]) == (0, 0, 12.5)
    assert (mine["rounds"], mine["calls_per_second_spread"]) == (3, 1.25)
    assert (floor["duplicates_after_kill"], floor["rounds"], floor["calls_per_second_spread"]) == (None, 1, 1.0)


def test_the_table_has_a_row_for_each_system() -> None:
    head, mine, floor = table(RESULTS)
    assert len(head) == len(mine) == len(floor)
    assert dict(zip(head, mine, strict=True))["added latency p50 / p99, ms"] == "5 / 20"
    assert floor[-3:] == ("–", "–", "–")


def test_a_page_is_written_between_its_marks_only(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_into(page, markdown(RESULTS, "the command"))
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n2000 calls of 200 ms") and text.endswith(f"{END}\nafter\n")
    assert "old" not in text and "(`the command`)" in text and "| 450 |" in text
    write_into(page, markdown(RESULTS, "the command"))
    assert page.read_text() == text


@pytest.mark.parametrize("text", ["", BEGIN, f"{END}{BEGIN}", f"{BEGIN}{END}{BEGIN}{END}"])
def test_a_page_without_its_marks_is_left_alone(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ConfigError, match="--page: .* must hold"):
        write_into(page, "new")
    assert page.read_text() == text
    with pytest.raises(ConfigError, match="--page"):
        write_into(tmp_path / "none.md", "new")


def test_it_is_drawn(tmp_path: Path) -> None:
    draw(tmp_path / "chart.png", RESULTS)
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_nothing_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigError, match="pip install 'reattach\\[bench\\]'"):
        draw(tmp_path / "chart.png", RESULTS)
