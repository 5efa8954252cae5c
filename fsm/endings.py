"""How a call ends, noted in the draft: the result, or the failure with what is known of the run."""

from collections.abc import Callable
from typing import Final

from reattach.fsm.draft import Draft
from reattach.fsm.guards import credible, never_sent, trusted
from reattach.models.answers import Absent, Present
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import Failure, FailureCode, RemoteFate
from reattach.models.policy import Absence

MESSAGE_CHARS_MAX: Final = 1_000


def _fail(d: Draft, code: FailureCode, message: str, remote: RemoteFate, retryable: bool = False) -> None:
    d.failure = Failure(code, message[:MESSAGE_CHARS_MAX], remote, retryable)


def _fate(d: Draft) -> RemoteFate:
    """What is known of the remote run as the call is closed locally."""
    answer = d.answer
    if isinstance(answer, Present):
        return RemoteFate.RUNNING
    if d.leaf is Leaf.RU_FETCHING:
        return RemoteFate.ENDED
    if d.status is Status.RUNNING:
        return RemoteFate.UNKNOWN
    # Besides a trusted absence, a right to POST and an intent that was never sent prove as much.
    unsent = d.leaf is Leaf.SU_HOLDING or (d.status is Status.NOT_STARTED and never_sent(d))
    # A closed slot says nothing about the next one, into which another life may have gone on.
    if d.capabilities.absence is Absence.BY_FENCE:
        return RemoteFate.UNKNOWN
    none = d.permit or unsent or (isinstance(answer, Absent) and trusted(d) and credible(d))
    return RemoteFate.NONE if none else RemoteFate.UNKNOWN


def fail_closed(d: Draft) -> None:
    """Deadline or cancel: end it, and say what is known of the run."""
    if d.cancelled:
        _fail(d, FailureCode.CANCELLED, "cancelled by order", _fate(d))
    else:
        _fail(d, FailureCode.DEADLINE_EXCEEDED, f"deadline passed; {d.cause}".rstrip("; "), _fate(d))


def fail_lost(d: Draft) -> None:
    _fail(d, FailureCode.LOST, "the remote knew this run and no longer does", RemoteFate.UNKNOWN)


def fail_overtaken(d: Draft) -> None:
    """The remote shows only its newest turn, and that is a later one."""
    message = "the run ended, and a later turn of the thread has taken the place of its result"
    _fail(d, FailureCode.LOST, message, RemoteFate.ENDED)


def fail_gone(d: Draft) -> None:
    _fail(d, FailureCode.LOST, "the run ended, its result is gone", RemoteFate.ENDED)


def fail_too_large(d: Draft) -> None:
    message = f"the result is over result_bytes_max = {d.policy.result_bytes_max}"
    _fail(d, FailureCode.RESULT_TOO_LARGE, message, RemoteFate.ENDED)


def fail_rejected(d: Draft) -> None:
    failure = d.answer.failure
    fenceable = d.capabilities.absence is Absence.BY_FENCE
    remote = RemoteFate.UNKNOWN if fenceable else RemoteFate.NONE
    _fail(d, FailureCode.REJECTED, failure.message, remote, failure.retryable)


def fail_remote(d: Draft) -> None:
    failure = d.answer.failure if isinstance(d.answer, Present) else None
    message = failure.message if failure is not None else "the remote run failed"
    _fail(d, FailureCode.REMOTE_FAILED, message, RemoteFate.ENDED, failure is not None and failure.retryable)


def fail_cancelled(d: Draft) -> None:
    by = "cancelled by order" if d.cancelled else "the remote says that it was cancelled"
    _fail(d, FailureCode.CANCELLED, by, RemoteFate.CANCELLED)


def fail_ambiguous(d: Draft) -> None:
    _fail(d, FailureCode.AMBIGUOUS, d.cause or "it cannot be proven whether it was submitted", RemoteFate.UNKNOWN)


def complete(d: Draft) -> None:
    d.result = d.answer.result if isinstance(d.answer, Present) else d.answer.value


ENDINGS: Final[tuple[Callable[[Draft], None], ...]] = (
    complete,
    fail_closed,
    fail_lost,
    fail_overtaken,
    fail_gone,
    fail_too_large,
    fail_rejected,
    fail_remote,
    fail_cancelled,
    fail_ambiguous,
)
