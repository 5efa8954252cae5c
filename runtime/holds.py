"""Write-ahead: which held calls may be sent because a completed checkpoint holds them. Ids decide, times do not.

A call that is held was written to state at some moment of this worker. Its POST may leave when a completed
checkpoint is sure to contain that write, and when whoever restores after it is sure to find it there. Three
looks at the job manager prove it, and each must be an answer that was *computed* late enough, since the job
manager answers from a cache:

1. computed after the write: the newest checkpoint that was triggered is number n. Every later number was
   triggered after this look, so its barrier met the write.
2. a number above n has completed, and it is no savepoint: nobody restores from those by himself.
3. computed after the second look: the task's attempt is still this one. A task that was replaced may go on for a
   while, and the numbers go on as well, with checkpoints of its successor. An attempt that is current now was
   current when that checkpoint completed, so it is a checkpoint of this very attempt, and any successor
   restores from it or from a later one.

What happens after the third look does not matter: the successor finds the call `holding`, and asks nobody but
people. tests/runtime/test_holds.py searches every interleaving, and finds the fault when one of the looks is
left out or taken from the cache.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import httpx

from reattach.models.events import CheckpointCompleted, Ident

LOOK_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """One look at the job's checkpoints.

    Args:
        newest: highest number that was triggered, whatever became of it; 0 for none.
        completed: highest number of a completed checkpoint that is no savepoint; 0 for none.
    """

    newest: int
    completed: int


class JobManager(Protocol):
    """Who knows of checkpoints and attempts. Both looks give None without an answer that makes sense.

    Attributes:
        stale_s: an answer was computed this many seconds before its request began, at the earliest.
    """

    stale_s: float

    async def open(self, client: httpx.AsyncClient) -> None:
        """Learn what has to be known before the first call is held.

        Raises:
            ConfigError: it cannot be asked; says what to do.
        """
        ...

    async def checkpoints(self, client: httpx.AsyncClient) -> Checkpoints | None: ...

    async def mine(self, client: httpx.AsyncClient) -> bool | None:
        """Whether the attempt that asks is the task's current one."""
        ...


@dataclass(slots=True)
class _Held:
    since_s: float
    after: int = -1
    completed_s: float = 0.0


class Holds:
    """Calls that are held, by the identity of their order.

    Args:
        stale_s: see `JobManager`.
    """

    def __init__(self, stale_s: float) -> None:
        self._stale_s = stale_s
        self._held: dict[tuple[str, Ident], _Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def add(self, key: str, ident: Ident, now_s: float) -> None:
        """Hold a call whose record has been written.

        Args:
            now_s: a monotonic clock, after the write.
        """
        self._held.setdefault((key, ident), _Held(now_s))

    def see(self, found: Checkpoints, asked_s: float, now_s: float) -> None:
        """Take a look at the checkpoints.

        Args:
            asked_s: when the request began.
            now_s: when the answer was there.
        """
        for held in self._held.values():
            if held.after < 0:
                if asked_s - self._stale_s >= held.since_s:
                    held.after = found.newest
            elif not held.completed_s and found.completed > held.after:
                held.completed_s = now_s

    @property
    def completed(self) -> bool:
        """Some wait for nothing but the third look."""
        return any(held.completed_s for held in self._held.values())

    def confirm(self, asked_s: float) -> list[tuple[str, CheckpointCompleted]]:
        """Take the third look, which found this attempt to be the current one; give what may go on.

        Args:
            asked_s: when its request began.
        """
        ready = [
            place
            for place, held in self._held.items()
            if held.completed_s and asked_s - self._stale_s >= held.completed_s
        ]
        for place in ready:
            del self._held[place]
        return [(key, CheckpointCompleted(ident)) for key, ident in ready]


class Lookout:
    """Asks the job manager for as long as calls are held: one for all of a worker's. Belongs to the loop that runs.

    Args:
        manager: opened.
        tell: takes each call that may go on.
    """

    def __init__(
        self, manager: JobManager, client: httpx.AsyncClient, tell: Callable[[str, CheckpointCompleted], None]
    ) -> None:
        self._manager = manager
        self._client = client
        self._tell = tell
        self._holds = Holds(manager.stale_s)
        self._looking: asyncio.Task[None] | None = None
        self._heard_s = 0.0

    def hold(self, key: str, ident: Ident) -> None:
        """Begin to wait for a checkpoint with this call, whose record has been written."""
        now_s = time.monotonic()
        self._holds.add(key, ident, now_s)
        if self._looking is None:
            self._heard_s = now_s
            self._looking = asyncio.get_running_loop().create_task(self._look())

    @property
    def busy(self) -> bool:
        return self._looking is not None

    @property
    def unheard_s(self) -> float:
        """For how long the job manager has not answered while calls are held."""
        return time.monotonic() - self._heard_s if self.busy else 0.0

    def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    async def _look(self) -> None:
        try:
            while len(self._holds):
                await self._round()
                await asyncio.sleep(LOOK_S)
        finally:
            self._looking = None

    async def _round(self) -> None:
        asked_s = time.monotonic()
        found = await self._manager.checkpoints(self._client)
        if found is not None:
            self._heard_s = time.monotonic()
            self._holds.see(found, asked_s, self._heard_s)
        asked_s = time.monotonic()
        if self._holds.completed and await self._manager.mine(self._client):
            for key, fact in self._holds.confirm(asked_s):
                self._tell(key, fact)
