"""Many simulated calls: worlds of a limited size, side by side on all cores.

A world keeps its whole history in memory, so many calls are many worlds. Each has a seed of its own,
counted up from the first, so that what came of one can be had again without the others, and what
comes of all does not depend on how many processes share the work.
"""

import shlex
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from itertools import islice
from typing import Final

from reattach.models.errors import ConfigError
from reattach.models.journal import JournalEntry
from reattach.runtime.simulation.faults import faults_of
from reattach.runtime.simulation.remotes import REMOTES
from reattach.runtime.simulation.report import Report
from reattach.runtime.simulation.world import World
from reattach.runtime.workers import pool_of

WORLD_CALLS_MAX: Final = 1_000
AHEAD: Final = 4


@dataclass(frozen=True, slots=True)
class Plan:
    """What to simulate.

    Args:
        faults: names as `faults_of` reads them.
        remotes: names of model remotes; none for all.
    """

    seed: int
    calls: int
    faults: str = "none"
    remotes: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command line that does exactly this again."""
        chosen = "".join(f" --remote {name}" for name in self.remotes)
        return f"reattach simulate --seed {self.seed} --calls {self.calls} --faults {shlex.quote(self.faults)}{chosen}"

    def worlds(self) -> Iterator["Plan"]:
        """The same in worlds of at most `WORLD_CALLS_MAX` calls."""
        for number, done in enumerate(range(0, self.calls, WORLD_CALLS_MAX)):
            calls = min(WORLD_CALLS_MAX, self.calls - done)
            yield Plan(self.seed + number, calls, self.faults, self.remotes)


def check(plan: Plan) -> None:
    """Raises: ConfigError: a fault or a remote is not known."""
    faults_of(plan.faults)
    known = [remote.name for remote in REMOTES]
    for name in plan.remotes:
        if name not in known:
            raise ConfigError(f"--remote {name}: no such model remote (known: {', '.join(known)})")


def world_of(plan: Plan, on_entry: Callable[[JournalEntry], None] | None = None) -> World:
    """Make the one world of a plan of at most `WORLD_CALLS_MAX` calls."""
    chosen = tuple(remote for remote in REMOTES if not plan.remotes or remote.name in plan.remotes)
    return World(plan.seed, faults_of(plan.faults), calls=plan.calls, remotes=chosen, on_entry=on_entry)


def run_one(plan: Plan) -> Report:
    """Run one world."""
    return world_of(plan).run()


def run_all(plan: Plan, jobs: int, done: Callable[[Report], None]) -> list[Report]:
    """Run all worlds of a plan.

    Args:
        jobs: processes; 1 stays within this one.
        done: told of each report as it comes.

    Returns:
        The reports in the order of the worlds, whatever the number of processes.
    """
    worlds = list(plan.worlds())
    reports: dict[int, Report] = {}

    def take(number: int, report: Report) -> None:
        reports[number] = report
        done(report)

    if jobs == 1 or len(worlds) == 1:
        for number, one in enumerate(worlds):
            take(number, run_one(one))
    else:
        _side_by_side(worlds, min(jobs, len(worlds)), take)
    return [reports[number] for number in range(len(worlds))]


def _side_by_side(worlds: list[Plan], jobs: int, take: Callable[[int, Report], None]) -> None:
    with pool_of(jobs) as pool:
        left = iter(enumerate(worlds))
        running: dict[Future[Report], int] = {}
        while True:
            for number, one in islice(left, AHEAD * jobs - len(running)):
                running[pool.submit(run_one, one)] = number
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                take(running.pop(future), future.result())
