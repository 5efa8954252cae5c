"""How the cost of this engine grows: with calls that wait, with the size of a message, with where state is kept.

Each case is a run of its own. Calls that wait are weighed for a while when all of them have been accepted and none has
ended, and the run is then killed: what is measured is what waiting costs.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from reattach.runtime.bench.systems import System, polling, streaming
from reattach.runtime.bench.trial import Trial
from reattach.runtime.config import HASHMAP, ROCKSDB

WAITING: Final = (100, 10_000)
LONG_RUN: Final = "3600s"
WAITING_POLL_MS: Final = 30_000
# Long enough for each of them to be asked about once.
WEIGHED_S: Final = 30.0
MESSAGES: Final = (200, 10_000, 100_000)
HEADS: Final = (
    "case", "calls", "calls/s", "CPU s per 1,000 calls", "cores while they wait", "% of a core for each", "requests/s",
    "PSS, MB",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the result; None for what the case does not say.

    Args:
        cores: CPU seconds per second while all calls wait.
        requests_per_s: that the server saw meanwhile.
    """

    name: str
    calls: int
    calls_per_second: float | None = None
    cpu_s_per_1000: float | None = None
    cores: float | None = None
    requests_per_s: float | None = None
    pss_mb: float = 0.0

    def cells(self) -> tuple[str, ...]:
        each = None if self.cores is None else 100 * self.cores / self.calls
        numbers = (self.calls_per_second, self.cpu_s_per_1000, self.cores, each, self.requests_per_s)
        digits = (0, 2, 3, 4, 1)
        told = ["–" if value is None else f"{value:.{places}f}" for value, places in zip(numbers, digits, strict=True)]
        return self.name, f"{self.calls}", *told, f"{self.pss_mb:.0f}"


def cases(folder: Path, *, calls: int, waiting: Sequence[int], say: Callable[[str], None]) -> list[Case]:
    """Measure all of them, one after the other.

    Args:
        folder: a new one, for all files.
        calls: of the cases in which calls come to their ends.
        waiting: how many calls wait, for those cases alone; empty for all cases.

    Raises:
        BenchError: a run did not come to what was to be measured.
    """
    found: list[Case] = []

    def add(case: Case) -> None:
        found.append(case)
        say(" · ".join(case.cells()))

    for number in waiting or WAITING:
        for name, system in (("polled each 30 s", _patient()), ("streams", streaming(**_PATIENCE))):
            add(_held(folder / f"{name}-{number}", f"waiting, {name}", system, number))
    if waiting:
        return found
    for size in MESSAGES:
        add(_ended(folder / f"message-{size}", f"message of {size} bytes", polling(), calls, size))
    for backend in (HASHMAP, ROCKSDB):
        job = {"state_backend": backend}
        add(_ended(folder / backend, f"state in {backend}", polling(job=job), calls, MESSAGES[0]))
    rocksdb = _patient(job={"state_backend": ROCKSDB})
    add(_held(folder / "rocksdb-waiting", "waiting, state in rocksdb", rocksdb, max(WAITING)))
    return found


# Asks so seldom that what a call costs by merely waiting shows.
_PATIENCE: Final = {
    "poll_ms": WAITING_POLL_MS, "poll_max_ms": WAITING_POLL_MS, "watch_silence_ms": 2 * WAITING_POLL_MS,
}  # fmt: skip


def _patient(job: Mapping[str, Any] | None = None) -> System:
    return polling(job=job, **_PATIENCE)


def _held(folder: Path, name: str, system: System, calls: int) -> Case:
    held = Trial(system, folder, calls=calls, concurrency=256, run_ms=200, runs=LONG_RUN).hold(WEIGHED_S)
    return Case(name, calls, cores=held.cores, requests_per_s=held.requests_per_s, pss_mb=held.pss_mb)


def _ended(folder: Path, name: str, system: System, calls: int, size: int) -> Case:
    row = Trial(system, folder, calls=calls, concurrency=256, run_ms=200, message_bytes=size).measure()
    return Case(name, calls, row.calls_per_second, row.cpu_s_per_1000, pss_mb=row.pss_mb)


def markdown(found: Sequence[Case]) -> str:
    """The part of docs/performance.md."""
    lines = ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    lines += ["| " + " | ".join(case.cells()) + " |" for case in found]
    return "\n".join(lines) + "\n"


def write_json(path: Path, found: Sequence[Case]) -> None:
    path.write_text(json.dumps([asdict(case) for case in found], indent=1) + "\n", encoding="utf-8")
