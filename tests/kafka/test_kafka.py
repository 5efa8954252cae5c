"""The pipeline over Kafka, with the job or the broker killed in the middle.

Reproduce one: pytest tests/kafka -k 'seed-1'. REATTACH_SEED shifts the moments.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import cluster
from tests.e2e.harness import assert_each_once, random_moment
from tests.kafka.broker import Broker, broker
from tests.kafka.harness import Pipeline, assert_no_password, pipeline

pytestmark = [pytest.mark.flink, pytest.mark.slow]
BASE = int(os.environ.get("REATTACH_SEED", "0"))
CALLS = 60


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker(tmp_path_factory.mktemp("broker")) as made:
        yield made


# Whatever the number of checkpoints: one at work, one to be committed, and some that past lives left, for each output.
IDS_MAX = 6 * 4


def in_the_middle(made: Pipeline, seed: int) -> None:
    """Let the job work for a while."""
    made.ask(CALLS)
    made.start()
    made.until(lambda: made.seen().turns > 0, "the first run")
    moment = random_moment(seed, 1.0, 5.0)
    print(f"seed {seed}: {moment:.2f} s after the first run")
    time.sleep(moment)


def assert_whole_journal(made: Pipeline) -> None:
    """Nothing of the journal is missing or doubled: folding it again gives each state that it tells of."""
    path = made.folder / "all.journal"
    values = made.values("journal")
    assert len(set(values)) == len(values)
    path.write_bytes(b"\n".join([*values, b""]))
    command = [sys.executable, "-m", "reattach", "replay", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    # What a life did behind its last checkpoint was never committed.
    assert not re.search(r"\b[1-9][\d,]* entr(y|ies) undone", done.stdout), done.stdout


@pytest.mark.parametrize("seed", [BASE + 1], ids=lambda seed: f"seed-{seed}")
def test_the_job_is_killed_in_the_middle(tmp_path: Path, kafka: Broker, seed: int) -> None:
    with pipeline(tmp_path / f"job-{seed}", kafka) as made:
        in_the_middle(made, seed)
        made.kill()
        made.start()
        made.finish()
        assert_each_once(made)
        assert_whole_journal(made)


@pytest.mark.parametrize("seed", [BASE + 1], ids=lambda seed: f"seed-{seed}")
def test_the_broker_is_killed_in_the_middle(tmp_path: Path, kafka: Broker, seed: int) -> None:
    with pipeline(tmp_path / f"broker-{seed}", kafka) as made:
        in_the_middle(made, seed)
        kafka.kill()
        kafka.start()
        made.finish()
        assert_each_once(made)
        assert_whole_journal(made)


def test_the_job_is_killed_as_a_checkpoint_completes(tmp_path: Path, kafka: Broker) -> None:
    """Between a checkpoint and the commit of what it holds: the next life commits it."""
    with pipeline(tmp_path / "commit", kafka, "1s-6s") as made:
        made.ask(CALLS)
        made.start()
        made.until(lambda: made.outcomes_of(), "an outcome")
        made.kill_at_checkpoint()
        made.start()
        made.finish()
        assert_each_once(made)
        assert_whole_journal(made)
        ids = kafka.client.transactional_ids(made.folder.name)
        assert len(ids) <= IDS_MAX, sorted(ids)


def test_a_taskmanager_is_killed_in_the_middle(tmp_path: Path, kafka: Broker) -> None:
    """The same job on a cluster, with two subtasks of each output."""
    with (
        cluster(tmp_path / "flink") as flink,
        pipeline(tmp_path / "cluster", kafka, overlap_ms=4_000, parallelism=2) as made,
    ):
        flink.have_workers(2)
        made.ask(CALLS)
        submitted = flink.flink("run", "-d", "-py", *made.command)
        assert submitted.returncode == 0, submitted.stdout[-2_000:] + submitted.stderr[-2_000:]
        made.until(lambda: made.seen().turns - made.seen().unfinished >= CALLS // 4, "some runs ended")
        flink.workers[0].kill()
        flink.have_workers(2)
        made.finish()
        assert_each_once(made)
        assert_whole_journal(made)


def test_values_travel_as_the_bytes_that_they_are(tmp_path: Path, kafka: Broker) -> None:
    """Text of any script, bytes that are no text, no value at all: each is answered, and the job goes on."""
    with pipeline(tmp_path / "bytes", kafka, "10ms") as made:
        text = {"ü": "日本 𝄞 \x85\u2028"}
        made.send([made.request("odd", text), b'{"invocation_id": "\xff"}', b"", None, b"[1,\n2]", b'"\\ud834"'])
        made.start()
        made.ask(1)
        made.until(lambda: set(made.outcomes_of()) == {"odd", "call-0"}, "the outcomes of the two that are requests")
        made.more_checkpoints(2)
        assert [one["result"]["echo"] for one in made.outcomes_of()["odd"]] == [text]
        rejects = sorted((one["line"], one["reason"]) for one in map(json.loads, made.values("rejects")))
        assert [line for line, _ in rejects] == ['"\\ud834"', "[1,\n2]", '{"invocation_id": "\ufffd"}']
        assert "byte 0xff" in rejects[2][1]
        assert_no_password(made)
