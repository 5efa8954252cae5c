"""Strategies for what is stored and emitted: calls, threads, outcomes, effects, journal entries."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from reattach.models import effects
from reattach.models.invocation import AFTER_MAX, Invocation, Response, Tenure
from reattach.models.journal import Basis, JournalEntry
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import FailureCode, Notice, NoticeKind, Outcome
from reattach.models.record import NOTHING_KEPT, Kept
from reattach.models.request import TIME_MS_MAX
from reattach.models.thread import Drain, Queued, ThreadState, Tombstone
from reattach.runtime.testing.strategies_basic import counts, failures, ids, json_bytes, requests, texts, times
from reattach.runtime.testing.strategies_facts import idents, progress, thread_events

_RESPONDING = frozenset({Leaf.RU_RESPONDING_SENDING, Leaf.RU_RESPONDING_PROBING, Leaf.RU_RESPONDING_QUIET})
_ALIVE = [leaf for leaf in Leaf if not leaf.terminal]


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
            kept=kept(),
        )
    )


def kept() -> SearchStrategy[Kept]:
    """What a later release may have added to a record; mostly nothing."""
    plain = st.none() | counts() | texts() | st.lists(st.booleans() | st.binary(max_size=9), max_size=3).map(tuple)
    return st.just(NOTHING_KEPT) | st.lists(plain, max_size=3).map(tuple).map(Kept)


def tombstones() -> SearchStrategy[Tombstone]:
    digest = st.binary(min_size=16, max_size=16)
    ended = st.sampled_from([Status.COMPLETED, Status.FAILED])
    return st.builds(
        Tombstone, ids(), counts(1), digest, ended, st.none() | st.sampled_from(FailureCode), times(), kept()
    )


def drains() -> SearchStrategy[Drain]:
    return st.builds(Drain, invocations(st.just(Leaf.FAILED)), times(), times(), kept())


@st.composite
def thread_states(draw: st.DrawFn) -> ThreadState:
    """Thread states that pass `check_thread`: free, busy or draining."""
    mode = draw(st.sampled_from(["free", "busy", "draining"]))
    return ThreadState(
        active=draw(invocations(st.sampled_from(_ALIVE))) if mode == "busy" else None,
        drain=draw(drains()) if mode == "draining" else None,
        queue=tuple(draw(st.lists(st.builds(Queued, requests(), st.booleans(), kept()), max_size=2))),
        tombstones=tuple(draw(st.lists(tombstones(), max_size=3))),
        epoch=draw(counts()),
        incarnation=draw(st.just("") | ids()),
        sends_end_ms=draw(times()),
        after=tuple(draw(st.lists(texts(), max_size=AFTER_MAX))),
        kept=draw(kept()),
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
