"""The only door through which a call changes.

`step` takes a record, a fact and the surroundings, and gives the next record with the orders that
follow. It is total over what may come from outside, pure, and blind to clocks and networks.

An event from outside the machine (a request, a person's order, a late or foreign answer) never
raises: it is applied, refused with a notice, or counted. An answer that carries the identity of the
latest order but cannot be an answer to it is a bug in the host: that raises, and nothing changes.

This module does not know threads or queues (`reattach.fsm.thread`), storage or timers (the hosts).
"""

from dataclasses import dataclass
from typing import Final

from reattach.fsm.draft import Draft
from reattach.fsm.env import Env
from reattach.fsm.orders import ORDERS
from reattach.fsm.table import SETTLING, TABLE, Line
from reattach.models import answers, events
from reattach.models.effects import Count, Effect, Notify
from reattach.models.errors import IllegalEvent
from reattach.models.events import Event, Ident
from reattach.models.invocation import Invocation, Tenure
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import Notice, NoticeKind
from reattach.models.record import record
from reattach.models.request import Request

_PROOFS: Final = frozenset({"submit_accepted", "handle_learned"})
_RESPONDING: Final = frozenset({Leaf.RU_RESPONDING_SENDING, Leaf.RU_RESPONDING_PROBING, Leaf.RU_RESPONDING_QUIET})


@record
@dataclass(frozen=True, slots=True)
class Step:
    """The next record, and what the host must do now, in this order."""

    invocation: Invocation
    effects: tuple[Effect, ...]


def begin(
    request: Request, env: Env, *, epoch: int = 0, sends_end_ms: int = 0, after: tuple[str, ...] = ("",)
) -> Invocation:
    """Make the record of a call whose turn has come; it wakes at once.

    Args:
        epoch, sends_end_ms: the thread's, so that this turn waits for the last turn's sends.
        after: markers of the turns that may be the newest on the thread now.
    """
    return Invocation(
        request=request,
        generation=request.generation,
        slot=1,
        leaf=Leaf.NS_QUIET,
        epoch=epoch,
        wake_at_ms=max(1, env.now_ms),
        asked_at_ms=request.requested_at_ms,
        entered_ms=env.now_ms,
        tenure=Tenure(env.incarnation, sends_end_ms=sends_end_ms),
        after=after,
    )


def step(invocation: Invocation, event: Event, env: Env) -> Step:
    """Apply one fact.

    Returns:
        The next record and its effects. A record of another incarnation is taken over first (as by
        `Restored`), so that nothing of what that one knew or was permitted is used.

    Raises:
        IllegalEvent: the host delivered an answer that no order can have; nothing has changed.

    Guarantee: at most one accepted submit per invocation and generation (tests/fsm, docs/verification.md).
    """
    if invocation.leaf.terminal:
        return Step(invocation, (Count("late_fact"),) if not isinstance(event, events.TimeReached) else ())
    if invocation.tenure.incarnation == env.incarnation:
        return _apply(invocation, event, env)
    taken = _apply(invocation, events.Restored(), env)
    if isinstance(event, events.Restored | events.TimeReached) or taken.invocation.leaf.terminal:
        return taken
    then = _apply(taken.invocation, event, env)
    # An order of the take-over that the event has overtaken is not given: one attempt in flight.
    if then.invocation.epoch != taken.invocation.epoch:
        return Step(then.invocation, tuple(e for e in taken.effects if not hasattr(e, "ident")) + then.effects)
    return Step(then.invocation, taken.effects + then.effects)


def _apply(invocation: Invocation, event: Event, env: Env) -> Step:
    dropped = _screen(invocation, event, env)
    if dropped is not None:
        return Step(invocation, (dropped,))
    name = event_name(event)
    lines = TABLE[invocation.leaf].get(name)
    if lines is None:
        raise IllegalEvent(f"{name} cannot happen in {invocation.leaf.value} ({invocation.id})")
    draft = Draft(invocation, event, env)
    draft.steps += 1
    entered = _follow_first(draft, lines)
    if draft.leaf is Leaf.SU_PARKED:
        entered = _follow_first(draft, TABLE[Leaf.SU_PARKED][SETTLING]) or entered
    if entered:
        # An answer belongs to the entry that ordered it: every older order is void from here on.
        draft.epoch += 1
        if draft.leaf not in _RESPONDING:
            draft.response = None
        ORDERS[draft.leaf](draft)
    return Step(draft.freeze(), tuple(draft.effects))


def _follow_first(draft: Draft, lines: tuple[Line, ...]) -> bool:
    """Follow the first line that matches; say whether a leaf was entered."""
    for line in lines:
        if line.matches(draft):
            return _follow(draft, line)
    return False


def _follow(draft: Draft, line: Line) -> bool:
    for act in line.acts:
        act(draft)
    if line.target is None:
        return False
    old, new = draft.leaf.status, line.target.status
    if old is not new:
        now = draft.env.now_ms
        spent = list(draft.spent_ms)
        spent[old] += max(0, now - draft.entered_ms)
        draft.spent_ms = (spent[0], spent[1], spent[2])
        draft.entered_ms = now
    draft.leaf = line.target
    return True


def _screen(inv: Invocation, event: Event, env: Env) -> Effect | None:
    """Drop what is not for this record: say what to count or whom to tell."""
    if isinstance(event, events.TimeReached):
        return None if env.now_ms >= inv.wake_at_ms else Count("early_timer")
    if isinstance(event, events.Restored):
        return None
    # One attribute asked for costs less than the type compared with ten.
    ident: Ident | None = getattr(event, "ident", None)
    if ident is not None:
        current = ident.epoch == inv.epoch and _ours(ident, inv, env)
        return None if current or _late_proof(inv, event, ident, env) else Count("stale_answer")
    if _obeyed(inv, event, env):
        return Count("duplicate_order")
    generation: int = getattr(event, "generation", 0)
    if generation == inv.generation:
        return None
    message = f"{type(event).__name__} is for generation {generation}, the call is at {inv.generation}"
    return Notify(Notice(NoticeKind.REFUSED, inv.id, inv.generation, message))


def _obeyed(inv: Invocation, event: Event, env: Env) -> bool:
    """What this order asks for has been done already: it was delivered again."""
    match event:
        case events.CancelOrdered(generation=generation):
            return inv.cancelled and generation == inv.generation
        case events.AdoptOrdered(generation=generation, handle=handle):
            return inv.status is Status.RUNNING and (generation, handle) == (inv.generation, inv.handle)
        case events.ResubmitOrdered(generation=generation):
            # Only an order opens a generation beyond these.
            return inv.generation > max(generation, env.terms.policy.generations_max, inv.request.generation)
    return False


def _ours(ident: Ident, inv: Invocation, env: Env) -> bool:
    """An order of this incarnation for this generation of this call."""
    return (
        ident.generation == inv.generation
        and ident.incarnation == env.incarnation
        and ident.invocation_id == inv.request.invocation_id
    )


def _late_proof(inv: Invocation, event: Event, ident: Ident, env: Env) -> bool:
    """An older order of this incarnation and generation proves that the submit was accepted."""
    if inv.status is not Status.SUBMITTED or not _ours(ident, inv, env):
        return False
    name = event_name(event)
    return name in _PROOFS and name in TABLE[inv.leaf]


_PHASE_NAMES: Final = {
    answers.Phase.RUNNING: "found_running",
    answers.Phase.AWAITING_INPUT: "found_waiting",
    answers.Phase.COMPLETED: "found_completed",
    answers.Phase.FAILED: "found_failed",
    answers.Phase.CANCELLED: "found_cancelled",
}
_ANSWER_NAMES: Final[dict[tuple[type, type], str]] = {
    (events.ProbeAnswered, answers.Absent): "found_absent",
    (events.ProbeAnswered, answers.Unknown): "probe_unanswered",
    (events.SubmitAnswered, answers.Accepted): "submit_accepted",
    (events.SubmitAnswered, answers.Occupied): "submit_occupied",
    (events.SubmitAnswered, answers.Refused): "submit_refused",
    (events.SubmitAnswered, answers.NotSent): "submit_not_sent",
    (events.SubmitAnswered, answers.Unresolved): "submit_unresolved",
    (events.FetchAnswered, answers.Result): "result_fetched",
    (events.FetchAnswered, answers.NotReady): "result_not_ready",
    (events.FetchAnswered, answers.Gone): "result_gone",
    (events.FetchAnswered, answers.Unknown): "fetch_unanswered",
    (events.FenceAnswered, answers.Fenced): "fenced",
    (events.FenceAnswered, answers.Occupied): "fence_occupied",
    (events.FenceAnswered, answers.Unknown): "fence_unanswered",
    (events.CancelAnswered, answers.Confirmed): "cancel_confirmed",
    (events.CancelAnswered, answers.Taken): "cancel_taken",
    (events.CancelAnswered, answers.Unknown): "cancel_unanswered",
    (events.RespondAnswered, answers.Accepted): "respond_accepted",
    (events.RespondAnswered, answers.Occupied): "respond_unresolved",
    (events.RespondAnswered, answers.Refused): "respond_refused",
    (events.RespondAnswered, answers.NotSent): "respond_not_sent",
    (events.RespondAnswered, answers.Unresolved): "respond_unresolved",
}
_EVENT_NAMES: Final[dict[type, str]] = {
    events.Restored: "restored",
    events.TimeReached: "time_reached",
    events.HandleLearned: "handle_learned",
    events.Progressed: "progressed",
    events.WatchEnded: "watch_ended",
    events.CheckpointCompleted: "checkpoint_completed",
    events.CancelOrdered: "cancel_ordered",
    events.AdoptOrdered: "adopt_ordered",
    events.ResubmitOrdered: "resubmit_ordered",
    events.AbandonOrdered: "abandon_ordered",
    events.ResponseGiven: "response_given",
}


def event_name(event: Event) -> str:
    """The chart's name of an event: answers are told apart by what they say."""
    simple = _EVENT_NAMES.get(type(event))
    if simple is not None:
        return simple
    answer = getattr(event, "answer", None)
    if isinstance(answer, answers.Present):
        return _PHASE_NAMES[answer.phase]
    try:
        return _ANSWER_NAMES[type(event), type(answer)]
    except KeyError:
        raise IllegalEvent(f"{type(event).__name__} cannot carry {type(answer).__name__}") from None
