"""The job manager of a simulated world: checkpoints, crashes, restores, and who is in charge.

Its rules are Flink's. A checkpoint counts once it is complete; completing one subsumes those before
it; a restore rewinds state, timers and the source together; the task that was given up for dead may
go on for the overlap, but nothing of it is committed any more.
"""

from collections.abc import Callable

from reattach.models.outcomes import Outcome
from reattach.runtime.simulation.faults import NONE, Faults
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

    def __init__(self, around: Surroundings, faults: Faults, commit: Callable[[Outcome, bool], None]) -> None:
        self.around, self.faults, self.commit = around, faults, commit
        self.clock, self.chance = around.clock, around.chance
        self.kept = [Snapshot(0)]
        self.lives = 1
        self.crashes = 0
        self.checkpoints = 0
        self.steps = 0
        self.went_back = False
        self.host: Host | None = Host(around, 1, self.kept[0], True)
        around.source.on_line = self._line

    def start(self) -> None:
        """Open the first life; from here on everything happens by the clock."""
        assert self.host is not None
        self.host.open()
        self.clock.at(self.clock.now_ms + CHECKPOINT_MS, self._trigger)
        if self.faults.crash_every_ms:
            self.clock.at(self.clock.now_ms + self.chance.around(self.faults.crash_every_ms), self._crash, True)

    def calm(self) -> None:
        """From now on nothing goes wrong any more."""
        self.faults = NONE

    def _line(self) -> None:
        if self.host is not None:
            self.host.read()

    def _trigger(self) -> None:
        self.clock.at(self.clock.now_ms + CHECKPOINT_MS, self._trigger)
        host, chance = self.host, self.chance
        if host is None:
            return
        self.checkpoints += 1
        snapshot = host.snapshot(self.checkpoints)
        if not chance.happens(self.faults.lost_checkpoint):
            late = chance.happens(self.faults.late_checkpoint)
            takes = CHECKPOINT_MS + chance.between(0, CHECKPOINT_MS) if late else chance.between(*COMPLETES_MS)
            self.clock.at(self.clock.now_ms + takes, self._complete, host, snapshot)

    def _complete(self, host: Host, snapshot: Snapshot) -> None:
        # A checkpoint of a life that is over never completes; an older one is subsumed.
        if host is not self.host or snapshot.number < self.kept[-1].number:
            return
        self.kept = [*self.kept, snapshot][-KEPT:]
        for outcome in host.completed(snapshot):
            self.commit(outcome, self.went_back)

    def _crash(self, again: bool) -> None:
        if again and self.faults.crash_every_ms:
            self.clock.at(self.clock.now_ms + self.chance.around(self.faults.crash_every_ms), self._crash, True)
        host, chance = self.host, self.chance
        if host is None or not self.faults.crash_every_ms:
            return
        self.crashes += 1
        self.steps += host.steps
        self.host = None
        down = chance.between(*DOWN_MS)
        if chance.happens(self.faults.outage):
            policy = next(iter(self.around.terms.values())).policy
            down = (policy.retention_ms or 0) + down
        opens = self.clock.now_ms + down
        if chance.happens(self.faults.zombie):
            overlap_ms = min(terms.policy.overlap_ms for terms in self.around.terms.values())
            host.dies_at_ms = opens + chance.between(0, overlap_ms)
        else:
            host.dies_at_ms = self.clock.now_ms - 1
        self.clock.at(host.dies_at_ms + 1, self.around.network.close, host)
        self.clock.at(opens, self._restore, host.lineage)

    def _restore(self, lineage: bool) -> None:
        chance = self.chance
        older = chance.happens(self.faults.older)
        snapshot = self.kept[-1]
        if older:
            snapshot = chance.pick((Snapshot(0), *self.kept[:-1]))
            self.went_back = True
            self.kept = [*(kept for kept in self.kept if kept.number < snapshot.number), snapshot]
        self.lives += 1
        self.host = Host(self.around, self.lives, snapshot, lineage and not older)
        self.host.open()
        if chance.happens(self.faults.crash_again):
            self.clock.at(self.clock.now_ms + chance.between(0, RECOVERY_MS), self._crash, False)
