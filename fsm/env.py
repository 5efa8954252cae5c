"""What a step may know of the world: everything that is not in the record or in the event."""

from dataclasses import dataclass

from reattach.models.policy import Terms
from reattach.models.record import record


@record
@dataclass(frozen=True, slots=True)
class Env:
    """The surroundings of one step.

    Args:
        now_ms: the host's clock; within an incarnation it never runs backwards.
        opened_ms: when this incarnation opened, by the same clock.
        incarnation: unique name of this life of the host.
        lineage: this incarnation was restored from the job's own latest checkpoint, or the job has
            never run before. False whenever the host cannot prove it.
    """

    now_ms: int
    opened_ms: int
    incarnation: str
    terms: Terms
    lineage: bool = False
