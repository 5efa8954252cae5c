"""Random walks through the core: a call, and everything that can befall it, one fact at a time.

A walk is drawn step by step: the next fact is chosen among those that the call's own leaf can meet
(answers to what it ordered), those that come from outside at any time (timers, restores, people's
orders), and those that are late or foreign.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from reattach.fsm.env import Env
from reattach.fsm.step import begin, step
from reattach.models import answers as a
from reattach.models import events as e
from reattach.models.answers import Phase
from reattach.models.effects import Effect
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf
from reattach.models.outcomes import Failure, FailureCode, RemoteFate
from reattach.models.policy import (
    Absence,
    CancelKind,
    Deduplication,
    Evidence,
    OnAmbiguous,
    StreamKind,
    SubmitAfter,
    Terms,
)
from tests.fsm.making import BLIND, FENCED, KEYED, MARKER, OPENED, POLICY, request

Walk = list[tuple[Invocation, e.Event, Env]]

CAPABILITIES = [
    MARKER,
    replace(MARKER, cancel=CancelKind.CONFIRMED, stream=StreamKind.CURSOR, responds=True),
    replace(MARKER, evidence=Evidence.CONTAINER, cancel=CancelKind.BEST_EFFORT),
    KEYED,
    replace(KEYED, evidence=Evidence.HANDLE_ONLY, absence=Absence.NEVER),
    FENCED,
    BLIND,
]


@st.composite
def all_terms(draw: st.DrawFn) -> Terms:
    capabilities = draw(st.sampled_from(CAPABILITIES))
    blind = capabilities.absence is Absence.NEVER and capabilities.deduplication is Deduplication.NONE
    after = SubmitAfter.CHECKPOINT if blind or draw(st.integers(0, 4)) == 0 else SubmitAfter.PROBE
    policy = replace(
        POLICY,
        submit_after=after,
        on_ambiguous=draw(st.sampled_from(OnAmbiguous)),
        generations_max=draw(st.sampled_from([1, 3])),
        cancel_on_deadline=draw(st.booleans()),
        watch=draw(st.booleans()),
        deadline_ms=draw(st.sampled_from([20_000, 3_600_000])),
        retention_ms=draw(st.sampled_from([30_000, 86_400_000])),
        submit_attempts_max=draw(st.sampled_from([1, 20])),
        result_bytes_max=draw(st.sampled_from([4, 1_000])),
    )
    return Terms(capabilities, policy)


FAILURES = [Failure(FailureCode.REMOTE_FAILED, "boom", RemoteFate.ENDED, retryable) for retryable in (False, True)]
HANDLES = st.sampled_from(["", "run-1"])


def presents() -> st.SearchStrategy[a.Present]:
    return st.one_of(
        st.builds(a.Present, st.just(Phase.RUNNING), HANDLES),
        st.builds(
            a.Present, st.just(Phase.COMPLETED), HANDLES, result=st.sampled_from([None, b'"r"', b'"a long one"'])
        ),
        st.builds(a.Present, st.just(Phase.FAILED), HANDLES, failure=st.sampled_from([None, *FAILURES])),
        st.builds(a.Present, st.just(Phase.CANCELLED), HANDLES),
        st.builds(a.Present, st.just(Phase.AWAITING_INPUT), HANDLES, question_id=st.sampled_from(["q1", "q2"])),
    )


ABSENTS = st.builds(a.Absent, st.sampled_from([None, "", "other", "call-1"]))
UNKNOWNS = st.builds(a.Unknown, st.just("503"), st.booleans())
SUBMITS = st.one_of(
    st.builds(a.Accepted, HANDLES),
    st.just(a.Occupied("409")),
    st.builds(
        a.Refused,
        st.builds(Failure, st.just(FailureCode.REJECTED), st.just("no"), st.just(RemoteFate.NONE), st.booleans()),
        st.sampled_from([0, 700]),
    ),
    st.just(a.NotSent("refused")),
    st.just(a.Unresolved("timeout")),
)
ANSWERS: dict[Leaf, tuple[Callable[..., e.Event], st.SearchStrategy[Any]]] = {
    Leaf.SU_SENDING: (e.SubmitAnswered, SUBMITS),
    Leaf.SU_FENCING: (e.FenceAnswered, st.one_of(st.just(a.Fenced()), st.just(a.Occupied()), UNKNOWNS)),
    Leaf.RU_FETCHING: (
        e.FetchAnswered,
        st.one_of(st.sampled_from([a.Result(b'"r"'), a.Result(b'"a long one"'), a.NotReady(), a.Gone()]), UNKNOWNS),
    ),
    Leaf.RU_CANCELLING: (e.CancelAnswered, st.one_of(st.sampled_from([a.Confirmed(), a.Taken()]), UNKNOWNS)),
    Leaf.RU_RESPONDING_SENDING: (e.RespondAnswered, SUBMITS),
    **{
        leaf: (e.ProbeAnswered, st.one_of(presents(), ABSENTS, UNKNOWNS))
        for leaf in (Leaf.NS_PROBING, Leaf.SU_PROBING, Leaf.SU_PARKED, Leaf.RU_PROBING, Leaf.RU_RESPONDING_PROBING)
    },
}
PROGRESS = st.builds(a.Progress, st.just(b"1"), st.sampled_from(["", "c1"]))


@st.composite
def facts(draw: st.DrawFn, inv: Invocation, env: Env) -> e.Event:
    """One fact that this call may meet now."""
    ident = e.Ident(env.incarnation, inv.id, inv.generation, inv.epoch)
    kind = draw(st.sampled_from(["answer", "answer", "answer", "time", "time", "order", "late", "restore"]))
    if kind == "time":
        return e.TimeReached()
    if kind == "restore":
        return e.Restored()
    if kind == "late":
        life = draw(st.sampled_from([ident.incarnation, "gone"]))
        old = replace(ident, epoch=inv.epoch - draw(st.integers(1, 2)), incarnation=life)
        late: st.SearchStrategy[e.Event] = st.one_of(
            st.builds(e.SubmitAnswered, st.just(old), SUBMITS),
            st.just(e.HandleLearned(old, "run-1")),
            st.builds(e.ProbeAnswered, st.just(old), ABSENTS),
        )
        fact: e.Event = draw(late)
        return fact
    if kind == "order":
        generation = draw(st.sampled_from([inv.generation, inv.generation + 1]))
        orders: list[e.Event] = [
            e.CancelOrdered(inv.id, generation),
            e.AdoptOrdered(inv.id, generation, "run-1"),
            e.ResubmitOrdered(inv.id, generation, env.now_ms),
            e.AbandonOrdered(inv.id, generation),
            e.ResponseGiven(inv.id, generation, "r1", "q1", b"1"),
            e.ResponseGiven(inv.id, generation, "r2", "q2", b"2"),
        ]
        return draw(st.sampled_from(orders))
    if inv.leaf is Leaf.SU_HOLDING:
        return e.CheckpointCompleted(ident)
    if inv.leaf is Leaf.RU_WATCHING:
        items = st.lists(PROGRESS, max_size=2).map(tuple)
        return draw(st.one_of(st.builds(e.Progressed, st.just(ident), items), st.just(e.WatchEnded(ident, "end"))))
    if inv.leaf is Leaf.SU_SENDING and draw(st.integers(0, 5)) == 0:
        return e.HandleLearned(ident, "run-1")
    if inv.leaf not in ANSWERS:
        return e.TimeReached()
    make, answer = ANSWERS[inv.leaf]
    event: e.Event = make(ident, draw(answer))
    return event


@st.composite
def walks(draw: st.DrawFn, most: int = 30) -> Walk:
    """A list of (record before, fact, surroundings), each record the result of the step before."""
    env = Env(OPENED, OPENED, "life-0", draw(all_terms()), draw(st.booleans()))
    inv = begin(request(thread_id="t"), env)
    walk: Walk = []
    for number in range(draw(st.integers(1, most))):
        event: e.Event = draw(facts(inv, env))
        now = env.now_ms + draw(st.sampled_from([0, 1, 50, 1_000, 8_000]))
        if isinstance(event, e.TimeReached):
            now = max(now, inv.wake_at_ms)
        env = replace(env, now_ms=now)
        if isinstance(event, e.Restored) or draw(st.integers(0, 15)) == 0:
            env = replace(env, opened_ms=now, incarnation=f"life-{number + 1}", lineage=draw(st.booleans()))
        walk.append((inv, event, env))
        inv = step(inv, event, env).invocation
        if inv.leaf.terminal:
            break
    return walk


def effects_of(walk: Walk) -> list[Effect]:
    return [effect for inv, event, env in walk for effect in step(inv, event, env).effects]
