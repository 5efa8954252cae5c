"""The simulated world: whole histories, drawn from a seed."""

import hashlib
import subprocess
import sys

import pytest

from reattach.models.errors import ConfigError
from reattach.models.identity import marker_of
from reattach.runtime.simulation.faults import ALL, NONE, Faults, faults_of
from reattach.runtime.simulation.report import Report
from reattach.runtime.simulation.world import World

DIGEST = """
import hashlib
from reattach.runtime.simulation.faults import ALL
from reattach.runtime.simulation.world import World
digest = hashlib.sha256()
World(7, ALL, calls=120, on_entry=lambda entry: digest.update(repr(entry).encode())).run()
print(digest.hexdigest())
"""


def run(seed: int, faults: Faults, calls: int = 200) -> Report:
    return World(seed, faults, calls=calls).run()


def test_without_faults_every_call_completes() -> None:
    report = run(1, NONE)
    assert report.ended == {"COMPLETED": 200}
    assert (report.crashes, report.parked, report.stuck, report.violations) == (0, 0, 0, ())


@pytest.mark.parametrize("seed", range(8))
def test_with_every_fault_on_nothing_breaks(seed: int) -> None:
    report = run(seed, ALL)
    assert report.violations == ()
    assert report.stuck == 0
    assert sum(report.ended.values()) + report.parked >= report.calls


def test_crashes_alone_cost_no_call() -> None:
    """Restarts, also of a restart, lose nothing, double nothing and cancel nothing, where the remote can be asked."""
    world = World(3, Faults(crash_every_ms=1_500, zombie=0.5, crash_again=0.3), calls=300)
    report = world.run()
    assert report.crashes > 2
    assert report.violations == ()
    blind = {name for name, outcome in world.ledger.committed.items() if outcome.failure is not None}
    assert all(name.startswith("handle-only") for name in blind)
    assert all(world.ledger.accepted[marker_of(request.invocation_id, 1)] <= 1 for request in world.asked)


def test_one_seed_is_one_history_in_every_process() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(digests) == 1


def test_another_seed_is_another_history() -> None:
    def history(seed: int) -> str:
        digest = hashlib.sha256()
        World(seed, ALL, calls=30, on_entry=lambda entry: digest.update(repr(entry).encode())).run()
        return digest.hexdigest()

    assert history(1) != history(2)


class TestFaults:
    def test_named_ones_are_on_and_all_others_off(self) -> None:
        assert faults_of("lose,zombie=1") == Faults(lose=ALL.lose, zombie=1)
        assert faults_of("none") == NONE
        assert faults_of("all") == ALL

    @pytest.mark.parametrize("names", ["rain", "lose=2", "lose=-1", "lose=x", "crash_every_ms=-5"])
    def test_nonsense_is_refused_by_name(self, names: str) -> None:
        with pytest.raises(ConfigError, match=names.partition("=")[0]):
            faults_of(names)
