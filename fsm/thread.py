"""One remote conversation: its turns in order, never two at once, each request only once.

`step_thread` takes every fact about one (agent, thread): it absorbs re-delivered requests, queues
later turns, hands facts to the call they name (`step`) or to the one that drains (`step_drain`),
and starts the next turn when the thread is free. It changes a call only through those two.

It does not decide when a POST may be sent, and it stores nothing.
"""

from dataclasses import dataclass, field, replace

from reattach.fsm.control import take_order
from reattach.fsm.drain import begin_drain, needs_drain, step_drain
from reattach.fsm.env import Env
from reattach.fsm.step import Step, begin, step
from reattach.models.effects import Count, Effect, Emit, Notify
from reattach.models.events import Event, Ordered, Requested, Restored, ThreadEvent, TimeReached
from reattach.models.identity import digest_of, marker_of, thread_id_of
from reattach.models.invocation import AFTER_MAX, Invocation
from reattach.models.lifecycle import Status
from reattach.models.outcomes import Failure, FailureCode, Notice, NoticeKind, Outcome, RemoteFate
from reattach.models.policy import Evidence
from reattach.models.record import Kept, record
from reattach.models.request import Request
from reattach.models.thread import Drain, Queued, ThreadState, Tombstone


@record
@dataclass(frozen=True, slots=True)
class Transition:
    """One step of one call, for the journal. `before` is None when the call has just begun."""

    event: ThreadEvent
    before: Invocation | None
    after: Invocation
    effects: tuple[Effect, ...]


@record
@dataclass(frozen=True, slots=True)
class ThreadStep:
    """The next state of a thread (None: nothing left to remember) and what follows from it.

    Args:
        effects: in order; each with the record it was ordered for, None where no call is meant.
    """

    state: ThreadState | None
    effects: tuple[tuple[Effect, Invocation | None], ...]
    transitions: tuple[Transition, ...]


@dataclass(slots=True)
class _Work:
    """The state while it is worked on."""

    env: Env
    active: Invocation | None
    drain: Drain | None
    queue: list[Queued]
    tombstones: list[Tombstone]
    epoch: int
    incarnation: str
    sends_end_ms: int
    after: tuple[str, ...]
    kept: Kept
    effects: list[tuple[Effect, Invocation | None]] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)

    def tell(self, effect: Effect) -> None:
        self.effects.append((effect, None))


def step_thread(state: ThreadState | None, event: ThreadEvent, env: Env) -> ThreadStep:
    """Apply one fact to a thread.

    Raises:
        IllegalEvent: as `step` does; nothing has changed.

    Guarantee: turns of one thread never overlap, and every request ends in exactly one outcome
    (tests/fsm/test_thread.py).
    """
    state = state or ThreadState()
    work = _Work(
        env, state.active, state.drain, list(state.queue), list(state.tombstones), state.epoch,
        state.incarnation, state.sends_end_ms, state.after, state.kept,
    )  # fmt: skip
    if isinstance(event, Requested):
        _request(work, event.request)
    elif isinstance(event, Restored | TimeReached):
        _wake(work, event)
    else:
        _route(work, event)
    _next_turn(work)
    if work.tombstones:
        work.tombstones = [stone for stone in work.tombstones if stone.expires_at_ms > env.now_ms]
    return ThreadStep(_freeze(work), tuple(work.effects), tuple(work.transitions))


def _freeze(work: _Work) -> ThreadState | None:
    if work.active is None and work.drain is None and not work.queue and not work.tombstones:
        return None
    return ThreadState(
        work.active, work.drain, tuple(work.queue), tuple(work.tombstones), work.epoch, work.incarnation,
        work.sends_end_ms, work.after, work.kept,
    )  # fmt: skip


def _request(work: _Work, request: Request) -> None:
    known = _digest_known(work, request)
    if known is not None:
        if known == digest_of(request):
            work.tell(Count("duplicate_request"))
        else:
            message = "this invocation_id is known with another payload; a new call needs a new id"
            work.tell(Notify(Notice(NoticeKind.REFUSED, request.invocation_id, request.generation, message)))
        return
    refusal = _refusal(work, request)
    if refusal is not None:
        _end_unstarted(work, request, refusal)
        return
    work.queue.append(Queued(request))


def _digest_known(work: _Work, request: Request) -> bytes | None:
    """The digest under which this id is known; None for a new call, or a failed one's next generation."""
    name = request.invocation_id
    if work.active is not None and work.active.id == name:
        return digest_of(work.active.request)
    for waiting in work.queue:
        if waiting.request.invocation_id == name:
            return digest_of(waiting.request)
    for stone in reversed(work.tombstones):
        if stone.invocation_id == name:
            retry = stone.status is Status.FAILED and request.generation > stone.generation
            return None if retry else stone.digest
    return None


def _refusal(work: _Work, request: Request) -> Failure | None:
    """Why a well-formed request cannot be taken."""
    shared = request.thread_id not in ("", thread_id_of(replace(request, thread_id=""), request.generation))
    if shared and work.env.terms.capabilities.evidence is Evidence.CONTAINER:
        message = (
            "thread_id: this agent's turns cannot be told apart by the thread's status alone; "
            "leave thread_id out, or configure a marker"
        )
        return Failure(FailureCode.INVALID_REQUEST, message, RemoteFate.NONE)
    if len(work.queue) >= work.env.terms.policy.queue_max:
        message = f"{len(work.queue)} turns are waiting for this thread already (queue_max)"
        return Failure(FailureCode.QUEUE_FULL, message, RemoteFate.NONE, retryable=True)
    return None


def _end_unstarted(work: _Work, request: Request, failure: Failure) -> None:
    now = work.env.now_ms
    outcome = Outcome(
        request.invocation_id, request.agent, thread_id_of(request, request.generation), request.generation,
        Status.FAILED, None, failure, "", 0, 0, (0, 0, 0), now,
    )  # fmt: skip
    work.tell(Emit(outcome))
    _bury(work, request, request.generation, Status.FAILED, failure.code)


def _bury(work: _Work, request: Request, generation: int, status: Status, code: FailureCode | None) -> None:
    expires = work.env.now_ms + work.env.terms.policy.tombstone_ttl_ms
    stone = Tombstone(request.invocation_id, generation, digest_of(request), status, code, expires)
    work.tombstones = [*work.tombstones, stone][-work.env.terms.policy.tombstones_max :]


def _wake(work: _Work, event: Event) -> None:
    drain, active = work.drain, work.active
    if drain is not None and _due(work.env, drain.invocation, drain.wake_at_ms, event):
        _drain(work, drain, event)
    if active is not None and _due(work.env, active, active.wake_at_ms, event):
        _step(work, active, event)


def _due(env: Env, invocation: Invocation, wake_at_ms: int, event: Event) -> bool:
    """The thread's timer is for whoever is due; a new incarnation takes over everything."""
    foreign = invocation.tenure.incarnation != env.incarnation
    return foreign or isinstance(event, Restored) or env.now_ms >= wake_at_ms


def _route(work: _Work, event: Event) -> None:
    """Give a fact to the call it names."""
    answer = hasattr(event, "ident")
    invocation_id = event.ident.invocation_id if answer else event.invocation_id  # type: ignore[union-attr]
    active, drain = work.active, work.drain
    if active is not None and active.id == invocation_id:
        _step(work, active, event)
    elif not answer:
        assert isinstance(event, Ordered)
        work.queue, effect = take_order(event, work.queue, work.tombstones, work.env)
        if effect is not None:
            work.tell(effect)
    elif drain is not None and drain.invocation.id == invocation_id:
        _drain(work, drain, event)
    else:
        work.tell(Count("stale_answer"))


def _step(work: _Work, invocation: Invocation, event: Event) -> None:
    _take(work, event, invocation, step(invocation, event, work.env))


def _take(work: _Work, event: ThreadEvent, before: Invocation | None, result: Step) -> None:
    after = result.invocation
    work.transitions.append(Transition(event, before, after, result.effects))
    work.effects.extend((effect, after) for effect in result.effects)
    work.epoch = after.epoch
    if after.leaf.terminal:
        _end(work, after)
    else:
        work.active = after


def _end(work: _Work, ended: Invocation) -> None:
    work.active = None
    work.incarnation = ended.tenure.incarnation
    work.sends_end_ms = ended.tenure.sends_end_ms
    failure = ended.failure
    _bury(work, ended.request, ended.generation, ended.status, failure.code if failure else None)
    marker = marker_of(ended.id, ended.generation)
    fate = failure.remote if failure is not None else RemoteFate.ENDED
    if fate is RemoteFate.NONE:
        work.after = ended.after
    elif fate is RemoteFate.UNKNOWN:
        work.after = (*ended.after, marker)[-AFTER_MAX:]
    else:
        work.after = (marker,)
    if needs_drain(ended):
        work.drain, effects = begin_drain(ended, work.env)
        _note_drain(work, Restored(), ended, work.drain.invocation, effects)


def _drain(work: _Work, drain: Drain, event: Event) -> None:
    work.drain, effects = step_drain(drain, event, work.env)
    after = work.drain.invocation if work.drain is not None else drain.invocation
    _note_drain(work, event, drain.invocation, after, effects)


def _note_drain(work: _Work, event: Event, before: Invocation, after: Invocation, effects: tuple[Effect, ...]) -> None:
    work.transitions.append(Transition(event, before, after, effects))
    work.effects.extend((effect, after) for effect in effects)
    work.epoch = max(work.epoch, after.epoch)


def _next_turn(work: _Work) -> None:
    """Start the oldest waiting turn, if the thread is free."""
    while work.active is None and work.drain is None and work.queue:
        waiting = work.queue.pop(0)
        own = work.incarnation == work.env.incarnation
        fresh = begin(
            waiting.request,
            work.env,
            epoch=work.epoch,
            sends_end_ms=work.sends_end_ms if own else 0,
            after=work.after,
        )
        if waiting.cancelled:
            fresh = replace(fresh, cancelled=True)
        _take(work, Requested(waiting.request), None, Step(fresh, ()))
        _step(work, fresh, TimeReached())
