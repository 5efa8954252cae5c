"""A recorded history, continued in the simulated world from a crash that did not happen.

The journal says what the job knew at an entry, and what the remote had accepted by then. What it
cannot say is tried: which checkpoint the crash left (`Checkpoint`), and what had become of a POST
that nobody has answered yet (`Arrival`). In each of these worlds a new incarnation opens, with the
terms that were in force, and runs on without further faults until every call of the thread has
ended; the properties of the simulated world's ledger are checked on the way.

The remote is the model whose capabilities are the journal's. It keeps what they promise, and no
more: what it has accepted is shown as late as its admission bound allows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from reattach.runtime.replay.knowledge import Fate
from reattach.runtime.replay.past import Moment, Past, Point
from reattach.runtime.replay.world import Happened, World

DOWN_MS: Final = 1_000


class Checkpoint(Enum):
    """What the job was restored from."""

    ENTRY = "holds the entry"
    BEFORE_POST = "is older than the POST"
    BEFORE_FIRST = "is older than all POSTs"
    NOTHING = "is older than the call"


class Arrival(Enum):
    """What had become of a POST in doubt."""

    CERTAIN = "no POST in doubt"
    ARRIVED = "the POST had arrived"
    LOST = "the POST never arrives"
    LATE = "the POST arrives as late as it can"


_FATES: Final = {Arrival.CERTAIN: Fate.NO, Arrival.ARRIVED: Fate.YES, Arrival.LOST: Fate.NO, Arrival.LATE: Fate.DOUBT}


@dataclass(frozen=True, slots=True)
class Continued:
    """How one world went on.

    Args:
        number: of the entry, within its call.
        accepted: submits of the call that the remote accepted, before the crash and after it.
        posts: POSTs that the new incarnation sent for the call.
        outcome: how the call ended; "parked" where it waits for people.
        broken: the property that broke, "" for none.
        story: what happened, in the order of time.
    """

    number: int
    checkpoint: Checkpoint
    arrival: Arrival
    crash_ms: int
    accepted: int
    posts: int
    outcome: str
    broken: str
    story: tuple[Happened, ...]


def continuations(past: Past, moment: Moment, number: int, seed: int = 1) -> Iterator[Continued]:
    """Continue a thread after a crash behind one entry, in every world that the journal allows."""
    for checkpoint, point in _checkpoints(moment):
        for arrival in _arrivals(moment):
            yield _continue(past, moment, number, checkpoint, point, arrival, seed)


def _checkpoints(moment: Moment) -> Iterator[tuple[Checkpoint, Point]]:
    yield Checkpoint.ENTRY, moment.now
    if moment.posted:
        yield Checkpoint.BEFORE_POST, moment.posted[-1]
    if len(moment.posted) > 1:
        yield Checkpoint.BEFORE_FIRST, moment.posted[0]
    if moment.begun is not None:
        yield Checkpoint.NOTHING, moment.begun


def _arrivals(moment: Moment) -> Iterator[Arrival]:
    doubtful = [run for run in moment.runs if run.fate is Fate.DOUBT]
    if not doubtful:
        yield Arrival.CERTAIN
        return
    yield Arrival.ARRIVED
    yield Arrival.LOST
    if any(run.bound_ms - 1 > moment.entry.at_ms for run in doubtful):
        yield Arrival.LATE


def _continue(
    past: Past, moment: Moment, number: int, checkpoint: Checkpoint, point: Point, arrival: Arrival, seed: int
) -> Continued:
    entry, record = moment.entry, moment.record
    world = World(past, moment.terms, entry.at_ms, seed)
    world.remember(moment.runs, moment.fenced, _FATES[arrival])
    # Write-ahead lets a POST go only once a checkpoint that holds its intent is complete.
    sent = any(run.record.id == record.id for run in moment.runs) and moment.terms.writes_ahead
    lineage = entry.lineage and not (sent and checkpoint is Checkpoint.NOTHING)
    broken = world.run(point, moment.released, opens_ms=entry.at_ms + DOWN_MS, lineage=lineage)
    return Continued(
        number,
        checkpoint,
        arrival,
        entry.at_ms,
        world.accepts_of(record.id),
        world.posts[record.id],
        world.outcome_of(record.id),
        broken,
        tuple(world.story),
    )
