"""Strategies for what a remote can do and what its user wants: capabilities, policies, terms."""

from dataclasses import fields, replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from reattach.models.policy import (
    Absence,
    CancelKind,
    Capabilities,
    Deduplication,
    Evidence,
    OnAmbiguous,
    Policy,
    StreamKind,
    SubmitAfter,
    Terms,
)


def capabilities() -> SearchStrategy[Capabilities]:
    """What a protocol may declare; a key's lifetime where there are keys."""
    span = st.integers(0, 60_000)

    def of(deduplication: Deduplication) -> SearchStrategy[Capabilities]:
        lifetime = st.integers(1, 10**9)
        return st.builds(
            Capabilities,
            deduplication=st.just(deduplication),
            evidence=st.sampled_from(Evidence),
            absence=st.sampled_from(Absence),
            admission_ms=span,
            stream=st.sampled_from(StreamKind),
            cancel=st.sampled_from(CancelKind),
            retention_ms=st.none() | lifetime,
            key_lifetime_ms=lifetime if deduplication is Deduplication.KEY else st.none(),
            responds=st.booleans(),
        )

    return of(Deduplication.NONE) | of(Deduplication.KEY)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Policies whose numbers lie in their ranges; they name a retention, as most remotes need one."""
    may_be_zero = {"overlap_ms", "skew_max_ms", "recovery_spread_ms", "slack_ms"}
    drawn: dict[str, Any] = {
        name: draw(st.integers(0 if name in may_be_zero else 1, 10**6))
        for name, value in ((field.name, field.default) for field in fields(Policy))
        if type(value) is int and draw(st.booleans())
    }
    drawn["admission_ms"] = draw(st.none() | st.integers(0, 60_000))
    drawn["retention_ms"] = draw(st.integers(1, 10**9))
    drawn["watch"] = draw(st.booleans())
    drawn["cancel_on_deadline"] = draw(st.booleans())
    drawn["on_ambiguous"] = draw(st.sampled_from(OnAmbiguous))
    drawn["submit_after"] = draw(st.sampled_from(SubmitAfter))
    # What one thread may hold is bounded as a whole.
    drawn["message_bytes_max"] = draw(st.integers(1, 256 * 1024))
    drawn["queue_max"] = draw(st.integers(1, 100))
    drawn["tombstones_max"] = draw(st.integers(1, 50_000))
    drawn["poll_ms"] = min(drawn.get("poll_ms", 1_000), drawn.get("watch_silence_ms", 60_000))
    return Policy(**drawn)


@st.composite
def terms(draw: st.DrawFn) -> Terms:
    """A policy together with capabilities that can keep it."""
    able, policy = draw(capabilities()), draw(policies())
    if able.blind and policy.submit_after is SubmitAfter.PROBE:
        policy = replace(policy, submit_after=SubmitAfter.AUTO)
    return Terms(able, policy)
