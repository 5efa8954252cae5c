"""Model remotes that only the explorer has: one that asks, one that forgets, and some small variations.

The random simulator has larger ones; here two questions and one moment of forgetting are enough.
"""

from dataclasses import replace
from typing import Final

from reattach.models.answers import Accepted, Phase, Present, ProbeAnswer, Refused, SubmitAnswer
from reattach.models.identity import marker_of
from reattach.models.invocation import Invocation
from reattach.models.outcomes import Failure, FailureCode, RemoteFate
from reattach.models.policy import CancelKind, Deduplication, StreamKind
from reattach.runtime.simulation.remotes import Memory, Remote, Turn

ANSWERS: Final = "answers to "
GONE: Final = "forgotten "
MEMORY_MS: Final = 12
QUESTIONS: Final = 2
_ENDED: Final = Failure(FailureCode.REJECTED, "the run has ended", RemoteFate.ENDED)


class Asking(Remote):
    """Its run asks `q1` as soon as it is accepted, `q2` once it has taken an answer, and ends after two.

    It takes every answer that reaches it for an answer to what it asks then, and may be slow to show
    that it took one. Taken answers are remembered as turns beside the run, named by their response.
    """

    def respond(self, memory: Memory, inv: Invocation, hidden_until_ms: int) -> tuple[Memory, SubmitAnswer]:
        """Take an answer that has just reached the server."""
        assert inv.response is not None
        marker = marker_of(inv.id, inv.generation)
        if not any(turn.marker == marker and turn.phase is Phase.RUNNING for turn in memory.turns):
            return memory, Refused(_ENDED)
        asked = self.question(memory, shown=False)
        taken = Turn(inv.response.response_id, ANSWERS + asked, Phase.COMPLETED, hidden_until_ms)
        return memory._replace(turns=(*memory.turns, taken)), Accepted()

    def question(self, memory: Memory, *, shown: bool) -> str:
        """What the run asks now, or what it shows that it asks."""
        taken = [turn for turn in memory.turns if turn.thread.startswith(ANSWERS)]
        return f"q{1 + sum(1 for turn in taken if not (shown and turn.hidden_until_ms))}"

    def waits(self, memory: Memory) -> bool:
        """The run does not go on without an answer."""
        return sum(1 for turn in memory.turns if turn.thread.startswith(ANSWERS)) < QUESTIONS

    def probe(self, memory: Memory, inv: Invocation) -> ProbeAnswer:
        found = super().probe(memory, inv)
        asked = self.question(memory, shown=True)
        if not isinstance(found, Present) or found.phase is not Phase.RUNNING or asked > f"q{QUESTIONS}":
            return found
        return replace(found, phase=Phase.AWAITING_INPUT, question_id=asked)


class Forgetful(Remote):
    """It forgets, runs and keys, when its declared retention has passed since the request was made."""

    def submit(self, memory: Memory, inv: Invocation, hidden_until_ms: int) -> tuple[Memory, SubmitAnswer]:
        known = tuple(turn for turn in memory.turns if not turn.thread.startswith(GONE))
        if known == memory.turns or self.capabilities.deduplication is not Deduplication.KEY:
            return super().submit(memory, inv, hidden_until_ms)
        after, answer = super().submit(memory._replace(turns=known), inv, hidden_until_ms)
        return memory._replace(turns=(*memory.turns, *after.turns[len(known) :])), answer

    def forget(self, memory: Memory) -> Memory:
        """Lose every run there is."""
        return memory._replace(turns=tuple(turn._replace(thread=GONE + turn.thread) for turn in memory.turns))


def asking(remote: Remote) -> Remote:
    capabilities = replace(remote.capabilities, responds=True)
    return Asking(f"asking {remote.name}", capabilities, remote.exclusive, remote.staged, remote.history)


def forgetful(remote: Remote, memory_ms: int = MEMORY_MS) -> Remote:
    """Give a remote a short memory, of runs and of keys."""
    lifetime = None if remote.capabilities.key_lifetime_ms is None else memory_ms
    capabilities = replace(remote.capabilities, retention_ms=memory_ms, key_lifetime_ms=lifetime)
    return Forgetful(f"forgetful {remote.name}", capabilities, remote.exclusive, remote.staged, remote.history)


def slow(remote: Remote) -> Remote:
    """Let it take two units to show what it has accepted."""
    return replace(remote, capabilities=replace(remote.capabilities, admission_ms=2))


def streaming(remote: Remote) -> Remote:
    """Give a remote a stream."""
    return replace(remote, capabilities=replace(remote.capabilities, stream=StreamKind.LIVE))


def cancelling(remote: Remote) -> Remote:
    """Let it end a run on demand."""
    return replace(remote, capabilities=replace(remote.capabilities, cancel=CancelKind.CONFIRMED))
