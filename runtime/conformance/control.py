"""Checks of the conformance kit: cancels, fences, questions and their answers."""

from collections.abc import Mapping
from typing import Final

import pytest

from reattach.models.answers import Accepted, Confirmed, Fenced, NotSent, Occupied, Phase, Present, Refused, Unresolved
from reattach.models.policy import Absence, CancelKind
from reattach.runtime.conformance.faults import (
    AFTER_IT,
    CUT_BODIES,
    IN_ITS_STEAD,
    NO_ANSWER,
    NONSENSE,
    NOT_FOUND,
)
from reattach.runtime.conformance.reads import result_of
from reattach.runtime.conformance.rig import ENDED, Rig
from reattach.runtime.conformance.said import Call, Said
from reattach.runtime.conformance.truth import LEAST_S, sent_once
from reattach.runtime.proxy.faults import Cut, Fault, Hold, Where

# The server has had no cancel, and no answer of its own has arrived.
NO_CANCEL: Final[Mapping[str, Fault]] = {
    "cut before anything was forwarded": Cut(Where.BEFORE),
    **IN_ITS_STEAD,
    # Some servers answer a cancel with no word more than 200.
    **{name: fault for name, fault in NONSENSE.items() if name not in ("an empty body", "null")},
    **NOT_FOUND,
}
ON_CANCEL: Final[Mapping[str, Fault]] = {**NO_CANCEL, **NO_ANSWER, **CUT_BODIES, **AFTER_IT}
ON_FENCE: Final[Mapping[str, Fault]] = {**NO_ANSWER, **CUT_BODIES, **IN_ITS_STEAD, **AFTER_IT, **NONSENSE, **NOT_FOUND}
ON_RESPOND: Final[Mapping[str, Fault]] = {
    name: fault for name, fault in {**NO_ANSWER, **CUT_BODIES, **IN_ITS_STEAD, **AFTER_IT}.items() if "RST" not in name
}


class CancelChecks:
    """A cancel does what the adapter declares, and claims nothing else."""

    def test_a_cancel_does_what_is_declared(self, rig: Rig) -> None:
        call = _working(rig)
        said = rig.cancel(call)
        if rig.able.cancel is CancelKind.NONE:
            if isinstance(said.answer, Confirmed):
                rig.fail(f"the adapter declares no cancel, and says {said}")
            return
        if rig.able.cancel is CancelKind.CONFIRMED and not isinstance(said.answer, Confirmed):
            rig.fail(f"the adapter declares that a cancel is confirmed, and says {said}")
        if isinstance(said.answer, Confirmed):
            _has_ended(rig, call, said)

    def test_a_cancel_of_a_run_that_has_ended_takes_nothing_away(self, rig: Rig) -> None:
        call = rig.call()
        rig.submit(call)
        result = result_of(rig, call)
        rig.cancel(call)
        if result_of(rig, call) != result:
            rig.fail(f"the result was {result!r} before a cancel and {result_of(rig, call)!r} after it")

    def test_a_cancel_is_confirmed_only_when_the_run_has_ended(self, rig: Rig) -> None:
        if rig.able.cancel is CancelKind.NONE:
            pytest.skip("the adapter declares no cancel")
        call = _working(rig)
        for name, fault in ON_CANCEL.items():
            if isinstance(rig.probe(call).answer, Present) and rig.until_shown(call).phase in ENDED:
                call = _working(rig)
            with rig.fault(fault, times=0):
                said = rig.cancel(call)
            if isinstance(said.answer, Confirmed):
                believed = rig.target.believes_2xx and name in NONSENSE
                if name in NO_CANCEL and not believed and not any(one.forwarded for one in said.requests):
                    rig.fail(f"{name}: the server has had no cancel, and the adapter says {said}")
                if not believed:
                    _has_ended(rig, call, said)


class FenceChecks:
    """Where the adapter declares a fence: what it says is closed takes no late request."""

    @pytest.mark.parametrize("name", ON_FENCE)
    def test_a_fence_says_no_more_than_is_true(self, rig: Rig, name: str) -> None:
        if rig.able.absence is not Absence.BY_FENCE:
            pytest.skip("the adapter declares no fence")
        call = rig.call()
        with rig.fault(Hold(), match=rig.target.submits) as late:
            rig.submit(call)
            with rig.fault(ON_FENCE[name], times=0):
                said = rig.fence(call)
            late.release()
            for one in late.hits:
                rig.proxy.wait(one, rig.target.patience_s)
        if isinstance(said.answer, Fenced):
            if rig.soon(lambda: rig.executions(call), LEAST_S):
                rig.fail(f"{name}: a request that landed after it was executed, and the adapter says {said}")
            call.expected, call.why = 0, f"{name}: the adapter said Fenced"


class QuestionChecks:
    """Where the adapter declares that it can answer questions."""

    def test_a_question_is_answered_once(self, rig: Rig) -> None:
        call, question = _asked(rig)
        said = rig.respond(call, question)
        if not isinstance(said.answer, Accepted):
            rig.fail(f"the answer to a question, without a fault: {said}")
        rig.until_shown(call, Phase.COMPLETED)
        result = result_of(rig, call)
        again = rig.respond(call, question)
        shown = rig.until_shown(call)
        if shown.phase is Phase.AWAITING_INPUT and shown.question_id == question:
            rig.fail(f"answered, completed, and now the same question is open again, after {again}")
        _answered(rig, call, f"the same answer given twice, the second time with {again}")
        if result_of(rig, call) != result:
            rig.fail(f"the result was {result!r}, and another one after the same answer had been given again: {again}")

    @pytest.mark.parametrize("name", ON_RESPOND)
    def test_an_answer_to_a_question_says_no_more_than_is_true(self, rig: Rig, name: str) -> None:
        call, question = _asked(rig)
        with rig.fault(ON_RESPOND[name], match=rig.target.submits) as rule:
            said = rig.respond(call, question)
        sent_once(rig, said, name)
        taken = any(one.forwarded for one in rule.hits)
        match said.answer:
            case NotSent() | Refused() if taken or (isinstance(said.answer, NotSent) and rule.hits):
                rig.fail(f"{name}: the answer arrived at the proxy, and the adapter says {said}")
            case Accepted():
                rig.until_shown(call, Phase.COMPLETED)
                _answered(rig, call, name)
            case NotSent() | Refused() | Unresolved() | Occupied():
                shown = rig.soon(lambda: _moved(rig, call, question), rig.target.patience_s if taken else 0)
                if not shown:
                    rig.respond(call, question)
                rig.until_shown(call, Phase.COMPLETED)
                _answered(rig, call, name)


def _asked(rig: Rig) -> tuple[Call, str]:
    if not rig.able.responds:
        pytest.skip("the adapter declares no answers to questions")
    call = rig.call("asking")
    rig.submit(call)
    shown = rig.until_shown(call, Phase.AWAITING_INPUT)
    if not shown.question_id:
        rig.fail(f"a question without an id cannot be told from the next one: {shown!r}")
    return call, shown.question_id


def _moved(rig: Rig, call: Call, question: str) -> bool:
    """The run has gone on from this question."""
    answer = rig.probe(call).answer
    return isinstance(answer, Present) and (answer.phase, answer.question_id) != (Phase.AWAITING_INPUT, question)


def _answered(rig: Rig, call: Call, name: str) -> None:
    """The run has completed, and so with one answer to its one question."""
    found = 1 if rig.target.answers is None else rig.target.answers(call.id)
    if found != 1:
        rig.fail(f"{name}: the run has completed with {found} answers to one question")


def _working(rig: Rig) -> Call:
    """A run that goes on for a while."""
    call = rig.call("slow")
    rig.submit(call)
    rig.until(lambda: rig.executions(call), f"{call.id} is executed")
    if not call.inv.handle:
        rig.until_shown(call)
    return call


def _has_ended(rig: Rig, call: Call, said: Said) -> None:
    shown = rig.until_shown(call)
    if shown.phase not in ENDED:
        rig.fail(f"the adapter says {said}, and then a probe says {shown!r}")
