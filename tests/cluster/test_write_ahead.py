"""An agent that nobody can ask, under the faults of a cluster: at most one run for each call, by the remote's count.

Calls that a checkpoint knows are joined. Of those that were about to be sent or had just been sent when it all
happened, some cannot be told: they fail as ambiguous, and are not sent again.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.openai_api import Api, api
from tests.cluster.cluster import Cluster, go_on, stop
from tests.cluster.jobs import OVERLAP_MS, Submitted
from tests.e2e.harness import POLICY

pytestmark = [pytest.mark.flink, pytest.mark.slow]
CALLS = 24


class Ahead(Submitted):
    def __init__(self, folder: Path, cluster: Cluster, remote: Api) -> None:
        super().__init__(cluster, folder / "job.toml")
        self.folder, self.remote = folder, remote
        (folder / "requests").mkdir(parents=True)
        policy = {**POLICY, "overlap_ms": OVERLAP_MS, "submit_after": "checkpoint", "on_ambiguous": "fail"}
        policy.pop("retention_ms")
        lines = ["[job]", "checkpoint_interval_ms = 500", "parallelism = 2"]
        lines += [f'{name} = "{name}"' for name in ("requests", "outcomes", "checkpoints", "notices")]
        lines += ["[agents.ai]", 'protocol = "openai_responses"', f'url = "{remote.url}"', 'options.model = "m"']
        lines += [f"policy.{name} = {json.dumps(value)}" for name, value in policy.items()]
        self.config.write_text("\n".join(lines) + "\n")

    def ask(self, prefix: str, words: str) -> set[str]:
        names = [f"{prefix}-{number}" for number in range(CALLS)]
        now = int(time.time() * 1000)
        rows = [{"invocation_id": one, "agent": "ai", "message": words, "requested_at_ms": now} for one in names]
        (self.folder / ".rows").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (self.folder / ".rows").rename(self.folder / "requests" / f"{prefix}.jsonl")
        return set(names)

    def outcomes(self) -> list[dict[str, Any]]:
        files = (self.folder / "outcomes").glob("part-*")
        return [json.loads(line) for path in files for line in path.read_text().splitlines()]

    def finish(self, names: set[str]) -> set[str]:
        """Wait for an outcome of each call; returns those of which the job says that it cannot know."""
        self.until(lambda: {one["invocation_id"] for one in self.outcomes()} == names, "an outcome of each call")
        outcomes = self.outcomes()
        assert len(outcomes) == len(names), "an outcome twice"
        failed = {one["invocation_id"]: one["failure"]["code"] for one in outcomes if one["status"] != "COMPLETED"}
        assert set(failed.values()) <= {"ambiguous"}, failed
        accepted = self.remote.accepted()
        assert set(accepted.values()) == {1}, "a second run"
        assert all(accepted[one["invocation_id"]] == 1 for one in outcomes if one["status"] == "COMPLETED")
        assert set(accepted) | set(failed) == names, "a call that nobody made"
        return set(failed)


@contextmanager
def ahead(folder: Path, cluster: Cluster) -> Iterator[Ahead]:
    with api(folder) as remote:
        made = Ahead(folder / "job", cluster, remote)
        try:
            yield made
        finally:
            made.close()


def disturbed(made: Ahead, fault: Callable[[], None]) -> None:
    """Have calls that a checkpoint knows to run, and later ones of which some have been sent: then the fault comes."""
    known = made.ask("known", "hello @20s")
    made.submit(script=("--lineage",))
    # A stream is asked for by the id of its run; the second checkpoint from here was triggered after that.
    made.until(lambda: sum(one.startswith("GET") for one in made.remote.requests()) >= CALLS, "all ids known")
    before = made.cluster.completed(made.id)
    made.until(lambda: made.cluster.completed(made.id) >= before + 2, "two more checkpoints")
    late = made.ask("late", "hello @1s")
    made.until(lambda: made.remote.accepted().keys() & late, "some of the later calls sent")
    fault()
    assert made.finish(known | late) <= late, "a call that a checkpoint knew"
    assert Counter(known) == Counter({one: n for one, n in made.remote.accepted().items() if one in known})


def test_a_taskmanager_is_killed(tmp_path: Path, shared: Cluster) -> None:
    shared.have_workers(3)
    with ahead(tmp_path, shared) as made:
        disturbed(made, lambda: shared.worker_of(made.id).kill())
        assert shared.failures(made.id), "the job was never disturbed"


def test_a_taskmanager_that_was_given_up_comes_back(tmp_path: Path, shared: Cluster) -> None:
    shared.have_workers(3)
    with ahead(tmp_path, shared) as made:

        def fault() -> None:
            zombie = shared.worker_of(made.id)
            stop(zombie)
            try:
                made.until(lambda: shared.registered() == 2, "the loss noticed")
                made.until(lambda: shared.moved_from(made.id, zombie), "the job running elsewhere")
            finally:
                go_on(zombie)

        disturbed(made, fault)
