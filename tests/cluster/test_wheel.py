"""`flink run --pyFiles reattach-*.whl`: the machines have what reattach needs, and reattach comes with the job."""

import subprocess
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, cluster
from tests.cluster.jobs import assert_sent_once, job

pytestmark = [pytest.mark.flink, pytest.mark.slow]
CALLS = 20


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has all of this one but reattach: no network."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    (site,) = (folder / "lib").glob("python*/site-packages")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "reattach" not in entry.name:
            (site / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def without(bare: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that has no reattach, nor has its client."""
    with cluster(tmp_path_factory.mktemp("without") / "c", python=str(bare)) as made:
        yield made


def test_the_wheel_is_all_that_a_job_brings(tmp_path: Path, bare: Path, without: Cluster, wheel: Path) -> None:
    """Also after a restart in a process that has imported from the wheel: Flink puts it to another place each time."""
    asked = subprocess.run([bare, "-c", "import pyflink, reattach"], cwd=tmp_path, capture_output=True, text=True)
    assert "No module named 'reattach'" in asked.stderr
    without.have_workers(2)
    with job(tmp_path / "w", without, latency="1s-4s") as made:
        made.ask(CALLS)
        made.submit("--pyFiles", str(wheel))
        made.until(lambda: made.kinds()["end"], "a run ended")
        without.worker_of(made.id).kill()
        without.start_workers(1)
        made.until_done()
        assert_sent_once(made)
        assert without.failures(made.id), "the job was never disturbed"
