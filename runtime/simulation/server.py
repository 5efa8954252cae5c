"""One remote agent server in simulated time: a model remote, with runs that take a while.

What a request means is for the model (`remotes`). This module lets time pass over it: runs end, turns
that were hidden are shown, what is old is forgotten, questions are asked.
"""

from collections import Counter
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
from reattach.runtime.simulation.clock import Clock
from reattach.runtime.simulation.ledger import Ledger
from reattach.runtime.simulation.mishaps import Mishaps
from reattach.runtime.simulation.remotes import ALIVE, Memory, Remote, Turn, end, number_of, reveal

BUSY = Refused(Failure(FailureCode.REJECTED, "too many requests", RemoteFate.NONE, retryable=True), 50)
CLOSED = Refused(Failure(FailureCode.REJECTED, "this question is not open", RemoteFate.RUNNING))
RUN_MS = (50, 3_000)
NOTHING = Memory()
# Belongs to no call and no thread, and is never shown.
FORGOTTEN = Turn("", "", Phase.COMPLETED, 1 << 62)


class Server:
    """All threads of one agent.

    Args:
        on_end: called with the key of a thread on which a run has ended or asks something.
    """

    def __init__(
        self, remote: Remote, terms: Terms, clock: Clock, mishaps: Mishaps, ledger: Ledger,
        on_end: Callable[[Key], None],
    ) -> None:  # fmt: skip
        self.remote, self.terms = remote, terms
        self.clock, self.mishaps, self.chance, self.ledger = clock, mishaps, mishaps.chance, ledger
        self.on_end = on_end
        self.threads: dict[Key, Memory] = {}
        self._for_good: set[tuple[Key, int]] = set()
        self._asked: Counter[tuple[Key, int]] = Counter()
        self.memory_ms = min(terms.memory_ms, terms.policy.retention_ms or terms.memory_ms)

    def probe(self, key: Key, inv: Invocation) -> ProbeAnswer:
        found = self.remote.probe(self.threads.get(key, NOTHING), inv)
        if not isinstance(found, Present):
            return found
        run = key, number_of(found.handle)
        if found.phase is Phase.AWAITING_INPUT:
            # A run that asks again asks something new.
            return replace(found, question_id=f"q{found.handle}.{self._asked[run]}", question=b'"may I?"')
        if found.failure is not None and run in self._for_good:
            return replace(found, failure=replace(found.failure, retryable=False))
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
        if self.mishaps.strikes("forget"):
            self.clock.at(self.clock.now_ms + self.memory_ms, self._forget_thread, key, self.remote.thread(inv))
        return answer

    def create(self, key: Key, inv: Invocation) -> bool:
        memory, won = self.remote.create(self.threads.get(key, NOTHING), inv)
        self._remember(key, memory)
        return won

    def submit(self, key: Key, inv: Invocation, shown_by_ms: int) -> SubmitAnswer:
        """Take a POST; the turn it starts is shown at `shown_by_ms` at the latest."""
        if self.mishaps.strikes("refuse"):
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
        number = number_of(found.handle)
        self._turn(key, number, Phase.RUNNING)
        self._run(key, number)
        return Accepted(found.handle)

    def handle_of(self, key: Key, marker: str) -> str:
        """What a person finds who looks for a run of this marker; "" for none."""
        numbers = (n for n, turn in enumerate(self.threads.get(key, NOTHING).turns) if turn.marker == marker)
        return next((f"r{number}" for number in numbers), "")

    def _begin(self, key: Key, before: Memory, memory: Memory) -> None:
        turn, number = memory.turns[-1], len(memory.turns) - 1
        others = [t.marker for t in before.turns if t.thread == turn.thread and t.phase in ALIVE]
        self.ledger.accept(turn.marker, others)
        clock, mishaps = self.clock, self.mishaps
        if turn.hidden_until_ms:
            if mishaps.strikes("hide"):
                clock.at(turn.hidden_until_ms, self._show, key, number)
            else:
                memory = reveal(memory, number)
        self._remember(key, memory)
        if not mishaps.strikes("stuck"):
            self._run(key, number)
        if mishaps.strikes("forget"):
            clock.at(clock.now_ms + self.memory_ms, self._forget, key, number)

    def _run(self, key: Key, number: int) -> None:
        self.clock.at(self.clock.now_ms + self.chance.between(*RUN_MS), self._end, key, number)

    def _show(self, key: Key, number: int) -> None:
        memory = self.threads[key]
        if memory.turns[number] is not FORGOTTEN:
            self._remember(key, reveal(memory, number))

    def _end(self, key: Key, number: int) -> None:
        """The worker comes to the end of a run, unless the run is over or somebody is asked."""
        if self.threads[key].turns[number].phase is not Phase.RUNNING:
            return
        if self.mishaps.strikes("reexecute"):
            self._run(key, number)
        elif self.mishaps.strikes("ask"):
            self._asked[key, number] += 1
            self._turn(key, number, Phase.AWAITING_INPUT)
            self.on_end(key)
            if self.mishaps.strikes("reexecute"):
                self.clock.at(self.clock.now_ms + self.chance.between(*RUN_MS), self._take_back, key, number)
        elif self.mishaps.strikes("fail"):
            if self.chance.happens(0.5):
                self._for_good.add((key, number))
            self._turn(key, number, Phase.FAILED)
            self.on_end(key)
        else:
            self._turn(key, number, Phase.COMPLETED)
            self.on_end(key)

    def _take_back(self, key: Key, number: int) -> None:
        """The worker that asked has died: its question is gone, and the run begins again."""
        if self.threads[key].turns[number].phase is Phase.AWAITING_INPUT:
            self.mishaps.note("reexecute: a question is taken back")
            self._turn(key, number, Phase.RUNNING)
            self._run(key, number)

    def _turn(self, key: Key, number: int, phase: Phase) -> None:
        self._remember(key, end(self.threads[key], number, phase))

    def _forget(self, key: Key, number: int) -> None:
        """Forget a turn, but not its number: no handle ever means another run. What still runs is kept."""
        memory = self.threads[key]
        turn = memory.turns[number]
        if turn.phase in ALIVE:
            self.clock.at(self.clock.now_ms + self.memory_ms, self._forget, key, number)
        else:
            self.threads[key] = memory._replace(turns=(*memory.turns[:number], FORGOTTEN, *memory.turns[number + 1 :]))
            self._forget_thread(key, turn.thread)

    def _forget_thread(self, key: Key, thread: str) -> None:
        memory = self.threads[key]
        if not any(turn.thread == thread for turn in memory.turns):
            self.threads[key] = memory._replace(
                created=tuple(one for one in memory.created if one != thread),
                fenced=tuple(one for one in memory.fenced if one != thread),
            )

    def _remember(self, key: Key, memory: Memory) -> None:
        if memory is not NOTHING:
            self.threads[key] = memory
