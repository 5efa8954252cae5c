"""The simulated world finds faults: each break of the shipped code shows as a violation within a few seeds."""

import pytest

from reattach.runtime.mutants.catalogue import MUTANTS
from reattach.runtime.simulation.many import Plan, run_one
from reattach.runtime.simulation.report import Report

HARSH = "crash_every_ms=1500,zombie=1,lose=0.3,linger=1,hide=1,duplicate=0.3,unsent=0.5"
BREAKS = [
    "no-probe",
    "no-quiet-time",
    "resubmit-on-restore",
    "epoch-ignored",
    "permit-survives-a-restore",
    "overlap-ignored",
    "admission-bound-ignored",
    "own-sends-ignored",
    "unresolved-is-not-sent",
    "absence-while-running-resubmits",
    "fence-skipped",
    "lost-fence-answer-believed",
]
SEEDS = 30
CALLS = 300


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_found(name: str) -> None:
    with MUTANTS[name].apply():
        found = next((report for report in map(_run, range(SEEDS)) if report.violations), None)
    assert found is not None, f"{name} survives {SEEDS} worlds"
    assert found.broken[0] in found.violations[0]
    assert _run(found.seed).good


def _run(seed: int) -> Report:
    return run_one(Plan(seed, CALLS, HARSH))
