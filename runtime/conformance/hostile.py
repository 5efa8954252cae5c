"""Checks of the conformance kit: memory under endless answers, and a credential that is told to nobody."""

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reattach.runtime.conformance.faults import LONG, echoes
from reattach.runtime.conformance.rig import Rig
from reattach.runtime.conformance.said import Call


class HostileChecks:
    """Answers that are made to do harm."""

    @pytest.mark.parametrize("name", LONG)
    def test_an_answer_without_end_takes_little_memory(self, rig: Rig, name: str, ended: Call) -> None:
        fault = LONG[name]
        call = rig.call()
        held = {
            "probe": _peak(rig, lambda: rig.probe(ended), fault),
            "fetch": _peak(rig, lambda: rig.fetch(ended), fault),
            "watch": _peak(rig, lambda: rig.watch(ended), fault),
            "submit": _peak(rig, lambda: rig.submit(call), replace(fault, forward=True)),
        }
        most = rig.target.memory_bytes_max
        over = {name: f"{size:,} bytes" for name, size in held.items() if size > most}
        if over:
            rig.fail(f"{name}: more than {most:,} bytes were held at once: {over}")

    def test_the_credential_is_told_to_nobody_who_should_not_know_it(self, rig: Rig, ended: Call) -> None:
        if not rig.secret:
            pytest.skip("the target names no credential")
        waiting = rig.call(sent=False)
        for answer in echoes(rig.secret).values():
            with rig.fault(answer, times=0):
                call = rig.call()
                rig.submit(call)
                for ask in (rig.probe, rig.fetch, rig.cancel, rig.fence, rig.watch):
                    ask(waiting)
                    ask(ended)
        rig.said.append(repr(rig.adapter))
        rig.said.append(str(rig.adapter))
        if not any(rig.secret in value for one in rig.proxy.exchanges for value in one.headers.values()):
            rig.fail("the credential is set, and no request has carried it: the checks for it show nothing")


def _peak(rig: Rig, ask: Callable[[], Any], fault: Any) -> int:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        with rig.fault(fault, times=0):
            ask()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
