"""All systems, in rounds that take turns, so that what else the machine does hits each of them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from reattach.runtime.bench.report import Result
from reattach.runtime.bench.trial import Killed, Row, Trial


def compare(
    names: Sequence[str],
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

    def trial(name: str, part: str) -> Trial:
        place = folder / part / str(names.index(name))
        return Trial(name, place, calls=calls, concurrency=concurrency, run_ms=run_ms)

    rows: dict[str, list[Row]] = {name: [] for name in names}
    for number in range(1, rounds + 1):
        for name in names:
            row = trial(name, f"round-{number}").measure()
            rows[name].append(row)
            say(f"round {number} of {rounds}: {name}: {row.calls_per_second:.0f} calls/s")
    killed: dict[str, Killed] = {}
    for name in names if kill else ():
        killed[name] = trial(name, "kill").kill()
        say(f"kill -9: {name}: {killed[name].duplicates} duplicates, {killed[name].lost} lost")
    return [Result(rows[name], killed.get(name)) for name in names]
