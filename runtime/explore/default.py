"""The default run: every model remote under the bounds that are stated, side by side on all cores."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from typing import Any, Final

from reattach.runtime.explore.also import ALSO
from reattach.runtime.explore.runs import UNITS, named, scenario
from reattach.runtime.explore.scenario import Scenario
from reattach.runtime.explore.search import search
from reattach.runtime.explore.timeline import timeline
from reattach.runtime.workers import pool_of


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

    @property
    def verdict(self) -> str:
        return "ok" if self.good else "VIOLATED" if self.violations else "STUCK" if self.stuck else CUT_OFF

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


CUT_OFF: Final = "cut off"
TOLD_EVERY_S: Final = 0.5
REMOTES: Final = ("status-only", "marker-last", "marker-list", "deduplicating", "fenceable", "handle-only")
_MARKED: Final = ("marker-list", "marker-last")
# Two calls on one thread are refused where only a thread's status can be seen, and threads of their own share nothing
# with each other; so for that kind two turns are a small run.
_SMALL: Final = (
    *(Bounds(remote, 1, 1, 1, 1, 0, also) for remote in REMOTES for also in ("cancel", "failures", "refusals")),
    *(Bounds(remote, 1, 1, 1, 1, 0, "forgetting") for remote in REMOTES),
    *(Bounds("handle-only", 1, 2, 2, 2, 0, also) for also in ("adopt", "resubmit", "abandon")),
    *(Bounds(remote, 1, 1, 0, 1, 0, also) for remote in REMOTES for also in ("deadline", "strangers")),
    *(Bounds(remote, 1, 1, 0, 1, 0, "questions") for remote in REMOTES),
)
# Largest first, so that the cores end together.
DEFAULT: Final = (
    *(Bounds(remote, zombies=1) for remote in ("marker-list", "marker-last", "status-only")),
    *(Bounds(remote, turns=2, losses=1) for remote in _MARKED),
    *(Bounds(remote, checkpoints=1, losses=1, zombies=1) for remote in ("fenceable", "deduplicating")),
    Bounds("fenceable"),
    *(Bounds(remote) for remote in REMOTES if remote != "fenceable"),
    Bounds("handle-only", zombies=1),
    Bounds("status-only", turns=2),
    *_SMALL,
)


def run(
    bounds: Bounds, states_max: int = 20_000_000, progress: Callable[[int, int, int], None] | None = None
) -> Explored:
    """Search one scenario to its end."""
    found = search(bounds.scenario, states_max=states_max, reduce=ALSO[bounds.also].reduce, progress=progress)
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


def run_all(
    runs: Sequence[Bounds],
    done: Callable[[Explored], None],
    states_max: int = 20_000_000,
    seen: Callable[[int], None] | None = None,
) -> list[Explored]:
    """Search several scenarios, one process for each core.

    Args:
        done: told of each result as it comes.
        seen: told now and then how many states there are so far, in all runs.

    Returns:
        The results in the order of `runs`.
    """
    results: dict[int, Explored] = {}
    counts: Any = get_context("spawn").Array("Q", len(runs))
    workers = min(len(runs), os.cpu_count() or 1)
    with pool_of(workers, _share, counts) as pool:
        futures = {pool.submit(_counted, number, bounds, states_max): number for number, bounds in enumerate(runs)}
        pending = set(futures)
        while pending:
            ended, pending = wait(pending, timeout=TOLD_EVERY_S, return_when=FIRST_COMPLETED)
            for future in ended:
                results[futures[future]] = future.result()
                done(future.result())
            if seen is not None:
                seen(sum(counts))
    return [results[number] for number in sorted(results)]


_shared: list[Any] = []


def _share(counts: Any) -> None:
    """Let a worker know where the states of each run are counted."""
    _shared[:] = [counts]


def _counted(number: int, bounds: Bounds, states_max: int) -> Explored:
    counts = _shared[0]

    def progress(states: int, _edges: int, _depth: int) -> None:
        counts[number] = states

    return run(bounds, states_max, progress)


def rows(results: Sequence[Explored]) -> Iterator[tuple[str, ...]]:
    """The table's cells."""
    for one in results:
        yield (
            one.remote,
            *(str(n) for n in (one.turns, one.crashes, one.checkpoints, one.losses, one.zombies)),
            one.also or "-",
            f"{one.states:,}",
            f"{one.edges:,}",
            f"{one.seconds:.1f}",
            one.verdict,
        )
