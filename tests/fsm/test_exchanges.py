"""Following a run: streams, fetching, cancels, and answers to what the remote asks."""

from dataclasses import replace

import pytest

from reattach.fsm.step import Step, step
from reattach.models.answers import (
    Absent,
    Accepted,
    Confirmed,
    Gone,
    NotReady,
    NotSent,
    Occupied,
    Phase,
    Progress,
    Refused,
    Result,
    Taken,
    Unknown,
    Unresolved,
)
from reattach.models.effects import Count, Effect, Notify, Report, Watch
from reattach.models.events import (
    AdoptOrdered,
    CancelAnswered,
    CancelOrdered,
    FetchAnswered,
    Progressed,
    RespondAnswered,
    ResponseGiven,
    Restored,
    TimeReached,
    WatchEnded,
)
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import Failure, FailureCode, NoticeKind, RemoteFate
from reattach.models.policy import CancelKind, Capabilities, StreamKind
from tests.fsm.making import (
    BLIND,
    FENCED,
    MARKER,
    OPENED,
    POLICY,
    QUIET,
    blind,
    env,
    ident,
    names,
    outcome,
    parked,
    present,
    probed,
    sending,
    started,
    submitted,
    terms,
    watching,
)

CANCELS = terms(replace(MARKER, cancel=CancelKind.CONFIRMED))
OVER = OPENED + 3_600_000


def awake(inv: Invocation, of: object = None) -> Step:
    return step(inv, TimeReached(), env(inv.wake_at_ms, of=of))  # type: ignore[arg-type]


def ended_and_paused(call: Invocation, now_ms: int = QUIET) -> tuple[Invocation, tuple[Effect, ...]]:
    """The stream ends, and a probe finds the run going on: what is ordered then."""
    asked = step(call, WatchEnded(ident(call), "cut"), env(now_ms)).invocation
    found = probed(asked, present(), env(now_ms))
    return found.invocation, found.effects


def fetching() -> Invocation:
    return probed(started(env()).invocation, present(Phase.COMPLETED), env()).invocation


class TestStreams:
    def test_a_run_is_watched(self) -> None:
        (watch,) = watching().effects
        assert isinstance(watch, Watch)

    def test_its_events_are_passed_on_and_their_cursor_kept(self) -> None:
        call = watching().invocation
        items = (Progress(b"1", "c1"), Progress(b"2"))
        result = step(call, Progressed(ident(call), items), env(QUIET + 5_000))
        assert result.effects == (Report(call.id, 1, items),)
        assert result.invocation.epoch == call.epoch
        assert result.invocation.wake_at_ms == QUIET + 15_000

    def test_a_lively_stream_does_not_put_the_next_probe_off_for_ever(self) -> None:
        """litellm #19899: a stream that goes on saying nothing true."""
        call, now = watching().invocation, QUIET
        for _ in range(200):
            now += 1_000
            call = step(call, Progressed(ident(call), (Progress(b"1"),)), env(now)).invocation
        assert call.wake_at_ms == QUIET + 10 * 10_000

    def test_a_cursor_is_where_the_next_watch_starts(self) -> None:
        call = watching().invocation
        call = step(call, Progressed(ident(call), (Progress(b"1", "c1"),)), env()).invocation
        call, _ = ended_and_paused(call)
        (watch,) = probed(awake(call).invocation, present(), env(call.wake_at_ms)).effects
        assert isinstance(watch, Watch)
        assert watch.cursor == "c1"

    def test_a_server_that_ends_every_stream_after_an_event_is_not_asked_in_a_hot_loop(self) -> None:
        call, now = watching().invocation, QUIET
        for number in range(40):
            call = step(call, Progressed(ident(call), (Progress(b"1", f"c{number}"),)), env(now)).invocation
            call, effects = ended_and_paused(call, now)
            assert effects == ()
            assert call.wake_at_ms - now >= POLICY.backoff_ms
            now = call.wake_at_ms
            call = probed(awake(call).invocation, present(), env(now)).invocation
        # The older the run, the longer the pause, up to the interval of a poll.
        assert now - QUIET > 20_000

    def test_an_empty_batch_changes_nothing_that_is_seen(self) -> None:
        call = watching().invocation
        assert step(call, Progressed(ident(call), ()), env()).effects == ()

    def test_every_end_leads_to_a_probe(self) -> None:
        call = watching().invocation
        assert names(step(call, WatchEnded(ident(call), "end"), env()).effects) == ["Probe"]

    def test_a_stream_that_only_ends_gives_way_to_polling(self) -> None:
        call, opened = watching().invocation, 1
        for _ in range(6):
            if call.leaf is Leaf.RU_WATCHING and call.streams % 2 == 0 and opened <= 3:
                call, _ = ended_and_paused(call)
            asked = step(call, TimeReached(), env(call.wake_at_ms)).invocation
            again = probed(asked, present(), env(call.wake_at_ms))
            call, opened = again.invocation, opened + names(again.effects).count("Watch")
        assert opened == 3
        assert names(awake(call).effects) == ["Probe"]

    def test_without_streams_the_run_is_polled_less_and_less(self) -> None:
        of = terms(replace(MARKER, stream=StreamKind.NONE))
        call, waits = watching(env(of=of)).invocation, []
        for _ in range(30):
            waits.append(call.wake_at_ms - max(QUIET, call.tenure.known_at_ms))
            asked = awake(call, of).invocation
            call = probed(asked, present(), env(call.wake_at_ms, of=of)).invocation
        assert 875 <= waits[0] <= 1_000
        assert waits[-1] > 3 * waits[0]


class TestFetching:
    def test_a_result_ends_the_call(self) -> None:
        call = fetching()
        result = step(call, FetchAnswered(ident(call), Result(b'"r"')), env())
        assert outcome(result).result == b'"r"'

    @pytest.mark.parametrize("answer", [NotReady(), Unknown("503")])
    def test_no_result_yet_leads_back_to_a_probe(self, answer: object) -> None:
        call = fetching()
        waiting = step(call, FetchAnswered(ident(call), answer), env()).invocation  # type: ignore[arg-type]
        assert waiting.leaf is Leaf.RU_WATCHING
        assert names(awake(waiting).effects) == ["Probe"]

    def test_so_does_a_lost_answer(self) -> None:
        assert awake(fetching()).invocation.leaf is Leaf.RU_WATCHING

    @pytest.mark.parametrize("answer", [NotReady(), Unknown("503")])
    def test_it_ends_a_drain_time_after_the_deadline(self, answer: object) -> None:
        call = fetching()
        late = env(OVER + 60_000)
        failure = outcome(step(call, FetchAnswered(ident(call), answer), late)).failure  # type: ignore[arg-type]
        assert failure is not None
        assert (failure.code, failure.remote) == (FailureCode.DEADLINE_EXCEEDED, RemoteFate.ENDED)
        assert outcome(step(call, TimeReached(), late)).status is Status.FAILED

    def test_a_result_that_is_gone_is_lost(self) -> None:
        call = fetching()
        failure = outcome(step(call, FetchAnswered(ident(call), Gone()), env())).failure
        assert failure is not None
        assert (failure.code, failure.remote) == (FailureCode.LOST, RemoteFate.ENDED)

    def test_results_have_a_limit(self) -> None:
        at = env(of=terms(result_bytes_max=4))
        asked = started(at).invocation
        direct = probed(asked, present(Phase.COMPLETED, result=b'"long"'), at)
        call = probed(asked, present(Phase.COMPLETED), at).invocation
        fetched = step(call, FetchAnswered(ident(call), Result(b'"long"')), at)
        for result in (direct, fetched):
            assert outcome(result).failure.code is FailureCode.RESULT_TOO_LARGE  # type: ignore[union-attr]
            assert outcome(result).result is None


class TestCancel:
    def test_a_running_call_is_cancelled_and_asked(self) -> None:
        at = env(of=CANCELS)
        call = watching(at).invocation
        ordered = step(call, CancelOrdered(call.id, 1), at)
        assert names(ordered.effects) == ["Cancel"]
        asked = step(ordered.invocation, CancelAnswered(ident(ordered.invocation), Confirmed()), at)
        assert names(asked.effects) == ["Probe"]
        failure = outcome(probed(asked.invocation, present(Phase.CANCELLED), at)).failure
        assert failure is not None
        assert (failure.code, failure.remote) == (FailureCode.CANCELLED, RemoteFate.CANCELLED)

    @pytest.mark.parametrize("answer", [Taken(), Unknown("503"), None])
    def test_it_is_tried_again_up_to_a_limit(self, answer: object) -> None:
        at = env(of=CANCELS)
        call = watching(at).invocation
        call = step(call, CancelOrdered(call.id, 1), at).invocation
        now = QUIET
        for _ in range(CANCELS.policy.cancels_max):
            assert call.leaf is Leaf.RU_CANCELLING
            event = TimeReached() if answer is None else CancelAnswered(ident(call), answer)  # type: ignore[arg-type]
            now = call.wake_at_ms if answer is None else now
            call = step(call, event, env(now, of=CANCELS)).invocation
            now = call.wake_at_ms
            asked = step(call, TimeReached(), env(now, of=CANCELS)).invocation
            call = probed(asked, present(), env(now, of=CANCELS)).invocation
        assert call.failure is not None
        assert (call.failure.code, call.failure.remote) == (FailureCode.CANCELLED, RemoteFate.RUNNING)

    def test_a_remote_without_cancel_is_only_asked(self) -> None:
        call = watching().invocation
        ordered = step(call, CancelOrdered(call.id, 1), env())
        assert names(ordered.effects) == ["Probe"]

    def test_a_cancel_during_the_post_waits_for_its_answer(self) -> None:
        at = env(of=CANCELS)
        call = sending(at).invocation
        marked = step(call, CancelOrdered(call.id, 1), at)
        assert marked.effects == ()
        assert names(submitted(marked.invocation, Accepted("run-1"), at).effects) == ["Cancel"]

    def test_what_was_not_sent_is_cancelled_at_once(self) -> None:
        call = sending().invocation
        marked = step(call, CancelOrdered(call.id, 1), env()).invocation
        failure = outcome(submitted(marked, NotSent("refused"), env())).failure
        assert failure is not None
        assert (failure.code, failure.remote) == (FailureCode.CANCELLED, RemoteFate.NONE)
        refused = submitted(marked, Refused(Failure(FailureCode.REJECTED, "429", RemoteFate.NONE, True)), env())
        assert outcome(refused).failure == failure

    def test_a_parked_call_is_cancelled_without_knowing_its_run(self) -> None:
        call = parked(env(of=blind(), lineage=True)).invocation
        failure = outcome(step(call, CancelOrdered(call.id, 1), env(of=blind()))).failure
        assert failure is not None
        assert failure.remote is RemoteFate.UNKNOWN


class TestResponses:
    def asked(self) -> Step:
        return probed(
            started(env()).invocation, present(Phase.AWAITING_INPUT, question_id="q1", question=b'"?"'), env()
        )

    def given(self, response: str = "r1", question: str = "q1") -> ResponseGiven:
        return ResponseGiven("call-1", 1, response, question, b'"yes"')

    def test_a_question_is_reported_once(self) -> None:
        result = self.asked()
        assert [e.notice.detail for e in result.effects if isinstance(e, Notify)] == [b'"?"']
        again = awake(result.invocation).invocation
        same = probed(again, present(Phase.AWAITING_INPUT, question_id="q1"), env(result.invocation.wake_at_ms))
        assert same.effects == ()

    def test_a_response_is_sent_only_after_a_look(self) -> None:
        ordered = step(self.asked().invocation, self.given(), env())
        assert names(ordered.effects) == ["Probe"]
        sent = probed(ordered.invocation, present(Phase.AWAITING_INPUT, question_id="q1"), env())
        assert names(sent.effects) == ["Respond"]
        taken = step(sent.invocation, RespondAnswered(ident(sent.invocation), Accepted()), env())
        assert taken.invocation.leaf is Leaf.RU_WATCHING
        assert taken.invocation.response is None

    def test_a_look_before_the_quiet_time_does_not_count(self) -> None:
        early = env(QUIET - 1)
        asked = probed(started(early).invocation, present(Phase.AWAITING_INPUT, question_id="q1"), early).invocation
        ordered = step(asked, self.given(), early).invocation
        quiet = probed(ordered, present(Phase.AWAITING_INPUT, question_id="q1"), early).invocation
        assert (quiet.leaf, quiet.wake_at_ms) == (Leaf.RU_RESPONDING_QUIET, QUIET)
        assert names(awake(quiet).effects) == ["Probe"]

    @pytest.mark.parametrize("capabilities", [FENCED, BLIND], ids=["fenced", "blind"])
    def test_it_is_sent_whatever_makes_an_absence_certain(self, capabilities: Capabilities) -> None:
        """Found by the random simulator: such remotes were asked in a hot loop until the deadline."""
        of = blind() if capabilities is BLIND else terms(capabilities)
        asked = probed(started(env()).invocation, present(Phase.AWAITING_INPUT, question_id="q1"), env()).invocation
        ordered = step(asked, self.given(), env(of=of)).invocation
        open_still = present(Phase.AWAITING_INPUT, question_id="q1")
        assert names(probed(ordered, open_still, env(of=of)).effects) == ["Respond"]

    @pytest.mark.parametrize("answer", [Unresolved("reset"), Occupied("409"), NotSent("refused"), None])
    def test_a_lost_response_is_never_sent_again_without_asking(self, answer: object) -> None:
        ordered = step(self.asked().invocation, self.given(), env()).invocation
        sent = probed(ordered, present(Phase.AWAITING_INPUT, question_id="q1"), env()).invocation
        if answer is None:
            waiting = awake(sent).invocation
        else:
            waiting = step(sent, RespondAnswered(ident(sent), answer), env()).invocation  # type: ignore[arg-type]
        assert waiting.leaf is Leaf.RU_RESPONDING_QUIET
        again = awake(waiting)
        assert names(again.effects) == ["Probe"]
        assert probed(again.invocation, present(), env(waiting.wake_at_ms)).invocation.response is None

    def test_another_question_takes_no_old_answer(self) -> None:
        ordered = step(self.asked().invocation, self.given(), env()).invocation
        other = probed(ordered, present(Phase.AWAITING_INPUT, question_id="q2"), env())
        assert (other.invocation.leaf, other.invocation.response) == (Leaf.RU_AWAITING_INPUT, None)

    def test_a_refused_response_is_reported(self) -> None:
        ordered = step(self.asked().invocation, self.given(), env()).invocation
        sent = probed(ordered, present(Phase.AWAITING_INPUT, question_id="q1"), env()).invocation
        no = Refused(Failure(FailureCode.REJECTED, "400", RemoteFate.NONE))
        result = step(sent, RespondAnswered(ident(sent), no), env())
        assert result.invocation.leaf is Leaf.RU_AWAITING_INPUT
        assert names(result.effects) == ["Notify"]

    def test_the_same_response_again_is_counted_another_is_refused(self) -> None:
        ordered = step(self.asked().invocation, self.given(), env()).invocation
        assert step(ordered, self.given(), env()).effects == (Count("duplicate_order"),)
        assert names(step(ordered, self.given("r2"), env()).effects) == ["Notify"]

    def test_the_wrong_question_is_refused(self) -> None:
        call = self.asked().invocation
        assert names(step(call, self.given(question="q9"), env()).effects) == ["Notify"]

    @pytest.mark.parametrize("how", ["polled", "unanswered", "restored"])
    def test_a_question_may_be_answered_while_the_run_is_asked_about(self, how: str) -> None:
        """Such an answer was refused: by chance while polling, and always when it was read again after a crash."""
        asked = self.asked().invocation
        at = env(asked.wake_at_ms)
        if how == "restored":
            at = env(QUIET + 90_000, life="life-2", opened=QUIET + 90_000)
            call = step(asked, Restored(), at).invocation
        else:
            call = awake(asked).invocation
        if how == "unanswered":
            call = probed(call, Unknown("503"), at).invocation
            assert call.leaf is Leaf.RU_WATCHING
        ordered = step(call, self.given(), at)
        assert ordered.invocation.leaf is Leaf.RU_RESPONDING_PROBING
        assert names(ordered.effects) == ["Probe"]

    def test_an_answer_that_comes_again_after_its_effect_is_looked_at_and_not_sent(self) -> None:
        ordered = step(self.asked().invocation, self.given(), env()).invocation
        sent = probed(ordered, present(Phase.AWAITING_INPUT, question_id="q1"), env())
        taken = step(sent.invocation, RespondAnswered(ident(sent.invocation), Accepted()), env()).invocation
        again = step(taken, self.given(), env())
        assert names(again.effects) == ["Probe"]
        looked = probed(again.invocation, present(), env())
        assert (looked.invocation.leaf, looked.invocation.response) == (Leaf.RU_WATCHING, None)
        assert "Respond" not in names(looked.effects)

    def test_silence_and_restores_lead_to_a_look(self) -> None:
        ordered = step(self.asked().invocation, self.given(), env()).invocation
        silent = probed(ordered, Unknown("503"), env()).invocation
        assert silent.leaf is Leaf.RU_RESPONDING_QUIET
        assert awake(ordered).invocation.leaf is Leaf.RU_RESPONDING_QUIET
        reborn = env(QUIET + 90_000, life="life-2", opened=QUIET + 90_000)
        assert names(step(silent, Restored(), reborn).effects) == ["Probe"]

    def test_a_run_that_vanishes_while_answered_is_lost_twice_absent(self) -> None:
        ordered = step(self.asked().invocation, self.given(), env()).invocation
        assert probed(ordered, Absent(), env()).invocation.leaf is Leaf.RU_WATCHING


def test_orders_that_do_not_fit_are_refused_with_a_notice() -> None:
    call = watching().invocation
    (notify,) = step(call, AdoptOrdered(call.id, 1, "x"), env()).effects
    assert isinstance(notify, Notify)
    assert "not possible in running.watching" in notify.notice.message


def test_an_early_timer_is_counted() -> None:
    call = watching().invocation
    assert step(call, TimeReached(), env()) == Step(call, (Count("early_timer"),))


def test_a_restored_run_is_asked_about_at_once() -> None:
    reborn = env(QUIET + 90_000, life="life-2", opened=QUIET + 90_000)
    result = step(watching().invocation, Restored(), reborn)
    assert names(result.effects) == ["Probe"]
    assert result.invocation.attempts == 1


def test_a_remote_that_brings_nothing_is_told_of_now_and_then() -> None:
    """A wrong URL was silent until the deadline."""
    call, now, told = started(env()).invocation, QUIET, []
    for _ in range(60):
        result = probed(call, Unknown("connection refused"), env(now))
        told += [effect.notice for effect in result.effects if isinstance(effect, Notify)]
        now = result.invocation.wake_at_ms
        call = step(result.invocation, TimeReached(), env(now)).invocation
    assert [notice.kind for notice in told] == [NoticeKind.UNANSWERED] * 2
    assert told[0].message == "5 requests in a row brought nothing: connection refused"
