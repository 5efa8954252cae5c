"""One remote agent server in simulated time: a model remote, with runs that take a while.

What a request means is for the model (`remotes`). This module lets time pass over it: runs end, turns
that were hidden are shown, what is old is forgotten, questions are asked.
"""

from collections.abc import Callable
from dataclasses import replace

from reattach.models.answers import (
    Accepted,
    CancelAnswer,
    FenceAnswer,
    FetchAnswer,
    Phase,
    Present,
    ProbeAnswer,
    Refused,
    SubmitAnswer,
)
from reattach.models.invocation import Invocation
from reattach.models.outcomes import Failure, FailureCode, RemoteFate
from reattach.models.policy import Terms
from reattach.runtime.driver import Key
from reattach.runtime.simulation.chance import Chance
from reattach.runtime.simulation.clock import Clock
from reattach.runtime.simulation.faults import Faults
from reattach.runtime.simulation.ledger import Ledger
from reattach.runtime.simulation.remotes import ALIVE, Memory, Remote, end, reveal

BUSY = Refused(Failure(FailureCode.REJECTED, "too many requests", RemoteFate.NONE, retryable=True), 50)
CLOSED = Refused(Failure(FailureCode.REJECTED, "this question is not open", RemoteFate.RUNNING))
RUN_MS = (50, 3_000)
NOTHING = Memory()


class Server:
    """All threads of one agent.

    Args:
        on_end: called with the key of a thread on which a run has ended or asks something.
    """

    def __init__(
        self, remote: Remote, terms: Terms, clock: Clock, chance: Chance, faults: Faults, ledger: Ledger,
        on_end: Callable[[Key], None],
    ) -> None:  # fmt: skip
        self.remote, self.terms = remote, terms
        self.clock, self.chance, self.faults, self.ledger = clock, chance, faults, ledger
        self.on_end = on_end
        self.threads: dict[Key, Memory] = {}

    def probe(self, key: Key, inv: Invocation) -> ProbeAnswer:
        found = self.remote.probe(self.threads.get(key, NOTHING), inv)
        if isinstance(found, Present) and found.phase is Phase.AWAITING_INPUT:
            return replace(found, question_id=f"q{found.handle}", question=b'"may I?"')
        return found

    def fetch(self, key: Key, inv: Invocation) -> FetchAnswer:
        return self.remote.fetch(self.threads.get(key, NOTHING), inv)

    def cancel(self, key: Key, inv: Invocation) -> CancelAnswer:
        memory, answer = self.remote.cancel(self.threads.get(key, NOTHING), inv)
        self._remember(key, memory)
        self.on_end(key)
        return answer

    def fence(self, key: Key, inv: Invocation) -> FenceAnswer:
        memory, answer = self.remote.fence(self.threads.get(key, NOTHING), inv)
        self._remember(key, memory)
        return answer

    def create(self, key: Key, inv: Invocation) -> bool:
        memory, won = self.remote.create(self.threads.get(key, NOTHING), inv)
        self._remember(key, memory)
        return won

    def submit(self, key: Key, inv: Invocation, shown_by_ms: int) -> SubmitAnswer:
        """Take a POST; the turn it starts is shown at `shown_by_ms` at the latest."""
        if self.chance.happens(self.faults.refuse):
            return BUSY
        before = self.threads.get(key, NOTHING)
        memory, answer = self.remote.submit(before, inv, shown_by_ms)
        if len(memory.turns) > len(before.turns):
            self._begin(key, before, memory)
        return answer

    def respond(self, key: Key, inv: Invocation) -> SubmitAnswer:
        """Take a person's answer, if its question is the open one."""
        found = self.probe(key, inv)
        response = inv.response
        if not isinstance(found, Present) or response is None or found.question_id != response.question_id:
            return CLOSED
        self._turn(key, int(found.handle[1:]), Phase.RUNNING)
        self.clock.at(self.clock.now_ms + self.chance.between(*RUN_MS), self._end, key, int(found.handle[1:]))
        return Accepted(found.handle)

    def _begin(self, key: Key, before: Memory, memory: Memory) -> None:
        turn, number = memory.turns[-1], len(memory.turns) - 1
        others = [t.marker for t in before.turns if t.thread == turn.thread and t.phase in ALIVE]
        self._remember(key, memory)
        self.ledger.accept(turn.marker, others)
        clock, chance = self.clock, self.chance
        if turn.hidden_until_ms:
            shown = turn.hidden_until_ms if chance.happens(self.faults.hide) else clock.now_ms
            clock.at(shown, self._show, key, number)
        if not chance.happens(self.faults.stuck):
            clock.at(clock.now_ms + chance.between(*RUN_MS), self._end, key, number)
        if chance.happens(self.faults.forget):
            memory_ms = min(self.terms.memory_ms, self.terms.policy.retention_ms or self.terms.memory_ms)
            clock.at(clock.now_ms + memory_ms, self._forget, key)

    def _show(self, key: Key, number: int) -> None:
        if number < len(self.threads.get(key, NOTHING).turns):
            self._remember(key, reveal(self.threads[key], number))

    def _end(self, key: Key, number: int) -> None:
        memory = self.threads.get(key, NOTHING)
        if number >= len(memory.turns) or memory.turns[number].phase is not Phase.RUNNING:
            return
        if self.chance.happens(self.faults.ask):
            phase = Phase.AWAITING_INPUT
        else:
            phase = Phase.FAILED if self.chance.happens(self.faults.fail) else Phase.COMPLETED
        self._turn(key, number, phase)
        self.on_end(key)

    def _turn(self, key: Key, number: int, phase: Phase) -> None:
        self._remember(key, end(self.threads[key], number, phase))

    def _forget(self, key: Key) -> None:
        memory = self.threads.get(key, NOTHING)
        # A server does not forget what still runs, and here it forgets a thread as a whole.
        if not any(turn.phase in ALIVE for turn in memory.turns):
            self.threads.pop(key, None)

    def _remember(self, key: Key, memory: Memory) -> None:
        if memory is not NOTHING:
            self.threads[key] = memory
