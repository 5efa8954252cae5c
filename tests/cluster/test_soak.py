"""The soak, for three minutes; `make soak SECONDS=1200 SEED=7` runs it for longer."""

import json
from pathlib import Path

import pytest

from tests.cluster.soak import CALLS_PER_S, soak

pytestmark = [pytest.mark.flink, pytest.mark.slow, pytest.mark.last]
SECONDS = 180


def test_three_minutes_of_kills_under_load(tmp_path: Path) -> None:
    counted = soak(tmp_path, seconds=SECONDS, seed=1)
    print(json.dumps(counted))
    assert counted["kills"] >= 3
    assert counted["calls"] == SECONDS * CALLS_PER_S
    assert (counted["duplicates"], counted["lost"], counted["doubled_outcomes"]) == (0, 0, 0)
