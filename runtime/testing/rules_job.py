"""Rules of the job: its steps, its checkpoints, its crashes, and time."""

from collections.abc import Callable
from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import rule

from reattach.runtime.testing.bench import Bench, pick, places, when, when_steady
from reattach.runtime.testing.course import act, answered, checkpoint, due, forward, go_on, under_way
from reattach.runtime.testing.wire import Exchange

CRASHES_MAX: Final = 3
OUTAGES_MAX: Final = 1
ZOMBIES_MAX: Final = 2
TRIGGERED_MAX: Final = 2
MILESTONES: Final[dict[str, Callable[[Exchange], bool]]] = {
    "a send is due": due,
    "a send is under way": under_way,
    "a send is answered": answered,
    "a question is answered": lambda x: not x.sends and x.facts is not None,
    "a run has ended": lambda _: False,
}
SENDS: Final = {"is due": due, "is on its way": under_way, "is answered": answered}
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

    @when(lambda m: m.job.zombies)
    @rule(whose=places(), moves=st.integers(1, 6))
    def a_zombie_goes_on(self, whose: int, moves: int) -> None:
        """It steps, sends and hears as if nobody had taken its place."""
        zombie = pick(self.job.zombies, whose)
        for _ in range(moves):
            if zombie is None or not act(self.job, zombie):
                return
            self.job.check()

    @when(lambda m: m.job.lines)
    @rule(moves=st.integers(1, 12), then_checkpoint=st.booleans())
    def the_job_goes_on(self, moves: int, then_checkpoint: bool) -> None:
        """For a while everything happens in its natural order."""
        go_on(self.job, moves)
        if then_checkpoint:
            checkpoint(self.job)

    @when(lambda m: m.job.lines)
    @rule(until=st.sampled_from(tuple(MILESTONES)))
    def the_job_goes_on_until(self, until: str) -> None:
        """Everything happens in its natural order up to where it becomes interesting."""
        if until == "a run has ended":
            self.remote.finish()
        go_on(self.job, 1)
        go_on(self.job, until=MILESTONES[until])

    @rule(until=st.sampled_from(("a tick", "the next wake-up", "the last moment")))
    def time_passes(self, until: str) -> None:
        """A little, or up to where something is due or lands for the last time."""
        job = self.job
        instants = {
            "a tick": [],
            "the next wake-up": [at_ms for at_ms in job.host.timers.values() if at_ms > job.now_ms],
            "the last moment": [at_ms - 1 for at_ms in job.wire.instants() if at_ms - 1 > job.now_ms],
        }[until]
        job.advance(min(min(instants, default=job.now_ms + 1), job.now_ms + self.remote.patience_ms))

    @when_steady(lambda m: m.job.lives > 1 and m.outages < OUTAGES_MAX)
    @rule(of=st.sampled_from(("deadlines", "memory")))
    def an_outage_outlasts(self, of: str) -> None:
        """So much time passes that calls are overdue, or that the remote may have forgotten them."""
        self.outages += 1
        terms = self.remote.terms
        self.job.advance(self.job.now_ms + (terms.policy.deadline_ms if of == "deadlines" else terms.memory_ms))

    @when(lambda m: m.job.host.states and len(m.job.triggered) < TRIGGERED_MAX)
    @rule(at_once=st.booleans())
    def a_checkpoint_is_triggered(self, at_once: bool) -> None:
        """It completes at once, or later, or never."""
        if len(self.job.triggered) < TRIGGERED_MAX:
            self.job.trigger()
            if at_once:
                self.job.complete(len(self.job.triggered) - 1)

    @when(lambda m: m.job.triggered)
    @rule(which=places())
    def a_checkpoint_completes(self, which: int) -> None:
        """The newest that was triggered, or an older one that comes late."""
        if self.job.triggered:
            self.job.complete(which % len(self.job.triggered))

    @when(lambda m: m.job.lines and m.job.lives <= CRASHES_MAX)
    @rule(moves=st.integers(0, 6), restore=_checkpoints, zombie=_zombies)
    def the_host_crashes(self, moves: int, restore: str, zombie: bool) -> None:
        """Before its next step, wherever it stands then."""
        go_on(self.job, moves)
        self._crash(restore, zombie)

    @when(lambda m: m.job.lines and m.job.lives <= CRASHES_MAX)
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
            # Kept as they are: the id of one that ends here may be that of a new one.
            before = list(job.wire.exchanges)
            job.apply(job.host, fact)
            if after == "the snapshot":
                checkpoint(job)
            elif after != "the step":
                for x in [x for x in job.wire.exchanges if x not in before]:
                    while x.facts is None and x in job.wire.exchanges and x.step < 2:
                        forward(job, x)
                    if after == "the answer" and x.facts is not None:
                        forward(job, x)
            job.check()
        self._crash(restore, zombie)

    @when(lambda m: m.job.lines and m.job.lives <= CRASHES_MAX)
    @rule(send=st.sampled_from(tuple(SENDS)), restore=_checkpoints, zombie=_zombies)
    def the_host_crashes_with_a_send(self, send: str, restore: str, zombie: bool) -> None:
        """The job goes on up to its next POST or response, and crashes while that is under way."""
        go_on(self.job, until=SENDS[send])
        self._crash(restore, zombie)

    @when(lambda m: m._orphans())
    @rule(which=places(), at_last=st.booleans())
    def a_request_lands_late(self, which: int, at_last: bool) -> None:
        """One that nobody waits for any more, perhaps in the last moment in which it can."""
        x = pick(self._orphans(), which)
        if x is not None:
            if at_last:
                self.job.advance(max(self.job.now_ms, x.by_ms - 1))
            self.job.wire.reach(x)
            self.job.check()

    def _orphans(self) -> list[Exchange]:
        return [x for x in self.job.wire.exchanges if x.life is None]

    def _crash(self, restore: str, zombie: bool) -> None:
        job = self.job
        if job.lives > CRASHES_MAX:
            return
        job.crash(BACK[restore], zombie=zombie and len(job.zombies) < ZOMBIES_MAX)
        job.check()
