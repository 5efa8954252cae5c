"""Checks of the conformance kit: a call without faults, as the capabilities promise it."""

from reattach.adapters.contract import variants_of
from reattach.adapters.describe import requests, requests_of
from reattach.models.answers import Absent, Accepted, Phase, Present, Result, Unknown
from reattach.models.policy import Absence, Deduplication, Evidence, StreamKind
from reattach.runtime.conformance.reads import result_of
from reattach.runtime.conformance.rig import Rig
from reattach.runtime.conformance.said import Said
from reattach.runtime.conformance.truth import one_started, sent_once, submits_of


class CourseChecks:
    """Nothing goes wrong."""

    def test_a_call_runs_once_from_its_probe_to_its_result(self, rig: Rig) -> None:
        call = rig.call()
        before = rig.probe(call)
        if rig.able.evidence is Evidence.HANDLE_ONLY:
            if not isinstance(before.answer, Unknown) or not before.answer.final:
                rig.fail(f"no handle is known, so a probe can tell nothing, now or later; it says {before}")
        elif not isinstance(before.answer, Absent):
            rig.fail(f"nothing was submitted, and the evidence is {rig.able.evidence.value}; the probe says {before}")
        said = rig.submit(call)
        if not isinstance(said.answer, Accepted):
            rig.fail(f"a submit without a fault: {said}")
        sent_once(rig, said, "without a fault")
        if len(submits_of(rig, said)) < 1:
            rig.fail("the submit sent no request that Target.submits takes for one", str(said))
        if said.learned and said.answer.handle not in ("", said.learned[0]):
            rig.fail(f"the run was named twice: {said}")
        one_started(rig, call, said, "without a fault")
        result = result_of(rig, call)
        if rig.target.owns is not None and not rig.target.owns(result, call.id):
            rig.fail(f"{result!r} is not the result of {call.id}")
        fetched = rig.fetch(call)
        if fetched.answer != Result(result):
            rig.fail(f"the result is {result!r}, and the fetch says {fetched}")
        if rig.executions(call) != 1:
            rig.fail(f"one call without a fault was executed {rig.executions(call)} times")

    def test_a_call_takes_as_many_requests_as_are_promised(self, rig: Rig) -> None:
        call, able = rig.call(), rig.able
        made: list[Said] = []
        if able.deduplication is Deduplication.NONE and able.absence is not Absence.NEVER:
            made.append(rig.probe(call))
        made.append(rig.submit(call))
        rig.until(lambda: rig.executions(call), f"{call.id} is executed")
        before = len(rig.proxy.exchanges)
        if able.stream is not StreamKind.NONE:
            rig.watch(call)
        streamed = len(rig.proxy.exchanges) - before
        rig.until_shown(call, Phase.COMPLETED)
        made.append(rig.probe(call))
        shown = made[-1].answer
        if isinstance(shown, Present) and shown.result is None:
            made.append(rig.fetch(call))
        found = sum(len(one.requests) for one in made) + streamed
        promised = _promised(rig)
        if found not in promised:
            rig.fail(f"a call without faults is to take {promised} requests, and took {found}", *map(str, made))

    def test_a_run_that_fails_is_shown_as_failed(self, rig: Rig) -> None:
        call = rig.call("failing")
        rig.submit(call)
        shown = rig.until_shown(call, Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED)
        if shown.phase is not Phase.FAILED or shown.failure is None:
            rig.fail(f"the run has failed, and the probe says {shown!r}")
        fetched = rig.fetch(call)
        if isinstance(fetched.answer, Result):
            rig.fail(f"the run has failed, and the fetch says {fetched}")


def _promised(rig: Rig) -> list[int]:
    """The number of requests that is promised; several where variants with the same capabilities differ in it."""
    if rig.target.requests is not None:
        return [rig.target.requests]
    same = [one for one in variants_of(type(rig.adapter)) if one.capabilities == rig.able]
    return sorted({requests_of(one) for one in same} or {requests(rig.able)})
