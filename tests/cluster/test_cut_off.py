"""A TaskManager that is cut off from the JobManager alone: it lives on, works on, and still reaches the remote.

All tasks of the job are in it, so that it has no neighbour from whose end it could learn anything.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.cluster import Cluster, cluster, free_ports
from tests.cluster.cut import HERE, How, Wire, wire
from tests.cluster.jobs import ClusterJob, assert_sent_once, job
from tests.cluster.test_workers import half_way
from tests.e2e.harness import Process

pytestmark = [pytest.mark.flink, pytest.mark.slow]
CALLS = 60
LATE_CALLS = 5 * CALLS
LATE = "late"
# The JobManager notices within a second that connections break, and the TaskManager works on for the whole timeout: for
# longer than its successor would wait if there were no `overlap_ms`.
TIMEOUT: Final = "6s"
POLICY: Final = {"overlap_ms": 7_000, "submit_validity_ms": 500, "submit_timeout_ms": 1_000}


@dataclass
class Wired:
    """A cluster of two TaskManagers, each behind a wire of its own."""

    cluster: Cluster
    wires: dict[int, Wire]

    def wire_of(self, worker: Process) -> Wire:
        return self.wires[worker.child.pid]


@pytest.fixture(scope="module")
def wired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wired]:
    folder = tmp_path_factory.mktemp("wired")
    manager, blobs, *workers = free_ports(4)
    settings = {
        "heartbeat.timeout": TIMEOUT,
        "jobmanager.rpc.port": str(manager),
        "blob.server.port": str(blobs),
        # Nobody has a name for a wire's address.
        "jobmanager.retrieve-taskmanager-hostname": "false",
    }
    with contextlib.ExitStack() as stack:
        made = Wired(stack.enter_context(cluster(folder / "c", settings)), {})
        for number, port in enumerate(workers, 2):
            one = stack.enter_context(wire(f"127.0.0.{number}", [manager, blobs, port]))
            # The JobManager is called localhost, and this JVM looks for that at the wire.
            hosts = folder / f"hosts-{number}"
            hosts.write_text(f"{one.address} localhost\n")
            own = {
                "taskmanager.host": one.address,
                "taskmanager.bind-host": HERE,
                "taskmanager.rpc.port": str(port),
                "taskmanager.rpc.bind-port": str(port),
            }
            (worker,) = made.cluster.start_workers(1, own, java=f"-Djdk.net.hosts.file={hosts}")
            made.wires[worker.child.pid] = one
        made.cluster.have_workers(len(workers))
        yield made


def sent(made: ClusterJob) -> int:
    """How many of the late calls the remote has been sent."""
    return sum(name.startswith(LATE) for name in made.seen().by_id)


@pytest.mark.parametrize("how", list(How), ids=lambda how: how.value)
def test_it_sends_on_until_it_gives_up_and_nothing_is_sent_twice(tmp_path: Path, wired: Wired, how: How) -> None:
    flink = wired.cluster
    with job(tmp_path / "w", flink, parallelism=1, policy=POLICY, limits={"concurrency_max": 16}) as made:
        made.ask(CALLS)
        made.submit()
        half_way(made)
        # A POST takes half a second from here on, so that the late calls leave sixteen at a time; one that has no turn
        # soon tries again later, in no order. Two that sent at the same time would often choose the same call.
        made.control("rules", {"answer_ms": 500})
        made.ask(LATE_CALLS, prefix=LATE)
        made.until(lambda: sent(made), "the first of the late calls")
        # By then the source has asked for its next file: a question without an answer would end the task at once.
        known = flink.completed(made.id)
        made.until(lambda: flink.completed(made.id) >= known + 2, "a checkpoint that knows them")
        lonely = flink.worker_of(made.id)
        wired.wire_of(lonely).cut(how)
        before = sent(made)
        made.until(lambda: flink.registered() == 1, "the loss noticed")
        made.until(lambda: flink.moved_from(made.id, lonely), "the job running elsewhere")
        assert before < sent(made) < LATE_CALLS, "the one that is cut off went on, and left some for its successor"
        wired.wire_of(lonely).mend()
        made.until(lambda: flink.registered() == 2, "it registers again")
        made.until_done()
        assert_sent_once(made)
        assert lonely.child.poll() is None, "it lived on"
        assert flink.failures(made.id), "the job was never disturbed"
