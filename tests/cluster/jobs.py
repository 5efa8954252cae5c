"""A job on the cluster, over folders and an agent server of its own."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from reattach.runtime.run.checkpoints import latest
from tests.cluster.cluster import Cluster
from tests.e2e.harness import World, assert_each_once, until

# As long as a worker is cut off before its task is given to another one, and some more.
OVERLAP_MS: Final = 4_000
PATIENCE_S: Final = 180.0
ENDED: Final = ("FAILED", "CANCELED", "FINISHED")


class Submitted:
    """What a configuration file became on a cluster."""

    def __init__(self, cluster: Cluster, config: Path) -> None:
        self.cluster, self.config, self.id = cluster, config, ""

    def submit(self, *flags: str, script: tuple[str, ...] = ()) -> None:
        self.id = self.cluster.submit(self.config, *flags, script=script)

    def resume(self, checkpoints: Path) -> None:
        """Submit it again, from the latest retained checkpoint."""
        found = latest(checkpoints)
        assert found is not None
        self.submit("-D", f"execution.state-recovery.path=file://{found}", script=("--lineage",))

    def until(self, what: Callable[[], Any], why: str, patience_s: float = PATIENCE_S) -> Any:
        """Wait for a condition that must come true before the job has failed for good."""

        def alive() -> Any:
            found = what()
            if not found and self.id and self.cluster.state(self.id) in ENDED:
                raise AssertionError(f"the job ended: {self.cluster.failures(self.id)[:1]}")
            return found

        return until(alive, why, patience_s)

    def close(self) -> None:
        if self.id and self.cluster.state(self.id) not in ("", *ENDED):
            self.cluster.cancel(self.id)


class ClusterJob(World):
    """The agent server and folders of `World`, and a job that a cluster runs."""

    def __init__(self, folder: Path, cluster: Cluster, *, parallelism: int = 2, **settings: Any) -> None:
        policy = {"overlap_ms": OVERLAP_MS, **settings.pop("policy", {})}
        job = {"parallelism": parallelism, "notices": str(folder / "notices")}
        super().__init__(folder, policy=policy, job=job, **settings)
        self.cluster = cluster
        self.on_cluster = Submitted(cluster, self.config)
        self.submit, self.resume = self.on_cluster.submit, self.on_cluster.resume

    @property
    def id(self) -> str:
        return self.on_cluster.id

    def until(self, what: Callable[[], Any], why: str, patience_s: float = PATIENCE_S) -> Any:
        return self.on_cluster.until(what, why, patience_s)

    def until_done(self) -> None:
        self.until(lambda: set(self.outcomes_of()) >= set(self.expected), "an outcome of each call")

    def close(self) -> None:
        self.on_cluster.close()
        super().close()


@contextlib.contextmanager
def job(folder: Path, cluster: Cluster, **settings: Any) -> Iterator[ClusterJob]:
    made = ClusterJob(folder, cluster, **settings)
    try:
        yield made
    finally:
        made.close()


def assert_sent_once(made: World) -> None:
    """Besides `assert_each_once`: nothing was sent twice either, not even what the remote recognised as known."""
    assert_each_once(made)
    sent = made.seen()
    assert sent.posts == len(made.expected), {name: one.posted_ms for name, one in sent.by_id.items() if one.posts > 1}
