"""The conditions of the chart: pure functions of a draft, named as the chart names them.

The rules of "when may a POST be sent" live here: `trusted`, `credible`, `permitted`, `dedups`,
`admissible`, `never_sent`. Each has a counterexample without it (docs/verification.md).
"""

from collections.abc import Callable
from typing import Final

from reattach.fsm.draft import Draft
from reattach.models.answers import Absent, Present, Refused, Unknown
from reattach.models.events import ResponseGiven
from reattach.models.policy import Absence, CancelKind, Deduplication, Evidence, OnAmbiguous


def quiet_until_ms(d: Draft) -> int:
    """From when on no POST for this call, of any incarnation, can still become visible.

    The first term covers every earlier incarnation, by the opening of this one: their own stamps
    are another machine's clock, and a zombie may go on sending for `overlap_ms`. The second covers
    this incarnation, whose sends are known to have ended (or to end at their time limit).
    """
    terms = d.env.terms
    opened = d.env.opened_ms + terms.policy.overlap_ms + terms.settle_ms
    return max(opened, d.sends_end_ms + terms.admission_ms) if d.sends_end_ms else opened


def overdue(d: Draft) -> bool:
    """The deadline has passed."""
    return d.env.now_ms >= d.deadline_ms


def closing(d: Draft) -> bool:
    """The call ends locally as soon as the remote's side of it is known: no POST any more."""
    return d.cancelled or overdue(d)


def exhausted(d: Draft) -> bool:
    """The remote has owed an answer for `drain_max_ms` after the deadline."""
    return d.env.now_ms >= d.deadline_ms + d.policy.drain_max_ms


def quiet_passed(d: Draft) -> bool:
    """The probe was ordered when nothing that was sent before could still become visible."""
    return d.ordered_at_ms >= quiet_until_ms(d)


def trusted(d: Draft) -> bool:
    """An absence answered now means "not accepted, and never will be"."""
    if d.capabilities.absence is Absence.BY_FENCE:
        return d.fenced
    return d.capabilities.absence is Absence.AFTER_QUIET and quiet_passed(d)


def admissible(d: Draft) -> bool:
    """An absence permits the first POST: it is trusted, or the POST itself is a test-and-set."""
    return fenceable(d) or trusted(d)


def remembered(d: Draft) -> bool:
    """The remote would still know a run that this request had started at the earliest time."""
    terms = d.env.terms
    return d.env.now_ms + terms.settle_ms + terms.policy.skew_max_ms < d.asked_at_ms + terms.memory_ms


def credible(d: Draft) -> bool:
    """The absence fits what is known of the thread, and the remote's memory reaches far enough."""
    answer = d.answer
    if not isinstance(answer, Absent) or not remembered(d):
        return False
    return answer.after is None or answer.after in d.after


def dedups(d: Draft) -> bool:
    """A POST under the same key cannot start a second run."""
    return d.capabilities.deduplication is Deduplication.KEY and remembered(d)


def fenceable(d: Draft) -> bool:
    return d.capabilities.absence is Absence.BY_FENCE


def askable(d: Draft) -> bool:
    """The remote can be asked about this call with what is known of it."""
    return d.capabilities.evidence is not Evidence.HANDLE_ONLY or d.handle != ""


def provable(d: Draft) -> bool:
    """Asking can bring an absence that may be believed."""
    return askable(d) and d.capabilities.absence is not Absence.NEVER


def writes_ahead(d: Draft) -> bool:
    return d.env.terms.writes_ahead


def elder(d: Draft) -> bool:
    """An earlier life of the job, or a zombie of it, may have had this request, and gone further with it."""
    return d.asked_at_ms <= d.env.opened_ms + d.policy.overlap_ms + d.policy.skew_max_ms


def never_sent(d: Draft) -> bool:
    """No earlier life of the job can have sent this call's POST (write-ahead only).

    True of NOT_STARTED only: a restored `holding` is in the very checkpoint whose completion let its
    POST go. Without proof that the job was restored from its own latest checkpoint, only a request that is
    younger than every earlier life qualifies.
    """
    # A line that is older than the tombstones may be one that has ended long ago, in this very life.
    return writes_ahead(d) and remembered(d) and (d.env.lineage or not elder(d))


def permitted(d: Draft) -> bool:
    """This incarnation may POST without asking again."""
    return d.permit


def resending(d: Draft) -> bool:
    """An earlier POST of this generation is unresolved, so a refusal says nothing about it."""
    return d.resend


def attempts_spent(d: Draft) -> bool:
    return d.attempts >= d.policy.submit_attempts_max


def refused_for_good(d: Draft) -> bool:
    return isinstance(d.answer, Refused) and (not d.answer.failure.retryable or attempts_spent(d))


def unanswerable(d: Draft) -> bool:
    """Asking again cannot help."""
    return isinstance(d.answer, Unknown) and d.answer.final


def can_cancel(d: Draft) -> bool:
    return d.capabilities.cancel is not CancelKind.NONE and d.cancels < d.policy.cancels_max


def cancel_due(d: Draft) -> bool:
    """The run is to be ended: by order, or by policy after the deadline."""
    wanted = d.cancelled or (overdue(d) and d.policy.cancel_on_deadline)
    return wanted and can_cancel(d)


def twice_absent(d: Draft) -> bool:
    """A known run is gone: the second absence was ordered an admission bound after the last proof."""
    since = max(d.known_at_ms, d.env.opened_ms)
    return d.absences >= 1 and d.ordered_at_ms >= since + d.env.terms.admission_ms


def overtaken(d: Draft) -> bool:
    """The thread shows a later turn than this one: its run has ended, since turns do not overlap."""
    answer = d.answer
    return isinstance(answer, Absent) and answer.after is not None and answer.after not in d.after


def has_result(d: Draft) -> bool:
    return isinstance(d.answer, Present) and d.answer.result is not None


def too_large(d: Draft) -> bool:
    result = d.answer.result if isinstance(d.answer, Present) else getattr(d.answer, "value", None)
    return result is not None and len(result) > d.policy.result_bytes_max


def retries(d: Draft) -> bool:
    """The remote's own failure may be retried as a new generation.

    A call that is closing opens none, unless an earlier life may have done so already: then the new
    generation is asked about, and closed from there.
    """
    failure = d.answer.failure if isinstance(d.answer, Present) else None
    retryable = failure is not None and failure.retryable and d.generation < d.policy.generations_max
    return retryable and (not closing(d) or elder(d))


def same_question(d: Draft) -> bool:
    """The question that was answered is still open."""
    answer = d.answer
    return isinstance(answer, Present) and d.response is not None and d.response.question_id == answer.question_id


def answers_question(d: Draft) -> bool:
    event = d.event
    return isinstance(event, ResponseGiven) and event.question_id == d.question_id and not closing(d)


def same_response(d: Draft) -> bool:
    event = d.event
    return isinstance(event, ResponseGiven) and d.response is not None and event.response_id == d.response.response_id


def fails_ambiguous(d: Draft) -> bool:
    return d.policy.on_ambiguous is OnAmbiguous.FAIL


def resubmits_ambiguous(d: Draft) -> bool:
    return d.policy.on_ambiguous is OnAmbiguous.RESUBMIT and d.generation < d.policy.generations_max and not closing(d)


GUARDS: Final[dict[str, Callable[[Draft], bool]]] = {
    guard.__name__: guard
    for guard in (
        overdue, closing, exhausted, quiet_passed, trusted, admissible, remembered, credible, dedups, fenceable,
        askable, provable, writes_ahead, never_sent, permitted, resending, attempts_spent, refused_for_good,
        unanswerable, can_cancel, cancel_due, twice_absent, overtaken, has_result, too_large, retries,
        same_question, answers_question, same_response, fails_ambiguous, resubmits_ambiguous,
    )
}  # fmt: skip
