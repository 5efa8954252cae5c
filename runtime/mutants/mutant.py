"""What a mutant is, and how it is tried."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

from reattach.runtime.explore.moves import Scenario
from reattach.runtime.explore.search import Searched, search
from reattach.runtime.mutants.patching import Patch

STATES_MAX = 400_000


@dataclass(frozen=True)
class Mutant:
    """One deliberate fault.

    Args:
        breaks: the rule that it breaks, in one sentence.
        apply: puts it in for as long as its context lasts.
        trial: the smallest world in which it must be found.
        finds: the property that must break there.
        world: a world that is less kind than the explorer's own, for the trial alone.
        reduce: search with the reductions that rest on the unbroken core; for a world that is too large without.
    """

    name: str
    breaks: str
    apply: Callable[[], Patch]
    trial: Scenario
    finds: str
    world: Callable[[], Patch] = nullcontext
    reduce: bool = False


@dataclass(frozen=True)
class Verdict:
    """What came of a trial; the fields of `reattach mutants --json`.

    Args:
        by: who found what, in which world; "" when it survived.
        depth: length of the shortest counterexample.
        seconds: processor time.
    """

    name: str
    killed: bool
    by: str
    depth: int
    seconds: float


def judge(mutant: Mutant) -> Verdict:
    """Try one mutant; it is killed only by the property that it was made to break."""
    began = time.process_time()
    with mutant.world(), mutant.apply():
        searched = search(mutant.trial, states_max=STATES_MAX, liveness=mutant.finds == "stuck", reduce=mutant.reduce)
    seconds = round(time.process_time() - began, 2)
    for found in searched.violations:
        if found.name == mutant.finds:
            return Verdict(
                mutant.name, True, f"explore {where(mutant.trial)}: {found.name}", len(found.path) - 1, seconds
            )
    return Verdict(mutant.name, False, "; ".join(found.name for found in searched.violations), 0, seconds)


def control(mutant: Mutant, states_max: int) -> Searched:
    """Let the unbroken code go through the same trial."""
    with mutant.world():
        return search(mutant.trial, states_max=states_max, liveness=mutant.finds == "stuck", reduce=mutant.reduce)


def where(trial: Scenario) -> str:
    """Name a world shortly: the remote, and what may go wrong."""
    left = trial.left
    counted = (("crash", "es", left.crashes), ("checkpoint", "s", left.checkpoints), ("loss", "es", left.losses))
    faults = [f"{number} {word}{plural if number > 1 else ''}" for word, plural, number in counted if number]
    if left.zombies and left.crashes:
        faults.append(f"{left.zombies} zombie{'s' if left.zombies > 1 else ''}")
    return " ".join((trial.name, f"({', '.join(faults) or 'no faults'})"))
