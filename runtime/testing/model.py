"""A remote as a model: declared in a few lines, and as unkind as its declaration allows."""

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from typing import Final

from reattach.models import events
from reattach.models.answers import Accepted, FenceAnswer, Occupied, Phase, Present, ProbeAnswer, SubmitAnswer
from reattach.models.effects import Cancel, Fence, Fetch, Probe, RemoteEffect, Respond, Submit, Watch
from reattach.models.identity import marker_of
from reattach.models.invocation import Invocation
from reattach.models.policy import Policy, Terms
from reattach.models.request import Request
from reattach.runtime.simulation.ledger import name_of
from reattach.runtime.simulation.remotes import (
    ALIVE,
    Memory,
    Remote,
    handle_for,
    number_of,
    result_of,
    reveal,
)
from reattach.runtime.simulation.remotes import end as ended
from reattach.runtime.simulation.server import CLOSED, FORGOTTEN
from reattach.runtime.testing.remote import Facts, RemoteUnderTest

# Every span is one unit, or a few: what can only happen on a limit then happens often.
UNIT_POLICY: Final = Policy(
    submit_validity_ms=1,
    submit_timeout_ms=1,
    probe_timeout_ms=1,
    fetch_timeout_ms=1,
    slack_ms=0,
    overlap_ms=2,
    skew_max_ms=0,
    deadline_ms=1_000,
    drain_max_ms=20,
    watch_silence_ms=4,
    poll_ms=1,
    poll_max_ms=8,
    park_probe_ms=2,
    backoff_ms=1,
    backoff_max_ms=4,
    submit_attempts_max=4,
    generations_max=2,
    retention_ms=3_000,
    tombstone_ttl_ms=6_000,
)


@dataclass(frozen=True)
class _Run:
    """What the harness knows of a run beyond what the model remembers."""

    marker: str
    accepted_at_ms: int


class ModelRemote(RemoteUnderTest):
    """A model remote in virtual time.

    Args:
        remote: what it remembers and how it answers, with its capabilities; see
            `reattach.runtime.simulation.remotes` for ready ones, and subclass `Remote` for others.
        policy: by default one whose times are a few units each.
        shows_within_ms: how long it really takes to show what it accepted; by default as declared.
            A larger number is a lie, and must be found.

    Raises:
        TypeError: `remote` is no `Remote`.
    """

    def __init__(self, remote: Remote, policy: Policy | None = None, *, shows_within_ms: int | None = None) -> None:
        given: object = remote
        if not isinstance(given, Remote):
            raise TypeError(
                f"ModelRemote takes a Remote, such as reattach.runtime.simulation.remotes.MARKER_LIST, "
                f"not {given!r:.60} ({type(given).__name__})"
            )
        able = remote.capabilities
        self.remote = remote
        self.terms = Terms(able, policy or UNIT_POLICY)
        self.memory = Memory()
        self.runs: list[_Run] = []
        self.now_ms = 0
        self._late_ms = 0 if shows_within_ms is None else shows_within_ms - self.terms.admission_ms
        self._for_good: set[int] = set()
        self._asked: Counter[int] = Counter()
        self._seen: list[tuple[str, str, str]] = []
        self._calm = False

    def carry(self, effect: RemoteEffect, inv: Invocation, *, step: int, by_ms: int) -> Facts | None:
        ident = effect.ident
        if self._calm:
            self._end_all(ALIVE)
        match effect:
            case Submit():
                if self.remote.staged and step == 0:
                    self.memory, won = self.remote.create(self.memory, inv)
                    return None if won else (events.SubmitAnswered(ident, Occupied("the thread exists")),)
                return (events.SubmitAnswered(ident, self._submit(inv, by_ms)),)
            case Respond():
                return (events.RespondAnswered(ident, self._respond(inv)),)
            case Probe():
                return (events.ProbeAnswered(ident, self._probe(inv)),)
            case Fetch():
                return (events.FetchAnswered(ident, self.remote.fetch(self.memory, inv)),)
            case Fence():
                return (events.FenceAnswered(ident, self._fence(inv)),)
            case Cancel():
                self.memory, cancelled = self.remote.cancel(self.memory, inv)
                return (events.CancelAnswered(ident, cancelled),)
            case Watch():
                return None if self.streams_on(inv) else (events.WatchEnded(ident, "the stream ended"),)

    def accepted(self, marker: str) -> int:
        return sum(run.marker == marker for run in self.runs)

    def owns(self, result: bytes, request: Request, generation: int) -> bool:
        return result == result_of(marker_of(request.invocation_id, generation))

    def handle_of(self, marker: str) -> str:
        return next((handle_for(n) for n, turn in enumerate(self.memory.turns) if turn.marker == marker), "")

    def remembers(self, marker: str) -> bool | None:
        if not self.remote.history:
            # Only the newest turn of a thread is shown, so an older one may be out of sight.
            return None
        return any(turn.marker == marker and not turn.hidden_until_ms for turn in self.memory.turns)

    def streams_on(self, inv: Invocation) -> bool:
        found = self._probe(inv)
        return isinstance(found, Present) and found.phase is Phase.RUNNING and not self._calm

    def told(self, inv: Invocation) -> None:
        marker = marker_of(inv.id, inv.generation)
        bound = self.now_ms + self.terms.admission_ms + self._late_ms
        turns = tuple(
            turn._replace(hidden_until_ms=min(turn.hidden_until_ms, bound)) if turn.marker == marker else turn
            for turn in self.memory.turns
        )
        self.memory = self.memory._replace(turns=turns)

    def wrongs(self, released: Container[str]) -> Iterable[tuple[str, str]]:
        seen, self._seen = self._seen, []
        return [(name, text) for name, call, text in seen if call not in released]

    def pass_time(self, from_ms: int, to_ms: int) -> None:
        self.now_ms = to_ms
        for number, turn in enumerate(self.memory.turns):
            if 0 < turn.hidden_until_ms <= to_ms:
                self.memory = reveal(self.memory, number)

    def finish(self) -> None:
        self._end_all((Phase.RUNNING,))

    def calm(self) -> None:
        self._calm = True

    def alive(self) -> list[int]:
        """Runs that may still do something, by number."""
        return [n for n, turn in enumerate(self.memory.turns) if turn.phase is Phase.RUNNING]

    def hidden(self) -> list[int]:
        """Runs that were accepted and are not shown yet."""
        return [n for n, turn in enumerate(self.memory.turns) if 0 < turn.hidden_until_ms != FORGOTTEN.hidden_until_ms]

    def old(self) -> list[int]:
        """Runs that have ended, and that the remote has promised to remember no longer."""
        able = self.terms.capabilities
        spans = (able.retention_ms, self.terms.policy.retention_ms, able.key_lifetime_ms)
        promised = min(span for span in spans if span is not None)
        return [
            n
            for n, turn in enumerate(self.memory.turns)
            if turn is not FORGOTTEN
            and turn.phase not in ALIVE
            and self.now_ms >= self.runs[n].accepted_at_ms + promised
        ]

    def end(self, number: int, phase: Phase, *, for_good: bool = False) -> None:
        """A run ends, or stops to ask a question; one that failed for good need not be tried again."""
        self._for_good |= {number} if for_good else set()
        self.memory = ended(self.memory, number, phase)
        self._asked[number] += phase is Phase.AWAITING_INPUT

    def show(self, number: int) -> None:
        self.memory = reveal(self.memory, number)

    def forget(self, number: int) -> None:
        turns = list(self.memory.turns)
        turns[number] = FORGOTTEN
        self.memory = self.memory._replace(turns=tuple(turns))

    def _end_all(self, phases: tuple[Phase, ...]) -> None:
        for number, turn in enumerate(self.memory.turns):
            if turn.phase in phases:
                self.end(number, Phase.COMPLETED)

    def _probe(self, inv: Invocation) -> ProbeAnswer:
        found = self.remote.probe(self.memory, inv)
        number = number_of(found.handle) if isinstance(found, Present) else -1
        if isinstance(found, Present) and found.phase is Phase.AWAITING_INPUT:
            return replace(found, question_id=f"q{number}.{self._asked[number]}", question=b'"may I?"')
        if isinstance(found, Present) and found.failure is not None and number in self._for_good:
            return replace(found, failure=replace(found.failure, retryable=False))
        return found

    def _submit(self, inv: Invocation, by_ms: int) -> SubmitAnswer:
        before = self.memory
        self.memory, answer = self.remote.submit(before, inv, by_ms + self._late_ms)
        for turn in self.memory.turns[len(before.turns) :]:
            self.runs.append(_Run(turn.marker, self.now_ms))
            for other in before.turns:
                if other.thread == turn.thread and other.phase in ALIVE and other.marker != turn.marker:
                    text = f"{turn.marker} was accepted while {other.marker} ran on the same thread"
                    self._seen.append(("turns overlap", name_of(other.marker), text))
        return answer

    def _fence(self, inv: Invocation) -> FenceAnswer:
        self.memory, answer = self.remote.fence(self.memory, inv)
        return answer

    def _respond(self, inv: Invocation) -> SubmitAnswer:
        """Take whatever comes for an answer to the question that is open now."""
        found, response = self._probe(inv), inv.response
        if not isinstance(found, Present) or found.phase is not Phase.AWAITING_INPUT or response is None:
            return CLOSED
        if response.question_id != found.question_id:
            text = f"the answer to {response.question_id} reached {inv.id} when {found.question_id} was open"
            self._seen.append(("wrong question", "", text))
        self.end(number_of(found.handle), Phase.RUNNING)
        return Accepted(found.handle)
