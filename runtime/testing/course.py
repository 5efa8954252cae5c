"""How a job goes on while nothing goes wrong: one natural move after the other, always the same way."""

from collections.abc import Callable
from typing import Final

from reattach.models.effects import Watch
from reattach.runtime.testing.job import Job
from reattach.runtime.testing.life import Life
from reattach.runtime.testing.wire import Exchange

MOVES_MAX: Final = 3_000
MOVES_ON_MAX: Final = 40


def move(job: Job) -> bool:
    """Let the host in charge do what comes next; False when nothing will ever come."""
    if act(job, job.host):
        return True
    if job.host.holds:
        checkpoint(job)
        return True
    wake_at_ms = min(job.host.timers.values(), default=None)
    if wake_at_ms is None or wake_at_ms > job.now_ms + job.remote.patience_ms:
        return False
    job.advance(wake_at_ms)
    return True


def act(job: Job, life: Life) -> bool:
    """Let a life do what comes next, now; False when it has nothing to do at this instant."""
    facts = job.facts(life)
    exchange = next((x for x in job.wire.exchanges if x.life is life and _may_go_on(job, x)), None)
    if facts and facts[0].kind in ("restored", "answer"):
        job.apply(life, facts[0])
    elif exchange is not None:
        forward(job, exchange)
    elif facts:
        job.apply(life, facts[0])
    else:
        return False
    return True


def _may_go_on(job: Job, x: Exchange) -> bool:
    return x.facts is not None or not isinstance(x.effect, Watch) or not job.remote.streams_on(x.inv)


def forward(job: Job, x: Exchange) -> None:
    """Take one order one step further: out, to the remote, and back."""
    if x.leaves_by_ms:
        job.wire.leave(x)
    elif x.facts is None:
        job.wire.reach(x)
    else:
        job.wire.answer(x)


def due(x: Exchange) -> bool:
    """A POST or a response is about to leave."""
    return x.leaves_by_ms > 0


def under_way(x: Exchange) -> bool:
    """A POST or a response is on its way to the remote."""
    return x.sends and not x.leaves_by_ms and x.facts is None


def answered(x: Exchange) -> bool:
    """The answer to a POST or a response is on its way back."""
    return x.sends and x.facts is not None


def go_on(job: Job, moves: int = MOVES_ON_MAX, until: Callable[[Exchange], bool] | None = None) -> None:
    """Let everything happen in its natural order for a while, or up to where an order is as far as that."""
    for _ in range(moves):
        if until is not None and any(until(x) for x in job.wire.exchanges if x.life is job.host):
            return
        if not move(job):
            return
        job.check()


def checkpoint(job: Job) -> None:
    """A checkpoint is triggered and completes at once."""
    job.trigger()
    job.complete(len(job.triggered) - 1)


def settle(job: Job) -> None:
    """Let all calls come to their end, now that nothing goes wrong any more.

    Raises:
        PropertyBroken: some do not (liveness).
    """
    job.tell("from here on nothing goes wrong any more")
    job.remote.calm()
    for _ in range(MOVES_MAX):
        if job.settled():
            return
        if not move(job):
            raise job.broken("stuck", "calls are open, and nothing is left that could happen")
        job.check()
    raise job.broken("stuck", f"calls are open after {MOVES_MAX} moves in which nothing went wrong")
