"""What a run may have in it besides crashes, checkpoints, losses and zombies."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from reattach.models.events import (
    AbandonOrdered,
    AdoptOrdered,
    CancelOrdered,
    ResponseGiven,
    ResubmitOrdered,
    ThreadEvent,
)
from reattach.runtime.explore.kinds import MEMORY_MS, asking, cancelling, forgetful
from reattach.runtime.explore.scenario import START_MS
from reattach.runtime.simulation.remotes import Remote


def _as_it_is(remote: Remote) -> Remote:
    return remote


@dataclass(frozen=True)
class Also:
    """One addition.

    Args:
        told: what it is, in a few words.
        remote: makes the remote that it needs.
        then: what the source holds behind the requests.
        policy: settings that differ.
        scenario: options of the scenario.
        reduce: the search may reduce; without, it takes nothing for granted.
    """

    told: str
    remote: Callable[[Remote], Remote] = _as_it_is
    then: tuple[ThreadEvent, ...] = ()
    policy: dict[str, Any] = field(default_factory=dict)
    scenario: dict[str, Any] = field(default_factory=dict)
    reduce: bool = True


_DIFFERS: Final = {"same_outcome": False}
_ANSWERS: Final = (ResponseGiven("a", 1, "r1", "q1", b'"yes"'), ResponseGiven("a", 1, "r2", "q2", b'"no"'))

ALSO: Final[dict[str, Also]] = {
    "": Also("nothing"),
    "questions": Also("the run asks twice, and is answered", asking, _ANSWERS, scenario={"refusals": True}),
    "cancel": Also("a cancel is ordered", cancelling, (CancelOrdered("a", 1),), scenario=_DIFFERS),
    "adopt": Also("people adopt a run that they see", then=(AdoptOrdered("a", 1, "r0"),), scenario=_DIFFERS),
    "resubmit": Also("people order a resubmit", then=(ResubmitOrdered("a", 1, START_MS),), scenario=_DIFFERS),
    "abandon": Also("people give the call up", then=(AbandonOrdered("a", 1),), scenario=_DIFFERS),
    "forgetting": Also(
        "the remote forgets after its retention",
        forgetful,
        scenario={"forgets_at_ms": START_MS + MEMORY_MS, **_DIFFERS},
    ),
    "refusals": Also("the remote may refuse a POST", scenario={"refusals": True, **_DIFFERS}),
    "failures": Also(
        "a run may fail, and is tried again as the next generation",
        policy={"generations_max": 2},
        scenario={"failures": True},
    ),
    "deadline": Also("a deadline is near", policy={"deadline_ms": 6}, scenario=_DIFFERS),
    "strangers": Also(
        "answers come twice, and those to a dead incarnation reach its successor; nothing is taken for granted",
        scenario={"duplicates": True, "foreign": True},
        reduce=False,
    ),
}
