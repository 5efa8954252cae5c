"""Turns of a thread: in order, never two at once, each request only once."""

from dataclasses import replace

import pytest

from reattach.fsm.env import Env
from reattach.fsm.thread import ThreadStep, step_thread
from reattach.models.answers import Absent, Accepted, Confirmed, Phase, Unknown, Unresolved
from reattach.models.effects import Cancel, Count, Effect, Emit, Notify, Probe, Submit
from reattach.models.events import (
    AbandonOrdered,
    AdoptOrdered,
    CancelAnswered,
    CancelOrdered,
    CheckpointCompleted,
    Ident,
    Ordered,
    ProbeAnswered,
    Requested,
    ResponseGiven,
    Restored,
    ResubmitOrdered,
    SubmitAnswered,
    ThreadEvent,
    TimeReached,
    WatchEnded,
)
from reattach.models.journal import redacted
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import FailureCode, NoticeKind, Outcome, RemoteFate
from reattach.models.policy import CancelKind
from reattach.models.record import Kept
from reattach.models.thread import ThreadState
from tests.fsm.making import (
    CONTAINER,
    MARKER,
    OPENED,
    POLICY,
    QUIET,
    blind,
    env,
    present,
    remote_failure,
    request,
    terms,
)

OVER = OPENED + 3_600_000
SECRET = b'"words of people"'


class Thread:
    """A thread under test: keeps the state, and the effects of the latest fact."""

    def __init__(self, at: Env | None = None) -> None:
        self.at = at or env()
        self.state: ThreadState | None = None
        self.last: ThreadStep | None = None

    def on(self, event: ThreadEvent, now: int | None = None) -> list[Effect]:
        if now is not None:
            self.at = replace(self.at, now_ms=now)
        self.last = step_thread(self.state, event, self.at)
        self.state = self.last.state
        return [effect for effect, _ in self.last.effects]

    def ask(self, name: str = "call-1", **more: object) -> list[Effect]:
        return self.on(Requested(request(name, **{"thread_id": "t", **more})))

    @property
    def ident(self) -> Ident:
        assert self.state is not None
        holder = self.state.active or (self.state.drain.invocation if self.state.drain else None)
        assert holder is not None
        return Ident(self.at.incarnation, holder.id, holder.generation, holder.epoch)

    def probe(self, answer: object) -> list[Effect]:
        return self.on(ProbeAnswered(self.ident, answer))  # type: ignore[arg-type]

    def submit(self, answer: object) -> list[Effect]:
        return self.on(SubmitAnswered(self.ident, answer))  # type: ignore[arg-type]

    def finish(self) -> list[Effect]:
        return self.probe(present(Phase.COMPLETED, result=b"1"))


def kinds(effects: list[Effect]) -> list[str]:
    return [type(effect).__name__ for effect in effects]


def outcomes(effects: list[Effect]) -> list[Outcome]:
    return [effect.outcome for effect in effects if isinstance(effect, Emit)]


class TestRequests:
    def test_a_request_starts_its_call(self) -> None:
        assert kinds(Thread().ask()) == ["Probe"]

    def test_a_redelivered_one_is_absorbed_while_it_runs(self) -> None:
        """S10: redelivery of a request that is still being worked on."""
        thread = Thread()
        thread.ask()
        before = thread.state
        assert thread.ask() == [Count("duplicate_request")]
        assert thread.state == before

    def test_and_while_it_waits(self) -> None:
        thread = Thread()
        thread.ask("call-1")
        thread.ask("call-2")
        assert thread.ask("call-2") == [Count("duplicate_request")]

    def test_and_after_it_has_ended(self) -> None:
        thread = Thread()
        thread.ask()
        thread.finish()
        assert thread.ask() == [Count("duplicate_request")]

    @pytest.mark.parametrize("ended", [False, True])
    def test_the_same_id_with_another_payload_is_refused_never_merged(self, ended: bool) -> None:
        """S6: identity covers the call; another payload under it is an error."""
        thread = Thread()
        thread.ask()
        if ended:
            thread.finish()
        (notify,) = thread.on(Requested(replace(request(thread_id="t"), message=b'"other"')))
        assert isinstance(notify, Notify)
        assert notify.notice.kind is NoticeKind.REFUSED

    def test_a_failed_calls_next_generation_is_a_call(self) -> None:
        thread = Thread()
        thread.ask()
        thread.probe(present(Phase.FAILED))
        assert kinds(thread.ask(generation=2)) == ["Probe"]
        assert thread.state is not None and thread.state.active is not None
        assert thread.state.active.generation == 2

    def test_a_status_only_agent_takes_no_shared_thread(self) -> None:
        thread = Thread(env(of=terms(CONTAINER)))
        (end,) = outcomes(thread.ask())
        assert end.failure is not None
        assert end.failure.code is FailureCode.INVALID_REQUEST
        assert "marker" in end.failure.message

    def test_and_takes_a_thread_of_its_own(self) -> None:
        thread = Thread(env(of=terms(CONTAINER)))
        assert kinds(thread.ask(thread_id="")) == ["Probe"]

    def test_the_queue_has_a_limit_and_a_full_one_is_an_outcome(self) -> None:
        thread = Thread(env(of=terms(queue_max=1)))
        thread.ask("call-1")
        thread.ask("call-2")
        (end,) = outcomes(thread.ask("call-3"))
        assert end.failure is not None
        assert end.failure.code is FailureCode.QUEUE_FULL
        assert thread.ask("call-3") == [Count("duplicate_request")]


class TestTurns:
    def test_the_next_turn_starts_when_the_last_has_ended(self) -> None:
        thread = Thread()
        thread.ask("call-1")
        assert thread.ask("call-2") == []
        assert kinds(thread.finish()) == ["Emit", "Probe"]

    def test_epochs_count_per_thread(self) -> None:
        """S13: an answer of the turn before meets the next one and is dropped."""
        thread = Thread()
        thread.ask("call-1")
        thread.ask("call-2")
        old = thread.ident
        thread.finish()
        assert thread.ident.epoch > old.epoch
        assert thread.on(ProbeAnswered(old, Absent())) == [Count("stale_answer")]

    def test_a_turn_knows_what_it_comes_after(self) -> None:
        thread = Thread()
        thread.ask("call-1")
        thread.ask("call-2")
        thread.finish()
        assert kinds(thread.probe(Absent(after="call-1"))) == ["Submit"]

    def test_a_turn_that_never_ran_leaves_no_mark(self) -> None:
        thread = Thread()
        thread.ask("call-1")
        thread.ask("call-2")
        thread.on(CancelOrdered("call-1", 1))
        thread.probe(Absent(""))
        assert kinds(thread.probe(Absent(after=""))) == ["Submit"]

    def test_the_next_turn_waits_for_the_last_turns_sends(self) -> None:
        thread = Thread(env(OVER - 1_000))
        thread.ask("call-1")
        thread.ask("call-2", deadline_ms=OVER * 2)
        thread.probe(Absent(""))
        thread.submit(Unresolved("reset"))
        thread.at = replace(thread.at, now_ms=OVER)
        thread.probe(present(Phase.COMPLETED, result=b"1"))
        assert thread.state is not None and thread.state.active is not None
        assert thread.state.active.tenure.sends_end_ms == OVER - 1_000

    def test_those_of_another_life_do_not_count(self) -> None:
        thread = Thread()
        thread.ask("call-1")
        thread.ask("call-2")
        thread.at = replace(thread.at, incarnation="life-2", opened_ms=QUIET)
        thread.on(Restored())
        thread.finish()
        assert thread.state is not None and thread.state.active is not None
        assert thread.state.active.tenure.sends_end_ms == 0

    def test_a_waiting_turn_is_cancelled_when_its_turn_comes(self) -> None:
        thread = Thread()
        thread.ask("call-1")
        thread.ask("call-2")
        thread.on(CancelOrdered("call-2", 1))
        thread.finish()
        (end,) = outcomes(thread.probe(Absent("call-1")))
        assert end.failure is not None
        assert (end.failure.code, end.failure.remote) == (FailureCode.CANCELLED, RemoteFate.NONE)


ORDERS = [
    CancelOrdered("call-1", 1),
    AdoptOrdered("call-1", 1, "run-1"),
    ResubmitOrdered("call-1", 1, OPENED),
    AbandonOrdered("call-1", 1),
    ResponseGiven("call-1", 1, "r1", "q1", b"1"),
]


class TestStrangers:
    @pytest.mark.parametrize("order", ORDERS, ids=lambda order: type(order).__name__)
    def test_an_order_for_nobody_is_refused(self, order: Ordered) -> None:
        thread = Thread()
        (notify,) = thread.on(order)
        assert isinstance(notify, Notify)
        assert notify.notice.kind is NoticeKind.REFUSED
        assert "no such call" in notify.notice.message
        assert thread.state is None, "nothing is kept of it"

    @pytest.mark.parametrize("order", ORDERS, ids=lambda order: type(order).__name__)
    def test_an_order_for_the_dead_says_so(self, order: Ordered) -> None:
        thread = Thread()
        for name in ("call-1", "call-2"):
            thread.ask(name)
            thread.finish()
        (notify,) = thread.on(order)
        assert isinstance(notify, Notify)
        assert notify.notice.kind is NoticeKind.LATE
        assert "too late, the call has ended (COMPLETED)" in notify.notice.message

    def test_an_order_for_a_call_that_drains_comes_too_late(self) -> None:
        """It was counted as a stale answer, and nobody heard of it."""
        thread = Thread()
        thread.ask(deadline_ms=OVER)
        thread.probe(Absent(""))
        thread.submit(Accepted("run-1"))
        thread.on(TimeReached(), OVER)
        thread.probe(present())
        assert thread.state is not None and thread.state.mode == "draining"
        before = thread.state
        (notify,) = thread.on(CancelOrdered("call-1", 1))
        assert isinstance(notify, Notify)
        assert "(FAILED, deadline_exceeded)" in notify.notice.message
        assert thread.state == before

    @pytest.mark.parametrize("order", ORDERS, ids=lambda order: type(order).__name__)
    def test_an_order_for_a_call_that_waits_for_its_turn_says_so(self, order: Ordered) -> None:
        thread = Thread()
        thread.ask("call-0")
        thread.ask("call-1")
        effects = thread.on(order)
        if isinstance(order, CancelOrdered):
            assert effects == []
            assert thread.on(order) == [Count("duplicate_order")]
        else:
            (notify,) = effects
            assert isinstance(notify, Notify)
            assert "waits for its turn" in notify.notice.message

    def test_also_when_it_is_about_another_generation(self) -> None:
        thread = Thread()
        thread.ask("call-0")
        thread.ask("call-2")
        thread.ask("call-1")
        (notify,) = thread.on(CancelOrdered("call-1", 2))
        assert isinstance(notify, Notify)
        assert "at generation 1" in notify.notice.message
        assert thread.state is not None
        assert not any(waiting.cancelled for waiting in thread.state.queue)

    def test_a_cancel_takes_only_its_own_turn(self) -> None:
        thread = Thread()
        for name in ("call-0", "call-2", "call-1", "call-3"):
            thread.ask(name)
        thread.on(CancelOrdered("call-1", 1))
        assert thread.state is not None
        assert [waiting.cancelled for waiting in thread.state.queue] == [False, True, False]

    def test_an_answer_for_nobody_is_counted(self) -> None:
        assert Thread().on(WatchEnded(Ident("life-1", "x", 1, 1), "")) == [Count("stale_answer")]


class TestRedelivery:
    """An order that comes again, after what it asks for has come about, is counted and nobody is told."""

    def parked(self) -> Thread:
        thread = Thread(env(of=blind(), lineage=True))
        thread.ask("call-1", thread_id="")
        thread.on(CheckpointCompleted(thread.ident))
        thread.submit(Unresolved("reset"))
        return thread

    def test_a_cancel(self) -> None:
        thread = Thread()
        thread.ask()
        thread.on(CancelOrdered("call-1", 1))
        assert thread.on(CancelOrdered("call-1", 1)) == [Count("duplicate_order")]
        thread.probe(Absent(""))
        assert thread.on(CancelOrdered("call-1", 1)) == [Count("duplicate_order")]
        (notify,) = thread.on(CancelOrdered("call-1", 2))
        assert isinstance(notify, Notify)

    def test_an_abandon(self) -> None:
        thread = self.parked()
        assert outcomes(thread.on(AbandonOrdered("call-1", 1)))
        assert thread.on(AbandonOrdered("call-1", 1)) == [Count("duplicate_order")]

    def test_an_adopt(self) -> None:
        thread = self.parked()
        order = AdoptOrdered("call-1", 1, "run-7")
        assert kinds(thread.on(order)) == ["Probe"]
        assert thread.on(order) == [Count("duplicate_order")]
        (notify,) = thread.on(AdoptOrdered("call-1", 1, "run-8"))
        assert isinstance(notify, Notify)

    def test_a_resubmit_opens_one_generation_however_often_it_comes(self) -> None:
        thread = self.parked()
        order = ResubmitOrdered("call-1", 1, OPENED)
        thread.on(order)
        before = thread.state
        assert before is not None and before.active is not None
        assert before.active.generation == 2
        for _ in range(2):
            assert thread.on(order) == [Count("duplicate_order")]
            assert thread.state == before
        thread.on(CancelOrdered("call-1", 2))
        assert thread.state is not None and thread.state.active is None
        assert thread.on(order) == [Count("duplicate_order")]

    def test_a_resubmit_of_what_failed_and_was_tried_again_by_itself_is_refused(self) -> None:
        thread = Thread(env(of=terms(generations_max=3)))
        thread.ask(thread_id="")
        thread.probe(present(Phase.FAILED, failure=remote_failure(retryable=True)))
        assert thread.state is not None and thread.state.active is not None
        assert thread.state.active.generation == 2
        (notify,) = thread.on(ResubmitOrdered("call-1", 1, OPENED))
        assert isinstance(notify, Notify)
        assert notify.notice.kind is NoticeKind.REFUSED


class TestMemory:
    def test_nothing_is_left_when_the_tombstone_expires(self) -> None:
        thread = Thread()
        thread.ask()
        thread.finish()
        assert thread.state is not None
        assert thread.state.mode == "free"
        assert thread.state.wake_at_ms == QUIET + POLICY.tombstone_ttl_ms
        thread.on(TimeReached(), thread.state.wake_at_ms)
        assert thread.state is None

    def test_tombstones_have_a_limit(self) -> None:
        thread = Thread(env(of=terms(tombstones_max=2)))
        for name in ("call-1", "call-2", "call-3"):
            thread.ask(name)
            thread.finish()
        assert thread.state is not None
        assert [stone.invocation_id for stone in thread.state.tombstones] == ["call-2", "call-3"]

    def test_transitions_tell_the_whole_story(self) -> None:
        thread = Thread()
        thread.ask()
        assert thread.last is not None
        assert [(t.before is None, t.after.leaf) for t in thread.last.transitions] == [
            (True, Leaf.NS_QUIET),
            (False, Leaf.NS_PROBING),
        ]


class TestDrain:
    """A deadline or a cancel ends the call; the thread waits for its run."""

    def drained(self, **policy: object) -> Thread:
        capabilities = replace(MARKER, cancel=CancelKind.CONFIRMED)
        thread = Thread(env(of=terms(capabilities, **policy)))
        thread.ask("call-1", deadline_ms=OVER)
        thread.ask("call-2", deadline_ms=OVER * 2)
        thread.probe(Absent(""))
        thread.submit(Accepted("run-1"))
        return thread

    def late(self, **policy: object) -> Thread:
        thread = self.drained(**policy)
        thread.on(TimeReached(), OVER)
        (end, probe) = thread.probe(present())
        assert isinstance(end, Emit) and isinstance(probe, Probe)
        assert end.outcome.failure is not None
        assert end.outcome.failure.remote is RemoteFate.RUNNING
        return thread

    def test_the_thread_is_not_released_while_the_run_may_act(self) -> None:
        """S15: the deadline ends the call; the slot is freed when the run has ended."""
        thread = self.late()
        assert thread.state is not None
        assert thread.state.mode == "draining"
        assert thread.probe(present()) == []
        effects = thread.on(TimeReached(), thread.state.wake_at_ms)
        assert kinds(effects) == ["Probe"]
        assert kinds(thread.probe(present(Phase.COMPLETED))) == ["Probe"]
        assert thread.state.active is not None
        assert thread.state.active.id == "call-2"

    def test_a_trusted_absence_releases_it(self) -> None:
        assert kinds(self.late().probe(Absent(""))) == ["Probe"]

    def test_silence_does_not(self) -> None:
        thread = self.late()
        assert thread.probe(Unknown("503")) == []
        assert thread.state is not None
        assert thread.state.mode == "draining"

    def test_time_does_with_a_notice(self) -> None:
        thread = self.late()
        thread.probe(Unknown("503"))
        notify, probe = thread.on(TimeReached(), OVER + POLICY.drain_max_ms)
        assert isinstance(notify, Notify) and isinstance(probe, Probe)
        assert notify.notice.kind is NoticeKind.DRAIN_EXPIRED

    def test_a_new_life_asks_at_once(self) -> None:
        thread = self.late()
        thread.at = replace(thread.at, incarnation="life-2", opened_ms=OVER)
        assert kinds(thread.on(Restored())) == ["Probe"]
        assert thread.probe(Absent("")) == [], "not yet trusted in this life"

    def test_an_early_timer_asks_nothing(self) -> None:
        thread = self.late()
        before = thread.state
        assert thread.on(TimeReached()) == []
        assert thread.state == before

    def test_policy_cancels_what_is_found_running(self) -> None:
        thread = self.drained(cancel_on_deadline=True, cancels_max=1)
        effects = thread.on(TimeReached(), OVER)
        assert kinds(effects) == ["Probe"]
        assert kinds(thread.probe(present())) == ["Cancel"]

    def test_a_cancelled_call_goes_on_being_cancelled(self) -> None:
        thread = self.drained()
        thread.on(CancelOrdered("call-1", 1))
        thread.on(CancelAnswered(thread.ident, Unknown("503")))
        assert thread.state is not None
        thread.on(TimeReached(), OVER + POLICY.drain_max_ms)
        (end, _) = thread.probe(Unknown("503"))
        assert isinstance(end, Emit)
        (cancel,) = thread.probe(present())
        assert isinstance(cancel, Cancel)
        (probe,) = thread.on(CancelAnswered(thread.ident, Confirmed()))
        assert isinstance(probe, Probe)

    def test_of_a_call_that_drains_no_word_is_kept(self) -> None:
        """Nothing is sent for it any more, and a message may be large."""
        thread = Thread()
        thread.ask("call-1", message=SECRET, metadata=b'{"a":1}')
        thread.probe(Absent(""))
        thread.submit(Unresolved("reset"))
        assert thread.state is not None and thread.state.active is not None
        assert thread.state.active.request.message == SECRET
        thread.on(TimeReached(), OVER + POLICY.drain_max_ms)
        assert thread.state.drain is not None
        kept = thread.state.drain.invocation.request
        assert (kept.message, kept.metadata) == (redacted(SECRET), redacted(b'{"a":1}'))
        assert thread.ask("call-1", message=SECRET, metadata=b'{"a":1}') == [Count("duplicate_request")]

    def test_late_proof_is_kept_and_the_rest_is_counted(self) -> None:
        thread = Thread()
        thread.ask("call-1")
        thread.probe(Absent(""))
        post = thread.ident
        thread.submit(Unresolved("reset"))
        thread.on(TimeReached(), OVER + POLICY.drain_max_ms)
        assert thread.state is not None and thread.state.drain is not None
        assert thread.on(SubmitAnswered(post, Unresolved("again"))) == [Count("stale_answer")]
        for other in (replace(post, generation=2), replace(post, incarnation="life-0")):
            assert thread.on(SubmitAnswered(other, Accepted("run-0"))) == [Count("stale_answer")]
            assert thread.state.drain is not None
            assert thread.state.drain.invocation.handle == ""
        assert thread.on(SubmitAnswered(post, Accepted("run-1"))) == [Count("late_fact")]
        assert thread.state.drain is not None
        assert thread.state.drain.invocation.handle == "run-1"
        assert thread.on(WatchEnded(thread.ident, "")) == [Count("late_fact")]

    def test_a_run_that_nobody_can_ask_about_holds_the_thread_until_the_time_is_up(self) -> None:
        thread = Thread(env(of=blind(), lineage=True))
        thread.ask("call-1")
        thread.on(CheckpointCompleted(thread.ident))
        thread.submit(Unresolved("reset"))
        (end,) = thread.on(CancelOrdered("call-1", 1))
        assert isinstance(end, Emit)
        assert thread.state is not None
        assert (thread.state.mode, thread.state.wake_at_ms) == ("draining", QUIET + POLICY.drain_max_ms)
        (notify,) = thread.on(TimeReached(), thread.state.wake_at_ms)
        assert isinstance(notify, Notify)
        assert thread.state is not None
        assert thread.state.mode == "free"

    def test_a_remote_that_cannot_be_asked_is_waited_for(self) -> None:
        thread = Thread(env(of=blind(), lineage=True))
        thread.ask("call-1")
        assert thread.state is not None and thread.state.active is not None
        thread.on(CancelOrdered("call-1", 1))
        assert thread.state is not None
        assert thread.state.mode == "free", "an intent that was never sent leaves nothing to wait for"


def test_what_a_later_release_knows_of_a_thread_stays_with_it() -> None:
    more = Kept((7,))
    thread = Thread()
    thread.ask("call-0")
    thread.finish()
    thread.ask("call-1")
    thread.ask("call-2")
    thread.probe(Absent("call-0"))
    thread.submit(Unresolved("reset"))
    thread.on(TimeReached(), OVER + POLICY.drain_max_ms)
    state = thread.state
    assert state is not None and state.drain is not None
    thread.state = ThreadState(
        drain=replace(state.drain, kept=more),
        queue=(replace(state.queue[0], kept=more),),
        tombstones=(replace(state.tombstones[0], kept=more), *state.tombstones[1:]),
        kept=more,
    )
    thread.probe(Unknown("503"))
    thread.on(SubmitAnswered(replace(thread.ident, epoch=1), Accepted("run-1")))
    after = thread.state
    assert after.drain is not None and after.drain.invocation.handle == "run-1"
    assert [after.kept, after.drain.kept, after.queue[0].kept, after.tombstones[0].kept] == [more] * 4


def test_an_empty_thread_is_forgotten() -> None:
    assert step_thread(None, TimeReached(), env()).state is None


def test_statuses_of_tombstones() -> None:
    thread = Thread()
    thread.ask()
    thread.finish()
    assert thread.state is not None
    assert thread.state.tombstones[0].status is Status.COMPLETED
    assert not [e for e in thread.on(TimeReached()) if isinstance(e, Submit)]
