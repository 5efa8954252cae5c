"""What one run of the explorer is about, and what it may find."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from reattach.models.events import ThreadEvent
from reattach.models.lifecycle import Leaf
from reattach.models.policy import Terms
from reattach.runtime.explore.world import Left, Life, World
from reattach.runtime.simulation.remotes import Remote

START_MS: Final = 1_000
_FOR_PEOPLE: Final = (Leaf.SU_PARKED, Leaf.RU_AWAITING_INPUT)


@dataclass(frozen=True)
class Scenario:
    """One run of the explorer.

    Args:
        script: what the source holds, in its order.
        refusals, failures: the remote may refuse a POST; a run may fail.
        forgets_at_ms: when a forgetful remote loses what it knows; 0 for never.
        duplicates: an answer may be delivered twice.
        foreign: answers of a dead incarnation reach its successor.
        same_outcome: every outcome of one call must say the same, also over restores.
    """

    name: str
    remote: Remote
    terms: Terms
    script: tuple[ThreadEvent, ...]
    left: Left
    refusals: bool = False
    failures: bool = False
    forgets_at_ms: int = 0
    duplicates: bool = False
    foreign: bool = False
    same_outcome: bool = True

    @property
    def writes_ahead(self) -> bool:
        return self.terms.writes_ahead


class Violation(Exception):
    """A property does not hold."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name
        self.text = text


class Move(NamedTuple):
    """One thing that happens.

    Args:
        what: its kind and details, for the timeline.
        fault: it uses up something of `Left`.
        world: the world after it, or the property that it breaks.
    """

    what: tuple[object, ...]
    fault: bool
    world: World | Violation


def first(scenario: Scenario) -> World:
    """The world in which a job starts for the first time."""
    return World(START_MS, Life(1, START_MS, True), scenario.left)


def settled(scenario: Scenario, world: World) -> bool:
    """Nothing more is to come: every call has ended, or waits for people."""
    host = world.host
    if host.position < len(scenario.script) or host.recovering:
        return False
    state = host.state
    if state is None:
        return True
    if state.drain is not None:
        return False
    return state.active is None or state.active.leaf in _FOR_PEOPLE
