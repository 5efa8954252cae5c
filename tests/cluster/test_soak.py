"""The soak, for a minute; `make soak SECONDS=180 SEED=1` runs it for longer."""

import json
from pathlib import Path

import pytest

from tests.cluster.soak import CALLS_PER_S, soak

pytestmark = [pytest.mark.flink, pytest.mark.slow, pytest.mark.release]


def test_a_minute_of_kills_under_load(tmp_path: Path) -> None:
    counted = soak(tmp_path, seconds=60, seed=1)
    print(json.dumps(counted))
    assert counted["kills"] >= 1
    assert counted["calls"] == 60 * CALLS_PER_S
    assert (counted["duplicates"], counted["lost"], counted["doubled_outcomes"]) == (0, 0, 0)
