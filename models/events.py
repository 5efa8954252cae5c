"""Past-tense facts: the only input of a step.

Answers carry an `Ident`, the full identity of the order they answer. Whatever does not match the
record is counted and dropped before the chart sees it.
"""

from dataclasses import dataclass

from reattach.models.answers import CancelAnswer, FenceAnswer, FetchAnswer, ProbeAnswer, Progress, SubmitAnswer
from reattach.models.record import record
from reattach.models.request import Request


@record
@dataclass(frozen=True, slots=True)
class Ident:
    """Which order an answer belongs to. All four must match."""

    incarnation: str
    invocation_id: str
    generation: int
    epoch: int


@record
@dataclass(frozen=True, slots=True)
class Requested:
    """The input asked for a call (first delivery or a re-delivery)."""

    request: Request


@record
@dataclass(frozen=True, slots=True)
class Restored:
    """A new incarnation found this call in its state."""


@record
@dataclass(frozen=True, slots=True)
class TimeReached:
    """The wake-up time has come."""


@record
@dataclass(frozen=True, slots=True)
class ProbeAnswered:
    ident: Ident
    answer: ProbeAnswer


@record
@dataclass(frozen=True, slots=True)
class SubmitAnswered:
    ident: Ident
    answer: SubmitAnswer


@record
@dataclass(frozen=True, slots=True)
class HandleLearned:
    """The remote named the run while the submit's answer was still arriving: it was accepted."""

    ident: Ident
    handle: str


@record
@dataclass(frozen=True, slots=True)
class Progressed:
    """Stream events arrived, oldest first."""

    ident: Ident
    items: tuple[Progress, ...]


@record
@dataclass(frozen=True, slots=True)
class WatchEnded:
    """The stream is over, for whatever reason; says nothing about the run."""

    ident: Ident
    cause: str


@record
@dataclass(frozen=True, slots=True)
class FetchAnswered:
    ident: Ident
    answer: FetchAnswer


@record
@dataclass(frozen=True, slots=True)
class FenceAnswered:
    ident: Ident
    answer: FenceAnswer


@record
@dataclass(frozen=True, slots=True)
class CancelAnswered:
    ident: Ident
    answer: CancelAnswer


@record
@dataclass(frozen=True, slots=True)
class RespondAnswered:
    ident: Ident
    answer: SubmitAnswer


@record
@dataclass(frozen=True, slots=True)
class CheckpointCompleted:
    """A checkpoint that contains this call's intent to submit has completed."""

    ident: Ident


@record
@dataclass(frozen=True, slots=True)
class CancelOrdered:
    invocation_id: str
    generation: int


@record
@dataclass(frozen=True, slots=True)
class AdoptOrdered:
    """An operator knows the run and names it."""

    invocation_id: str
    generation: int
    handle: str


@record
@dataclass(frozen=True, slots=True)
class ResubmitOrdered:
    """An operator accepts that this generation may have run, and wants the next one."""

    invocation_id: str
    generation: int
    ordered_at_ms: int


@record
@dataclass(frozen=True, slots=True)
class AbandonOrdered:
    invocation_id: str
    generation: int


@record
@dataclass(frozen=True, slots=True)
class ResponseGiven:
    """A human's or another system's answer to what the remote asked."""

    invocation_id: str
    generation: int
    response_id: str
    question_id: str
    payload: bytes


Answered = (
    ProbeAnswered
    | SubmitAnswered
    | HandleLearned
    | Progressed
    | WatchEnded
    | FetchAnswered
    | FenceAnswered
    | CancelAnswered
    | RespondAnswered
    | CheckpointCompleted
)
Ordered = CancelOrdered | AdoptOrdered | ResubmitOrdered | AbandonOrdered | ResponseGiven
Event = Answered | Ordered | Restored | TimeReached
ThreadEvent = Event | Requested
