"""The lifecycle of one remote call, declared once. Read this to know the whole machine.

*Theory of operation.* A call is one message to one remote agent. The remote is a durable job
behind three requests (POST starts a run, GET tells its status, a stream shows progress), and the
only dangerous one is the POST: sent twice it makes two runs. So the chart is built around one
question, "may a POST be sent now?", and every way out of doubt leads through a probe:

- NOT_STARTED asks first. An absence is believed only if the probe was ordered after the quiet time
  (`trusted`), so that no POST of a dead incarnation can still land behind it.
- SUBMITTED has sent its one POST, or holds the right to send it. An answer that does not prove
  acceptance leads to a probe; a right to POST (`permitted`) dies with its incarnation.
- RUNNING follows the run. Streams are progress, never truth: each end of one leads to a probe.
- COMPLETED and FAILED are final; what comes later is counted and dropped.

*How to read it.* `a.to(b, cond=..., on=...)`: in leaf `a`, on the event that the line is named for,
go to `b` if every `cond` holds and no `unless` does, and let `on` note facts in the record. The
first line that matches wins; a compound's lines come after those of its leaves. What is *ordered*
on entering a leaf (a probe in `probing`, the POST in `sending`) stands in `reattach.fsm.orders`,
conditions in `reattach.fsm.guards`, notes in `reattach.fsm.notes`. A pair of leaf and event without
a line is illegal: no order of that leaf can have that answer.

This module does not run: `reattach.fsm.table` compiles it, `reattach.fsm.step` steps on the table.
"""

from typing import Any

from statemachine import State, StateMachine
from statemachine.transition_list import TransitionList

NS_QUIET = State("quiet", initial=True)
NS_PROBING = State("probing")
NS_BACKING_OFF = State("backing_off")
SU_HOLDING = State("holding")
SU_SENDING = State("sending", initial=True)
SU_PROBING = State("probing")
SU_QUIET = State("quiet")
SU_FENCING = State("fencing")
SU_BACKING_OFF = State("backing_off")
SU_PARKED = State("parked")
RU_WATCHING = State("watching", initial=True)
RU_PROBING = State("probing")
RU_FETCHING = State("fetching")
RU_AWAITING_INPUT = State("awaiting_input")
RU_CANCELLING = State("cancelling")
RU_RESPONDING_SENDING = State("sending")
RU_RESPONDING_PROBING = State("probing", initial=True)
RU_RESPONDING_QUIET = State("quiet")

# Leaves in which the remote is not known to know the call, and is being asked.
ASKING = (NS_PROBING, SU_PROBING, SU_PARKED)
# Leaves in which a POST may have been accepted, and late good news is welcome.
DOUBTFUL = (SU_PROBING, SU_QUIET, SU_FENCING, SU_BACKING_OFF, SU_PARKED)
RESPONDING = (RU_RESPONDING_SENDING, RU_RESPONDING_PROBING, RU_RESPONDING_QUIET)
UNFINISHED = (
    NS_QUIET, NS_PROBING, NS_BACKING_OFF, SU_HOLDING, SU_SENDING, SU_PROBING, SU_QUIET, SU_FENCING, SU_BACKING_OFF,
    SU_PARKED, RU_WATCHING, RU_PROBING, RU_FETCHING, RU_AWAITING_INPUT, RU_CANCELLING, *RESPONDING,
)  # fmt: skip


def stay(*states: Any, **how: Any) -> TransitionList:
    """Lines that note something and do not move.

    Leaves only: a compound that stays would enter its first leaf again.
    """
    lines = TransitionList()
    for state in states:
        lines.add_transitions(state.to(state, internal=True, **how))
    return lines


class Lifecycle(StateMachine):
    """One remote call."""

    class not_started(State.Compound, name="NOT_STARTED"):
        ns_quiet = NS_QUIET
        ns_probing = NS_PROBING
        ns_backing_off = NS_BACKING_OFF

    class submitted(State.Compound, name="SUBMITTED"):
        su_holding = SU_HOLDING
        su_sending = SU_SENDING
        su_probing = SU_PROBING
        su_quiet = SU_QUIET
        su_fencing = SU_FENCING
        su_backing_off = SU_BACKING_OFF
        su_parked = SU_PARKED

    class running(State.Compound, name="RUNNING"):
        ru_watching = RU_WATCHING
        ru_probing = RU_PROBING
        ru_fetching = RU_FETCHING
        ru_awaiting_input = RU_AWAITING_INPUT
        ru_cancelling = RU_CANCELLING

        class ru_responding(State.Compound, name="responding"):
            ru_responding_sending = RU_RESPONDING_SENDING
            ru_responding_probing = RU_RESPONDING_PROBING
            ru_responding_quiet = RU_RESPONDING_QUIET

    completed = State("COMPLETED", final=True)
    failed = State("FAILED", final=True)

    # Time: the wake-up that every call has.
    time_reached = (
        SU_SENDING.from_(NS_QUIET, NS_BACKING_OFF, cond="dedups", unless="closing", on="note_attempt")
        | NS_PROBING.from_(NS_QUIET, NS_BACKING_OFF, cond="askable")
        | failed.from_(NS_QUIET, NS_BACKING_OFF, cond="closing", on="fail_closed")
        | SU_HOLDING.from_(NS_QUIET, NS_BACKING_OFF, cond="never_sent")
        | SU_PARKED.from_(NS_QUIET, NS_BACKING_OFF, on="doubt_lineage")
        | failed.from_(NS_PROBING, SU_PROBING, cond="exhausted", on="fail_closed")
        | NS_PROBING.to(NS_BACKING_OFF, on="note_silence")
        | SU_PROBING.to(SU_BACKING_OFF, on="note_silence")
        | SU_HOLDING.to(failed, cond="closing", on="fail_closed")
        | stay(SU_HOLDING, on="hold_on")
        | SU_SENDING.to(SU_BACKING_OFF, cond="dedups", on="note_unresolved")
        | SU_SENDING.to(SU_FENCING, cond="fenceable", on="note_unresolved")
        | SU_SENDING.to(SU_PARKED, unless="askable", on=["note_unresolved", "doubt_fate"])
        | SU_SENDING.to(SU_PROBING, on="note_unresolved")
        | SU_QUIET.to(SU_PROBING)
        | SU_FENCING.to(SU_BACKING_OFF, on="note_silence")
        | SU_BACKING_OFF.to(SU_SENDING, cond=["permitted", "remembered"], unless="closing", on="note_attempt")
        | SU_BACKING_OFF.to(SU_SENDING, cond="dedups", unless="closing", on="note_attempt")
        | SU_BACKING_OFF.to(SU_PROBING, cond="askable")
        | SU_BACKING_OFF.to(failed, cond="closing", on="fail_closed")
        | SU_BACKING_OFF.to(SU_PARKED, on="doubt_fate")
        | SU_PARKED.to(failed, cond="overdue", on="fail_closed")
        | SU_PARKED.to(SU_PARKED, on="ask_again")
        | RU_WATCHING.to(RU_PROBING)
        | RU_PROBING.to(failed, cond="exhausted", on="fail_closed")
        | RU_PROBING.to(RU_WATCHING, on="note_silence")
        | RU_FETCHING.to(failed, cond="exhausted", on="fail_closed")
        | RU_FETCHING.to(RU_WATCHING, on="note_silence")
        | RU_AWAITING_INPUT.to(RU_PROBING)
        | RU_CANCELLING.to(RU_WATCHING, on="note_silence")
        | RU_RESPONDING_SENDING.to(RU_RESPONDING_QUIET, on="note_response_sent")
        | RU_RESPONDING_QUIET.to(RU_RESPONDING_PROBING)
        | RU_RESPONDING_PROBING.to(failed, cond="exhausted", on="fail_closed")
        | RU_RESPONDING_PROBING.to(RU_RESPONDING_QUIET, on="note_silence")
    )

    # A new incarnation found the call in its state.
    restored = (
        NS_PROBING.from_(NS_QUIET, NS_PROBING, NS_BACKING_OFF, cond="askable")
        | NS_QUIET.from_(NS_QUIET, NS_PROBING, NS_BACKING_OFF)
        | SU_PARKED.to(SU_PARKED, on="ask_again")
        | submitted.to(SU_PROBING, cond="askable")
        | submitted.to(SU_BACKING_OFF, cond="dedups")
        | submitted.to(SU_PARKED, on="doubt_fate")
        | running.ru_responding.to(RU_RESPONDING_PROBING)
        | running.to(RU_PROBING)
    )

    # What a probe found.
    found_absent = (
        failed.from_(NS_PROBING, SU_PROBING, cond="closing", on="fail_closed")
        | NS_PROBING.to(SU_SENDING, cond="dedups", on="note_attempt")
        | NS_PROBING.to(SU_PARKED, cond="admissible", unless="credible", on="doubt_absence")
        | NS_PROBING.to(SU_HOLDING, cond=["admissible", "writes_ahead"])
        | NS_PROBING.to(SU_SENDING, cond="admissible", on="note_attempt")
        | NS_PROBING.to(NS_QUIET, on="await_quiet")
        | SU_PROBING.to(SU_BACKING_OFF, cond=["trusted", "credible"], on="permit_next")
        | SU_PROBING.to(SU_BACKING_OFF, cond="dedups", on="note_silence")
        | SU_PROBING.to(SU_PARKED, cond="trusted", on="doubt_absence")
        | SU_PROBING.to(SU_FENCING, cond="fenceable")
        | SU_PROBING.to(SU_QUIET, on="await_quiet")
        | SU_PARKED.to(SU_PARKED)
        | failed.from_(RU_PROBING, RU_RESPONDING_PROBING, cond="overtaken", on="fail_overtaken")
        | failed.from_(RU_PROBING, RU_RESPONDING_PROBING, cond="twice_absent", on="fail_lost")
        | failed.from_(RU_PROBING, RU_RESPONDING_PROBING, cond="closing", on="fail_closed")
        | RU_WATCHING.from_(RU_PROBING, RU_RESPONDING_PROBING, on="note_absence")
    )
    found_running = (
        RU_CANCELLING.from_(*ASKING, RU_PROBING, RU_RESPONDING_PROBING, cond="cancel_due", on="learn")
        | failed.from_(*ASKING, RU_PROBING, RU_RESPONDING_PROBING, cond="closing", on=["learn", "fail_closed"])
        | RU_WATCHING.from_(*ASKING, RU_PROBING, RU_RESPONDING_PROBING, on="learn")
    )
    found_waiting = (
        RU_CANCELLING.from_(*ASKING, RU_PROBING, RU_RESPONDING_PROBING, cond="cancel_due", on="learn")
        | failed.from_(*ASKING, RU_PROBING, RU_RESPONDING_PROBING, cond="closing", on=["learn", "fail_closed"])
        | RU_RESPONDING_PROBING.to(RU_RESPONDING_SENDING, cond=["same_question", "quiet_passed"], on="learn")
        | RU_RESPONDING_PROBING.to(RU_RESPONDING_QUIET, cond="same_question", on=["learn_still_open", "await_quiet"])
        | RU_AWAITING_INPUT.from_(*ASKING, RU_PROBING, RU_RESPONDING_PROBING, on=["learn", "learn_question"])
    )
    found_completed = (
        failed.from_(*ASKING, RU_PROBING, RU_RESPONDING_PROBING, cond="too_large", on=["learn", "fail_too_large"])
        | completed.from_(*ASKING, RU_PROBING, RU_RESPONDING_PROBING, cond="has_result", on=["learn", "complete"])
        | RU_FETCHING.from_(*ASKING, RU_PROBING, RU_RESPONDING_PROBING, on="learn")
    )
    found_failed = NS_QUIET.from_(
        *ASKING, RU_PROBING, RU_RESPONDING_PROBING, cond="retries", on="open_generation"
    ) | failed.from_(*ASKING, RU_PROBING, RU_RESPONDING_PROBING, on=["learn", "fail_remote"])
    found_cancelled = failed.from_(*ASKING, RU_PROBING, RU_RESPONDING_PROBING, on=["learn", "fail_cancelled"])
    probe_unanswered = (
        failed.from_(NS_PROBING, SU_PROBING, cond="exhausted", on="fail_closed")
        | SU_PARKED.from_(NS_PROBING, SU_PROBING, cond="unanswerable", on="doubt_fate")
        | NS_PROBING.to(NS_BACKING_OFF, on="note_silence")
        | SU_PROBING.to(SU_BACKING_OFF, on="note_silence")
        | SU_PARKED.to(SU_PARKED)
        | failed.from_(RU_PROBING, RU_RESPONDING_PROBING, cond="exhausted", on="fail_closed")
        | RU_PROBING.to(RU_WATCHING, on="note_silence")
        | RU_RESPONDING_PROBING.to(RU_RESPONDING_QUIET, on="note_silence")
    )

    # What became of the POST.
    submit_accepted = RU_CANCELLING.from_(SU_SENDING, *DOUBTFUL, cond="cancel_due", on="learn") | RU_WATCHING.from_(
        SU_SENDING, *DOUBTFUL, on="learn"
    )
    handle_learned = RU_CANCELLING.from_(SU_SENDING, *DOUBTFUL, cond="cancel_due", on="learn") | RU_WATCHING.from_(
        SU_SENDING, *DOUBTFUL, on="learn"
    )
    submit_occupied = (
        SU_SENDING.to(SU_BACKING_OFF, cond="dedups", on="note_unresolved")
        | SU_SENDING.to(SU_FENCING, cond="fenceable", on="note_unresolved")
        | SU_SENDING.to(SU_PARKED, unless="askable", on=["note_unresolved", "doubt_fate"])
        | SU_SENDING.to(SU_PROBING, on="note_unresolved")
    )
    submit_refused = (
        SU_SENDING.to(SU_QUIET, cond=["resending", "provable"], on=["note_unresolved", "await_quiet"])
        | SU_SENDING.to(SU_BACKING_OFF, cond=["resending", "dedups"], unless="attempts_spent", on="note_unresolved")
        | SU_SENDING.to(SU_PARKED, cond="resending", on=["note_unresolved", "doubt_fate"])
        | SU_SENDING.to(failed, cond="closing", on=["note_refusal", "fail_closed"])
        | SU_SENDING.to(failed, cond="refused_for_good", on=["note_refusal", "fail_rejected"])
        | SU_SENDING.to(SU_BACKING_OFF, on="note_refusal")
    )
    submit_not_sent = (
        SU_SENDING.to(SU_BACKING_OFF, cond="resending", on="note_unresolved")
        | SU_SENDING.to(failed, cond="closing", on=["note_not_sent", "fail_closed"])
        | SU_SENDING.to(SU_BACKING_OFF, on="note_not_sent")
    )
    submit_unresolved = (
        SU_SENDING.to(SU_BACKING_OFF, cond="dedups", on="note_unresolved")
        | SU_SENDING.to(SU_FENCING, cond="fenceable", on="note_unresolved")
        | SU_SENDING.to(SU_PARKED, unless="askable", on=["note_unresolved", "doubt_fate"])
        | SU_SENDING.to(SU_PROBING, on="note_unresolved")
    )
    checkpoint_completed = SU_HOLDING.to(failed, cond="closing", on="fail_closed") | SU_HOLDING.to(
        SU_SENDING, on="note_attempt"
    )
    fenced = SU_FENCING.to(SU_PROBING, on="note_fence")
    fence_occupied = SU_FENCING.to(SU_PROBING)
    fence_unanswered = SU_FENCING.to(SU_BACKING_OFF, on="note_silence")

    # Following the run.
    progressed = stay(RU_WATCHING, on="report")
    watch_ended = RU_WATCHING.to(RU_PROBING, on="note_stream_end")
    result_fetched = RU_FETCHING.to(failed, cond="too_large", on="fail_too_large") | RU_FETCHING.to(
        completed, on="complete"
    )
    result_not_ready = RU_FETCHING.to(failed, cond="exhausted", on="fail_closed") | RU_FETCHING.to(
        RU_WATCHING, on="note_silence"
    )
    result_gone = RU_FETCHING.to(failed, on="fail_gone")
    fetch_unanswered = RU_FETCHING.to(failed, cond="exhausted", on="fail_closed") | RU_FETCHING.to(
        RU_WATCHING, on="note_silence"
    )
    cancel_confirmed = RU_CANCELLING.to(RU_PROBING)
    cancel_taken = RU_CANCELLING.to(RU_WATCHING, on="note_silence")
    cancel_unanswered = RU_CANCELLING.to(RU_WATCHING, on="note_silence")
    respond_accepted = RU_RESPONDING_SENDING.to(RU_WATCHING, on="note_response_taken")
    respond_refused = RU_RESPONDING_SENDING.to(RU_AWAITING_INPUT, on="note_response_refused")
    respond_not_sent = RU_RESPONDING_SENDING.to(RU_RESPONDING_QUIET, on="note_response_not_sent")
    respond_unresolved = RU_RESPONDING_SENDING.to(RU_RESPONDING_QUIET, on="note_response_sent")

    # Orders from people.
    cancel_ordered = (
        NS_PROBING.from_(NS_QUIET, NS_BACKING_OFF, cond="askable", on="mark_cancelled")
        | failed.from_(NS_QUIET, NS_BACKING_OFF, on=["mark_cancelled", "fail_closed"])
        | SU_PROBING.from_(SU_QUIET, SU_BACKING_OFF, cond="askable", on="mark_cancelled")
        | failed.from_(SU_HOLDING, SU_BACKING_OFF, SU_PARKED, on=["mark_cancelled", "fail_closed"])
        | RU_CANCELLING.from_(RU_WATCHING, RU_AWAITING_INPUT, cond="can_cancel", on="mark_cancelled")
        | RU_PROBING.from_(RU_WATCHING, RU_AWAITING_INPUT, on="mark_cancelled")
        | stay(NS_PROBING, SU_SENDING, SU_PROBING, SU_QUIET, SU_FENCING, on="mark_cancelled")
        | stay(RU_PROBING, RU_FETCHING, RU_CANCELLING, *RESPONDING, on="mark_cancelled")
    )
    adopt_ordered = SU_PARKED.to(RU_PROBING, on="adopt") | stay(*UNFINISHED, on="refuse_order")
    resubmit_ordered = SU_PARKED.to(NS_QUIET, on=["open_generation", "count_from_order"]) | stay(
        *UNFINISHED, on="refuse_order"
    )
    abandon_ordered = SU_PARKED.to(failed, on="fail_ambiguous") | stay(*UNFINISHED, on="refuse_order")
    response_given = (
        RU_RESPONDING_PROBING.from_(
            RU_WATCHING, RU_PROBING, RU_AWAITING_INPUT, cond="answers_question", on="take_response"
        )
        | stay(*RESPONDING, cond="same_response", on="ignore_repeat")
        | stay(*UNFINISHED, on="refuse_order")
    )

    # Sent by the step itself on reaching `parked`: what the policy makes of an ambiguous call.
    ambiguity_found = SU_PARKED.to(failed, cond="fails_ambiguous", on="fail_ambiguous") | SU_PARKED.to(
        NS_QUIET, cond="resubmits_ambiguous", on="open_generation"
    )
