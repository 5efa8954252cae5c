"""Model remotes: what each kind of agent server remembers, and how it answers.

A remote is a pure function over a small frozen `Memory`, so that the explorer can hold millions of
them and the random simulator can hold one. A model is as unkind as its declared capabilities allow:
a turn that was accepted may stay hidden until its bound, and a kind that is not exclusive starts a
second turn on every POST that reaches it, whatever runs there.

What a network does to the messages is not known here (`moves`, `network`).
"""

from dataclasses import dataclass
from typing import NamedTuple

from reattach.models.answers import (
    Absent,
    Accepted,
    CancelAnswer,
    Confirmed,
    FenceAnswer,
    Fenced,
    FetchAnswer,
    Gone,
    NotReady,
    Occupied,
    Phase,
    Present,
    ProbeAnswer,
    Result,
    SubmitAnswer,
    Unknown,
)
from reattach.models.identity import marker_of, thread_id_of
from reattach.models.invocation import Invocation
from reattach.models.outcomes import Failure, FailureCode, RemoteFate
from reattach.models.policy import Absence, CancelKind, Capabilities, Deduplication, Evidence

ALIVE = (Phase.RUNNING, Phase.AWAITING_INPUT)


class Turn(NamedTuple):
    """One run that the remote has accepted.

    Args:
        hidden_until_ms: the remote shows it from then on at the latest; 0 once it is shown.
    """

    marker: str
    thread: str
    phase: Phase
    hidden_until_ms: int


class Memory(NamedTuple):
    """All that a remote remembers.

    Args:
        turns: in the order of acceptance.
        created, fenced: threads that were made, and those that take no run any more.
    """

    turns: tuple[Turn, ...] = ()
    created: tuple[str, ...] = ()
    fenced: tuple[str, ...] = ()


@dataclass(frozen=True)
class Remote:
    """One kind of remote.

    Args:
        exclusive: a POST to a thread on which a turn runs is answered, not taken.
        staged: a submit first creates its thread, and only the creator may POST.
        history: a probe reads every turn of the thread; else only the newest one, with its result.
    """

    name: str
    capabilities: Capabilities
    exclusive: bool = False
    staged: bool = False
    history: bool = True

    def submit(self, memory: Memory, inv: Invocation, hidden_until_ms: int) -> tuple[Memory, SubmitAnswer]:
        """Take a POST that has just reached the server."""
        thread, marker = self.thread(inv), marker_of(inv.id, inv.generation)
        if self.capabilities.deduplication is Deduplication.KEY:
            for number, turn in enumerate(memory.turns):
                if turn.marker == marker:
                    return memory, Accepted(handle_for(number))
        if thread in memory.fenced:
            return memory, Occupied("fenced")
        if self.exclusive and any(t.thread == thread and t.phase in ALIVE for t in memory.turns):
            return memory, Occupied("a turn runs on this thread")
        # A fence is placed by the same means as a run: what it rests on is shown at once.
        hidden = 0 if self.capabilities.absence is Absence.BY_FENCE else hidden_until_ms
        turn = Turn(marker, thread, Phase.RUNNING, hidden)
        return memory._replace(turns=(*memory.turns, turn)), Accepted(handle_for(len(memory.turns)))

    def create(self, memory: Memory, inv: Invocation) -> tuple[Memory, bool]:
        """Make the thread of this attempt; True for the one that made it."""
        thread = self.thread(inv)
        if thread in memory.created:
            return memory, False
        return memory._replace(created=(*memory.created, thread)), True

    def fence(self, memory: Memory, inv: Invocation) -> tuple[Memory, FenceAnswer]:
        """Close the thread for good, unless a run is on it."""
        thread = self.thread(inv)
        if any(t.thread == thread and t.phase in ALIVE for t in memory.turns):
            return memory, Occupied("a run is on this thread")
        created = memory.created if thread in memory.created else (*memory.created, thread)
        fenced = memory.fenced if thread in memory.fenced else (*memory.fenced, thread)
        return memory._replace(created=created, fenced=fenced), Fenced()

    def probe(self, memory: Memory, inv: Invocation) -> ProbeAnswer:
        """Say what a status request tells about this call, now."""
        if self.capabilities.evidence is Evidence.HANDLE_ONLY:
            if not inv.handle:
                return Unknown("no way to ask without a handle", final=True)
            number = number_of(inv.handle)
            turn = memory.turns[number]
            return Absent() if turn.hidden_until_ms else _present(number, turn)
        thread, marker = self.thread(inv), marker_of(inv.id, inv.generation)
        shown = [(n, t) for n, t in enumerate(memory.turns) if t.thread == thread and not t.hidden_until_ms]
        if self.history:
            mine = next(((n, t) for n, t in shown if t.marker == marker), None)
            return Absent() if mine is None else _present(*mine)
        if not shown:
            return Absent("")
        number, newest = shown[-1]
        if self.capabilities.evidence is Evidence.CONTAINER or newest.marker == marker:
            return _present(number, newest, inline=True)
        return Absent(newest.marker)

    def fetch(self, memory: Memory, inv: Invocation) -> FetchAnswer:
        """Read the saved result."""
        found = self.probe(memory, inv)
        if not isinstance(found, Present):
            return Gone()
        if found.phase is not Phase.COMPLETED:
            return NotReady()
        turn = memory.turns[number_of(found.handle)]
        return Result(result_of(turn.marker))

    def cancel(self, memory: Memory, inv: Invocation) -> tuple[Memory, CancelAnswer]:
        """End the run, where the kind can."""
        if self.capabilities.cancel is CancelKind.NONE:
            return memory, Unknown("no cancel")
        found = self.probe(memory, inv)
        if not isinstance(found, Present):
            return memory, Unknown("not found")
        if found.phase not in ALIVE:
            return memory, Confirmed()
        number = number_of(found.handle)
        return end(memory, number, Phase.CANCELLED), Confirmed()

    def thread(self, inv: Invocation) -> str:
        """The remote thread of this attempt."""
        return thread_id_of(inv.request, inv.generation, inv.slot if self.staged else 1)


def end(memory: Memory, number: int, phase: Phase) -> Memory:
    """Let a run come to its end."""
    turns = list(memory.turns)
    turns[number] = turns[number]._replace(phase=phase)
    return memory._replace(turns=tuple(turns))


def reveal(memory: Memory, number: int) -> Memory:
    """Let the remote show a run that it has hidden so far."""
    turns = list(memory.turns)
    turns[number] = turns[number]._replace(hidden_until_ms=0)
    return memory._replace(turns=tuple(turns))


def result_of(marker: str) -> bytes:
    """The result of a turn names the turn, so that a wrong attribution shows."""
    return f'"{marker}"'.encode()


def handle_for(number: int) -> str:
    """The remote's name for the run of this turn."""
    return f"r{number}"


def number_of(handle: str) -> int:
    """The number of the turn that a handle names."""
    return int(handle[1:])


def _present(number: int, turn: Turn, inline: bool = False) -> Present:
    failure = None
    if turn.phase is Phase.FAILED:
        failure = Failure(FailureCode.REMOTE_FAILED, "the run failed", RemoteFate.ENDED, retryable=True)
    result = result_of(turn.marker) if inline and turn.phase is Phase.COMPLETED else None
    return Present(turn.phase, handle_for(number), result, failure)


_LONG_MS = 10**9

STATUS_ONLY = Remote(
    "status-only", Capabilities(evidence=Evidence.CONTAINER, admission_ms=1), exclusive=True, history=False
)
MARKER_LAST = Remote("marker-last", Capabilities(admission_ms=1), exclusive=True, history=False)
MARKER_LIST = Remote("marker-list", Capabilities(admission_ms=1))
DEDUPLICATING = Remote(
    "deduplicating",
    Capabilities(deduplication=Deduplication.KEY, key_lifetime_ms=_LONG_MS, admission_ms=1),
)
FENCEABLE = Remote("fenceable", Capabilities(absence=Absence.BY_FENCE, admission_ms=1), exclusive=True, staged=True)
HANDLE_ONLY = Remote("handle-only", Capabilities(evidence=Evidence.HANDLE_ONLY, absence=Absence.NEVER, admission_ms=1))
REMOTES = (STATUS_ONLY, MARKER_LAST, MARKER_LIST, DEDUPLICATING, FENCEABLE, HANDLE_ONLY)
