"""The job manager of a simulated world: checkpoints, crashes, restores, and who is in charge.

Its rules are Flink's. A checkpoint counts once it is complete; completing one subsumes those before
it; a restore rewinds state, timers and the source together; the task that was given up for dead may
go on for the overlap, but nothing of it is committed any more.
"""

from collections.abc import Callable

from reattach.models.outcomes import Outcome
from reattach.runtime.simulation.host import RECOVERY_MS, Host, Snapshot, Surroundings

CHECKPOINT_MS = 1_000
COMPLETES_MS = (20, 200)
DOWN_MS = (0, 3_000)
KEPT = 3


class Job:
    """One job over all its lives.

    Args:
        commit: told of each outcome that has become final, and whether the job has gone back behind
            a commit since the start.
    """

    def __init__(self, around: Surroundings, commit: Callable[[Outcome, bool], None]) -> None:
        self.around, self.commit = around, commit
        self.clock, self.mishaps, self.chance = around.clock, around.mishaps, around.mishaps.chance
        self.kept = [Snapshot(0)]
        self.lives = 1
        self.crashes = 0
        self.checkpoints = 0
        self.steps = 0
        self.went_back = False
        self.host: Host | None = Host(around, 1, self.kept[0])
        self._final: set[int] = set()
        around.source.on_line = self._line

    def start(self) -> None:
        """Open the first life; from here on everything happens by the clock."""
        assert self.host is not None
        self.host.open()
        self.clock.at(self.clock.now_ms + CHECKPOINT_MS, self._trigger)
        if self.mishaps.faults.crash_every_ms:
            self.clock.at(self.clock.now_ms + self.chance.around(self.mishaps.faults.crash_every_ms), self._meet)

    def _line(self) -> None:
        if self.host is not None:
            self.host.read()

    def _trigger(self) -> None:
        self.clock.at(self.clock.now_ms + CHECKPOINT_MS, self._trigger)
        host, chance = self.host, self.chance
        if host is None or self.mishaps.strikes("lost_checkpoint"):
            return
        self.checkpoints += 1
        late = self.mishaps.strikes("late_checkpoint")
        takes = CHECKPOINT_MS + chance.between(0, CHECKPOINT_MS) if late else chance.between(*COMPLETES_MS)
        self.clock.at(self.clock.now_ms + takes, self._complete, host, host.snapshot(self.checkpoints))

    def _complete(self, host: Host, snapshot: Snapshot) -> None:
        # A checkpoint of a life that is over never completes; an older one is subsumed.
        if host is not self.host or snapshot.number < self.kept[-1].number:
            return
        if snapshot.number < self.checkpoints:
            self.mishaps.note("late_checkpoint: the next one was under way")
        self.kept = [*self.kept, snapshot][-KEPT:]
        if not self.mishaps.strikes("untold"):
            self._commit(snapshot)
            host.told(snapshot)

    def _commit(self, snapshot: Snapshot) -> None:
        """The sink makes final what a checkpoint holds; it knows what it has made final already."""
        for number, outcome in snapshot.outcomes:
            if number not in self._final:
                self._final.add(number)
                self.commit(outcome, self.went_back)

    def _meet(self) -> None:
        """A crash comes, and the next one is on its way."""
        mean_ms = self.mishaps.faults.crash_every_ms
        if mean_ms:
            self.clock.at(self.clock.now_ms + self.chance.around(mean_ms), self._meet)
            if self.host is not None:
                self.mishaps.note("crash_every_ms")
                self._crash(self.host)

    def _crash(self, host: Host) -> None:
        if host is not self.host:
            return
        self.crashes += 1
        self.steps += host.steps
        self.host = None
        policy = next(iter(self.around.terms.values())).policy
        down = self.chance.between(*DOWN_MS)
        if self.mishaps.strikes("outage"):
            down += policy.retention_ms or 0
        opens = self.clock.now_ms + down
        if self.mishaps.strikes("zombie"):
            host.dies_at_ms = opens + self.chance.between(0, policy.overlap_ms)
        else:
            host.dies_at_ms = self.clock.now_ms - 1
        self.clock.at(host.dies_at_ms + 1, self.around.network.close, host)
        self.clock.at(opens, self._restore, host.lineage)

    def _restore(self, lineage: bool) -> None:
        chance, now = self.chance, self.clock.now_ms
        older = self.mishaps.strikes("older")
        snapshot = self.kept[-1]
        if older:
            snapshot = chance.pick((Snapshot(0), *self.kept[:-1]))
            self.went_back = True
            self.kept = [*(kept for kept in self.kept if kept.number < snapshot.number), snapshot]
        skew_ms = 0
        if self.mishaps.strikes("skew"):
            skew_max_ms = next(iter(self.around.terms.values())).policy.skew_max_ms
            skew_ms = chance.between(-skew_max_ms, skew_max_ms)
        self._commit(snapshot)
        self.lives += 1
        host = self.host = Host(self.around, self.lives, snapshot, lineage and not older, skew_ms)
        host.open()
        if self.mishaps.strikes("crash_again"):
            self.clock.at(now + chance.between(0, RECOVERY_MS), self._crash, host)
