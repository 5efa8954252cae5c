"""What a remote answered, as an adapter understood it: closed unions of frozen values.

An adapter never raises for something a remote or a network may do; it says here what is known,
and no more than what is known. `Unresolved` and `Unknown` are always honest.
"""

from dataclasses import dataclass
from enum import Enum

from reattach.models.outcomes import Failure
from reattach.models.record import record


class Phase(Enum):
    """Where a remote run stands, in the words of this library."""

    RUNNING = "running"
    AWAITING_INPUT = "awaiting_input"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@record
@dataclass(frozen=True, slots=True)
class Absent:
    """The remote answered that it does not know this invocation.

    Args:
        after: the marker of the newest turn that the remote shows on this thread; "" when it shows
            none, None when the answer rests on the whole history (or on a thread of its own).
    """

    after: str | None = None


@record
@dataclass(frozen=True, slots=True)
class Present:
    """The remote knows this invocation: proof that its submit was accepted.

    Args:
        handle: the remote's own name for the run, "" where there is none.
        result: JSON bytes, when the same answer carried them.
        failure: why it failed, with `Phase.FAILED`.
        question_id: what it waits for, with `Phase.AWAITING_INPUT`.
        question: JSON bytes of the question, for people to read.
    """

    phase: Phase
    handle: str = ""
    result: bytes | None = None
    failure: Failure | None = None
    question_id: str = ""
    question: bytes = b""


@record
@dataclass(frozen=True, slots=True)
class Unknown:
    """No answer, or one that proves nothing.

    Args:
        cause: one line for people; no credential, no payload.
        final: asking again cannot help (the remote has no way to tell).
    """

    cause: str
    final: bool = False


ProbeAnswer = Absent | Present | Unknown


@record
@dataclass(frozen=True, slots=True)
class Accepted:
    """The remote took the submit, or the answer to its question."""

    handle: str = ""
    phase: Phase = Phase.RUNNING


@record
@dataclass(frozen=True, slots=True)
class Occupied:
    """The remote says that something runs there already (409 and its like)."""

    cause: str = ""


@record
@dataclass(frozen=True, slots=True)
class Refused:
    """A definite no: this very request was not accepted and never will be."""

    failure: Failure
    retry_after_ms: int = 0


@record
@dataclass(frozen=True, slots=True)
class NotSent:
    """Provably nothing left this machine."""

    cause: str


@record
@dataclass(frozen=True, slots=True)
class Unresolved:
    """The request may have been accepted."""

    cause: str


SubmitAnswer = Accepted | Occupied | Refused | NotSent | Unresolved


@record
@dataclass(frozen=True, slots=True)
class Result:
    """The saved result of this run, as JSON bytes."""

    value: bytes


@record
@dataclass(frozen=True, slots=True)
class NotReady:
    """The run has no result yet."""


@record
@dataclass(frozen=True, slots=True)
class Gone:
    """The remote knows that there was a result and no longer has it."""

    cause: str = ""


FetchAnswer = Result | NotReady | Gone | Unknown


@record
@dataclass(frozen=True, slots=True)
class Fenced:
    """From this instant on no POST for the slot can be accepted."""


FenceAnswer = Fenced | Occupied | Unknown


@record
@dataclass(frozen=True, slots=True)
class Confirmed:
    """The remote says that the run has ended, by this cancel or before it."""


@record
@dataclass(frozen=True, slots=True)
class Taken:
    """The remote took the wish to cancel; whether the run ends is for a probe to tell."""


CancelAnswer = Confirmed | Taken | Unknown


@record
@dataclass(frozen=True, slots=True)
class Progress:
    """One stream event, for people and screens; never the truth about the run.

    Args:
        data: JSON bytes.
        cursor: where to resume after it, "" where the stream has none.
    """

    data: bytes
    cursor: str = ""
