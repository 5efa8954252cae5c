"""Checks of the conformance kit: what a submit says, against what the server has done."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from reattach.models.answers import Absent, Accepted, NotSent, Occupied, Present, Refused, Unresolved
from reattach.models.policy import Absence, Deduplication
from reattach.runtime.conformance.faults import (
    AFTER_IT,
    CUT_BODIES,
    HELD,
    IN_ITS_STEAD,
    LONG,
    NO_ANSWER,
    NONSENSE,
    REDIRECTS,
)
from reattach.runtime.conformance.rig import Rig
from reattach.runtime.conformance.said import Call
from reattach.runtime.conformance.truth import (
    LEAST_S,
    after_doubt,
    fenced,
    judge_submit,
    resent,
    sees,
    sent_once,
)
from reattach.runtime.proxy.faults import Cut, Fault, Rule, Silence, Twice, Where

SHORT_MS: Final = 300
ON_SUBMIT: Final[dict[str, Fault]] = {
    **NO_ANSWER,
    **CUT_BODIES,
    **IN_ITS_STEAD,
    **AFTER_IT,
    **REDIRECTS,
    # The server has taken it, so that a claim to the contrary is a lie.
    **{name: replace(fault, forward=True) for name, fault in (*NONSENSE.items(), *LONG.items())},
}


class SubmitChecks:
    """A submit under every fault."""

    @pytest.mark.parametrize("name", ON_SUBMIT)
    def test_a_submit_says_no_more_than_is_true_when_it_is(self, rig: Rig, name: str) -> None:
        call = rig.call()
        with rig.fault(ON_SUBMIT[name], match=rig.target.submits) as rule:
            said = rig.submit(call)
        _met(rig, rule)
        judge_submit(rig, call, said, name)

    @pytest.mark.parametrize("name", NONSENSE)
    def test_a_200_that_the_server_never_gave_accepts_nothing(self, rig: Rig, name: str) -> None:
        if rig.target.believes_2xx:
            pytest.skip("every 2xx counts by the rule of this protocol")
        call = rig.call()
        with rig.fault(NONSENSE[name], match=rig.target.submits):
            said = rig.submit(call)
        if isinstance(said.answer, Accepted):
            rig.fail(f"{name}, and the server knows nothing of the request: {said}")
        judge_submit(rig, call, said, f"{name} in the server's stead")

    def test_a_submit_says_no_more_than_is_true_when_another_request_of_it_fails(self, rig: Rig) -> None:
        for name in (*NO_ANSWER, *CUT_BODIES, *IN_ITS_STEAD, *AFTER_IT, *NONSENSE):
            call = rig.call()
            with rig.fault(ON_SUBMIT[name], match=lambda one: not rig.target.submits(one)) as rule:
                said = rig.submit(call)
            judge_submit(rig, call, said, f"{name}, at a request beside the submit")
            if not rule.hits:
                pytest.skip("a submit of this adapter is one request")

    def test_a_submit_without_an_answer_ends_at_its_time_limit_and_claims_nothing(self, rig: Rig) -> None:
        call = rig.call()
        policy = replace(rig.target.policy, submit_timeout_ms=SHORT_MS)
        with rig.fault(Silence(), match=rig.target.submits) as rule:
            said = rig.submit(call, policy)
            _met(rig, rule)
            if isinstance(said.answer, Accepted | Refused | NotSent):
                rig.fail(f"silence: no byte of an answer has arrived, and the adapter says {said}")
        judge_submit(rig, call, said, "silence")

    @pytest.mark.parametrize("name", HELD)
    def test_a_request_that_lands_after_its_sender_gave_up_is_found(self, rig: Rig, name: str) -> None:
        call, target = rig.call(), rig.target
        with rig.fault(HELD[name], match=target.submits) as rule:
            said = rig.submit(call)
            _met(rig, rule)
            sent_once(rig, said, name)
            if not isinstance(said.answer, Unresolved | Occupied):
                rig.fail(f"{name}: the request may still land, and the adapter says {said}")
            _before_it_lands(rig, call, rule, name)

    def test_a_doubled_request_starts_one_run_where_the_remote_deduplicates(self, rig: Rig) -> None:
        if rig.able.deduplication is not Deduplication.KEY:
            pytest.skip("the adapter declares no deduplication")
        call = rig.call()
        with rig.fault(Twice(), match=rig.target.submits):
            said = rig.submit(call)
        judge_submit(rig, call, said, "doubled on its way")

    def test_the_runs_name_is_learned_as_early_as_the_target_says(
        self, rig: Rig, record_property: Callable[[str, object], None]
    ) -> None:
        promised = rig.target.learns_from
        stages: dict[str, Fault] = {
            "head": Cut(Where.BODY, 0),
            "first_event": Cut(Where.BODY, events=1),
            "body": Cut(Where.BODY, 2**30),
        }
        learned = {}
        for stage, fault in stages.items():
            call = rig.call()
            with rig.fault(fault, match=rig.target.submits):
                said = rig.submit(call)
            learned[stage] = bool(said.learned) or bool(getattr(said.answer, "handle", ""))
            judge_submit(rig, call, said, f"cut behind the {stage} of the answer")
        record_property("learns_from", next((stage for stage, known in learned.items() if known), "nothing"))
        if promised and not learned[promised]:
            rig.fail(f"the answer was cut behind its {promised}, and the run's name was not learned", str(learned))


def _met(rig: Rig, rule: Rule) -> None:
    if not rule.hits:
        rig.fail("the submit sent no request that Target.submits takes for one: the fault met nothing")


def _before_it_lands(rig: Rig, call: Call, rule: Rule, name: str) -> None:
    """A zombie is under way: what protects against it, and that it is seen once it has landed."""
    able = rig.able
    if able.deduplication is Deduplication.KEY:
        resent(rig, call, name)
        _land(rig, rule)
        return
    closed = able.absence is Absence.BY_FENCE and fenced(rig, call, name)
    before = rig.probe(call)
    if isinstance(before.answer, Present) or (able.absence is Absence.NEVER and isinstance(before.answer, Absent)):
        rig.fail(f"{name}: before it has landed, the probe says {before}")
    if closed:
        sees(rig, call, 0, f"{name}, fenced")
    _land(rig, rule)
    if not closed:
        found = rig.soon(lambda: rig.executions(call), rig.target.patience_s)
        after_doubt(rig, call, found, f"{name}, and landed")
    elif rig.soon(lambda: rig.executions(call), LEAST_S):
        rig.fail(f"{name}: the adapter said Fenced and then Absent, and the late request was executed: {rule.hits[0]}")


def _land(rig: Rig, rule: Rule) -> None:
    rule.release()
    if not rig.proxy.wait(rule.hits[0], rig.target.patience_s):
        rig.fail(f"the server did not answer the late request: {rule.hits[0]}")
