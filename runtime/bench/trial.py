"""One run of one system: an agent server and the system, each in processes of its own, and what came of it.

Rates, requests and duplicates are the server's, from its log; the ends of calls are the system's own stamps on its
outcomes, on the same clock.
"""

import contextlib
import json
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reattach.models.errors import ReattachError
from reattach.runtime.agent.log import LogSummary, read_log
from reattach.runtime.agent.process import serving
from reattach.runtime.bench.systems import System, Work
from reattach.runtime.processes import Scale, cpu_s, in_session, last_line, pss_mb

LOOK_S: Final = 0.25
# The streams, the checkpoint that holds the last call, and the JVM's compiler have to come to rest.
SETTLED_S: Final = 30.0
# What is added to a call is seen while nothing waits for anything else: some fifty ends a second.
LAG_CALLS: Final = 500
LAG_RUNS: Final = "4s-14s"
PATIENCE_S: Final = 600.0


class BenchError(ReattachError):
    """A system did not come to its end."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one run showed.

    Args:
        calls_per_second: from the first request that the server saw to the last outcome.
        cpu_s_per_1000: of all the system's processes, from the server's first request on, for 1,000 calls.
        pss_mb: their memory at its most.
        latency_p50_ms, latency_p99_ms: from the end of a run at the server to its outcome, at fifty ends a second.
        requests_per_call: as the server counted them, streams included.
        start_s: from the start of the process to the server's first request.
    """

    system: str
    calls: int
    concurrency: int
    run_ms: int
    calls_per_second: float
    cpu_s_per_1000: float
    pss_mb: float
    latency_p50_ms: float
    latency_p99_ms: float
    requests_per_call: float
    start_s: float


@dataclass(frozen=True, slots=True)
class Killed:
    """What a kill -9 in the middle left, after the system was started again and had come to its end.

    Args:
        recovery_s: from the second start to the last outcome.
    """

    duplicates: int
    lost: int
    recovery_s: float


@dataclass(frozen=True, slots=True)
class Held:
    """What calls cost that merely wait.

    Args:
        cores: CPU seconds per second, of all the system's processes.
        requests_per_s: that the server saw.
    """

    cores: float
    requests_per_s: float
    pss_mb: float


class Trial:
    """One system and one load.

    Args:
        folder: a new one.
        run_ms: how long the system expects a run to take.
        message_bytes: how much longer a message is than its call's name.
        runs: how long it takes, "" for just that; see `reattach agent --latency`.
    """

    def __init__(
        self,
        system: System,
        folder: Path,
        *,
        calls: int,
        concurrency: int,
        run_ms: int,
        runs: str = "",
        message_bytes: int = 0,
    ) -> None:
        self._system, self._folder, self._runs = system, folder, runs or f"{run_ms}ms"
        self._more = "x" * message_bytes
        self._ids = [f"bench-{number:06}" for number in range(calls)]
        self._load = (calls, concurrency, run_ms)
        self._log = folder / "agent.jsonl"

    def measure(self) -> Row:
        """Run it to its end.

        Raises:
            BenchError: it ended too soon or not at all.
        """
        with self._work() as work:
            begun_ms = _now_ms()
            with self._running(work) as process:
                first_ms = self._until(process, self._first_request, "its first request")
                before_s, scale = cpu_s(process.pid), Scale(process.pid)
                for _ in self._to_its_end(process):
                    scale.look()
        ends = self._ends()
        seen = LogSummary.of_file(self._log, self._ids)
        lags = sorted(max(0, ends[one] - call.ended_ms) for one, call in seen.by_id.items() if one in ends)
        calls, concurrency, run_ms = self._load
        return Row(
            self._system.name, calls, concurrency, run_ms,
            calls_per_second=calls * 1000 / (max(ends.values()) - first_ms),
            cpu_s_per_1000=(max(before_s, scale.used_s) - before_s) * 1000 / calls,
            pss_mb=scale.most_mb,
            latency_p50_ms=statistics.median(lags),
            latency_p99_ms=lags[int(len(lags) * 0.99)],
            requests_per_call=(seen.reads + seen.posts + seen.streams) / calls,
            start_s=(first_ms - begun_ms) / 1000,
        )  # fmt: skip

    def kill(self) -> Killed:
        """Kill it when half of the runs have ended, and let it come to its end.

        Raises:
            BenchError: it ended too soon or not at all.
        """
        with self._work() as work:
            with self._running(work) as process:
                self._until(process, self._half_way, "it could be killed")
            again_ms = _now_ms()
            with self._running(work) as process:
                for _ in self._to_its_end(process):
                    pass
        seen, ends = LogSummary.of_file(self._log, self._ids), self._ends()
        return Killed(seen.duplicates, len(self._ids) - len(ends), (max(ends.values()) - again_ms) / 1000)

    def hold(self, for_s: float) -> Held:
        """Weigh it while every call has been accepted and none has ended; then end it.

        Raises:
            BenchError: it ended too soon, or took too long.
        """
        calls, _, _ = self._load
        with self._work() as work, self._running(work) as process:
            self._until(process, lambda: int(_counted(self._log, b'"kind":"turn"') >= calls), "every call was accepted")
            time.sleep(SETTLED_S)
            asked, used_s, began_s = _counted(self._log, b'"kind":'), cpu_s(process.pid), time.monotonic()
            time.sleep(for_s)
            span_s = time.monotonic() - began_s
            cores = (cpu_s(process.pid) - used_s) / span_s
            return Held(cores, (_counted(self._log, b'"kind":') - asked) / span_s, pss_mb(process.pid))

    @contextlib.contextmanager
    def _work(self) -> Iterator[Work]:
        """The requests, and a server for them."""
        (self._folder / "requests").mkdir(parents=True)
        calls, concurrency, run_ms = self._load
        rows = [
            {"invocation_id": one, "agent": "bench", "message": one + self._more, "requested_at_ms": _now_ms()}
            for one in self._ids
        ]
        (self._folder / "requests" / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        with serving(self._log, self._runs, self._system.rules) as url:
            yield Work(self._folder, url, calls, concurrency, run_ms)

    def _running(self, work: Work) -> "contextlib.AbstractContextManager[subprocess.Popen[bytes]]":
        """The system; what is left of it is killed."""
        return in_session(self._system.command(work), self._folder / "system.out")

    def _until(self, process: "subprocess.Popen[bytes]", seen: Callable[[], int], what: str) -> int:
        """What has been seen, as soon as it is something."""
        until = time.monotonic() + PATIENCE_S
        while not (found := seen()):
            if process.poll() is not None:
                raise BenchError(f"{self._system.name}: ended before {what}: {self._said()}")
            self._check_time(until)
            time.sleep(LOOK_S / 5)
        return found

    def _to_its_end(self, process: "subprocess.Popen[bytes]") -> Iterator[None]:
        """Give time to look at it while it works; it has to end with all outcomes."""
        until = time.monotonic() + PATIENCE_S
        while process.poll() is None:
            yield
            self._check_time(until)
            time.sleep(LOOK_S)
        if process.returncode != 0 or len(self._ends()) < len(self._ids):
            raise BenchError(f"{self._system.name}: {len(self._ends())} of {len(self._ids)} outcomes: {self._said()}")

    def _first_request(self) -> int:
        """When the server saw it, in epoch milliseconds; 0 for not yet."""
        return next((int(one["at_ms"]) for one in read_log(self._log) if one["kind"] in ("read", "post")), 0)

    def _half_way(self) -> bool:
        ended = sum(1 for one in read_log(self._log) if one["kind"] == "end")
        return ended >= len(self._ids) // 2

    def _ends(self) -> dict[str, int]:
        """By call, when its outcome was made."""
        return {row["invocation_id"]: row["finished_at_ms"] for row in outcomes_in(self._folder / "outcomes")}

    def _check_time(self, until: float) -> None:
        if time.monotonic() > until:
            raise BenchError(f"{self._system.name}: not done within {PATIENCE_S:.0f} s: {self._said()}")

    def _said(self) -> str:
        return last_line(self._folder / "system.out")


def outcomes_in(folder: Path) -> list[dict[str, Any]]:
    """What has been committed there."""
    files = [file for file in folder.glob("*.jsonl") if not file.name.startswith(".")]
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def _counted(path: Path, what: bytes) -> int:
    """How often it stands in a file, which may be long."""
    return path.read_bytes().count(what) if path.exists() else 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
