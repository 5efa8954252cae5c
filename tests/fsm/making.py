"""Records, surroundings and facts for the tests of the core, all with small round numbers."""

from dataclasses import replace
from typing import Any

from reattach.fsm.env import Env
from reattach.fsm.step import Step, begin, step
from reattach.models.answers import Absent, Accepted, Phase, Present, Unresolved
from reattach.models.effects import Effect, Emit
from reattach.models.events import CheckpointCompleted, Ident, ProbeAnswered, SubmitAnswered, TimeReached
from reattach.models.invocation import Invocation
from reattach.models.outcomes import Failure, FailureCode, Outcome, RemoteFate
from reattach.models.policy import (
    Absence,
    CancelKind,
    Capabilities,
    Deduplication,
    Evidence,
    Policy,
    StreamKind,
    SubmitAfter,
    Terms,
)
from reattach.models.request import Request

OPENED = 1_000_000
# validity + timeout + admission + overlap of POLICY: when absences begin to be trusted after OPENED.
QUIET = OPENED + 1_000 + 2_000 + 500 + 4_000

POLICY = Policy(
    submit_validity_ms=1_000,
    submit_timeout_ms=2_000,
    admission_ms=500,
    overlap_ms=4_000,
    skew_max_ms=1_000,
    probe_timeout_ms=2_000,
    slack_ms=100,
    deadline_ms=3_600_000,
    drain_max_ms=60_000,
    retention_ms=86_400_000,
    watch_silence_ms=10_000,
    backoff_ms=100,
    backoff_max_ms=800,
)
MARKER = Capabilities(evidence=Evidence.MARKER, stream=StreamKind.LIVE)
CONTAINER = Capabilities(evidence=Evidence.CONTAINER)
KEYED = Capabilities(deduplication=Deduplication.KEY, key_lifetime_ms=86_400_000)
FENCED = Capabilities(absence=Absence.BY_FENCE, cancel=CancelKind.CONFIRMED)
BLIND = Capabilities(evidence=Evidence.HANDLE_ONLY, absence=Absence.NEVER)


def terms(capabilities: Capabilities = MARKER, **policy: Any) -> Terms:
    return Terms(capabilities, replace(POLICY, **policy))


def env(
    now: int = QUIET, *, of: Terms | None = None, life: str = "life-1", opened: int = OPENED, lineage: bool = False
) -> Env:
    return Env(now, opened, life, of or terms(), lineage)


def request(name: str = "call-1", **more: Any) -> Request:
    return Request(
        **{"invocation_id": name, "agent": "agent", "message": b'"hello"', "requested_at_ms": OPENED, **more}
    )


def ident(inv: Invocation, life: str = "life-1") -> Ident:
    return Ident(life, inv.id, inv.generation, inv.epoch)


def started(at: Env, **more: Any) -> Step:
    """A call that has just begun and taken its first step."""
    return step(begin(request(**more), at), TimeReached(), at)


def probed(inv: Invocation, answer: Any, at: Env) -> Step:
    return step(inv, ProbeAnswered(ident(inv, at.incarnation), answer), at)


def submitted(inv: Invocation, answer: Any, at: Env) -> Step:
    return step(inv, SubmitAnswered(ident(inv, at.incarnation), answer), at)


def sending(at: Env | None = None) -> Step:
    """A call whose first POST is under way (a trusted absence, remotes with a marker)."""
    at = at or env()
    return probed(started(at).invocation, Absent(), at)


def watching(at: Env | None = None) -> Step:
    at = at or env()
    return submitted(sending(at).invocation, Accepted("run-1"), at)


def parked(at: Env | None = None) -> Step:
    """A call of a remote that cannot be asked, whose POST's answer was lost."""
    at = at or env(of=blind())
    held = started(at).invocation

    sent = step(held, CheckpointCompleted(ident(held, at.incarnation)), at).invocation
    return submitted(sent, Unresolved("lost"), at)


def blind(**policy: Any) -> Terms:

    return terms(BLIND, submit_after=SubmitAfter.CHECKPOINT, **policy)


def present(phase: Phase = Phase.RUNNING, **more: Any) -> Present:
    return Present(phase, "run-1", **more)


def remote_failure(retryable: bool = False) -> Failure:
    return Failure(FailureCode.REMOTE_FAILED, "boom", RemoteFate.ENDED, retryable)


def names(effects: tuple[Effect, ...]) -> list[str]:
    return [type(effect).__name__ for effect in effects]


def outcome(result: Step) -> Outcome:
    (emit,) = [effect for effect in result.effects if isinstance(effect, Emit)]
    return emit.outcome
