"""State in RocksDB, with incremental checkpoints: a TaskManager dies, and a savepoint goes to another parallelism.

The backend is chosen where the job is submitted, so it needs no cluster of its own.
"""

from pathlib import Path
from typing import Final

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.jobs import ENDED, ClusterJob, assert_sent_once, job
from tests.cluster.test_workers import half_way

pytestmark = [pytest.mark.flink, pytest.mark.slow]
CALLS = 60
SETTINGS: Final = {
    "state.backend.type": "rocksdb",
    "execution.checkpointing.incremental": "true",
    # RocksDB's files are small here, and small files would lie within the checkpoint's metadata.
    "execution.checkpointing.data-inline-threshold": "0b",
}
ROCKSDB: Final = tuple(f"-D{key}={value}" for key, value in SETTINGS.items())


def assert_rocksdb(made: ClusterJob) -> None:
    """By the JobManager's word, and by files that several checkpoints share: of incremental ones only."""
    asked = made.cluster.get(f"/jobs/{made.id}/checkpoints/config")
    assert asked["state_backend"] == "EmbeddedRocksDBStateBackend", asked
    assert list((made.checkpoints / made.id / "shared").iterdir())


def test_a_taskmanager_is_killed_and_a_savepoint_goes_to_another_parallelism(tmp_path: Path, shared: Cluster) -> None:
    shared.have_workers(3)
    with job(tmp_path / "w", shared, latency="1s-4s", parallelism=1) as made:
        made.ask(CALLS)
        made.submit(*ROCKSDB)
        half_way(made)
        lost = shared.worker_of(made.id)
        lost.kill()
        made.until(lambda: shared.moved_from(made.id, lost), "the job running elsewhere")
        made.ask(CALLS, prefix="later")
        made.until(lambda: made.kinds()["end"] >= CALLS, "what was half done before")
        assert_rocksdb(made)
        savepoint = shared.stop_with_savepoint(made.id, tmp_path / "savepoints")
        assert shared.state(made.id) in ENDED
        assert shared.failures(made.id), "the job was never disturbed"
        made.config.write_text(made.config.read_text().replace("parallelism = 1", "parallelism = 2"))
        made.submit(*ROCKSDB, "-s", f"file://{savepoint}", script=("--lineage",))
        made.until_done()
        assert_rocksdb(made)
        assert_sent_once(made)
