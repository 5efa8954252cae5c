"""TaskManagers that die, and ones that come back: nothing runs twice, nothing is lost, by the remote's own count."""

from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, go_on, stop
from tests.cluster.jobs import ClusterJob, assert_sent_once, job

pytestmark = [pytest.mark.flink, pytest.mark.slow]
CALLS = 60


def half_way(made: ClusterJob) -> None:
    """Some calls have ended, some are running, and none is new: a checkpoint holds each kind."""
    made.until(lambda: made.kinds()["end"] >= CALLS // 4, "some runs ended")
    assert made.kinds()["end"] < CALLS


def test_another_taskmanager_takes_over_from_one_that_is_killed(tmp_path: Path, shared: Cluster) -> None:
    shared.have_workers(3)
    with job(tmp_path / "w", shared, latency="1s-8s") as made:
        made.ask(CALLS)
        made.submit()
        half_way(made)
        shared.worker_of(made.id, subtask=1).kill()
        made.until_done()
        assert_sent_once(made)
        assert shared.failures(made.id), "the job was never disturbed"


def test_a_taskmanager_that_is_started_again_takes_over(tmp_path: Path, shared: Cluster) -> None:
    """Until it is there, the job waits for a slot; the calls of the other half wait with it."""
    shared.have_workers(2)
    with job(tmp_path / "w", shared, latency="1s-8s") as made:
        made.ask(CALLS)
        made.submit()
        half_way(made)
        shared.worker_of(made.id).kill()
        made.until(lambda: shared.registered() == 1, "the loss noticed")
        shared.start_workers(1)
        made.until_done()
        assert_sent_once(made)


def test_a_taskmanager_that_was_given_up_and_comes_back_sends_nothing(tmp_path: Path, shared: Cluster) -> None:
    """A zombie: it stands still for longer than the heartbeat timeout, and wakes with its calls where they were."""
    shared.have_workers(3)
    # Calls that are asked for late are about to be sent when everything stops.
    with job(tmp_path / "w", shared, latency="1s-4s") as made:
        made.ask(CALLS)
        made.submit()
        half_way(made)
        made.ask(CALLS, prefix="late")
        zombie = shared.worker_of(made.id)
        stop(zombie)
        try:
            made.until(lambda: shared.registered() == 2, "the loss noticed")
            made.until(lambda: shared.moved_from(made.id, zombie), "the job running elsewhere")
        finally:
            go_on(zombie)
        made.until_done()
        assert_sent_once(made)
        assert zombie.child.poll() is None, "it lived on"
