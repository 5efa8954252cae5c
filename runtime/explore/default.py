"""The default run: every model remote under the bounds that are stated, side by side on all cores."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from typing import Any, Final

from reattach.runtime.explore.also import ALSO
from reattach.runtime.explore.runs import UNITS, named, scenario
from reattach.runtime.explore.scenario import Scenario
from reattach.runtime.explore.search import search
from reattach.runtime.explore.timeline import timeline


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a run explores.

    Args:
        zombies: how many crashes may leave the old incarnation alive for its overlap.
        also: what else may happen, by its name in `also.ALSO`.
    """

    remote: str
    turns: int = 1
    crashes: int = 2
    checkpoints: int = 2
    losses: int = 2
    zombies: int = 0
    also: str = ""

    @property
    def scenario(self) -> Scenario:
        also = ALSO[self.also]
        # A remote that shows its newest turn only may have moved on from a result that was not committed.
        alike = not (self.remote == "marker-last" and self.turns > 1)
        return scenario(
            also.remote(named(self.remote)),
            turns=self.turns,
            crashes=self.crashes,
            checkpoints=self.checkpoints,
            losses=self.losses,
            zombies=self.zombies,
            policy=replace(UNITS, **also.policy),
            then=also.then,
            **{"same_outcome": alike, **also.scenario},
        )


@dataclass(frozen=True, slots=True)
class Explored:
    """What one run came to.

    Args:
        violations: properties that were broken; stuck: worlds from which no end is reachable.
        complete: the whole graph was visited.
        counterexamples: one readable timeline for each violation.
    """

    remote: str
    turns: int
    crashes: int
    checkpoints: int
    losses: int
    zombies: int
    also: str
    states: int
    edges: int
    depth: int
    violations: int
    stuck: int
    seconds: float
    complete: bool
    counterexamples: tuple[str, ...]

    @property
    def good(self) -> bool:
        return self.complete and not self.violations and not self.stuck

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


REMOTES: Final = ("status-only", "marker-last", "marker-list", "deduplicating", "fenceable", "handle-only")
# Largest first, so that the cores end together.
DEFAULT: Final = (
    *(Bounds(remote) for remote in sorted(REMOTES, key=lambda remote: remote != "fenceable")),
    *(Bounds(remote, crashes=1, checkpoints=1, losses=1, zombies=1) for remote in REMOTES),
    *(Bounds(remote, turns=2, crashes=1, checkpoints=1, losses=1) for remote in ("marker-list", "marker-last")),
    Bounds("status-only", turns=2, crashes=1, checkpoints=1, losses=1),
)


def run(bounds: Bounds, states_max: int = 20_000_000) -> Explored:
    """Search one scenario to its end."""
    found = search(bounds.scenario, states_max=states_max, reduce=ALSO[bounds.also].reduce)
    return Explored(
        **asdict(bounds),
        states=found.states,
        edges=found.edges,
        depth=found.depth,
        violations=len(found.violations),
        stuck=found.stuck,
        seconds=round(found.seconds, 1),
        complete=found.complete,
        counterexamples=tuple(timeline(one) for one in found.violations),
    )


def run_all(runs: Sequence[Bounds], done: Callable[[Explored], None], states_max: int = 20_000_000) -> list[Explored]:
    """Search several scenarios, one process for each core.

    Args:
        done: told of each result as it comes.

    Returns:
        The results in the order of `runs`.
    """
    results: dict[int, Explored] = {}
    # Fresh interpreters: a fork would take a debugger's or a coverage tool's tracing along.
    fresh = get_context("spawn")
    with ProcessPoolExecutor(min(len(runs), os.cpu_count() or 1), mp_context=fresh) as pool:
        futures = {pool.submit(run, bounds, states_max): number for number, bounds in enumerate(runs)}
        for future in as_completed(futures):
            results[futures[future]] = future.result()
            done(future.result())
    return [results[number] for number in sorted(results)]


def rows(results: Sequence[Explored]) -> Iterator[tuple[str, ...]]:
    """The table's cells."""
    for one in results:
        state = "ok" if one.good else "VIOLATED" if one.violations else "STUCK" if one.stuck else "cut off"
        yield (
            one.remote,
            *(str(n) for n in (one.turns, one.crashes, one.checkpoints, one.losses, one.zombies)),
            f"{one.states:,}",
            f"{one.edges:,}",
            f"{one.seconds:.1f}",
            state,
        )
