"""Hypothesis strategies for every record of `reattach.models`.

Each strategy draws only what the library itself could hold: requests that `parse_request` accepts,
invocations that pass `check_invocation`, thread states that pass `check_thread`, terms that
construct. Answers, events and effects are any that an adapter or a host may form.

    from hypothesis import given
    from tests.strategies import thread_states

    @given(thread_states())
    def test_something(state): ...

Numbers shrink towards 0 or 1, texts and tuples towards empty ones, optional parts towards None.
"""

import string
from dataclasses import fields
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from reattach.models import answers, effects, events
from reattach.models.invocation import AFTER_MAX, Invocation, Response, Tenure
from reattach.models.journal import Basis, JournalEntry
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import Failure, FailureCode, Notice, NoticeKind, Outcome, RemoteFate
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
from reattach.models.request import ID_CHARS_MAX, TIME_MS_MAX, TURN_MAX, Request, canonical_json
from reattach.models.thread import Drain, Queued, ThreadState, Tombstone

_RESPONDING = frozenset({Leaf.RU_RESPONDING_SENDING, Leaf.RU_RESPONDING_PROBING, Leaf.RU_RESPONDING_QUIET})
_ALIVE = [leaf for leaf in Leaf if not leaf.terminal]
_PRINTABLE = st.characters(codec="utf-8", exclude_categories=["C", "Z"])


def ids() -> SearchStrategy[str]:
    """What a request may name itself: 1 to 256 printable characters, often plain ones."""
    plain = st.text(string.ascii_lowercase + string.digits + "-_", min_size=1, max_size=24)
    return plain | st.text(_PRINTABLE, min_size=1, max_size=ID_CHARS_MAX)


def texts(max_size: int = 40) -> SearchStrategy[str]:
    """What a remote may say: any text, half surrogate pairs included."""
    return st.text(st.characters(), max_size=max_size)


def times() -> SearchStrategy[int]:
    """Milliseconds since the epoch, 0 included."""
    return st.integers(0, TIME_MS_MAX)


def counts(least: int = 0) -> SearchStrategy[int]:
    """Small numbers, and now and then one that no longer fits 32 bits."""
    return st.integers(least, 100) | st.integers(least, 2**40)


def json_values() -> SearchStrategy[Any]:
    """Any JSON value, at most a few levels deep."""
    text = st.text(st.characters(codec="utf-8"), max_size=20)
    leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
        max_leaves=8,
    )


def json_bytes() -> SearchStrategy[bytes]:
    """The canonical encoding of any JSON value."""
    return json_values().map(canonical_json)


def json_objects() -> SearchStrategy[bytes]:
    """The canonical encoding of any JSON object."""
    return st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=10), json_values(), max_size=3).map(
        canonical_json
    )


def requests() -> SearchStrategy[Request]:
    """Requests as `parse_request` makes them."""
    return st.builds(
        Request,
        invocation_id=ids(),
        agent=ids(),
        message=json_bytes(),
        requested_at_ms=st.integers(1, TIME_MS_MAX),
        thread_id=st.just("") | ids(),
        deadline_ms=st.just(0) | st.integers(1, TIME_MS_MAX),
        turn=st.just(0) | st.integers(1, TURN_MAX),
        generation=st.just(1) | st.integers(1, TURN_MAX),
        metadata=st.just(b"{}") | json_objects(),
    )


def failures() -> SearchStrategy[Failure]:
    return st.builds(
        Failure, st.sampled_from(FailureCode), texts(), remote=st.sampled_from(RemoteFate), retryable=st.booleans()
    )


def _fields_of_answer() -> dict[str, SearchStrategy[Any]]:
    return {
        "after": st.none() | texts(),
        "handle": texts(),
        "result": st.none() | json_bytes(),
        "failure": st.none() | failures(),
        "question_id": texts(),
        "question": st.just(b"") | json_bytes(),
        "cause": texts(),
        "final": st.booleans(),
        "phase": st.sampled_from(answers.Phase),
        "retry_after_ms": times(),
        "value": json_bytes(),
    }


def _answer(cls: type[Any]) -> SearchStrategy[Any]:
    known = _fields_of_answer()
    if cls is answers.Refused:
        known["failure"] = failures()
    return st.builds(cls, **{field.name: known[field.name] for field in fields(cls)})


def _one_of(*classes: type[Any]) -> SearchStrategy[Any]:
    return st.one_of([_answer(cls) for cls in classes])


def probe_answers() -> SearchStrategy[answers.ProbeAnswer]:
    return _one_of(answers.Absent, answers.Present, answers.Unknown)


def submit_answers() -> SearchStrategy[answers.SubmitAnswer]:
    """Answers to a submit, and to a response."""
    return _one_of(answers.Accepted, answers.Occupied, answers.Refused, answers.NotSent, answers.Unresolved)


def fetch_answers() -> SearchStrategy[answers.FetchAnswer]:
    return _one_of(answers.Result, answers.NotReady, answers.Gone, answers.Unknown)


def fence_answers() -> SearchStrategy[answers.FenceAnswer]:
    return _one_of(answers.Fenced, answers.Occupied, answers.Unknown)


def cancel_answers() -> SearchStrategy[answers.CancelAnswer]:
    return _one_of(answers.Confirmed, answers.Taken, answers.Unknown)


def progress() -> SearchStrategy[answers.Progress]:
    return st.builds(answers.Progress, json_bytes(), cursor=texts())


def idents() -> SearchStrategy[events.Ident]:
    return st.builds(events.Ident, ids(), ids(), counts(1), counts())


def answered() -> SearchStrategy[events.Answered]:
    """Every event that answers an order."""
    ident = idents()
    items = st.lists(progress(), max_size=3).map(tuple)
    return st.one_of(
        st.builds(events.ProbeAnswered, ident, probe_answers()),
        st.builds(events.SubmitAnswered, ident, submit_answers()),
        st.builds(events.HandleLearned, ident, texts()),
        st.builds(events.Progressed, ident, items),
        st.builds(events.WatchEnded, ident, texts()),
        st.builds(events.FetchAnswered, ident, fetch_answers()),
        st.builds(events.FenceAnswered, ident, fence_answers()),
        st.builds(events.CancelAnswered, ident, cancel_answers()),
        st.builds(events.RespondAnswered, ident, submit_answers()),
        st.builds(events.CheckpointCompleted, ident),
    )


def ordered() -> SearchStrategy[events.Ordered]:
    """Every order that people and other systems give."""
    call = ids(), counts(1)
    return st.one_of(
        st.builds(events.CancelOrdered, *call),
        st.builds(events.AdoptOrdered, *call, texts()),
        st.builds(events.ResubmitOrdered, *call, times()),
        st.builds(events.AbandonOrdered, *call),
        st.builds(events.ResponseGiven, *call, ids(), texts(), json_bytes()),
    )


def step_events() -> SearchStrategy[events.Event]:
    """Every event that `fsm.step` takes."""
    return st.just(events.Restored()) | st.just(events.TimeReached()) | answered() | ordered()


def thread_events() -> SearchStrategy[events.ThreadEvent]:
    """Every event that a thread takes: `step_events` and requests."""
    return step_events() | st.builds(events.Requested, requests())


def tenures(permit: SearchStrategy[bool] | None = None) -> SearchStrategy[Tenure]:
    """Tenures; `permit` narrows what may be permitted."""
    permit = st.booleans() if permit is None else permit
    return st.builds(
        Tenure, st.just("") | ids(), permit=permit, fenced=st.booleans(),
        sends_end_ms=times(), ordered_at_ms=times(), known_at_ms=times(),
    )  # fmt: skip


def responses() -> SearchStrategy[Response]:
    return st.builds(Response, ids(), texts(), json_bytes())


@st.composite
def invocations(draw: st.DrawFn, leaves: SearchStrategy[Leaf] | None = None) -> Invocation:
    """Records that pass `check_invocation`.

    Args:
        leaves: where the call stands; any leaf by default.
    """
    leaf = draw(leaves if leaves is not None else st.sampled_from(Leaf))
    known = leaf.status in (Status.RUNNING, Status.COMPLETED)
    response = responses() if leaf in _RESPONDING else st.none() | responses()
    number = counts()
    return draw(
        st.builds(
            Invocation,
            request=requests(),
            generation=counts(1),
            slot=counts(1),
            leaf=st.just(leaf),
            epoch=number,
            wake_at_ms=st.just(0) if leaf.terminal else st.integers(1, TIME_MS_MAX),
            asked_at_ms=times(),
            entered_ms=times(),
            tenure=tenures(st.just(False) if known else None),
            spent_ms=st.tuples(times(), times(), times()),
            attempts=number,
            probes=number,
            tries=number,
            cancels=number,
            absences=number,
            streams=number,
            steps=number,
            resend=st.booleans(),
            cancelled=st.booleans(),
            handle=texts(),
            cursor=texts(),
            question_id=texts(),
            response=response,
            after=st.just(("",)) | st.lists(texts(), max_size=AFTER_MAX).map(tuple),
            cause=texts(),
            failure=failures() if leaf is Leaf.FAILED else st.none(),
        )
    )


def tombstones() -> SearchStrategy[Tombstone]:
    digest = st.binary(min_size=16, max_size=16)
    ended = st.sampled_from([Status.COMPLETED, Status.FAILED])
    return st.builds(Tombstone, ids(), counts(1), digest, ended, st.none() | st.sampled_from(FailureCode), times())


def drains() -> SearchStrategy[Drain]:
    return st.builds(Drain, invocations(st.just(Leaf.FAILED)), times(), times())


@st.composite
def thread_states(draw: st.DrawFn) -> ThreadState:
    """Thread states that pass `check_thread`: free, busy or draining."""
    mode = draw(st.sampled_from(["free", "busy", "draining"]))
    return ThreadState(
        active=draw(invocations(st.sampled_from(_ALIVE))) if mode == "busy" else None,
        drain=draw(drains()) if mode == "draining" else None,
        queue=tuple(draw(st.lists(st.builds(Queued, requests(), st.booleans()), max_size=2))),
        tombstones=tuple(draw(st.lists(tombstones(), max_size=3))),
        epoch=draw(counts()),
        incarnation=draw(st.just("") | ids()),
        sends_end_ms=draw(times()),
        after=tuple(draw(st.lists(texts(), max_size=AFTER_MAX))),
    )


def outcomes() -> SearchStrategy[Outcome]:
    """Outcomes: a result when COMPLETED, a failure when FAILED."""

    def of(status: Status) -> SearchStrategy[Outcome]:
        failed = status is Status.FAILED
        return st.builds(
            Outcome,
            invocation_id=ids(),
            agent=ids(),
            thread_id=ids(),
            generation=counts(1),
            status=st.just(status),
            result=st.none() if failed else json_bytes(),
            failure=failures() if failed else st.none(),
            handle=texts(),
            attempts=counts(),
            probes=counts(),
            spent_ms=st.tuples(times(), times(), times()),
            finished_at_ms=times(),
        )

    return of(Status.COMPLETED) | of(Status.FAILED)


def notices() -> SearchStrategy[Notice]:
    return st.builds(Notice, st.sampled_from(NoticeKind), ids(), counts(), texts(), st.just(b"") | json_bytes())


def step_effects() -> SearchStrategy[effects.Effect]:
    """Every effect."""
    ident = idents()
    return st.one_of(
        st.builds(effects.Probe, ident),
        st.builds(effects.Submit, ident, times()),
        st.builds(effects.Watch, ident, texts()),
        st.builds(effects.Fetch, ident),
        st.builds(effects.Fence, ident),
        st.builds(effects.Cancel, ident),
        st.builds(effects.Respond, ident, times()),
        st.builds(effects.Hold, ident),
        st.builds(effects.Emit, outcomes()),
        st.builds(effects.Report, ids(), counts(1), st.lists(progress(), max_size=3).map(tuple)),
        st.builds(effects.Notify, notices()),
        st.builds(effects.Count, st.sampled_from(["stale_answer", "late_fact", "duplicate_request", "ignored"])),
    )


def journal_entries() -> SearchStrategy[JournalEntry]:
    return st.builds(
        JournalEntry,
        agent=ids(),
        thread_id=ids(),
        invocation_id=ids(),
        generation=counts(1),
        seq=counts(1),
        at_ms=times(),
        opened_ms=times(),
        incarnation=ids(),
        lineage=st.booleans(),
        event=thread_events(),
        before=st.none() | st.sampled_from(Leaf),
        after=st.sampled_from(Leaf),
        effects=st.lists(st.sampled_from(["Probe", "Submit", "Emit"]), max_size=3).map(tuple),
        state=st.binary(min_size=8, max_size=8),
        basis=st.none() | st.builds(Basis, terms=st.text(max_size=40), record=invocations(), until_ms=times()),
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
    if able.absence is Absence.NEVER and able.deduplication is Deduplication.NONE:
        policy = _written_ahead(policy)
    return Terms(able, policy)


def _written_ahead(policy: Policy) -> Policy:
    values = {field.name: getattr(policy, field.name) for field in fields(Policy)}
    return Policy(**values | {"submit_after": SubmitAfter.CHECKPOINT})
