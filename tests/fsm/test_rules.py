"""The rules of "when may a POST be sent?", one test each. Without the rule, the test fails."""

from dataclasses import replace

import pytest

from reattach.fsm.step import Step, begin, step
from reattach.models.answers import Absent, Accepted, Fenced, NotSent, Occupied, Phase, Refused, Unknown, Unresolved
from reattach.models.effects import Count, Fence, Hold, Notify, Probe, Submit
from reattach.models.errors import IllegalEvent
from reattach.models.events import (
    AbandonOrdered,
    AdoptOrdered,
    CancelOrdered,
    CheckpointCompleted,
    FenceAnswered,
    HandleLearned,
    ProbeAnswered,
    Restored,
    ResubmitOrdered,
    SubmitAnswered,
    TimeReached,
)
from reattach.models.identity import marker_of
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import Failure, FailureCode, RemoteFate
from reattach.models.policy import Absence, Evidence, OnAmbiguous
from tests.fsm.making import (
    CONTAINER,
    FENCED,
    KEYED,
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
    remote_failure,
    request,
    sending,
    started,
    submitted,
    terms,
    watching,
)

FINAL = Failure(FailureCode.REJECTED, "422", RemoteFate.NONE)
REFUSAL = Failure(FailureCode.REJECTED, "no", RemoteFate.NONE, retryable=True)


def wake(inv: Invocation, **at: object) -> Step:
    """The call's own timer, in the life that stepped it last."""
    moment = env(max(QUIET, inv.wake_at_ms), **at)  # type: ignore[arg-type]
    return step(inv, TimeReached(), moment)


class TestFreshIsNotProof:
    def test_a_new_call_asks_before_it_posts(self) -> None:
        assert names(started(env()).effects) == ["Probe"]

    def test_a_remote_that_deduplicates_is_not_asked(self) -> None:
        at = env(of=terms(KEYED))
        assert names(started(at).effects) == ["Submit"]

    def test_what_the_probe_finds_running_is_joined(self) -> None:
        result = probed(started(env()).invocation, present(), env())
        assert result.invocation.leaf is Leaf.RU_WATCHING
        assert result.invocation.attempts == 0

    def test_what_the_probe_finds_done_is_read(self) -> None:
        result = probed(started(env()).invocation, present(Phase.COMPLETED, result=b'"r"'), env())
        assert outcome(result).result == b'"r"'
        assert outcome(result).attempts == 0


class TestQuietTime:
    @pytest.mark.parametrize("early", [1, 500, 7_499])
    def test_an_absence_ordered_too_early_is_not_believed(self, early: int) -> None:
        at = env(QUIET - early)
        result = probed(started(at).invocation, Absent(), env(QUIET))
        assert result.invocation.leaf is Leaf.NS_QUIET
        assert result.invocation.wake_at_ms == QUIET

    def test_the_time_counts_to_the_order_not_to_the_answer(self) -> None:
        asked = started(env(QUIET - 1)).invocation
        assert not [e for e in probed(asked, Absent(), env(QUIET + 60_000)).effects if isinstance(e, Submit)]

    def test_an_absence_ordered_after_it_permits_the_post(self) -> None:
        (post,) = sending(env(QUIET)).effects
        assert isinstance(post, Submit)
        assert post.not_after_ms == QUIET + 1_000

    def test_after_a_send_whose_end_is_known_the_admission_bound_is_enough(self) -> None:
        sent = sending().invocation
        lost = submitted(sent, Unresolved("reset"), env(QUIET + 100)).invocation
        assert lost.leaf is Leaf.SU_PROBING
        quiet = probed(lost, Absent(), env(QUIET + 150)).invocation
        assert (quiet.leaf, quiet.wake_at_ms) == (Leaf.SU_QUIET, QUIET + 100 + 500)
        asked = wake(quiet).invocation
        assert probed(asked, Absent(), env(QUIET + 700)).invocation.leaf is Leaf.SU_BACKING_OFF

    def test_without_an_answer_the_sends_own_limit_counts(self) -> None:
        sent = sending().invocation
        late = env(sent.wake_at_ms)
        asked = step(sent, TimeReached(), late).invocation
        quiet = probed(asked, Absent(), late).invocation
        assert quiet.wake_at_ms == QUIET + 1_000 + 2_000 + 500

    def test_stamps_of_another_incarnation_do_not_count(self) -> None:
        sent = sending().invocation
        reborn = env(OPENED + 90_000, life="life-2", opened=OPENED + 90_000)
        asked = step(sent, Restored(), reborn).invocation
        early = probed(asked, Absent(), reborn).invocation
        assert early.leaf is Leaf.SU_QUIET
        assert early.wake_at_ms == OPENED + 90_000 + (QUIET - OPENED)

    def test_the_next_turn_waits_for_the_last_turns_sends(self) -> None:
        fresh = begin(request("call-2"), env(), sends_end_ms=QUIET + 9_000)
        asked = step(fresh, TimeReached(), env()).invocation
        assert probed(asked, Absent(), env()).invocation.wake_at_ms == QUIET + 9_500


class TestPermits:
    def backing_off(self) -> Invocation:
        return submitted(sending().invocation, NotSent("refused"), env()).invocation

    def test_what_was_not_sent_may_be_sent_without_asking_again(self) -> None:
        result = wake(self.backing_off())
        assert names(result.effects) == ["Submit"]

    def test_a_permit_dies_with_its_incarnation(self) -> None:
        reborn = env(QUIET + 90_000, life="life-2", opened=QUIET)
        result = step(self.backing_off(), TimeReached(), reborn)
        assert names(result.effects) == ["Probe"]
        assert not result.invocation.tenure.permit

    def test_a_permit_is_used_up_by_its_post(self) -> None:
        assert not wake(self.backing_off()).invocation.tenure.permit

    def test_a_refusal_that_may_be_retried_waits_as_told(self) -> None:
        result = submitted(sending().invocation, Refused(REFUSAL, retry_after_ms=5_000), env())
        assert (result.invocation.leaf, result.invocation.wake_at_ms) == (Leaf.SU_BACKING_OFF, QUIET + 5_000)

    def test_a_definite_refusal_ends_it(self) -> None:
        final = Failure(FailureCode.REJECTED, "400", RemoteFate.NONE)
        result = submitted(sending().invocation, Refused(final), env())
        assert outcome(result).failure == final

    def test_refusals_end_with_the_attempts(self) -> None:
        at = env(of=terms(submit_attempts_max=1))
        result = submitted(sending(at).invocation, Refused(REFUSAL), at)
        assert result.invocation.leaf is Leaf.FAILED

    def test_the_refusal_of_a_resend_is_unresolved(self) -> None:
        at = env(of=terms(KEYED))
        lost = submitted(started(at).invocation, Unresolved("reset"), at).invocation
        again = step(lost, TimeReached(), env(lost.wake_at_ms, of=terms(KEYED))).invocation
        assert submitted(again, Refused(FINAL), at).invocation.leaf is Leaf.SU_QUIET

    def test_so_is_that_of_a_post_which_an_earlier_life_may_have_sent(self) -> None:
        """Found by the search: a running call was reported as rejected, with nothing at the remote."""
        at = env(OPENED, of=terms(KEYED))
        fresh = started(at).invocation
        quiet = submitted(fresh, Refused(FINAL), at).invocation
        assert (quiet.leaf, quiet.wake_at_ms) == (Leaf.SU_QUIET, QUIET)
        asked = wake(quiet, of=terms(KEYED))
        assert names(asked.effects) == ["Probe"]
        joined = probed(asked.invocation, present(), env(of=terms(KEYED)))
        assert joined.invocation.leaf is Leaf.RU_WATCHING

    def test_after_a_restore_from_sending_too(self) -> None:
        at = env(of=terms(KEYED))
        reborn = env(QUIET + 90_000, of=terms(KEYED), life="life-2", opened=QUIET + 90_000)
        asked = step(started(at).invocation, Restored(), reborn).invocation
        waiting = probed(asked, Absent(), reborn).invocation
        later = env(waiting.wake_at_ms, of=terms(KEYED), life="life-2", opened=QUIET + 90_000)
        again = step(waiting, TimeReached(), later)
        assert names(again.effects) == ["Submit"]
        assert submitted(again.invocation, Refused(FINAL), later).invocation.leaf is Leaf.SU_QUIET

    def test_a_refusal_behind_a_trusted_absence_is_final_with_deduplication_too(self) -> None:
        of = terms(KEYED)
        quiet = submitted(started(env(of=of)).invocation, Refused(FINAL), env(of=of)).invocation
        late = env(quiet.wake_at_ms, of=of)
        asked = step(quiet, TimeReached(), late).invocation
        permitted = probed(asked, Absent(), late).invocation
        late = env(permitted.wake_at_ms, of=of)
        last = step(permitted, TimeReached(), late).invocation
        ended = outcome(submitted(last, Refused(FINAL), late))
        assert (ended.failure, ended.attempts) == (FINAL, 2)

    def test_with_no_way_to_ask_refusals_end_in_the_parking(self) -> None:
        blind_key = replace(KEYED, evidence=Evidence.HANDLE_ONLY, absence=Absence.NEVER)
        for attempts, leaf in ((20, Leaf.SU_BACKING_OFF), (1, Leaf.SU_PARKED)):
            at = env(of=terms(blind_key, submit_attempts_max=attempts))
            assert submitted(started(at).invocation, Refused(FINAL), at).invocation.leaf is leaf

    def test_a_closed_slot_says_nothing_about_the_next(self) -> None:
        """Another life may have gone on into it: what is known of the run is nothing."""
        over = env(OPENED + 3_600_000, of=terms(FENCED))
        failure = outcome(probed(started(over).invocation, Absent(), over)).failure
        assert failure is not None
        assert failure.remote is RemoteFate.UNKNOWN


class TestIdentity:
    @pytest.mark.parametrize(
        "change", [{"incarnation": "other"}, {"generation": 2}, {"epoch": 0}, {"invocation_id": "call-0"}]
    )
    def test_an_answer_must_match_in_all_four(self, change: dict[str, object]) -> None:
        asked = started(env()).invocation
        foreign = replace(ident(asked), **change)  # type: ignore[arg-type]
        result = step(asked, ProbeAnswered(foreign, Absent()), env())
        assert result == Step(asked, (Count("stale_answer"),))

    def test_late_proof_of_acceptance_is_welcome(self) -> None:
        sent = sending().invocation
        asked = step(sent, TimeReached(), env(sent.wake_at_ms)).invocation
        result = step(asked, SubmitAnswered(ident(sent), Accepted("run-1")), env(sent.wake_at_ms))
        assert (result.invocation.leaf, result.invocation.handle) == (Leaf.RU_WATCHING, "run-1")

    def test_late_doubt_takes_nothing_back(self) -> None:
        sent = sending().invocation
        known = step(sent, HandleLearned(ident(sent), "run-1"), env()).invocation
        result = step(known, SubmitAnswered(ident(sent), Unresolved("cut")), env())
        assert result == Step(known, (Count("stale_answer"),))

    def test_an_impossible_answer_raises_and_changes_nothing(self) -> None:
        asked = started(env()).invocation
        with pytest.raises(IllegalEvent, match="submit_accepted cannot happen in not_started.probing"):
            step(asked, SubmitAnswered(ident(asked), Accepted()), env())

    def test_a_mismatched_pair_of_event_and_answer_raises(self) -> None:
        asked = started(env()).invocation
        with pytest.raises(IllegalEvent, match="cannot carry"):
            step(asked, ProbeAnswered(ident(asked), Accepted()), env())  # type: ignore[arg-type]


class TestLostAnswers:
    @pytest.mark.parametrize("answer", [Unresolved("timeout"), Occupied("409")])
    def test_only_a_probe_resolves_them(self, answer: object) -> None:
        result = submitted(sending().invocation, answer, env())
        assert names(result.effects) == ["Probe"]

    def test_a_failed_probe_is_not_a_failed_call(self) -> None:
        asked = started(env()).invocation
        waiting = probed(asked, Unknown("503"), env()).invocation
        assert waiting.leaf is Leaf.NS_BACKING_OFF
        assert names(wake(waiting).effects) == ["Probe"]

    def test_the_wait_between_tries_grows_in_the_record(self) -> None:
        asked, waits = started(env()).invocation, []
        for _ in range(5):
            waiting = probed(asked, Unknown("503"), env()).invocation
            waits.append(waiting.wake_at_ms - QUIET)
            asked = wake(waiting).invocation
        assert waits[0] < 100 < waits[-1] <= 800
        assert asked.tries == 5

    def test_s19_attempts_and_waits_survive_a_restart(self) -> None:
        """flink-agents #1105: the counter was a local variable, every restart refilled the budget."""
        waiting = submitted(sending().invocation, Refused(REFUSAL), env()).invocation
        reborn = env(QUIET + 90_000, life="life-2", opened=QUIET)
        again = step(waiting, Restored(), reborn).invocation
        assert (again.attempts, again.tries) == (waiting.attempts, waiting.tries) == (1, 1)
        silent = probed(again, Unknown("503"), reborn).invocation
        assert silent.tries == 2
        assert silent.request.deadline_ms == waiting.request.deadline_ms

    def test_absent_while_running_never_resubmits(self) -> None:
        watched = watching().invocation
        asked = step(watched, TimeReached(), env(watched.wake_at_ms)).invocation
        first = probed(asked, Absent(), env(watched.wake_at_ms)).invocation
        assert first.leaf is Leaf.RU_WATCHING
        again = step(first, TimeReached(), env(first.wake_at_ms)).invocation
        lost = probed(again, Absent(), env(first.wake_at_ms))
        assert outcome(lost).failure.code is FailureCode.LOST  # type: ignore[union-attr]

    def test_the_second_absence_must_be_an_admission_bound_later(self) -> None:
        watched = watching(env(QUIET)).invocation
        doubted = replace(
            watched, leaf=Leaf.RU_PROBING, absences=1, tenure=replace(watched.tenure, ordered_at_ms=QUIET + 499)
        )
        assert probed(doubted, Absent(), env(QUIET + 499)).invocation.leaf is Leaf.RU_WATCHING


class TestFences:
    def at(self, now: int = QUIET) -> object:
        return env(now, of=terms(FENCED))

    def test_the_first_post_is_its_own_test(self) -> None:
        at = env(OPENED, of=terms(FENCED))
        assert names(probed(started(at).invocation, Absent(), at).effects) == ["Submit"]

    def test_a_lost_post_is_fenced_asked_and_only_then_sent_to_the_next_slot(self) -> None:
        at = env(OPENED, of=terms(FENCED))
        sent = probed(started(at).invocation, Absent(), at).invocation
        fencing = submitted(sent, Unresolved("reset"), at)
        assert [type(e) for e in fencing.effects] == [Fence]
        asked = step(fencing.invocation, FenceAnswered(ident(fencing.invocation), Fenced()), at)
        assert [type(e) for e in asked.effects] == [Probe]
        permitted = probed(asked.invocation, Absent(), at).invocation
        assert (permitted.leaf, permitted.slot) == (Leaf.SU_BACKING_OFF, 2)

    @pytest.mark.parametrize("answer", [Occupied(), Unknown("lost")])
    def test_a_fence_that_is_not_confirmed_entitles_to_nothing(self, answer: object) -> None:
        at = env(of=terms(FENCED))
        sent = probed(started(at).invocation, Absent(), at).invocation
        fencing = submitted(sent, Occupied(), at).invocation
        after = step(fencing, FenceAnswered(ident(fencing), answer), at).invocation  # type: ignore[arg-type]
        if after.leaf is Leaf.SU_BACKING_OFF:
            after = step(after, TimeReached(), env(after.wake_at_ms, of=terms(FENCED))).invocation
        assert after.leaf is Leaf.SU_PROBING
        assert probed(after, Absent(), at).invocation.leaf is Leaf.SU_FENCING

    def test_a_fence_dies_with_its_incarnation(self) -> None:
        at = env(of=terms(FENCED))
        sent = probed(started(at).invocation, Absent(), at).invocation
        fencing = submitted(sent, Occupied(), at).invocation
        asked = step(fencing, FenceAnswered(ident(fencing), Fenced()), at).invocation
        reborn = env(of=terms(FENCED), life="life-2")
        again = step(asked, Restored(), reborn).invocation
        assert probed(again, Absent(), reborn).invocation.leaf is Leaf.SU_FENCING


class TestWriteAhead:
    def test_the_post_waits_for_a_checkpoint(self) -> None:
        held = started(env(of=blind(), lineage=True))
        assert [type(e) for e in held.effects] == [Hold]
        at = env(of=blind(), lineage=True)
        sent = step(held.invocation, CheckpointCompleted(ident(held.invocation)), at)
        assert names(sent.effects) == ["Submit"]

    def test_a_checkpoint_slower_than_the_wake_up_still_counts(self) -> None:
        at = env(of=blind(), lineage=True)
        held = started(at).invocation
        later = env(held.wake_at_ms, of=blind(), lineage=True)
        waiting = step(held, TimeReached(), later)
        assert waiting.effects == ()
        assert waiting.invocation.wake_at_ms > held.wake_at_ms
        assert names(step(waiting.invocation, CheckpointCompleted(ident(held)), later).effects) == ["Submit"]

    @pytest.mark.parametrize("lineage", [True, False])
    def test_a_restored_held_call_is_ambiguous(self, lineage: bool) -> None:
        """The checkpoint that contains it is the one whose completion let its POST go."""
        held = started(env(of=blind(), lineage=True)).invocation
        reborn = env(of=blind(), life="life-2", opened=QUIET, lineage=lineage)
        assert step(held, Restored(), reborn).invocation.leaf is Leaf.SU_PARKED

    def test_a_call_that_had_not_begun_in_the_jobs_own_latest_checkpoint_was_never_sent(self) -> None:
        begun = begin(request(), env(of=blind()))
        reborn = env(of=blind(), life="life-2", opened=QUIET, lineage=True)
        again = step(begun, Restored(), reborn).invocation
        assert step(again, TimeReached(), reborn).invocation.leaf is Leaf.SU_HOLDING

    def test_a_restored_post_without_a_handle_is_ambiguous(self) -> None:
        at = env(of=blind(), lineage=True)
        held = started(at).invocation
        sent = step(held, CheckpointCompleted(ident(held)), at).invocation
        reborn = env(of=blind(), life="life-2", opened=QUIET, lineage=True)
        result = step(sent, Restored(), reborn)
        assert result.invocation.leaf is Leaf.SU_PARKED
        assert [e.notice.kind.value for e in result.effects if isinstance(e, Notify)] == ["parked"]

    def test_without_proof_of_lineage_only_young_requests_are_fresh(self) -> None:
        old = started(env(of=blind()))
        assert old.invocation.leaf is Leaf.SU_PARKED
        young = step(begin(request(), env(of=blind())), TimeReached(), env(of=blind(), opened=OPENED - 5_001))
        assert young.invocation.leaf is Leaf.SU_HOLDING

    @pytest.mark.parametrize("lineage", [True, False])
    def test_a_line_that_is_older_than_the_tombstones_is_not_fresh(self, lineage: bool) -> None:
        """It may have ended long ago in this very life, so that neither lineage nor youth is proof."""
        of = blind(tombstone_ttl_ms=60_000)
        late = env(OPENED + 60_000, of=of, opened=OPENED - 5_001, lineage=lineage)
        assert started(late).invocation.leaf is Leaf.SU_PARKED
        in_time = env(QUIET, of=of, opened=OPENED - 5_001, lineage=lineage)
        assert started(in_time).invocation.leaf is Leaf.SU_HOLDING


class TestAmbiguous:
    def at(self, **policy: object) -> object:
        return env(of=blind(**policy), lineage=True)

    def park(self, **policy: object) -> Step:
        return parked(env(of=blind(**policy), lineage=True))

    def test_it_is_parked_and_reported_once(self) -> None:
        result = self.park()
        assert result.invocation.leaf is Leaf.SU_PARKED
        assert len([e for e in result.effects if isinstance(e, Notify)]) == 1
        later = env(result.invocation.wake_at_ms, of=blind(), lineage=True)
        again = step(result.invocation, TimeReached(), later)
        assert again.invocation.leaf is Leaf.SU_PARKED
        assert not again.effects

    def test_policy_fail(self) -> None:
        result = self.park(on_ambiguous=OnAmbiguous.FAIL)
        failure = outcome(result).failure
        assert failure is not None
        assert (failure.code, failure.remote) == (FailureCode.AMBIGUOUS, RemoteFate.UNKNOWN)

    def test_policy_resubmit_opens_the_next_generation(self) -> None:
        result = self.park(on_ambiguous=OnAmbiguous.RESUBMIT, generations_max=2)
        assert (result.invocation.generation, result.invocation.leaf) == (2, Leaf.NS_QUIET)

    def test_policy_resubmit_has_a_limit(self) -> None:
        assert self.park(on_ambiguous=OnAmbiguous.RESUBMIT).invocation.leaf is Leaf.SU_PARKED

    def test_orders_name_their_generation(self) -> None:
        at = env(of=blind(), lineage=True)
        call = self.park().invocation
        stale = step(call, ResubmitOrdered(call.id, 7, QUIET), at)
        assert stale.invocation is call
        assert isinstance(stale.effects[0], Notify)

    def test_resubmit_adopt_abandon(self) -> None:
        at = env(of=blind(), lineage=True)
        call = self.park().invocation
        assert step(call, ResubmitOrdered(call.id, 1, QUIET), at).invocation.generation == 2
        assert step(call, AdoptOrdered(call.id, 1, "run-9"), at).invocation.handle == "run-9"
        assert step(call, AbandonOrdered(call.id, 1), at).invocation.leaf is Leaf.FAILED

    @pytest.mark.parametrize(("generations_max", "opened"), [(1, 2), (3, 4)])
    def test_an_order_opens_a_generation_that_no_retry_can_reach(self, generations_max: int, opened: int) -> None:
        """A life that was undone may have retried up to the limit, by itself and unknown here."""
        at = env(of=blind(generations_max=generations_max), lineage=True)
        call = self.park(generations_max=generations_max).invocation
        again = step(call, ResubmitOrdered(call.id, 1, QUIET), at).invocation
        assert again.generation == opened

    def test_a_redelivered_resubmit_finds_what_it_started(self) -> None:
        """The state before the order is restored, and the order comes again."""
        at = env(of=terms(CONTAINER))
        asked = started(at).invocation
        call = probed(asked, Unknown("cannot tell", final=True), at).invocation
        assert call.leaf is Leaf.SU_PARKED
        reborn = env(QUIET + 90_000, of=terms(CONTAINER), life="life-2", opened=QUIET + 80_000)
        again = step(call, ResubmitOrdered(call.id, 1, QUIET), reborn).invocation
        assert (again.generation, again.leaf) == (2, Leaf.NS_QUIET)
        result = step(
            again, TimeReached(), env(again.wake_at_ms, of=terms(CONTAINER), life="life-2", opened=QUIET + 80_000)
        )
        assert names(result.effects) == ["Probe"]

    def test_a_late_positive_probe_ends_the_doubt(self) -> None:
        at = env(of=terms(CONTAINER))
        call = probed(started(at).invocation, Unknown("cannot tell", final=True), at).invocation
        later = env(call.wake_at_ms, of=terms(CONTAINER))
        asked = step(call, TimeReached(), later)
        assert names(asked.effects) == ["Probe"]
        assert probed(asked.invocation, present(), later).invocation.leaf is Leaf.RU_WATCHING

    def test_the_deadline_ends_it(self) -> None:
        call = self.park().invocation
        over = env(OPENED + 3_600_000, of=blind(), lineage=True)
        failure = outcome(step(call, TimeReached(), over)).failure
        assert failure is not None
        assert (failure.code, failure.remote) == (FailureCode.DEADLINE_EXCEEDED, RemoteFate.UNKNOWN)


class TestForgetting:
    def test_an_absence_past_the_remotes_memory_is_ambiguous(self) -> None:
        at = env(OPENED + 90_000, of=terms(retention_ms=60_000))
        assert probed(started(at).invocation, Absent(), at).invocation.leaf is Leaf.SU_PARKED

    def test_a_key_is_not_used_past_its_lifetime(self) -> None:
        short = terms(replace(KEYED, key_lifetime_ms=60_000))
        assert names(started(env(OPENED + 90_000, of=short)).effects) == ["Probe"]

    def test_a_permit_is_not_used_past_it_either(self) -> None:
        of = terms(retention_ms=60_000)
        waiting = submitted(sending(env(of=of)).invocation, NotSent("refused"), env(of=of)).invocation
        assert names(step(waiting, TimeReached(), env(OPENED + 90_000, of=of)).effects) == ["Probe"]


class TestTurns:
    def test_an_unknown_newest_turn_means_ambiguous(self) -> None:
        result = probed(started(env()).invocation, Absent(after="someone"), env())
        assert result.invocation.leaf is Leaf.SU_PARKED

    def test_a_known_newest_turn_is_proof(self) -> None:
        fresh = begin(request("call-2"), env(), after=("call-1",))
        asked = step(fresh, TimeReached(), env()).invocation
        assert names(probed(asked, Absent(after="call-1"), env()).effects) == ["Submit"]

    def test_a_later_turn_proves_that_a_known_run_has_ended(self) -> None:
        """After a restore the thread may be a turn ahead; a remote that shows the newest only has lost the result."""
        watched = watching().invocation
        asked = step(watched, TimeReached(), env(watched.wake_at_ms)).invocation
        failure = outcome(probed(asked, Absent(after="call-2"), env(watched.wake_at_ms))).failure
        assert failure is not None
        assert (failure.code, failure.remote) == (FailureCode.LOST, RemoteFate.ENDED)

    def test_a_thread_that_forgot_its_turns_means_ambiguous(self) -> None:
        fresh = begin(request("call-2"), env(), after=("call-1",))
        asked = step(fresh, TimeReached(), env()).invocation
        assert probed(asked, Absent(after=""), env()).invocation.leaf is Leaf.SU_PARKED


class TestLocalEnds:
    OVER = OPENED + 3_600_000

    def test_past_the_deadline_there_is_no_post(self) -> None:
        at = env(self.OVER)
        result = probed(started(at).invocation, Absent(), at)
        failure = outcome(result).failure
        assert failure is not None
        assert (failure.code, failure.remote) == (FailureCode.DEADLINE_EXCEEDED, RemoteFate.NONE)

    def test_one_answered_probe_is_owed(self) -> None:
        at = env(self.OVER)
        asked = started(at).invocation
        assert asked.leaf is Leaf.NS_PROBING
        assert probed(asked, Unknown("503"), at).invocation.leaf is Leaf.NS_BACKING_OFF
        done = probed(asked, present(Phase.COMPLETED, result=b"1"), at)
        assert outcome(done).status is Status.COMPLETED

    def test_the_debt_ends_with_the_drain_time(self) -> None:
        asked = started(env(self.OVER)).invocation
        result = probed(asked, Unknown("503"), env(self.OVER + 60_000))
        assert outcome(result).failure.remote is RemoteFate.UNKNOWN  # type: ignore[union-attr]

    def test_a_run_found_then_is_reported(self) -> None:
        at = env(self.OVER)
        result = probed(started(at).invocation, present(), at)
        assert outcome(result).failure.remote is RemoteFate.RUNNING  # type: ignore[union-attr]
        assert outcome(result).handle == "run-1"

    def test_and_cancelled_by_policy(self) -> None:
        of = terms(FENCED, cancel_on_deadline=True)
        at = env(self.OVER, of=of)
        assert names(probed(started(at).invocation, present(), at).effects) == ["Cancel"]

    def test_a_deadline_does_not_interrupt_a_post_in_flight(self) -> None:
        at = env(self.OVER - 10)
        sent = sending(at).invocation
        assert sent.wake_at_ms > self.OVER
        result = submitted(sent, Unresolved("reset"), env(self.OVER + 5))
        assert result.invocation.leaf is Leaf.SU_PROBING

    def test_waiting_calls_wake_at_the_deadline(self) -> None:
        watched = watching(env(self.OVER - 100)).invocation
        assert watched.wake_at_ms == self.OVER

    def test_a_cancel_is_durable_and_the_probe_decides(self) -> None:
        asked = started(env()).invocation
        marked = step(asked, CancelOrdered(asked.id, 1), env()).invocation
        assert marked.cancelled
        assert probed(marked, Absent(), env()).invocation.failure.code is FailureCode.CANCELLED  # type: ignore[union-attr]
        done = probed(marked, present(Phase.COMPLETED, result=b"1"), env())
        assert outcome(done).status is Status.COMPLETED

    def test_restarting_never_cancels(self) -> None:
        reborn = env(QUIET + 90_000, life="life-2", opened=QUIET + 90_000)
        assert names(step(watching().invocation, Restored(), reborn).effects) == ["Probe"]


class TestGenerations:
    def test_a_failed_run_is_retried_only_by_policy(self) -> None:
        at = env()
        asked = started(at).invocation
        result = probed(asked, present(Phase.FAILED, failure=remote_failure(True)), at)
        assert outcome(result).failure.code is FailureCode.REMOTE_FAILED  # type: ignore[union-attr]

    @pytest.mark.parametrize("end", ["cancel", "deadline"])
    def test_a_call_that_closes_asks_about_a_retry_of_an_earlier_life(self, end: str) -> None:
        """That life may have seen the same failure before the cancel or the deadline, and gone on."""
        of = terms(generations_max=2)
        when = QUIET + (POLICY.deadline_ms if end == "deadline" else 0)
        for opened, leaf in ((OPENED, Leaf.NS_QUIET), (OPENED - 5_001, Leaf.FAILED)):
            at = env(QUIET, of=of, opened=opened)
            asked = started(at).invocation
            if end == "cancel":
                asked = step(asked, CancelOrdered(asked.id, 1), at).invocation
            then = env(when, of=of, opened=opened)
            call = probed(asked, present(Phase.FAILED, failure=remote_failure(True)), then).invocation
            assert call.leaf is leaf
        at = env(QUIET, of=of)
        asked = step(started(at).invocation, CancelOrdered("call-1", 1), at).invocation
        opened_next = probed(asked, present(Phase.FAILED, failure=remote_failure(True)), at).invocation
        later = env(opened_next.wake_at_ms, of=of)
        asking = step(opened_next, TimeReached(), later)
        assert names(asking.effects) == ["Probe"]
        ended = outcome(probed(asking.invocation, Absent(), later))
        assert (ended.generation, ended.failure.remote) == (2, RemoteFate.NONE)  # type: ignore[union-attr]

    def test_the_next_generation_has_a_new_remote_identity(self) -> None:
        at = env(of=terms(generations_max=2))
        asked = started(at).invocation
        call = probed(asked, present(Phase.FAILED, failure=remote_failure(True)), at).invocation
        assert (call.generation, call.leaf, call.handle) == (2, Leaf.NS_QUIET, "")
        assert call.after == (marker_of("call-1", 1),)
        again = step(call, TimeReached(), env(call.wake_at_ms, of=terms(generations_max=2)))
        assert names(again.effects) == ["Probe"]


def test_taking_over_and_acting_gives_one_order_only() -> None:
    """A cancel meets a record of another life: the probe of the take-over is not given twice."""
    reborn = env(QUIET + 90_000, life="life-2", opened=QUIET + 90_000)
    result = step(watching().invocation, CancelOrdered("call-1", 1), reborn)
    assert names(result.effects) == ["Probe"]
    assert result.invocation.cancelled
