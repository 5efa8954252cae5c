"""Answers that are nobody's any more, and the proof that they change nothing.

An answer to an older order, to an order of a dead incarnation or to another generation is still under
way while the call moves on; a network may also deliver an answer twice, and the second one is such a
stranger. A search that kept every one of them in its worlds would visit each world once more for each
of them. Instead, every life that a reduced search meets is handed every stranger that its leaf has
a line for, and must come out as it went in. So nothing that a search leaves out could have
mattered: that is tried, not assumed.

An older order's answer that proves an acceptance is no stranger where the core may use it; such
answers stay in the worlds (`lives.tidy`).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from reattach.fsm.env import Env
from reattach.fsm.step import event_name
from reattach.fsm.table import TABLE
from reattach.fsm.thread import ThreadStep, step_thread
from reattach.models.answers import (
    Absent,
    Accepted,
    Confirmed,
    Fenced,
    Gone,
    NotReady,
    NotSent,
    Occupied,
    Phase,
    Present,
    Refused,
    Result,
    Taken,
    Unknown,
    Unresolved,
)
from reattach.models.events import (
    Answered,
    CancelAnswered,
    CheckpointCompleted,
    FenceAnswered,
    FetchAnswered,
    HandleLearned,
    Ident,
    ProbeAnswered,
    RespondAnswered,
    Restored,
    SubmitAnswered,
    WatchEnded,
)
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import Failure, FailureCode, RemoteFate
from reattach.models.policy import Terms
from reattach.models.thread import ThreadState
from reattach.runtime.explore.scenario import Violation
from reattach.runtime.explore.world import Life

_NO: Final = Failure(FailureCode.REJECTED, "no", RemoteFate.NONE)
_HANDLE: Final = "r0"
_NOWHERE: Final = Ident("", "", 0, 0)
_ANSWERS: Final[tuple[Answered, ...]] = (
    ProbeAnswered(_NOWHERE, Absent()),
    ProbeAnswered(_NOWHERE, Absent("")),
    ProbeAnswered(_NOWHERE, Unknown("no answer")),
    *(ProbeAnswered(_NOWHERE, Present(phase, _HANDLE, b'"stranger"', _NO, "q1")) for phase in Phase),
    *(SubmitAnswered(_NOWHERE, answer) for answer in (Occupied(), Refused(_NO), NotSent("no"), Unresolved("no"))),
    SubmitAnswered(_NOWHERE, Accepted(_HANDLE)),
    HandleLearned(_NOWHERE, _HANDLE),
    *(FetchAnswered(_NOWHERE, answer) for answer in (Result(b'"stranger"'), NotReady(), Gone(), Unknown("no"))),
    *(FenceAnswered(_NOWHERE, answer) for answer in (Fenced(), Occupied(), Unknown("no"))),
    *(CancelAnswered(_NOWHERE, answer) for answer in (Confirmed(), Taken(), Unknown("no"))),
    *(RespondAnswered(_NOWHERE, answer) for answer in (Accepted(), Refused(_NO), NotSent("no"), Unresolved("no"))),
    WatchEnded(_NOWHERE, "the stream ended"),
    CheckpointCompleted(_NOWHERE),
)
_BY_NAME: Final = tuple((event_name(event), event) for event in _ANSWERS)
_PROOFS: Final = frozenset({"submit_accepted", "handle_learned"})
_DRAINING: Final = _PROOFS | {
    "found_absent", "found_completed", "found_running", "probe_unanswered", "cancel_confirmed",
}  # fmt: skip


def welcome(life: Life, answer: Answered) -> bool:
    """Whether an answer to an older order of this very life may still be of use: as proof."""
    state, ident = life.state, answer.ident
    if state is None or ident.incarnation != life.name or event_name(answer) not in _PROOFS:
        return False
    for call in (state.active, None if state.drain is None else state.drain.invocation):
        if call is not None and (call.id, call.generation) == (ident.invocation_id, ident.generation):
            return call.status is Status.SUBMITTED or not call.handle
    return False


def check_strangers(life: Life, now_ms: int, terms: Terms) -> None:
    """Hand a life every answer that is not meant for it.

    Raises:
        Violation: one of them changed something.
    """
    state = life.state
    if state is None:
        return
    env = Env(now_ms, life.opened_ms, life.name, terms, life.lineage)
    for call in (state.active, None if state.drain is None else state.drain.invocation):
        if call is None:
            continue
        taken = state
        if call.tenure.incarnation != life.name:
            taken = step_thread(state, Restored(), env).state or ThreadState()
        for event in _strangers(call, life):
            _check(taken, event, step_thread(state, event, env))


def _strangers(call: Invocation, life: Life) -> Iterator[Answered]:
    known = _DRAINING if call.leaf is Leaf.FAILED else TABLE[call.leaf].keys()
    older = Ident(life.name, call.id, call.generation, call.epoch - 1)
    dead = Ident(f"life-{life.born - 1}", call.id, call.generation, call.epoch)
    other = Ident(life.name, call.id, call.generation + 1, call.epoch)
    for name, event in _BY_NAME:
        if name not in known:
            continue
        proof = name in _PROOFS
        if not (proof and (call.status is Status.SUBMITTED or call.leaf is Leaf.FAILED)):
            yield replace(event, ident=older)
        yield replace(event, ident=dead)
        yield replace(event, ident=other)


def _check(taken: ThreadState, event: Answered, result: ThreadStep) -> None:
    after = result.state or ThreadState()
    same = after.active == taken.active and after.drain == taken.drain and after.queue == taken.queue
    if not same:
        raise Violation("stranger believed", f"{event} changed the call")
