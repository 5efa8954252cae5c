"""A cluster under load whose TaskManagers are killed: `python -m tests.cluster.soak --seconds 180 --seed 1`.

A job of parallelism 2 has three TaskManagers, one of them spare. Twenty calls are asked for each second; each 20 to 40
seconds one of two TaskManagers is killed, a busy one where it can be told, and another one started. The third is never
killed: its tasks restart each time in the same process, so its memory shows what a restart leaves behind. When the time
is over, the job has to bring every call to its outcome. The last line is one JSON object:

    calls, kills
    duplicates         runs that the remote started beyond the first of a call
    lost               calls without a run or without an outcome
    doubled_outcomes   outcomes beyond the first of a call
    rss_first_mb       memory of the TaskManager that is never killed, at the first kill
    rss_last_mb        ... and at the end

The exit code is 1 when anything was duplicated, lost or doubled.
"""

import argparse
import json
import random
import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from reattach.runtime.run.outbox import Outbox
from tests.cluster.cluster import Cluster, cluster
from tests.cluster.jobs import ClusterJob, job
from tests.e2e.harness import Process

PARALLELISM: Final = 2
CALLS_PER_S: Final = 20
KILL_S: Final = (20.0, 40.0)
PATIENCE_S: Final = 300.0
# The heap is there from the start, so that what grows is what is held outside it.
SETTINGS: Final = {"env.java.opts.taskmanager": "-XX:+AlwaysPreTouch"}


class Soak:
    """One run of it.

    Args:
        seconds: how long calls are asked for.
        seed: of the moments and the victims.
    """

    def __init__(self, cluster: Cluster, made: ClusterJob, seconds: float, seed: int) -> None:
        self.cluster, self.job, self.seconds = cluster, made, seconds
        self.dice = random.Random(seed)
        self.kills = 0
        self.rss_mb: list[int] = []
        self.outbox = Outbox(made.outcomes)

    def run(self) -> dict[str, int]:
        self.job.submit()
        self.job.until(lambda: self.cluster.running(self.job.id), "the job running")
        # The spare one comes now, so that the one whose memory is looked at has work.
        self.cluster.start_workers(1)
        self.job.until(lambda: self.cluster.registered() == PARALLELISM + 1, "the spare TaskManager")
        self._load()
        self.job.until(self._all_done, "an outcome of each call", PATIENCE_S)
        self.rss_mb.append(_rss_mb(self.cluster.workers[0]))
        seen, outcomes = self.job.seen(), self.job.outcomes_of()
        without = {name for name in self.job.expected if name not in outcomes}
        return {
            "calls": len(self.job.expected),
            "kills": self.kills,
            "duplicates": seen.duplicates,
            "lost": seen.lost + len(without),
            "doubled_outcomes": sum(len(rows) - 1 for rows in outcomes.values()),
            "rss_first_mb": self.rss_mb[0],
            "rss_last_mb": self.rss_mb[-1],
        }

    def _load(self) -> None:
        begin = time.monotonic()
        kill_at = begin + self.dice.uniform(*KILL_S)
        for second in range(int(self.seconds)):
            self.job.ask(CALLS_PER_S, prefix=f"s{second}")
            if time.monotonic() >= kill_at:
                kill_at = time.monotonic() + self.dice.uniform(*KILL_S)
                self._kill()
            time.sleep(max(0.0, begin + second + 1 - time.monotonic()))
        if not self.rss_mb:
            self.rss_mb.append(_rss_mb(self.cluster.workers[0]))

    def _kill(self) -> None:
        mortal = self.cluster.workers[1:]
        victim = self.dice.choice(self.cluster.busy(self.job.id, mortal) or mortal)
        victim.kill()
        self.cluster.workers.remove(victim)
        self.cluster.start_workers(1)
        self.kills += 1
        self.rss_mb.append(_rss_mb(self.cluster.workers[0]))
        self.outbox.scan()
        _say(f"kill {self.kills}: {self.outbox.calls} of {len(self.job.expected)} calls done; {self.rss_mb[-1]} MB")

    def _all_done(self) -> bool:
        time.sleep(1.0)
        self.outbox.scan()
        return self.outbox.calls >= len(self.job.expected)


def _rss_mb(process: Process) -> int:
    status = Path(f"/proc/{process.child.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found, "a process that lives has memory"
    return int(found[1]) // 1024


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def soak(folder: Path, seconds: float, seed: int) -> dict[str, int]:
    """Run it in a folder; returns what was counted."""
    with cluster(folder / "cluster", SETTINGS) as made:
        made.have_workers(PARALLELISM)
        with job(folder / "job", made, parallelism=PARALLELISM) as work:
            return Soak(made, work, seconds, seed).run()


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill TaskManagers under load, and count at the remote.")
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    # So that the cluster's processes are ended with this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="reattach-soak-") as folder:
        counted = soak(Path(folder), given.seconds, given.seed)
    print(json.dumps(counted), flush=True)
    return int(any(counted[name] for name in ("duplicates", "lost", "doubled_outcomes")))


if __name__ == "__main__":
    sys.exit(main())
