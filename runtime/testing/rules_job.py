"""Rules of the job: its steps, its checkpoints, its crashes, and time."""

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import rule

from reattach.runtime.testing.bench import Bench, pick, places, when
from reattach.runtime.testing.course import forward, move

ZOMBIES_MAX: Final = 2
BACK: Final = {"newest": 0, "older": 1, "nothing": 10**6}
_checkpoints = st.sampled_from(("newest", "newest", "older", "nothing"))
_zombies = st.sampled_from((False, False, True))


class JobRules(Bench):
    """What the job and its surroundings do."""

    @when(lambda m: m.job.facts(m.job.host))
    @rule(which=places())
    def the_host_takes_a_fact(self, which: int) -> None:
        """A record of the input, an answer, a timer or a restored key: whichever comes first."""
        fact = pick(self.job.facts(self.job.host), which)
        if fact is not None:
            self.job.apply(self.job.host, fact)
            self.job.check()

    @when(lambda m: m.job.zombies)
    @rule(whose=places(), which=places())
    def a_zombie_takes_a_fact(self, whose: int, which: int) -> None:
        """Somebody who was given up for dead still steps, and so sends."""
        zombie = pick(self.job.zombies, whose)
        fact = None if zombie is None else pick(self.job.facts(zombie), which)
        if zombie is not None and fact is not None:
            self.job.apply(zombie, fact)
            self.job.check()

    @when(lambda m: m.job.host.timers or m.job.lines)
    @rule(moves=st.integers(1, 8))
    def the_job_goes_on(self, moves: int) -> None:
        """For a while everything happens in its natural order."""
        for _ in range(moves):
            if not move(self.job):
                return
            self.job.check()

    @rule(until=st.sampled_from(("a tick", "the next wake-up", "the last moment")))
    def time_passes(self, until: str) -> None:
        """A little, or up to where something is due or lands for the last time."""
        job = self.job
        instants = {
            "a tick": [],
            "the next wake-up": [at_ms for at_ms in job.host.timers.values() if at_ms > job.now_ms],
            "the last moment": [at_ms - 1 for at_ms in job.wire.instants() if at_ms - 1 > job.now_ms],
        }[until]
        job.advance(min(instants, default=job.now_ms + 1))

    @when(lambda m: not m.remote.unsteady)
    @rule(of=st.sampled_from(("deadlines", "memory")))
    def an_outage_outlasts(self, of: str) -> None:
        """So much time passes that calls are overdue, or that the remote may have forgotten them."""
        terms = self.remote.terms
        self.job.advance(self.job.now_ms + (terms.policy.deadline_ms if of == "deadlines" else terms.memory_ms))

    @rule()
    def a_checkpoint_is_triggered(self) -> None:
        self.job.trigger()

    @when(lambda m: m.job.triggered)
    @rule(which=places())
    def a_checkpoint_completes(self, which: int) -> None:
        """The newest that was triggered, or an older one that comes late."""
        if self.job.triggered:
            self.job.complete(which % len(self.job.triggered))

    @rule(restore=_checkpoints, zombie=_zombies)
    def the_host_crashes(self, restore: str, zombie: bool) -> None:
        """Before its next step, wherever it stands."""
        self._crash(restore, zombie)

    @rule(
        after=st.sampled_from(("the step", "the snapshot", "the effect", "the answer")),
        restore=_checkpoints,
        zombie=_zombies,
    )
    def the_host_steps_and_crashes(self, after: str, restore: str, zombie: bool) -> None:
        """A crash in a window of one step.

        After the step: no checkpoint holds what it stored. After the snapshot: one does, and nothing
        of what it ordered has left. After the effect: the remote has acted, the answer is under way.
        After the answer: it has come in, and nobody has taken it.
        """
        job = self.job
        fact = pick(job.facts(job.host), 0)
        if fact is not None:
            before = set(map(id, job.wire.exchanges))
            job.apply(job.host, fact)
            if after == "the snapshot":
                job.trigger()
                job.complete(len(job.triggered) - 1)
            elif after != "the step":
                for x in [x for x in job.wire.exchanges if id(x) not in before]:
                    while x.facts is None and x in job.wire.exchanges and x.step < 2:
                        forward(job, x)
                    if after == "the answer" and x.facts is not None:
                        forward(job, x)
            job.check()
        self._crash(restore, zombie)

    def _crash(self, restore: str, zombie: bool) -> None:
        job = self.job
        job.crash(BACK[restore], zombie=zombie and len(job.zombies) < ZOMBIES_MAX)
        job.check()
