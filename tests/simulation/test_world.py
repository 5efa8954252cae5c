"""The simulated world: whole histories, drawn from a seed."""

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reattach.models.identity import marker_of
from reattach.runtime.replay.reading import read
from reattach.runtime.replay.report import SAME, replay
from reattach.runtime.simulation.faults import ALL, NONE, Faults
from reattach.runtime.simulation.history import write_journal
from reattach.runtime.simulation.many import Plan, run_all
from reattach.runtime.simulation.report import Report
from reattach.runtime.simulation.world import World

WRITE = """
import sys
from pathlib import Path
from reattach.runtime.simulation.history import write_journal
from reattach.runtime.simulation.many import Plan
write_journal(Plan(7, 120, "all"), Path(sys.argv[1]))
"""


def run(seed: int, faults: Faults, calls: int = 200) -> Report:
    return World(seed, faults, calls=calls).run()


def test_without_faults_every_call_completes() -> None:
    report = run(1, NONE)
    assert report.ended == {"COMPLETED": 200}
    assert (report.crashes, report.parked, report.happened) == (0, 0, {})
    assert report.good


@pytest.mark.parametrize("seed", range(8))
def test_with_every_fault_on_nothing_breaks(seed: int) -> None:
    report = run(seed, ALL)
    assert (report.violations, report.crash, report.broken) == ((), "", ())
    assert sum(report.ended.values()) == report.calls
    assert report.crashes > 0


def test_crashes_alone_cost_no_call() -> None:
    """Restarts, also of a restart, lose nothing, double nothing and cancel nothing, where the remote can be asked."""
    world = World(3, Faults(crash_every_ms=1_500, zombie=0.5, crash_again=0.3), calls=300)
    report = world.run()
    assert report.crashes > 2
    assert report.good
    failed = {name for name, outcome in world.ledger.committed.items() if outcome.failure is not None}
    # One kind cannot be asked without a handle; one shows only the newest turn of a thread, not those before.
    assert {name.rpartition("-")[0] for name in failed} <= {"handle-only", "marker-last"}
    decided = world.people.parked
    assert all(world.ledger.accepted[marker_of(name, 1)] == 1 for name in world.ledger.committed.keys() - decided)


def test_one_seed_is_one_journal_in_every_process(tmp_path: Path) -> None:
    written = []
    for seed in ("0", "1", "4711"):
        file = tmp_path / f"{seed}.journal"
        subprocess.run([sys.executable, "-c", WRITE, str(file)], env={"PYTHONHASHSEED": seed}, check=True)
        written.append(file.read_bytes())
    write_journal(Plan(7, 120, "all"), tmp_path / "here.journal")
    assert len(written[0]) > 100_000
    assert {*written} == {(tmp_path / "here.journal").read_bytes()}


def test_a_journal_does_not_change_what_happens(tmp_path: Path) -> None:
    plan = Plan(5, 60, "all")
    told = write_journal(plan, tmp_path / "a.journal")
    (silent,) = run_all(plan, 1, lambda _: None)
    assert replace(told, seconds=0) == replace(silent, seconds=0)


@pytest.mark.parametrize("seed", range(3))
def test_a_simulated_journal_replays_to_the_same_states(seed: int, tmp_path: Path) -> None:
    file = tmp_path / "world.journal"
    write_journal(Plan(seed, 100, "all"), file)
    report = replay(read([file]))
    assert report.code == SAME
    assert report.calls == 100
    assert report.checked > 1_000


def test_another_seed_is_another_history() -> None:
    def history(seed: int) -> str:
        digest = hashlib.sha256()
        World(seed, ALL, calls=30, on_entry=lambda entry: digest.update(repr(entry).encode())).run()
        return digest.hexdigest()

    assert history(1) != history(2)
