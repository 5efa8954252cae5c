"""The JobManager dies, and the job is submitted anew; or it is stopped with a savepoint, to go on with more workers."""

from pathlib import Path

import pytest

from reattach.runtime.run.checkpoints import latest
from tests.cluster.cluster import Cluster, go_on, stop
from tests.cluster.jobs import ENDED, assert_sent_once, job
from tests.e2e.harness import until

pytestmark = [pytest.mark.flink, pytest.mark.slow]
CALLS = 60


def test_resumed_from_the_latest_checkpoint_after_the_jobmanager_died(tmp_path: Path, shared: Cluster) -> None:
    """Nobody else remembers the job. Its tasks outlive their JobManager, and overlap with their successors."""
    shared.have_workers(2)
    with job(tmp_path / "w", shared, latency="1s-8s") as made:
        made.ask(CALLS)
        made.submit()
        made.until(lambda: made.kinds()["end"] >= CALLS // 4, "some runs ended")
        assert made.kinds()["end"] < CALLS
        shared.manager.kill()
        first, held = made.id, latest(made.checkpoints)
        shared.start_manager()
        assert shared.state(first) == "", "a new JobManager knows nothing"
        until(lambda: shared.registered() == 2, "the TaskManagers of before")
        made.resume(made.checkpoints)
        assert latest(made.checkpoints) == held or first not in str(latest(made.checkpoints))
        made.until_done()
        assert_sent_once(made)


def test_taskmanagers_that_are_cut_off_from_the_jobmanager_but_not_from_the_remote(
    tmp_path: Path, shared: Cluster
) -> None:
    """The JobManager stands still: workers give up their tasks by themselves, while it still counts on them."""
    shared.have_workers(2)
    with job(tmp_path / "w", shared, latency="1s-4s") as made:
        made.ask(CALLS)
        made.submit()
        made.until(lambda: made.kinds()["end"] >= CALLS // 4, "some runs ended")
        made.ask(CALLS, prefix="late")
        given_up = "The heartbeat of JobManager with id"
        before = [one.text().count(given_up) for one in shared.workers]
        stop(shared.manager)
        try:
            until(
                lambda: all(w.text().count(given_up) > n for w, n in zip(shared.workers, before, strict=True)),
                "both workers to give it up",
            )
        finally:
            go_on(shared.manager)
        made.until_done()
        assert_sent_once(made)
        assert shared.failures(made.id), "the job was never disturbed"


def test_stopped_with_a_savepoint_and_started_with_another_parallelism(tmp_path: Path, shared: Cluster) -> None:
    shared.have_workers(2)
    with job(tmp_path / "w", shared, latency="2s-12s", parallelism=1) as made:
        made.ask(CALLS)
        made.submit()
        made.until(lambda: made.kinds()["end"] >= CALLS // 4, "some runs ended")
        savepoint = shared.stop_with_savepoint(made.id, tmp_path / "savepoints")
        assert shared.state(made.id) in ENDED
        made.config.write_text(made.config.read_text().replace("parallelism = 1", "parallelism = 2"))
        made.ask(CALLS, prefix="later")
        made.submit("-s", f"file://{savepoint}", script=("--lineage",))
        made.until_done()
        assert_sent_once(made)
        assert shared.worker_of(made.id, 0) is not shared.worker_of(made.id, 1)
