"""One cluster for all tests of this folder: each submits a job of its own, and says how many TaskManagers it needs."""

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster, cluster
from tests.packaging.test_wheel import wheel as wheel


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster") / "c") as made:
        yield made
