"""What is ordered on entering a leaf, and when the call wakes up if nothing comes of it.

One function per leaf. Every order is one attempt: its answer must carry the epoch of this very
entry, and its wake-up lies behind the order's own time limit, so a lost answer is never a stuck
call. Waiting leaves wake at their time or at the deadline, whichever is first.
"""

from collections.abc import Callable
from typing import Final

from reattach.fsm.backoff import scatter
from reattach.fsm.draft import NO_WAIT, Draft
from reattach.fsm.guards import askable, quiet_until_ms
from reattach.models.effects import Cancel, Emit, Fence, Fetch, Hold, Notify, Probe, Respond, Submit, Watch
from reattach.models.identity import thread_id_of
from reattach.models.lifecycle import Leaf
from reattach.models.outcomes import NoticeKind, Outcome
from reattach.models.policy import StreamKind

STREAMS_EMPTY_MAX: Final = 3


def _wake_after(d: Draft, limit_ms: int) -> None:
    d.wake_at_ms = d.env.now_ms + limit_ms


def _wait(d: Draft, default_ms: int) -> None:
    pause = default_ms if d.pause_ms == NO_WAIT else d.pause_ms
    wake = d.env.now_ms + max(0, pause)
    # The deadline is a wake-up of its own, until it has passed.
    d.wake_at_ms = min(wake, d.deadline_ms) if d.env.now_ms < d.deadline_ms else wake


def probe(d: Draft) -> None:
    d.probes += 1
    d.ordered_at_ms = d.env.now_ms
    d.effects.append(Probe(d.ident))
    _wake_after(d, d.policy.probe_timeout_ms + d.policy.slack_ms)


def submit(d: Draft) -> None:
    policy = d.policy
    not_after = d.env.now_ms + policy.submit_validity_ms
    d.permit = False
    # Until its answer says otherwise, this POST may be under way as long as its limits allow.
    d.sends_end_ms = not_after + policy.submit_timeout_ms
    d.effects.append(Submit(d.ident, not_after))
    d.wake_at_ms = d.sends_end_ms + policy.slack_ms


def respond(d: Draft) -> None:
    policy = d.policy
    not_after = d.env.now_ms + policy.submit_validity_ms
    d.sends_end_ms = not_after + policy.submit_timeout_ms
    d.effects.append(Respond(d.ident, not_after))
    d.wake_at_ms = d.sends_end_ms + policy.slack_ms


def fence(d: Draft) -> None:
    d.fenced = False
    d.effects.append(Fence(d.ident))
    _wake_after(d, d.policy.submit_timeout_ms + d.policy.slack_ms)


def cancel(d: Draft) -> None:
    d.cancels += 1
    d.effects.append(Cancel(d.ident))
    _wake_after(d, d.policy.submit_timeout_ms + d.policy.slack_ms)


def fetch(d: Draft) -> None:
    d.effects.append(Fetch(d.ident))
    _wake_after(d, d.policy.fetch_timeout_ms + d.policy.slack_ms)


def hold(d: Draft) -> None:
    d.effects.append(Hold(d.ident))
    _wait(d, d.policy.park_probe_ms)


def quiet(d: Draft) -> None:
    # Without a pause this is a new call, or a new generation: nothing to wait for before asking.
    _wait(d, 0)


def quiet_time(d: Draft) -> None:
    _wait(d, max(0, quiet_until_ms(d) - d.env.now_ms))


def back_off(d: Draft) -> None:
    _wait(d, d.policy.backoff_ms)


def park(d: Draft) -> None:
    if d.ask and askable(d):
        probe(d)
        return
    if d.source is not Leaf.SU_PARKED:
        d.effects.append(Notify(d.notice(NoticeKind.PARKED, d.cause)))
    _wait(d, d.policy.park_probe_ms)


def poll_interval_ms(d: Draft) -> int:
    """An eighth of the run's age, within the policy's bounds, scattered by the call's name."""
    policy = d.policy
    age = max(0, d.env.now_ms - d.entered_ms)
    interval = min(max(policy.poll_ms, age // 8), policy.poll_max_ms)
    return interval - scatter(f"{d.seed}/{d.epoch}", interval // 8)


def watch(d: Draft) -> None:
    policy = d.policy
    streams = policy.watch and d.capabilities.stream is not StreamKind.NONE and d.streams < 2 * STREAMS_EMPTY_MAX
    if not streams or d.pause_ms != NO_WAIT:
        _wait(d, poll_interval_ms(d))
    elif d.streams % 2:
        # One has just ended, and the run goes on: some servers end every stream after an event.
        d.streams += 1
        _wait(d, min(max(policy.backoff_ms, max(0, d.env.now_ms - d.entered_ms) // 8), policy.poll_ms))
    else:
        d.effects.append(Watch(d.ident, d.cursor))
        _wait(d, policy.watch_silence_ms)


def await_input(d: Draft) -> None:
    _wait(d, d.policy.park_probe_ms)


def emit(d: Draft) -> None:
    d.wake_at_ms = 0
    d.permit = False
    request = d.request
    outcome = Outcome(
        invocation_id=request.invocation_id,
        agent=request.agent,
        thread_id=thread_id_of(request, d.generation, d.slot),
        generation=d.generation,
        status=d.leaf.status,
        result=d.result if d.leaf is Leaf.COMPLETED else None,
        failure=d.failure,
        handle=d.handle,
        attempts=d.attempts,
        probes=d.probes,
        spent_ms=d.spent_ms,
        finished_at_ms=d.env.now_ms,
    )
    d.effects.append(Emit(outcome))


ORDERS: Final[dict[Leaf, Callable[[Draft], None]]] = {
    Leaf.NS_QUIET: quiet,
    Leaf.NS_PROBING: probe,
    Leaf.NS_BACKING_OFF: back_off,
    Leaf.SU_HOLDING: hold,
    Leaf.SU_SENDING: submit,
    Leaf.SU_PROBING: probe,
    Leaf.SU_QUIET: quiet_time,
    Leaf.SU_FENCING: fence,
    Leaf.SU_BACKING_OFF: back_off,
    Leaf.SU_PARKED: park,
    Leaf.RU_WATCHING: watch,
    Leaf.RU_PROBING: probe,
    Leaf.RU_FETCHING: fetch,
    Leaf.RU_AWAITING_INPUT: await_input,
    Leaf.RU_RESPONDING_SENDING: respond,
    Leaf.RU_RESPONDING_PROBING: probe,
    Leaf.RU_RESPONDING_QUIET: quiet_time,
    Leaf.RU_CANCELLING: cancel,
    Leaf.COMPLETED: emit,
    Leaf.FAILED: emit,
}
