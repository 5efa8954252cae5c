"""A remote that nobody can ask, behind a job that is killed: at most one run for each call, counted by the remote.

The stand-in for the Responses API starts a run for every POST. Reproduce one: -k 'seed-3'; REATTACH_SEED shifts all.
"""

import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reattach.runtime.run.checkpoints import completed
from tests.adapters.openai_api import Api, api
from tests.e2e.harness import POLICY, Process, until

pytestmark = pytest.mark.flink
BASE = int(os.environ.get("REATTACH_SEED", "0"))
CALLS = 24


class Job:
    """`reattach run` over a folder, with one agent that writes ahead.

    Args:
        interval_ms: between two checkpoints.
    """

    def __init__(self, folder: Path, remote: Api, interval_ms: int) -> None:
        self.folder, self.remote, self.runs = folder, remote, 0
        (folder / "requests").mkdir(parents=True)
        policy = {**POLICY, "submit_after": "checkpoint", "on_ambiguous": "fail"}
        policy.pop("retention_ms")
        self.config = folder / "job.toml"
        self.write(interval_ms, policy, idle_stop=False)

    def write(self, interval_ms: int, policy: dict[str, Any], *, idle_stop: bool = True) -> None:
        self.policy = policy
        lines = ["[job]", f"checkpoint_interval_ms = {interval_ms}", f"idle_stop = {json.dumps(idle_stop)}"]
        lines += [f'{name} = "{name}"' for name in ("requests", "outcomes", "checkpoints", "notices")]
        lines += ["[agents.ai]", 'protocol = "openai_responses"', f'url = "{self.remote.url}"', 'options.model = "m"']
        lines += [f"policy.{name} = {json.dumps(value)}" for name, value in policy.items()]
        self.config.write_text("\n".join(lines) + "\n")

    def ask(self, words: str) -> None:
        now = int(time.time() * 1000)
        rows = [
            {"invocation_id": f"call-{number}", "agent": "ai", "message": words, "requested_at_ms": now}
            for number in range(CALLS)
        ]
        (self.folder / ".rows").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (self.folder / ".rows").rename(self.folder / "requests" / "all.jsonl")

    def start(self) -> None:
        self.runs += 1
        command = [sys.executable, "-m", "reattach", "run", str(self.config)]
        self.process = Process(command, self.folder / f"job-{self.runs}.out")

    def restart(self) -> None:
        """Kill it, and start it again as one that stops when its work is done."""
        self.process.kill()
        self.write(500, self.policy)
        self.start()

    def until(self, what: Any, why: str) -> None:
        def alive() -> Any:
            found = what()
            assert found or self.process.child.poll() is None, self.process.text()[-2_000:]
            return found

        until(alive, why)

    def finish(self) -> dict[str, dict[str, Any]]:
        """The outcomes, when the job has ended by itself."""
        until(lambda: self.process.child.poll() is not None, "the job's own end")
        assert self.process.child.returncode == 0, self.process.text()[-2_000:]
        lines = [line for path in (self.folder / "outcomes").glob("part-*") for line in path.read_text().splitlines()]
        outcomes = {one["invocation_id"]: one for one in map(json.loads, lines)}
        assert len(outcomes) == len(lines) == CALLS
        return outcomes

    def checkpoints(self) -> set[Path]:
        return set(completed(self.folder / "checkpoints"))


@contextmanager
def job(folder: Path, interval_ms: int = 500) -> Iterator[Job]:
    with api(folder) as remote:
        made = Job(folder / "job", remote, interval_ms)
        try:
            yield made
        finally:
            if made.runs:
                made.process.kill()


def ambiguous(outcomes: dict[str, dict[str, Any]]) -> set[str]:
    """Calls of which the job says that it cannot know; all others must have completed."""
    failed = {name: one["failure"] for name, one in outcomes.items() if one["status"] != "COMPLETED"}
    assert all(failure["code"] == "ambiguous" for failure in failed.values()), failed
    return set(failed)


def test_nothing_is_sent_before_a_checkpoint_holds_it(tmp_path: Path) -> None:
    """Flink's first checkpoint is empty, and the next one is an hour away."""
    with job(tmp_path, interval_ms=3_600_000) as made:
        made.start()
        made.until(lambda: len(made.checkpoints()) == 1, "the first checkpoint")
        made.ask("hello @500ms")
        made.until(lambda: f"SUBMITTED {CALLS}" in made.process.text(), "all calls held")
        assert made.remote.accepted() == Counter()
        made.restart()
        assert ambiguous(made.finish()) == set()
        assert made.remote.accepted() == Counter(f"call-{number}" for number in range(CALLS))


def test_runs_that_a_checkpoint_knows_are_joined(tmp_path: Path) -> None:
    with job(tmp_path) as made:
        made.ask("hello @15s")
        made.start()
        # A stream is asked for by the id of its run.
        made.until(lambda: sum(one.startswith("GET") for one in made.remote.requests()) >= CALLS, "all ids known")
        before = made.checkpoints()
        # The second one from here was triggered after every id had been learned.
        made.until(lambda: len(made.checkpoints() - before) >= 2, "two more checkpoints")
        made.restart()
        assert ambiguous(made.finish()) == set()
        assert made.remote.accepted() == Counter(f"call-{number}" for number in range(CALLS))


@pytest.mark.parametrize("seed", range(BASE + 1, BASE + 5), ids=lambda seed: f"seed-{seed}")
def test_killed_at_a_random_moment(tmp_path: Path, seed: int) -> None:
    moment = random.Random(seed).uniform(0.0, 4.0)
    print(f"seed {seed}: killed {moment:.2f} s after the first checkpoint")
    with job(tmp_path) as made:
        made.ask("hello @2s")
        made.start()
        made.until(made.checkpoints, "the first checkpoint")
        time.sleep(moment)
        made.restart()
        outcomes = made.finish()
        accepted, unknown = made.remote.accepted(), ambiguous(outcomes)
        assert set(accepted.values()) <= {1}, "a second run"
        assert set(accepted) | unknown == set(outcomes), "a call that nobody made"
        assert all(accepted[name] == 1 for name in set(outcomes) - unknown)
