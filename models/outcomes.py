"""How an invocation ends, and what is said about it on the way."""

from dataclasses import dataclass
from enum import Enum

from reattach.models.lifecycle import Status
from reattach.models.record import record


class FailureCode(Enum):
    """Why a call failed, as a closed set.

    `lost`: the remote once knew the run and now denies it; `ambiguous`: nobody can tell whether it ran.
    """

    REMOTE_FAILED = "remote_failed"
    REJECTED = "rejected"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    CANCELLED = "cancelled"
    AMBIGUOUS = "ambiguous"
    LOST = "lost"
    RESULT_TOO_LARGE = "result_too_large"
    QUEUE_FULL = "queue_full"
    INVALID_REQUEST = "invalid_request"


class RemoteFate(Enum):
    """What is known of the remote run when a call fails."""

    NONE = "none"
    RUNNING = "running"
    ENDED = "ended"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def settled(self) -> bool:
        """Nothing of this call can act on the thread any more."""
        return self not in (RemoteFate.RUNNING, RemoteFate.UNKNOWN)


@record
@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call failed.

    Args:
        message: one line for people, at most 1 kB.
        remote: what is known of the remote run.
        retryable: trying again later may succeed.
    """

    code: FailureCode
    message: str
    remote: RemoteFate = RemoteFate.UNKNOWN
    retryable: bool = False


@record
@dataclass(frozen=True, slots=True)
class Outcome:
    """What the job emits at the end, exactly one per invocation.

    Args:
        thread_id: the remote thread that was used.
        result: JSON bytes when COMPLETED, else None.
        handle: the remote's name for the run, "" where none was learned.
        attempts: POSTs ordered; a count over the crashes that the state survived.
        spent_ms: time in NOT_STARTED, SUBMITTED and RUNNING.
    """

    invocation_id: str
    agent: str
    thread_id: str
    generation: int
    status: Status
    result: bytes | None
    failure: Failure | None
    handle: str
    attempts: int
    probes: int
    spent_ms: tuple[int, int, int]
    finished_at_ms: int


class NoticeKind(Enum):
    """What an operator may want to see."""

    PARKED = "parked"
    AWAITING_INPUT = "awaiting_input"
    REFUSED = "refused"
    LATE = "late"
    DRAIN_EXPIRED = "drain_expired"
    UNANSWERED = "unanswered"


@record
@dataclass(frozen=True, slots=True)
class Notice:
    """Something an operator should see; never a result.

    Args:
        detail: JSON bytes, b"" where there is nothing more to say.
    """

    kind: NoticeKind
    invocation_id: str
    generation: int
    message: str
    detail: bytes = b""
