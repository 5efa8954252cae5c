"""Checks of the conformance kit: what a probe and a fetch say while something is wrong."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import pytest

from reattach.models.answers import Absent, Gone, Phase, Present, Result, Unknown
from reattach.models.policy import Absence, Evidence
from reattach.runtime.conformance.faults import (
    CUT_BODIES,
    IN_ITS_STEAD,
    LONG,
    NO_ANSWER,
    NONSENSE,
    NOT_FOUND,
    REDIRECTS,
)
from reattach.runtime.conformance.rig import Rig
from reattach.runtime.conformance.said import Call, Said
from reattach.runtime.proxy.faults import Fault

# Nothing that has arrived says anything of the run.
UNTOLD: Final[Mapping[str, Fault]] = {
    **NO_ANSWER,
    **IN_ITS_STEAD,
    **REDIRECTS,
    **NONSENSE,
    **NOT_FOUND,
    **LONG,
}
ON_READ: Final[Mapping[str, Fault]] = {**UNTOLD, **CUT_BODIES}
STRANGE: Final = "no-such-run"


class ReadChecks:
    """Probes and fetches under every fault: in doubt, never wrong."""

    @pytest.mark.parametrize("name", ON_READ)
    def test_a_probe_of_what_was_never_sent_is_in_doubt_or_right(self, rig: Rig, name: str) -> None:
        call = rig.call(sent=False)

        def check(said: Said, where: str) -> None:
            if isinstance(said.answer, Present):
                rig.fail(f"{where}: nothing was ever submitted, and the probe says {said}")
            if isinstance(said.answer, Absent) and name in UNTOLD:
                rig.fail(f"{where}: no answer of the server has arrived, and the probe says {said}")

        _under(rig, name, lambda: rig.probe(call), check)

    @pytest.mark.parametrize("name", ON_READ)
    def test_a_probe_of_what_runs_is_in_doubt_or_right(self, rig: Rig, name: str, ended: Call) -> None:
        def check(said: Said, where: str) -> None:
            if isinstance(said.answer, Absent):
                rig.fail(f"{where}: the server has this run, and the probe says {said}")
            if isinstance(said.answer, Present) and said.answer.phase is not Phase.COMPLETED:
                rig.fail(f"{where}: the run has completed, and the probe says {said}")

        _under(rig, name, lambda: rig.probe(ended), check)

    @pytest.mark.parametrize("name", ON_READ)
    def test_a_fetch_is_in_doubt_or_right(self, rig: Rig, name: str, ended: Call) -> None:
        right = result_of(rig, ended)

        def check(said: Said, where: str) -> None:
            if isinstance(said.answer, Result) and said.answer.value != right:
                rig.fail(f"{where}: the result is {right!r}, and the fetch says {said}")
            if not isinstance(said.answer, Result | Unknown):
                rig.fail(f"{where}: the server has the result, and the fetch says {said}")

        _under(rig, name, lambda: rig.fetch(ended), check)

    def test_a_run_that_nobody_knows_is_absent_or_in_doubt(self, rig: Rig) -> None:
        call = rig.call(sent=False)
        call.inv = replace(call.inv, handle=STRANGE)
        said = rig.probe(call)
        if not isinstance(said.answer, Absent | Unknown):
            rig.fail(f"the run {STRANGE!r} does not exist, and the probe says {said}")
        if isinstance(said.answer, Absent) and rig.able.absence is Absence.NEVER and not call.inv.handle:
            rig.fail(f"absence is never known by declaration, and the probe says {said}")
        fetched = rig.fetch(call)
        if isinstance(fetched.answer, Result):
            rig.fail(f"the run {STRANGE!r} does not exist, and the fetch says {fetched}")
        rig.cancel(call)
        rig.watch(call)

    def test_another_call_on_the_same_thread_is_never_taken_for_this_one(self, rig: Rig) -> None:
        if rig.able.evidence is Evidence.HANDLE_ONLY:
            pytest.skip("only a handle tells runs apart, and it does")
        thread = f"{rig.call(sent=False).id}-thread"
        first, second = rig.call(thread_id=thread, turn=1), rig.call(thread_id=thread, turn=2, sent=False)
        said = rig.submit(first)
        started = rig.soon(lambda: rig.executions(first), 0 if said.requests == () else rig.target.patience_s)
        probed = rig.probe(second)
        if isinstance(probed.answer, Present):
            rig.fail(f"only {first.id} was submitted, and the probe for {second.id} says {probed}")
        if started and rig.able.evidence is Evidence.MARKER and rig.able.absence is not Absence.BY_FENCE:
            rig.until_shown(first, Phase.COMPLETED)
            again = rig.probe(second)
            if isinstance(again.answer, Present):
                rig.fail(f"only {first.id} was submitted, and the probe for {second.id} says {again}")

    def test_a_result_is_not_there_before_its_run_has_ended(self, rig: Rig) -> None:
        call = rig.call("slow")
        rig.submit(call)
        rig.until(lambda: rig.executions(call), f"{call.id} is executed")
        said = rig.fetch(call)
        after = rig.probe(call)
        if isinstance(said.answer, Result | Gone) and getattr(after.answer, "phase", None) is Phase.RUNNING:
            rig.fail(f"the run goes on, and the fetch says {said}")


def result_of(rig: Rig, call: Call) -> bytes:
    """The result of a run that has completed, as a probe or a fetch gives it."""
    shown = rig.until_shown(call, Phase.COMPLETED)
    if shown.result is not None:
        return shown.result
    said = rig.fetch(call)
    if not isinstance(said.answer, Result):
        rig.fail(f"the run has completed, its probe holds no result, and the fetch says {said}")
    value: bytes = said.answer.value
    return value


def _under(rig: Rig, name: str, ask: Callable[[], Said], check: Callable[[Said, str], None]) -> None:
    """Ask with the fault at every request, and with the fault at all but the first."""
    for skip, where in ((0, name), (1, f"{name}, from the second request on")):
        with rig.fault(ON_READ[name], skip=skip, times=0) as rule:
            said = ask()
        if not rule.hits:
            return
        check(said, where)
