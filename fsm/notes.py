"""The `on` actions of the chart: each notes in the draft what a fact means for the record.

A note never gives an order to the remote and never moves the call; `reattach.fsm.orders` and the
chart do that.
"""

from collections.abc import Callable
from typing import Final

from reattach.fsm.backoff import backoff_ms
from reattach.fsm.draft import Draft
from reattach.fsm.endings import ENDINGS
from reattach.fsm.guards import credible, quiet_passed, quiet_until_ms, remembered, trusted
from reattach.models.answers import Absent, Accepted, NotSent, Present, Refused, Unknown, Unresolved
from reattach.models.effects import Count, Notify, Report
from reattach.models.events import (
    AdoptOrdered,
    HandleLearned,
    Progressed,
    ResponseGiven,
    ResubmitOrdered,
    TimeReached,
    WatchEnded,
)
from reattach.models.identity import marker_of
from reattach.models.invocation import AFTER_MAX, Response
from reattach.models.lifecycle import Leaf
from reattach.models.outcomes import NoticeKind

SILENCES_MAX: Final = 10
# In a row, and each time ten times as many: with the default backoff after some 6 s, 20 minutes, 4 hours.
UNANSWERED_AT: Final = frozenset({5, 50, 500})


def _cause_of(d: Draft) -> str:
    answer = d.answer
    if isinstance(answer, Unknown | NotSent | Unresolved):
        return answer.cause
    if isinstance(answer, Refused):
        return answer.failure.message
    return "no answer within the time limit" if isinstance(d.event, TimeReached) else ""


def note_attempt(d: Draft) -> None:
    """A POST is about to be ordered.

    Whether an earlier life sent it already, nobody knows, unless something here proves that it did
    not: then what is said of this POST settles nothing about that one.
    """
    absent = isinstance(d.answer, Absent) and trusted(d) and credible(d)
    if not (d.permit or absent or d.leaf is Leaf.SU_HOLDING):
        d.resend = True
    d.attempts += 1
    d.because("")


def note_silence(d: Draft) -> None:
    """An order brought nothing: wait longer before the next."""
    policy = d.policy
    d.pause_ms = backoff_ms(d.seed, d.tries, policy.backoff_ms, policy.backoff_max_ms)
    d.tries += 1
    d.because(_cause_of(d))
    if d.tries in UNANSWERED_AT and isinstance(d.answer, Unknown):
        d.effects.append(
            Notify(d.notice(NoticeKind.UNANSWERED, f"{d.tries} requests in a row brought nothing: {d.cause}"))
        )


def await_quiet(d: Draft) -> None:
    """The absence came too early to be believed: ask again once it can be."""
    left_ms = quiet_until_ms(d) - d.env.now_ms
    # Asked after it already, and still not enough: a rule that cannot be met here must be slow, not hot.
    d.pause_ms = d.policy.poll_ms if quiet_passed(d) else max(0, left_ms)
    d.because("an absence is not believed before the quiet time has passed")


def _sends_ended(d: Draft) -> None:
    # Without an answer the order's own time limit stands, which was noted when it was given.
    if not isinstance(d.event, TimeReached):
        d.sends_end_ms = d.env.now_ms


def note_unresolved(d: Draft) -> None:
    """The POST may have been accepted."""
    _sends_ended(d)
    d.resend = True
    note_silence(d)
    d.because(d.cause or "the remote says that something runs on this thread")


def note_not_sent(d: Draft) -> None:
    """Provably nothing left: the right to POST stays, in this incarnation."""
    _sends_ended(d)
    d.permit = True
    note_silence(d)


def note_refusal(d: Draft) -> None:
    """A definite no: the right to POST stays, in this incarnation."""
    note_not_sent(d)
    assert isinstance(d.answer, Refused)
    d.pause_ms = max(d.pause_ms, min(d.answer.retry_after_ms, d.policy.backoff_max_ms * 10))


def permit_next(d: Draft) -> None:
    """A trusted absence: what was sent is void, and one more POST may follow."""
    d.permit = True
    d.resend = False
    if d.fenced:
        d.slot += 1
        d.fenced = False
    note_silence(d)
    d.because("the last POST was not accepted")


def note_fence(d: Draft) -> None:
    d.fenced = True


def learn(d: Draft) -> None:
    """The remote knows this call: proof of acceptance."""
    d.known_at_ms = d.env.now_ms
    d.absences = 0
    d.tries = 0
    d.permit = False
    d.resend = False
    d.because("")
    source = d.event if isinstance(d.event, HandleLearned) else d.answer
    if isinstance(source, HandleLearned | Accepted | Present) and source.handle:
        d.handle = source.handle
    if isinstance(source, Present):
        d.result = source.result


def learn_question(d: Draft) -> None:
    """The run asks for input."""
    answer = d.answer
    assert isinstance(answer, Present)
    if answer.question_id != d.question_id:
        d.effects.append(Notify(d.notice(NoticeKind.AWAITING_INPUT, answer.question_id, answer.question)))
    d.question_id = answer.question_id


def learn_still_open(d: Draft) -> None:
    d.known_at_ms = d.env.now_ms
    d.absences = 0


def note_absence(d: Draft) -> None:
    """A known run was not found: one absence is not yet a loss."""
    d.absences += 1
    since = max(d.known_at_ms, d.env.opened_ms) + d.env.terms.admission_ms
    d.pause_ms = max(d.policy.poll_ms, since - d.env.now_ms)
    d.because("the remote did not show a run that it had shown before")


def note_stream_end(d: Draft) -> None:
    assert isinstance(d.event, WatchEnded)
    d.streams |= 1
    d.because(d.event.cause)


def report(d: Draft) -> None:
    """Pass stream events on, and remember where the stream may be resumed."""
    event = d.event
    assert isinstance(event, Progressed)
    if event.items:
        d.streams = 0
        d.cursor = event.items[-1].cursor or d.cursor
        silence = d.policy.watch_silence_ms
        # A stream is not the truth: however lively, the run is asked about now and then.
        latest = min(d.ordered_at_ms + SILENCES_MAX * silence, d.deadline_ms)
        d.wake_at_ms = max(d.wake_at_ms, min(d.env.now_ms + silence, latest))
        d.effects.append(Report(d.request.invocation_id, d.generation, event.items))


def hold_on(d: Draft) -> None:
    """Wait on under the same order: to hold anew would make every slower checkpoint a stale answer."""
    d.wake_at_ms = min(d.env.now_ms + d.policy.park_probe_ms, d.deadline_ms)


def doubt_absence(d: Draft) -> None:
    answer = d.answer
    if not remembered(d):
        d.because("older than the remote's memory: an absence proves nothing")
    elif isinstance(answer, Absent) and answer.after:
        d.because(f"the thread's newest turn is not one that is known here: {answer.after[:80]}")
    else:
        d.because("the thread shows no turn, though earlier ones are known")


def doubt_fate(d: Draft) -> None:
    cause = _cause_of(d) or d.cause or "the answer was lost"
    d.because(f"the remote cannot tell whether it was submitted: {cause}")


def doubt_lineage(d: Draft) -> None:
    d.because("not restored from this job's own latest checkpoint: an earlier life may have submitted it")


def ask_again(d: Draft) -> None:
    d.ask = True


def mark_cancelled(d: Draft) -> None:
    d.cancelled = True


def adopt(d: Draft) -> None:
    assert isinstance(d.event, AdoptOrdered)
    d.handle = d.event.handle
    d.because("adopted by an operator")


def open_generation(d: Draft) -> None:
    """A new remote identity; what the old one did stays where it is."""
    old = marker_of(d.request.invocation_id, d.generation)
    # A run that failed was accepted for certain; a doubtful one may or may not be the newest turn.
    d.after = (old,) if isinstance(d.answer, Present) else (*d.after, old)[-AFTER_MAX:]
    d.pause_ms = backoff_ms(d.seed, d.generation, d.policy.backoff_ms, d.policy.backoff_max_ms)
    d.generation += 1
    d.slot = 1
    d.permit = d.fenced = d.resend = False
    d.handle = d.cursor = d.question_id = ""
    d.response = None
    d.absences = d.streams = d.cancels = 0
    d.tries = 0
    d.because("a new generation")


def count_from_order(d: Draft) -> None:
    """The remote's memory of the new generation is counted from the operator's order.

    That holds only for a number that nobody but an operator can open: a life that was undone may
    have reached every other one by retries of its own.
    """
    assert isinstance(d.event, ResubmitOrdered)
    d.generation = max(d.generation, d.policy.generations_max + 1)
    d.asked_at_ms = max(d.asked_at_ms, d.event.ordered_at_ms)


def take_response(d: Draft) -> None:
    event = d.event
    assert isinstance(event, ResponseGiven)
    d.response = Response(event.response_id, event.question_id, event.payload)


def note_response_sent(d: Draft) -> None:
    _sends_ended(d)
    await_quiet(d)


def note_response_not_sent(d: Draft) -> None:
    _sends_ended(d)
    note_silence(d)


def note_response_taken(d: Draft) -> None:
    _sends_ended(d)
    learn(d)


def note_response_refused(d: Draft) -> None:
    _sends_ended(d)
    d.because(_cause_of(d))
    d.effects.append(Notify(d.notice(NoticeKind.REFUSED, f"the remote refused the response: {d.cause}")))


def refuse_order(d: Draft) -> None:
    name = type(d.event).__name__
    d.effects.append(Notify(d.notice(NoticeKind.REFUSED, f"{name}: not possible in {d.leaf.value}")))


def ignore_repeat(d: Draft) -> None:
    """The same response again: a re-delivery."""
    d.effects.append(Count("duplicate_order"))


NOTES: Final[dict[str, Callable[[Draft], None]]] = {
    note.__name__: note
    for note in (
        note_attempt, note_silence, await_quiet, note_unresolved, note_not_sent, note_refusal, permit_next,
        note_fence, learn, learn_question, learn_still_open, note_absence, note_stream_end, report,
        hold_on, doubt_absence,
        doubt_fate, doubt_lineage, ask_again, mark_cancelled, adopt, open_generation, count_from_order,
        take_response, note_response_sent, note_response_not_sent, note_response_taken, note_response_refused,
        refuse_order, ignore_repeat, *ENDINGS,
    )
}  # fmt: skip
