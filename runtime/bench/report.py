"""What the runs came to: medians over the rounds, as a table, as JSON, and as a picture."""

import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from reattach.models.errors import ConfigError
from reattach.runtime.bench.trial import Killed, Row

FIGURES: Final = (
    "calls_per_second", "cpu_s_per_1000", "pss_mb", "latency_p50_ms", "latency_p99_ms", "requests_per_call", "start_s",
)  # fmt: skip
_HEADS: Final = (
    "system", "calls/s", "CPU s per 1,000 calls", "peak PSS, MB", "added latency p50 / p99, ms", "requests per call",
    "start-up, s", "duplicates after kill -9", "lost", "recovery, s",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Result:
    """One system's rounds.

    Args:
        rows: one for each round.
        killed: of the run with a kill -9, None where there was none.
    """

    rows: Sequence[Row]
    killed: Killed | None

    @property
    def name(self) -> str:
        return self.rows[0].system

    def median(self, figure: str) -> float:
        return float(statistics.median(getattr(row, figure) for row in self.rows))

    def spread(self, figure: str) -> float:
        """The largest of the rounds over the smallest."""
        values = [getattr(row, figure) for row in self.rows]
        return float(max(values) / min(values)) if min(values) else 1.0

    def as_json(self) -> dict[str, Any]:
        first = asdict(self.rows[0])
        killed = self.killed
        return {
            **{name: first[name] for name in ("system", "calls", "concurrency", "run_ms")},
            **{name: round(self.median(name), 2) for name in FIGURES},
            "duplicates_after_kill": None if killed is None else killed.duplicates,
            "lost_after_kill": None if killed is None else killed.lost,
            "recovery_s": None if killed is None else round(killed.recovery_s, 2),
            "rounds": len(self.rows),
            "calls_per_second_spread": round(self.spread("calls_per_second"), 3),
        }


def table(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """Heads and rows, as people read them."""
    rows: list[tuple[str, ...]] = [_HEADS]
    for result in results:
        value = result.as_json()
        rows.append(
            (
                result.name,
                f"{value['calls_per_second']:.0f}",
                f"{value['cpu_s_per_1000']:.2f}",
                f"{value['pss_mb']:.0f}",
                f"{value['latency_p50_ms']:.0f} / {value['latency_p99_ms']:.0f}",
                f"{value['requests_per_call']:.1f}",
                f"{value['start_s']:.1f}",
                *("–" if value[name] is None else f"{value[name]:g}"
                  for name in ("duplicates_after_kill", "lost_after_kill", "recovery_s")),
            )
        )  # fmt: skip
    return rows


def markdown(results: Sequence[Result], command: str) -> str:
    """The part of docs/performance.md that the benchmark writes."""
    head, *rows = table(results)
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    first = results[0].rows[0]
    noise = ", ".join(f"{one.name} {one.spread('calls_per_second'):.2f}" for one in results)
    return (
        f"{first.calls} calls of {first.run_ms} ms, at most {first.concurrency} requests in flight, medians of "
        f"{len(results[0].rows)} rounds that took turns, on {os.cpu_count()} cores with Python "
        f"{platform.python_version()}; the agent server runs on the same machine (`{command}`).\n\n"
        + "\n".join(lines)
        + f"\n\nNoise, as the fastest round over the slowest: {noise}.\n"
    )


def write_into(path: Path, text: str, part: str = "bench") -> None:
    """Put the text between the two marks of a page.

    Args:
        part: the name in the marks.

    Raises:
        ConfigError: there is no such page, or it has no marks.
    """
    begin, end = (f"<!-- {part}:{mark} -->" for mark in ("begin", "end"))
    try:
        page = path.read_text(encoding="utf-8")
        before, rest = page.split(begin)
        _, after = rest.split(end)
    except (OSError, ValueError):
        raise ConfigError(f"--page: {path} must hold {begin} and {end}, once each") from None
    path.write_text(f"{before}{begin}\n{text}{end}{after}", encoding="utf-8")


def write_json(path: Path, results: Sequence[Result]) -> None:
    path.write_text(json.dumps([result.as_json() for result in results], indent=1) + "\n", encoding="utf-8")


def draw(path: Path, results: Sequence[Result]) -> None:
    """Bars: how many calls per second, what they cost, and what a crash doubles.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("--chart needs matplotlib: pip install 'reattach[bench]'") from None
    panels: Mapping[str, str] = {
        "calls_per_second": "calls per second",
        "cpu_s_per_1000": "CPU seconds per 1,000 calls",
        "latency_p50_ms": "added latency, median, ms",
        "duplicates_after_kill": "duplicates after kill -9",
    }
    values = [result.as_json() for result in reversed(results)]
    figure = Figure(figsize=(11, 1.2 + 0.5 * len(values)), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True)
    colours = ["#2a6f97" if one["system"].startswith("reattach") else "#b8b8b8" for one in values]
    for axis, (name, title) in zip(axes, panels.items(), strict=True):
        numbers = [one[name] or 0 for one in values]
        bars = axis.barh([one["system"] for one in values], numbers, color=colours)
        axis.bar_label(bars, labels=[_label(one[name]) for one in values], padding=3, fontsize=8)
        axis.set_title(title, fontsize=9)
        axis.set_xlim(0, max(numbers) * 1.25 or 1)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def _label(value: float | None) -> str:
    return "not run" if value is None else f"{value:.2f}" if 0 < value < 10 else f"{value:.0f}"
