"""What follows a call that ended here while its run may still act: the thread waits for it.

A deadline or a cancel ends a call locally, its outcome is emitted, and nothing more is promised
about it. But the next turn of the thread must not meet its run, so the thread asks on until the
run is trusted absent, has ended, or `drain_max_ms` has passed.
"""

from dataclasses import replace

from reattach.fsm.backoff import backoff_ms
from reattach.fsm.draft import Draft
from reattach.fsm.env import Env
from reattach.fsm.guards import askable, can_cancel, credible, trusted
from reattach.fsm.orders import poll_interval_ms
from reattach.models.answers import Absent, Accepted, Phase, Present
from reattach.models.effects import Cancel, Count, Effect, Notify, Probe
from reattach.models.events import (
    CancelAnswered,
    Event,
    HandleLearned,
    Ident,
    ProbeAnswered,
    Restored,
    SubmitAnswered,
    TimeReached,
)
from reattach.models.invocation import Invocation
from reattach.models.journal import redact_request
from reattach.models.outcomes import FailureCode, Notice, NoticeKind
from reattach.models.thread import Drain

_ALIVE = frozenset({Phase.RUNNING, Phase.AWAITING_INPUT})


def needs_drain(ended: Invocation) -> bool:
    """A FAILED call whose run may still do something."""
    return ended.failure is not None and not ended.failure.remote.settled


def begin_drain(ended: Invocation, env: Env) -> tuple[Drain, tuple[Effect, ...]]:
    """Start to watch over the run of a call that has just FAILED.

    Nothing will be sent for it any more, so only the digests of its message and metadata are kept.
    """
    request = replace(redact_request(ended.request), kept=ended.request.kept)
    ended = replace(ended, request=request)
    drain = Drain(ended, wake_at_ms=0, until_ms=env.now_ms + env.terms.policy.drain_max_ms)
    return _order(drain, Draft(ended, Restored(), env))


def step_drain(drain: Drain, event: Event, env: Env) -> tuple[Drain | None, tuple[Effect, ...]]:
    """Apply one fact; None when the thread is released. The caller keeps early timers away."""
    draft = Draft(drain.invocation, event, env)
    restored = drain.invocation.tenure.incarnation != env.incarnation
    if isinstance(event, Restored | TimeReached) or restored:
        if env.now_ms >= drain.until_ms:
            return None, (Notify(_expired(drain)),)
        return _order(drain, draft)
    ident = getattr(event, "ident", None)
    if ident is None or ident != draft.ident:
        return _late(drain, draft, event, ident)
    if isinstance(event, ProbeAnswered):
        return _probed(drain, draft, event)
    if isinstance(event, CancelAnswered):
        return _order(drain, draft)
    return drain, (Count("late_fact"),)


def _late(drain: Drain, draft: Draft, event: Event, ident: Ident | None) -> tuple[Drain | None, tuple[Effect, ...]]:
    """Take an older order's proof of acceptance, if it is about this very generation; count the rest."""
    own = ident is not None and (ident.incarnation, ident.generation) == (draft.incarnation, draft.generation)
    accepted = isinstance(event, HandleLearned) or (
        isinstance(event, SubmitAnswered) and isinstance(event.answer, Accepted)
    )
    if own and accepted and not draft.handle:
        source = event if isinstance(event, HandleLearned) else draft.answer
        known = replace(drain.invocation, handle=source.handle)
        return replace(drain, invocation=known, wake_at_ms=draft.env.now_ms), (Count("late_fact"),)
    return drain, (Count("stale_answer"),)


def _probed(drain: Drain, draft: Draft, event: ProbeAnswered) -> tuple[Drain | None, tuple[Effect, ...]]:
    answer = event.answer
    if isinstance(answer, Absent) and trusted(draft) and credible(draft):
        return None, ()
    if isinstance(answer, Present) and answer.phase not in _ALIVE:
        return None, ()
    if isinstance(answer, Present):
        draft.tries = 0
        draft.handle = answer.handle or draft.handle
        if _wants_cancel(draft):
            return _order(drain, draft, cancel=True)
        wait = poll_interval_ms(draft)
    else:
        policy = draft.policy
        wait = backoff_ms(draft.seed, draft.tries, policy.poll_ms, policy.backoff_max_ms)
        draft.tries += 1
    return _rest(drain, draft, wait)


def _wants_cancel(draft: Draft) -> bool:
    late = draft.failure is not None and draft.failure.code is FailureCode.DEADLINE_EXCEEDED
    wanted = draft.cancelled or (late and draft.policy.cancel_on_deadline)
    return wanted and can_cancel(draft)


def _order(drain: Drain, draft: Draft, cancel: bool = False) -> tuple[Drain, tuple[Effect, ...]]:
    policy = draft.policy
    if not askable(draft):
        return _rest(drain, draft, max(1, drain.until_ms - draft.env.now_ms))
    draft.epoch += 1
    draft.steps += 1
    effect: Effect
    if cancel:
        draft.cancels += 1
        effect, limit = Cancel(draft.ident), policy.submit_timeout_ms
    else:
        draft.ordered_at_ms = draft.env.now_ms
        effect, limit = Probe(draft.ident), policy.probe_timeout_ms
    wake = draft.env.now_ms + limit + policy.slack_ms
    return replace(drain, invocation=draft.freeze(), wake_at_ms=wake), (effect,)


def _rest(drain: Drain, draft: Draft, wait_ms: int) -> tuple[Drain, tuple[Effect, ...]]:
    draft.epoch += 1
    draft.steps += 1
    wake = min(draft.env.now_ms + max(1, wait_ms), drain.until_ms)
    return replace(drain, invocation=draft.freeze(), wake_at_ms=wake), ()


def _expired(drain: Drain) -> Notice:
    inv = drain.invocation
    return Notice(
        NoticeKind.DRAIN_EXPIRED,
        inv.id,
        inv.generation,
        "the thread is released although it is not known whether this call's run has ended",
    )
