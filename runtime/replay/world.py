"""The simulated world of one recorded thread: its remote as it was, and a new life of its job."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from reattach.models.answers import Phase, Present, ProbeAnswer
from reattach.models.codec import decode_thread, encode_thread
from reattach.models.events import AdoptOrdered, Requested
from reattach.models.identity import marker_of
from reattach.models.invocation import Invocation
from reattach.models.journal import JournalEntry
from reattach.models.lifecycle import Leaf
from reattach.models.outcomes import Failure, Notice, NoticeKind, Outcome
from reattach.models.policy import Terms
from reattach.models.thread import ThreadState
from reattach.runtime.driver import Key
from reattach.runtime.replay.kinds import remote_of
from reattach.runtime.replay.knowledge import Fate, Run
from reattach.runtime.replay.past import Past, Point
from reattach.runtime.simulation.chance import Chance
from reattach.runtime.simulation.clock import Clock
from reattach.runtime.simulation.faults import Faults
from reattach.runtime.simulation.host import Host, Snapshot, Surroundings
from reattach.runtime.simulation.job import Job
from reattach.runtime.simulation.ledger import Broken, Ledger, name_of
from reattach.runtime.simulation.mishaps import Mishaps
from reattach.runtime.simulation.network import Network
from reattach.runtime.simulation.people import People
from reattach.runtime.simulation.remotes import ALIVE, end, number_of
from reattach.runtime.simulation.server import NOTHING, Server
from reattach.runtime.simulation.source import Line, Source

SETTLE_MS: Final = 3_600_000
LOOK_MS: Final = 1_000
HIDING: Final = Faults(hide=1)


@dataclass(frozen=True, slots=True)
class Happened:
    """One thing that happened in the continuation.

    Args:
        entry: a step of the new incarnation; None for what the outside world saw.
        text: that, in words.
    """

    at_ms: int
    entry: JournalEntry | None = None
    text: str = ""


class World:
    """A remote, a job, and the clock of both.

    Args:
        now_ms: when the old incarnation died.
    """

    def __init__(self, past: Past, terms: Terms, now_ms: int, seed: int) -> None:
        self.past, self.key, self.terms = past, past.key, terms
        self.clock = Clock(now_ms)
        self.mishaps = Mishaps(HIDING, Chance(seed))
        self.story: list[Happened] = []
        self.posts: Counter[str] = Counter()
        self.ledger = _Account(self)
        agent = self.key[0]
        self.server = _Recorded(
            remote_of(terms, past), terms, self.clock, self.mishaps, self.ledger, lambda key: self.network.ended(key)
        )
        self.network = Network({agent: self.server}, {agent: terms}, self.clock, self.mishaps)
        self.source = Source()
        self.people = People({agent: self.server}, self.source, self.clock, self.mishaps, self.ledger, 0)
        self.job: Job | None = None
        self._generations: dict[str, int] = {}
        self._held: set[str] = set()

    def remember(self, runs: Sequence[Run], fenced: Iterable[Invocation], arrival: Fate) -> None:
        """Let the remote be as it was.

        Args:
            arrival: what became of POSTs in doubt; in doubt still: they arrive as late as they can.
        """
        staged = self.server.remote.staged
        self.server.failures = {run.marker: run.failure for run in runs if run.failure is not None}
        for run in runs:
            if run.fate is Fate.YES or (run.fate is Fate.DOUBT and arrival is Fate.YES and not staged):
                self._accepted(run)
        for record in fenced:
            self.server.fence(self.key, record)
        for run in runs:
            if run.fate is Fate.DOUBT and arrival is Fate.DOUBT:
                self._under_way(run)
            # In a slot that is taken or closed, nothing more arrives.
            elif run.fate is Fate.DOUBT and arrival is Fate.YES and staged and self.server.create(self.key, run.record):
                self._accepted(run)

    def _accepted(self, run: Run) -> None:
        """The remote had accepted this run before the crash."""
        memory = self.server.threads.get(self.key, NOTHING)
        thread = self.server.remote.thread(run.record)
        # Turns of a thread do not overlap: the one before had ended, whether it was seen or not.
        for number, turn in enumerate(memory.turns):
            if turn.thread == thread and turn.phase in ALIVE:
                self._phase(number, Phase.COMPLETED)
        if self.server.remote.staged:
            self.server.create(self.key, run.record)
        self.server.submit(self.key, run.record, run.bound_ms if run.bound_ms > self.clock.now_ms else 0)
        number = len(self.server.threads[self.key].turns) - 1
        if run.phase is not Phase.RUNNING:
            self._phase(number, run.phase)

    def _under_way(self, run: Run) -> None:
        """This POST of the old incarnation lands at the last moment."""
        if self.server.remote.staged:
            # Its sender is gone: nobody is left to send what follows.
            self.clock.at(run.bound_ms - 1, self.server.create, self.key, run.record)
        elif run.bound_ms > self.clock.now_ms:
            self.clock.at(run.bound_ms - 1, self.server.submit, self.key, run.record, run.bound_ms)

    def run(self, point: Point, released: Iterable[str], *, opens_ms: int, lineage: bool) -> str:
        """Open the job from a checkpoint, and let everything end.

        Returns:
            The property that broke, "" for none.
        """
        for name in released:
            self.ledger.release(name)
        self.ledger.committed = {outcome.invocation_id: outcome for outcome in point.outcomes}
        self._write_input(point, opens_ms)
        try:
            self._until(opens_ms)
            self._open(point, lineage)
            return self._settle()
        except Broken as error:
            return str(error)
        # Whatever the shipped code raises is a finding, and must not hide the other worlds.
        except Exception as error:
            return f"crash: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}"

    def accepts_of(self, name: str) -> int:
        """How many submits of a call were accepted, over all its generations."""
        return sum(count for marker, count in self.ledger.accepted.items() if name_of(marker) == name)

    def outcome_of(self, name: str) -> str:
        outcome = self.ledger.committed.get(name)
        if outcome is None:
            return "parked" if name in self._waiting() else "none"
        failure = outcome.failure
        return outcome.status.name.lower() + (f" ({failure.code.value})" if failure is not None else "")

    def tell(self, text: str) -> None:
        self.story.append(Happened(self.clock.now_ms, None, text))

    def _phase(self, number: int, phase: Phase) -> None:
        self.server.threads[self.key] = end(self.server.threads[self.key], number, phase)

    def _write_input(self, point: Point, opens_ms: int) -> None:
        """What the restored job has not read yet; what came more than an hour later is left out."""
        for number, (at_ms, event) in enumerate(self.past.lines):
            if number in point.read or at_ms > opens_ms + SETTLE_MS:
                continue
            if isinstance(event, AdoptOrdered):
                handle = self.server.handle_of(self.key, marker_of(event.invocation_id, event.generation))
                # Nobody adopts what is not there.
                if not handle:
                    continue
                event = replace(event, handle=handle)
            self.source.append(Line(at_ms, self.key, event))

    def _open(self, point: Point, lineage: bool) -> None:
        self.mishaps.calm()
        around = Surroundings(
            self.clock,
            self.mishaps,
            self.network,
            self.source,
            {self.key[0]: self.terms},
            self.ledger.emit,
            self._notice,
            self._entry,
        )
        self.job = Job(around, self._commit)
        number = next(n for n in range(1, len(self.past.incarnations) + 2) if f"life-{n}" not in self.past.incarnations)
        state = self._named(point.state)
        snapshot = Snapshot(
            0,
            {} if state is None else {self.key: encode_thread(state)},
            {} if state is None or not state.wake_at_ms else {self.key: state.wake_at_ms},
        )
        self.job.lives, self.job.kept = number, [snapshot]
        self.job.host = Host(around, number, snapshot, lineage)
        if state is not None and state.active is not None:
            self._held.add(state.active.id)
            self._generations[state.active.id] = state.active.generation
        self.tell("a new incarnation opens")
        self.job.start()

    def _named(self, state: ThreadState | None) -> ThreadState | None:
        """The state with the handles of this remote in place of the recorded one's."""
        if state is not None and state.active is not None and state.active.handle:
            return replace(state, active=self._renamed(state.active))
        if state is not None and state.drain is not None and state.drain.invocation.handle:
            return replace(state, drain=replace(state.drain, invocation=self._renamed(state.drain.invocation)))
        return state

    def _renamed(self, record: Invocation) -> Invocation:
        return replace(record, handle=self.server.handle_of(self.key, marker_of(record.id, record.generation)))

    def _entry(self, entry: JournalEntry) -> None:
        self.story.append(Happened(entry.at_ms, entry))
        self.posts[entry.invocation_id] += entry.effects.count("Submit")
        known, self._generations[entry.invocation_id] = (
            self._generations.get(entry.invocation_id),
            entry.generation,
        )
        fell = entry.before is not None and entry.before.status.rank > entry.after.status.rank
        if fell and known == entry.generation:
            self.ledger.fail(entry.invocation_id, f"rank fell: {entry.invocation_id}")

    def _notice(self, key: Key, notice: Notice) -> None:
        self.tell(f"people are told: {notice.kind.value} {notice.invocation_id}")
        # A parked call is left where it is: what people decide is not the job's doing.
        if notice.kind is not NoticeKind.PARKED:
            self.people.notice(key, notice)

    def _commit(self, outcome: Outcome, went_back: bool) -> None:
        said = self.ledger.committed.get(outcome.invocation_id)
        retried = said is not None and said.generation < outcome.generation
        self.ledger.commit(outcome, went_back or retried)
        self.tell(f"final: {outcome.invocation_id} {self.outcome_of(outcome.invocation_id)}")

    def _settle(self) -> str:
        policy = self.terms.policy
        limit = self.clock.now_ms + 2 * SETTLE_MS + policy.overlap_ms + self.terms.settle_ms + policy.drain_max_ms
        left = self._left()
        while left and self.clock.now_ms < limit:
            self._until(self.clock.now_ms + LOOK_MS)
            left = self._left()
        return f"stuck: {', '.join(left)}" if left else ""

    def _until(self, at_ms: int) -> None:
        """Let time pass, even if nothing happens in it."""
        self.clock.at(at_ms, lambda: None)
        self.clock.until(at_ms)

    def _left(self) -> list[str]:
        """What has not come to an end yet."""
        asked = {line.event.request.invocation_id for line in self.source.lines if isinstance(line.event, Requested)}
        waiting = self._waiting()
        left = [
            name for name in sorted(asked | self._held) if name not in self.ledger.committed and name not in waiting
        ]
        state = self._state()
        if state is not None and state.drain is not None:
            left.append(f"the thread, which waits for the run of {state.drain.invocation.id}")
        return left

    def _waiting(self) -> set[str]:
        """Calls that wait for people, and those that queue behind one."""
        state = self._state()
        if state is None or state.active is None or state.active.leaf is not Leaf.SU_PARKED:
            return set()
        return {state.active.id, *(queued.request.invocation_id for queued in state.queue)}

    def _state(self) -> ThreadState | None:
        host = None if self.job is None else self.job.host
        stored = None if host is None else host.states.get(self.key)
        return None if stored is None else decode_thread(stored)


class _Recorded(Server):
    """A server on which what has failed has failed as it was recorded."""

    failures: Mapping[str, Failure] = MappingProxyType({})

    def probe(self, key: Key, inv: Invocation) -> ProbeAnswer:
        found = super().probe(key, inv)
        if not isinstance(found, Present) or found.failure is None:
            return found
        marker = self.threads[key].turns[number_of(found.handle)].marker
        return replace(found, failure=self.failures.get(marker, found.failure))


class _Account(Ledger):
    """A ledger that also tells the story."""

    def __init__(self, world: World) -> None:
        super().__init__(lambda: world.clock.now_ms)
        self._world = world

    def accept(self, marker: str, beside: list[str]) -> None:
        if self._world.job is not None:
            self._world.tell(f"the remote accepts {marker}")
        super().accept(marker, beside)
