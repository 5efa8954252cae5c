"""All systems, in rounds that take turns, so that what else the machine does hits each of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from reattach.runtime.bench.report import Result
from reattach.runtime.bench.systems import System
from reattach.runtime.bench.trial import LAG_CALLS, LAG_RUNS, Killed, Row, Trial


def compare(
    systems: Sequence[System],
    folder: Path,
    *,
    calls: int,
    concurrency: int,
    run_ms: int,
    rounds: int,
    kill: bool,
    say: Callable[[str], None],
) -> list[Result]:
    """Measure each system in each round, then kill each one.

    Args:
        folder: a new one, for all files.
        say: takes a line on how it goes.

    Raises:
        BenchError: a system did not come to its end.
    """

    def trial(number: int, part: str) -> Trial:
        place = folder / part / str(number)
        return Trial(systems[number], place, calls=calls, concurrency=concurrency, run_ms=run_ms)

    def lag(number: int, part: str) -> Trial:
        place = folder / part / str(number)
        calls, runs = LAG_CALLS, LAG_RUNS
        return Trial(systems[number], place, calls=calls, concurrency=max(calls, concurrency), run_ms=run_ms, runs=runs)

    rows: list[list[Row]] = [[] for _ in systems]
    for turn in range(1, rounds + 1):
        for number, system in enumerate(systems):
            row = trial(number, f"round-{turn}").measure()
            lone = lag(number, f"lag-{turn}").measure()
            row = replace(row, latency_p50_ms=lone.latency_p50_ms, latency_p99_ms=lone.latency_p99_ms)
            rows[number].append(row)
            say(f"round {turn} of {rounds}: {system.name}: {row.calls_per_second:.0f} calls/s")
    killed: list[Killed | None] = [None for _ in systems]
    for number, system in enumerate(systems if kill else ()):
        left = killed[number] = trial(number, "kill").kill()
        say(f"kill -9: {system.name}: {left.duplicates} duplicates, {left.lost} lost")
    return [Result(*of_one) for of_one in zip(rows, killed, strict=True)]
