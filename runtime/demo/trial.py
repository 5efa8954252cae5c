"""One half of the demonstration: a server, a job, a crash in the middle, and the job's second life.

Every process is a real one. The job runs in a process group of its own, which is killed as a whole:
the client and the JVM get SIGKILL at the same moment. What happened is read from the log that the
server wrote, and from nowhere else.
"""

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reattach.models.errors import ReattachError
from reattach.runtime.agent.log import LogSummary
from reattach.runtime.agent.process import serving
from reattach.runtime.processes import in_session, kill_all
from reattach.runtime.run.checkpoints import latest

LATENCY: Final = "2s-6s"
BATCHES: Final = 10
BATCH_S: Final = 0.5
LOOK_S: Final = 0.25
PHASE_LIMIT_S: Final = 180.0
ENDED_SHARE: Final = 0.35
GOING_ON_SHARE: Final = 0.25
LATE_SHARE: Final = 0.7

_CONFIG: Final = """\
[job]
name = "{name}"
requests = "requests"
outcomes = "outcomes"
checkpoints = "checkpoints"
concurrency_max = 1000

[agents.demo]
protocol = "thread"
url = "{url}"

[agents.demo.policy]
retention_ms = 86_400_000
# The demo server shows a POST at once, and answers within two seconds: short bounds, short quiet time.
admission_ms = 100
submit_validity_ms = 500
submit_timeout_ms = 1_500
"""


class TrialError(ReattachError):
    """The demonstration did not come to its end."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What the server saw, over both lives of the job.

    Args:
        turns: runs that the server started; one per call is right.
        duplicates: runs started for a call that had one already.
        lost: calls that the server never saw, or that have no outcome.
        reattached: runs that were going on at the crash and were joined without a new POST.
        read_after_crash: results of runs from before the crash that were read only after it.
    """

    calls: int
    posts: int
    turns: int
    duplicates: int
    lost: int
    reattached: int
    read_after_crash: int
    seconds: float


class Trial:
    """See the module's text.

    Args:
        name: of the job, and of its folder.
        command: what runs the job, without the configuration file.
        say: takes a line on how it goes.
        stop: set from outside to give up.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        command: Sequence[str],
        *,
        calls: int,
        seed: int,
        say: Callable[[str], None],
        stop: threading.Event,
    ) -> None:
        self._stop = stop
        self._folder = folder / name
        self._name = name
        self._command = command
        self._ids = [f"{name}-{seed}-{number:04}" for number in range(calls)]
        self._seed = seed
        self._say = say
        self._log = self._folder / "agent.log"

    def run(self) -> Counts:
        """Run it.

        Raises:
            TrialError: a process did not do its part; the message names its output.
        """
        begun = time.monotonic()
        (self._folder / "requests").mkdir(parents=True)
        with serving(self._log, LATENCY, {"seed": self._seed}) as url:
            config = self._folder / "job.toml"
            config.write_text(_CONFIG.format(name=self._name, url=url), encoding="utf-8")
            crash_ms = self._first_life(config)
            self._second_life(config)
        summary = LogSummary.of_file(self._log, self._ids)
        return Counts(
            calls=len(self._ids),
            posts=summary.posts,
            turns=summary.turns,
            duplicates=summary.duplicates,
            lost=max(summary.lost, len(self._ids) - self._outcomes()),
            reattached=summary.reattached(crash_ms),
            read_after_crash=summary.read_after_crash(crash_ms),
            seconds=round(time.monotonic() - begun, 1),
        )

    def _first_life(self, config: Path) -> int:
        """Start the job, feed it, and kill it in the middle; returns when, in epoch milliseconds."""
        batches = self._batches()
        next(batches)
        self._say("starting a server and the job")
        with self._job(config, "first") as job:
            self._wait(job, lambda: self._summary().posts > 0, "the server had a POST")
            for _ in batches:
                self._stop.wait(BATCH_S)
            self._wait(job, self._in_the_middle, "it was in the middle of its work")
            kill_all(job)
            crash_ms = time.time_ns() // 1_000_000
            summary = self._summary()
        self._say(
            f"kill -9 of the job's processes: {summary.turns - summary.unfinished} runs had ended, "
            f"{summary.unfinished} were going on, {len(self._ids) - summary.calls} calls were still to be made"
        )
        return crash_ms

    def _second_life(self, config: Path) -> None:
        self._say("starting the job again from its last checkpoint")
        with self._job(config, "second") as job:
            self._wait(job, lambda: job.poll() == 0, "the job was done", "second")

    def _job(self, config: Path, life: str) -> "contextlib.AbstractContextManager[subprocess.Popen[bytes]]":
        return in_session([*self._command, str(config)], self._folder / f"{life}.out")

    def _batches(self) -> Iterator[None]:
        """Place the requests, a file at a time."""
        size = -(-len(self._ids) // BATCHES)
        for start in range(0, len(self._ids), size):
            now_ms = time.time_ns() // 1_000_000
            lines = [
                json.dumps({"invocation_id": one, "agent": "demo", "message": one, "requested_at_ms": now_ms}) + "\n"
                for one in self._ids[start : start + size]
            ]
            hidden = self._folder / "requests" / f".{start:05}"
            hidden.write_text("".join(lines), encoding="utf-8")
            hidden.rename(hidden.with_name(f"{start:05}.jsonl"))
            yield

    def _wait(self, job: "subprocess.Popen[bytes]", done: Callable[[], bool], what: str, life: str = "first") -> None:
        until = time.monotonic() + PHASE_LIMIT_S
        while not done():
            if job.poll() is not None:
                raise TrialError(self._broken(life, f"ended with code {job.returncode} before {what}"))
            if time.monotonic() > until:
                raise TrialError(self._broken(life, f"{PHASE_LIMIT_S:.0f} s have passed before {what}"))
            if self._stop.wait(LOOK_S):
                raise TrialError(f"{self._name}: stopped")

    def _broken(self, life: str, why: str) -> str:
        lines = (self._folder / f"{life}.out").read_text(errors="replace").strip().splitlines()
        return f"{self._name}: {why}: {lines[-1] if lines else 'no output'}"

    def _summary(self) -> LogSummary:
        return LogSummary.of_file(self._log, self._ids)

    def _in_the_middle(self) -> bool:
        """Some runs have ended, many are going on (or it is late anyway), and there is a checkpoint."""
        summary, calls = self._summary(), len(self._ids)
        ended = summary.turns - summary.unfinished
        many = summary.unfinished >= GOING_ON_SHARE * calls or ended >= LATE_SHARE * calls
        return ended >= ENDED_SHARE * calls and many and latest(self._folder / "checkpoints") is not None

    def _outcomes(self) -> int:
        files = (self._folder / "outcomes").glob("part-*.jsonl")
        return len({json.loads(line)["invocation_id"] for file in files for line in file.read_bytes().splitlines()})
