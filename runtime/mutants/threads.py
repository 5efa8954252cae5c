"""Faults of threads: turns, tombstones, local ends and what follows them."""

from dataclasses import replace

from reattach.fsm import drain, endings, guards, orders, thread
from reattach.fsm.draft import Draft
from reattach.fsm.thread import _Work
from reattach.models.answers import Phase, Present
from reattach.models.effects import Effect, Emit
from reattach.models.events import CancelOrdered, ProbeAnswered
from reattach.models.identity import thread_id_of
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import Failure, FailureCode, Outcome, RemoteFate
from reattach.models.request import Request
from reattach.models.thread import Drain
from reattach.runtime.explore.kinds import cancelling, streaming
from reattach.runtime.explore.runs import FAR, named, request
from reattach.runtime.explore.scenario import START_MS
from reattach.runtime.mutants.mutant import Mutant
from reattach.runtime.mutants.patching import Patch, line, reline, swap, together
from reattach.runtime.mutants.worlds import endless, trial

_ON_T = {"thread_id": "T"}
_CANCELLED = (
    request("a", turn=1, **_ON_T),
    CancelOrdered("a", 1),
    request("b", turn=2, **_ON_T),
)
_LATE = (
    request("a", turn=1, deadline_ms=START_MS + 6, **_ON_T),
    request("b", turn=2, **_ON_T),
)
_TWICE = (request("a"), request("a"))


def _terminal_not_absorbing() -> Patch:
    probed = drain._probed

    def revive(drained: Drain, d: Draft, event: ProbeAnswered) -> tuple[Drain | None, tuple[Effect, ...]]:
        after, effects = probed(drained, d, event)
        answer = event.answer
        if isinstance(answer, Present) and answer.phase is Phase.COMPLETED:
            effects = (*effects, Emit(_completed(drained.invocation, answer)))
        return after, effects

    return swap(probed, revive)


def _completed(inv: Invocation, answer: Present) -> Outcome:
    name = thread_id_of(inv.request, inv.generation)
    return Outcome(
        inv.id, inv.request.agent, name, inv.generation, Status.COMPLETED, answer.result, None, inv.handle, 0, 0,
        (0, 0, 0), 0,
    )  # fmt: skip


def _no_wake_up() -> Patch:
    def forget(d: Draft, _limit_ms: int) -> None:
        d.wake_at_ms = 0

    return swap(orders._wake_after, forget)


def _deadline_not_armed() -> Patch:
    # With one of the two the other still ends the call, if a probe is ever late.
    return together(swap(guards.overdue, lambda _: False), swap(guards.exhausted, lambda _: False))


def _drain_without_wake_up() -> Patch:
    rest = drain._rest

    def forget(drained: Drain, d: Draft, wait_ms: int) -> tuple[Drain, tuple[Effect, ...]]:
        after, effects = rest(drained, d, wait_ms)
        return replace(after, wake_at_ms=0), effects

    return swap(rest, forget)


def _tombstone_forgotten() -> Patch:
    def forget(work: _Work, request: Request, generation: int, status: Status, code: FailureCode | None) -> None:
        pass

    return swap(thread._bury, forget)


def _turns_overlap() -> Patch:
    following = thread._next_turn

    def hasty(work: _Work) -> None:
        held = work.drain
        work.drain = None
        following(work)
        if work.drain is None:
            work.drain = held

    return swap(following, hasty)


def _released_while_its_post_is_in_flight() -> Patch:
    return swap(drain.needs_drain, lambda _: False)


def _drain_believes_at_once() -> Patch:
    probed = drain._probed

    def hasty(drained: Drain, d: Draft, event: ProbeAnswered) -> tuple[Drain | None, tuple[Effect, ...]]:
        if isinstance(event.answer, Present):
            return probed(drained, d, event)
        return None, ()

    return swap(probed, hasty)


def _early_absence_is_proof_of_nothing_sent() -> Patch:
    fate = endings._fate

    def sure(d: Draft) -> RemoteFate:
        found = fate(d)
        return RemoteFate.NONE if found is RemoteFate.UNKNOWN else found

    return swap(fate, sure)


def _status_only_thread_reused() -> Patch:
    refusal = thread._refusal

    def lax(work: _Work, request: Request) -> Failure | None:
        found = refusal(work, request)
        return None if found is not None and found.code is FailureCode.INVALID_REQUEST else found

    return swap(refusal, lax)


def _unanswered_cancel_believed() -> Patch:
    return reline((Leaf.RU_CANCELLING,), "cancel_unanswered", line(Leaf.FAILED, "fail_cancelled"))


def _cancel_skips_the_probe() -> Patch:
    leaves = (Leaf.SU_PROBING, Leaf.SU_QUIET, Leaf.SU_BACKING_OFF, Leaf.SU_SENDING)
    return reline(leaves, "cancel_ordered", line(Leaf.FAILED, "mark_cancelled", "fail_cancelled"))


def _end_of_stream_is_end_of_run() -> Patch:
    return reline((Leaf.RU_WATCHING,), "watch_ended", line(Leaf.FAILED, "fail_gone"))


def _failed_call_starts_again() -> Patch:
    known = thread._digest_known

    def forget(work: _Work, request: Request) -> bytes | None:
        if any(stone.status is Status.FAILED for stone in work.tombstones):
            return None
        return known(work, request)

    return swap(known, forget)


def _closing_call_never_retried() -> Patch:
    retried = guards.retries
    return swap(retried, lambda d: retried(d) and not guards.closing(d))


MUTANTS = (
    Mutant(
        "terminal-not-absorbing",
        "A call that has ended stays ended, whatever is learned of its run later.",
        _terminal_not_absorbing,
        trial("marker-list", deadline_ms=6),
        "two outcomes",
    ),
    Mutant(
        "no-wake-up",
        "Every open call has a wake-up, also while an order is in flight.",
        _no_wake_up,
        trial("marker-list"),
        "bad record",
    ),
    Mutant(
        "deadline-not-armed",
        "A deadline ends a call, also where the run never ends (liveness).",
        _deadline_not_armed,
        trial("marker-list", deadline_ms=6),
        "stuck",
        endless,
    ),
    Mutant(
        "drain-without-wake-up",
        "A thread that waits for a run to end is looked at again.",
        _drain_without_wake_up,
        trial("marker-list", deadline_ms=6),
        "no wake-up",
    ),
    Mutant(
        "tombstone-forgotten",
        "A request that is delivered again after its call has ended does not start it again.",
        _tombstone_forgotten,
        trial("marker-list", script=_TWICE),
        "two outcomes",
    ),
    Mutant(
        "failed-call-starts-again",
        "A failed call is retried as its next generation, never under the same identity.",
        _failed_call_starts_again,
        trial("marker-list", script=_TWICE, deadline_ms=6),
        "two outcomes",
    ),
    Mutant(
        "turns-overlap",
        "The next turn waits while the last call's run may still act.",
        _turns_overlap,
        trial("marker-list", turns=2, script=_LATE, drain_max_ms=FAR),
        "turns overlap",
    ),
    Mutant(
        "released-while-its-post-is-in-flight",
        "A deadline ends the call, not the wait for its POST.",
        _released_while_its_post_is_in_flight,
        trial("marker-list", turns=2, script=_LATE, losses=1, drain_max_ms=FAR),
        "turns overlap",
    ),
    Mutant(
        "drain-believes-at-once",
        "A thread is released by a trusted absence only.",
        _drain_believes_at_once,
        trial("marker-list", turns=2, script=_LATE, losses=1, drain_max_ms=FAR),
        "turns overlap",
    ),
    Mutant(
        "fate-too-sure",
        "An outcome says that nothing was accepted only where that is proven.",
        _early_absence_is_proof_of_nothing_sent,
        trial("marker-list", crashes=1, deadline_ms=6),
        "false fate",
    ),
    Mutant(
        "status-only-thread-reused",
        "Where only a thread's status can be seen, a thread serves one call.",
        _status_only_thread_reused,
        trial("status-only", turns=2),
        "wrong turn",
    ),
    Mutant(
        "unanswered-cancel-believed",
        "A cancel without an answer has not ended the run.",
        _unanswered_cancel_believed,
        trial(cancelling(named("marker-list")), turns=2, script=_CANCELLED, losses=1, drain_max_ms=FAR),
        "false fate",
    ),
    Mutant(
        "cancel-skips-the-probe",
        "After a cancel the probe decides what became of the POST.",
        _cancel_skips_the_probe,
        trial("marker-list", turns=2, script=_CANCELLED, drain_max_ms=FAR),
        "false fate",
    ),
    Mutant(
        "end-of-stream-is-end-of-run",
        "A stream is progress, never truth: its end says nothing about the run.",
        _end_of_stream_is_end_of_run,
        trial(streaming(named("marker-list")), turns=2, watch=True),
        "false fate",
    ),
    Mutant(
        "retry-of-an-undone-life-forgotten",
        "A closing call asks about a retry that an earlier life may have begun.",
        _closing_call_never_retried,
        trial(
            "deduplicating",
            turns=2,
            crashes=1,
            checkpoints=1,
            losses=1,
            script=(request("a", turn=1, deadline_ms=START_MS + 5, **_ON_T), request("b", turn=2, **_ON_T)),
            options={"failures": True},
            generations_max=2,
            drain_max_ms=FAR,
        ),
        "turns overlap",
        reduce=True,
    ),
)
