"""One instant of the explored world: small immutable values, cheap to copy with a change."""

from typing import NamedTuple

from reattach.models.effects import Cancel, Fetch, Probe, Watch
from reattach.models.events import Answered, Ident
from reattach.models.invocation import Invocation
from reattach.models.thread import ThreadState
from reattach.runtime.simulation.remotes import Memory

Said = tuple[str, int, str, bytes, str, str]  # id, generation, status, result, failure code, remote fate


class Read(NamedTuple):
    """A repeatable request under way; a newer one replaces it."""

    effect: Probe | Fetch | Cancel | Watch
    inv: Invocation


class Life(NamedTuple):
    """One incarnation of the host.

    Args:
        born: its number; it names the incarnation.
        dies_at_ms: a superseded one still acts up to this time; 0 for the one in charge.
        position: how much of the script its source has handed over.
        recovering: restored, and the call in its state has not been taken over yet.
        inbox: answers that its executor has finished and the host has not applied.
        hold: the intent that waits for a checkpoint.
        emitted: what this lineage has said, rolled back by a restore.
    """

    born: int
    opened_ms: int
    lineage: bool
    dies_at_ms: int = 0
    state: ThreadState | None = None
    position: int = 0
    recovering: bool = False
    read: Read | None = None
    inbox: tuple[Answered, ...] = ()
    hold: Ident | None = None
    emitted: tuple[Said, ...] = ()

    @property
    def name(self) -> str:
        return f"life-{self.born}"

    @property
    def epoch(self) -> int:
        """The epoch that an answer must have to be taken for current."""
        state = self.state
        if state is None:
            return -1
        if state.active is not None:
            return state.active.epoch
        return state.drain.invocation.epoch if state.drain is not None else state.epoch

    def current(self, answer: Answered) -> bool:
        """It answers the latest order of this very life."""
        ident = answer.ident
        return ident.epoch == self.epoch and ident.incarnation == self.name


class Post(NamedTuple):
    """A request that changes something and may land without its sender.

    Args:
        stage: `create`, `post`, `fence` or `respond`.
        owner: the incarnation that sent it; 0 once nobody waits for its answer.
        limit_ms: its sender has its answer by then, or says that it has none.
        by_ms: it has taken effect before this time, or never will.
    """

    stage: str
    owner: int
    inv: Invocation
    ident: Ident
    limit_ms: int
    by_ms: int


class Snapshot(NamedTuple):
    """What a checkpoint holds."""

    state: ThreadState | None
    position: int
    emitted: tuple[Said, ...]
    hold: Ident | None = None


class Left(NamedTuple):
    """How many faults may still happen."""

    crashes: int
    checkpoints: int
    losses: int
    zombies: int


class World(NamedTuple):
    now_ms: int
    host: Life
    left: Left
    zombies: tuple[Life, ...] = ()
    posts: tuple[Post, ...] = ()
    memory: Memory = Memory()
    checkpoints: tuple[Snapshot, ...] = ()
    triggered: Snapshot | None = None
    said: tuple[Said, ...] = ()
    lives: int = 1
