"""Rules of the input: requests, again and anew, and the orders of people."""

from dataclasses import replace
from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from reattach.models.events import (
    AbandonOrdered,
    AdoptOrdered,
    CancelOrdered,
    Ordered,
    Requested,
    ResponseGiven,
    ResubmitOrdered,
)
from reattach.models.identity import marker_of, request_key
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf
from reattach.models.request import Request
from reattach.runtime.driver import Key
from reattach.runtime.testing.bench import Bench, pick, places, when
from reattach.runtime.testing.course import go_on
from reattach.runtime.testing.job import AGENT
from reattach.runtime.testing.life import Line

CALLS_MAX: Final = 3
LINES_MAX: Final = 8
HURRY_MS: Final = 8


class InputRules(Bench):
    """What comes in."""

    @initialize(shared=st.booleans(), moves=st.integers(0, 12))
    def the_job_starts(self, shared: bool, moves: int) -> None:
        """With one call, on its way or not."""
        self.a_request_arrives(shared, hurry=False)
        go_on(self.job, moves)

    @when(lambda m: len(m.job.account.requests) < CALLS_MAX)
    @rule(shared=st.booleans(), hurry=st.sampled_from((False, False, False, True)))
    def a_request_arrives(self, shared: bool, hurry: bool) -> None:
        """A new call: on a thread of its own, or the next turn of a shared one."""
        number = len(self.job.account.requests) + 1
        if number > CALLS_MAX:
            return
        shared = shared and self.remote.shares_threads
        turns = sum(bool(request.thread_id) for request in self.job.account.requests.values())
        request = Request(
            invocation_id=f"{self.remote.prefix}call-{number}",
            agent=AGENT,
            message=f'"message {number}"'.encode(),
            requested_at_ms=self.job.now_ms,
            thread_id=f"{self.remote.prefix}thread" if shared else "",
            deadline_ms=self.job.now_ms + HURRY_MS if hurry else 0,
            turn=turns + 1 if shared else 0,
        )
        self.job.append(Line(request_key(request), Requested(request)))

    @when(lambda m: m._room())
    @rule(which=places())
    def a_line_is_delivered_again(self, which: int) -> None:
        """A request or an order stands in the input once more."""
        line = pick(self.job.lines, which)
        if line is not None:
            self._append(line)

    @when(lambda m: m._room())
    @rule(which=places())
    def an_id_comes_with_another_payload(self, which: int) -> None:
        request = pick(list(self.job.account.requests.values()), which)
        if request is not None:
            other = replace(request, message=b'"another message"')
            self._append(Line(request_key(request), Requested(other)))

    @when(lambda m: m._room())
    @rule(which=places(), generation=st.sampled_from((0, 0, 1)))
    def a_cancel_is_ordered(self, which: int, generation: int) -> None:
        """For the generation that the call is at, or for the next one."""
        request = pick(list(self.job.account.requests.values()), which)
        if request is not None:
            at = next((inv.generation for _, inv in self._active() if inv.request == request), 1)
            self._append(Line(request_key(request), CancelOrdered(request.invocation_id, at + generation)))

    @when(lambda m: m._room() and m._asking())
    @rule(which=places(), version=st.integers(1, 2))
    def a_response_is_given(self, which: int, version: int) -> None:
        """Somebody answers what a call asks, perhaps in two minds."""
        found = pick(self._asking(), which)
        if found is not None:
            key, inv = found
            response = f"answer-{version}-to-{inv.question_id}"
            event = ResponseGiven(inv.id, inv.generation, response, inv.question_id, b'"yes"')
            self._append(Line(key, event))

    @when(lambda m: m._room() and m._active())
    @rule(which=places(), what=st.sampled_from(("resubmit", "abandon", "adopt")))
    def an_operator_decides(self, which: int, what: str) -> None:
        """A call that is parked gets its decision; any other one must refuse it."""
        found = pick(self._parked() or self._active(), which)
        if found is None:
            return
        key, inv = found
        handle = self.remote.handle_of(marker_of(inv.id, inv.generation))
        order: Ordered
        if what == "abandon":
            order = AbandonOrdered(inv.id, inv.generation)
        elif what == "adopt" and handle:
            order = AdoptOrdered(inv.id, inv.generation, handle)
        else:
            order = ResubmitOrdered(inv.id, inv.generation, self.job.now_ms)
        self._append(Line(key, order))

    def _room(self) -> bool:
        return 0 < len(self.job.lines) < LINES_MAX

    def _append(self, line: Line) -> None:
        if self._room():
            self.job.append(line)

    def _active(self) -> list[tuple[Key, Invocation]]:
        threads = self.job.host.threads()
        return [(key, state.active) for key, state in threads.items() if state.active is not None]

    def _asking(self) -> list[tuple[Key, Invocation]]:
        return [found for found in self._active() if found[1].leaf is Leaf.RU_AWAITING_INPUT]

    def _parked(self) -> list[tuple[Key, Invocation]]:
        return [found for found in self._active() if found[1].leaf is Leaf.SU_PARKED]
