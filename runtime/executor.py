"""Carries out orders to remotes: one asyncio loop on one background thread, for one incarnation.

A host gives orders (`order`) and takes facts (`drain`); both are cheap and neither blocks. The
executor never touches stored state and decides nothing: it keeps the limits (requests in flight,
open streams, each agent's own, time, validity) and turns whatever happens into exactly one answer per
order. `runtime.dispatch` begins orders, `runtime.queues` is where they wait.

Two kinds of orders differ. A *read* (probe, fetch, watch, cancel, fence) may be repeated, so a newer
one for the same key takes the place of an older one, in the queue or under way: one attempt in
flight, and a backlog cannot starve anybody by re-ordering. A *send* (submit, respond) is never
interrupted by another order; it leaves within its validity or not at all.

When the incarnation ends, `close` ends every exchange: after it no byte of this life is sent.
"""

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Final

from reattach.adapters import registry
from reattach.adapters.contract import Adapter, AgentConfig
from reattach.adapters.http import open_client
from reattach.models.effects import Hold, RemoteEffect
from reattach.models.errors import ReattachError
from reattach.models.events import Answered, Progressed
from reattach.models.invocation import Invocation
from reattach.runtime.dispatch import Dispatch
from reattach.runtime.holds import JobManager, Lookout
from reattach.runtime.pulse import Pulse
from reattach.runtime.queues import Order, until_s
from reattach.runtime.witness import witnessed

CLOSE_TIMEOUT_S: Final = 15.0
GIVE_UP_S: Final = 5.0
ROOM_S: Final = 1.0
LOOK_S: Final = 0.002
PROGRESS_BYTES_MAX: Final = 32 * 1024 * 1024
_BATCH_BYTES: Final = 512


Heard = tuple[str, Answered, float]


class StillSending(ReattachError):
    """A former incarnation's loop does not end, so it could still send."""


class Executor:
    """See the module's text.

    Args:
        agents: by name; their adapters are built at once.
        concurrency_max: requests in flight, of all agents; `Limits` has each agent's own.
        streams_max: streams open at the same time; a watch above it waits for the next poll.
        backlog_max: orders that may wait, each with its call's record, before new calls have to: see `wait_for_room`.
        job_manager: who knows of checkpoints; needed for agents that write ahead.

    Raises:
        ConfigError: an adapter refuses its configuration, or the job manager cannot be asked.
    """

    def __init__(
        self,
        agents: Mapping[str, AgentConfig],
        *,
        concurrency_max: int = 256,
        streams_max: int = 1024,
        backlog_max: int = 10_000,
        job_manager: JobManager | None = None,
    ) -> None:
        self._job_manager = job_manager
        self._agents = dict(agents)
        self._backlog_max = backlog_max
        self._connections_max = concurrency_max + streams_max
        self._inbox: deque[Order] = deque()
        self._events: deque[Heard] = deque()
        self._scheduled = False
        self._closed = False
        self._ending = False
        self._progress_told = 0
        self._progress_taken = 0
        self._adapters: dict[str, Adapter] = {}
        overlaps = [agent.policy.overlap_ms for agent in self._agents.values() if agent.policy.overlap_ms]
        self._pulse = Pulse(min(overlaps, default=0))
        self._dispatch = Dispatch(
            self._agents,
            self._adapters,
            concurrency_max=concurrency_max,
            streams_max=streams_max,
            tell=self._tell,
            awake=lambda: self._pulse.awake,
        )
        self._lookout: Lookout | None = None
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._run, name="reattach-executor", daemon=True)
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        except BaseException:
            self.close()
            raise

    def order(self, key: str, effect: RemoteEffect | Hold, invocation: Invocation) -> None:
        """Carry `effect` out for the record it was ordered for. Thread-safe; after `close` a no-op."""
        if self._closed:
            return
        policy = self._agents[invocation.request.agent].policy
        until = until_s(effect, policy, time.monotonic(), time.time())
        self._inbox.append(Order(key, effect, invocation, until))
        if not self._scheduled:
            self._scheduled = True
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._accept)

    def drain(self, most: int) -> list[Heard]:
        """Take at most `most` facts, oldest first, each with its key and when it was heard: monotonic seconds."""
        events = self._events
        taken = [events.popleft() for _ in range(min(most, len(events)))]
        self._progress_taken += sum(_weight(fact) for _, fact, _ in taken)
        return taken

    @property
    def pending(self) -> int:
        """Facts that wait to be drained."""
        return len(self._events)

    @property
    def busy(self) -> bool:
        """Something was ordered that may still bring a fact.

        Read from another thread than the loop's, so an order is always put into its next place
        before it leaves the last one, and the places are looked at in the order of its way.
        """
        held = self._lookout is not None and self._lookout.busy
        return bool(self._inbox or held or self._dispatch.busy or self._events)

    @property
    def in_flight(self) -> int:
        return self._dispatch.in_flight

    @property
    def backlog(self) -> int:
        """Orders that have not been started."""
        return len(self._inbox) + self._dispatch.backlog

    @property
    def room(self) -> bool:
        """Fewer orders wait than may."""
        return self.backlog < self._backlog_max

    def wait_for_room(self) -> None:
        """Block the caller while there is none: for `ROOM_S` at most, since checkpoints and timers wait with it."""
        give_up_s = time.monotonic() + ROOM_S
        while not self.room and not self._closed and not self.ended and time.monotonic() < give_up_s:
            time.sleep(LOOK_S)

    @property
    def down(self) -> dict[str, str]:
        """Agents whose circuit breaker is open, and why their last request failed."""
        return self._dispatch.down

    @property
    def awake(self) -> bool:
        """This process has not stood still for so long that another may have taken its place."""
        return self._pulse.awake

    @property
    def unheard_s(self) -> float:
        """For how long calls have been held without an answer from the job manager."""
        return 0.0 if self._lookout is None else self._lookout.unheard_s

    @property
    def ended(self) -> bool:
        """Its loop is gone: nothing can be sent any more."""
        return not self._thread.is_alive()

    def close(self) -> None:
        """End every exchange and the loop. Idempotent.

        Raises:
            StillSending: an adapter blocks the loop; call again later.

        Guarantee: after the return not one more byte is sent (tests/runtime/test_executor.py).
        """
        self.abandon()
        self._thread.join(CLOSE_TIMEOUT_S)
        if not self.ended:
            raise StillSending(
                f"the loop of a former incarnation has not ended within {CLOSE_TIMEOUT_S:.0f} s: "
                "an adapter blocks it (adapters must await, never sleep or compute for long)"
            )

    def abandon(self) -> None:
        """Begin to close, without waiting for the end. Idempotent."""
        self._closed = self._dispatch.closed = True
        if not self._ending:
            self._ending = True
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._end)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _open(self) -> None:
        self._client = open_client(connections_max=self._connections_max)
        for name, config in self._agents.items():
            client = witnessed(self._client, self._dispatch.round.lanes[name].bucket.take)
            self._adapters[name] = registry.create(config, client)
        if self._job_manager is not None:
            await self._job_manager.open(self._client)
            self._lookout = Lookout(self._job_manager, self._client, self._tell)
        if self._pulse.limit_s:
            self._beat()

    def _beat(self) -> None:
        self._pulse.beat()
        self._loop.call_later(self._pulse.every_s, self._beat)

    def _end(self) -> None:
        self._shutting = self._loop.create_task(self._shut())

    async def _shut(self) -> None:
        self._inbox.clear()
        if self._lookout is not None:
            self._lookout.close()
        tasks = self._dispatch.close()
        with contextlib.suppress(Exception):
            # An adapter that does not let itself be cancelled ends with the loop.
            if tasks:
                await asyncio.wait(tasks, timeout=GIVE_UP_S)
            async with asyncio.timeout(GIVE_UP_S):
                await self._client.aclose()
        self._loop.stop()

    def _accept(self) -> None:
        self._scheduled = False
        while self._inbox:
            order = self._inbox[0]
            if isinstance(order.effect, Hold):
                assert self._lookout is not None, "the host refuses agents that write ahead without a job manager"
                self._lookout.hold(order.key, order.effect.ident)
            else:
                self._dispatch.put(order)
            self._inbox.popleft()
        self._dispatch.start()

    def _tell(self, key: str, event: Answered) -> None:
        weight = _weight(event)
        # Progress is not the truth: it is dropped when the host is this far behind.
        if not weight or self._progress_told - self._progress_taken + weight <= PROGRESS_BYTES_MAX:
            self._progress_told += weight
            self._events.append((key, event, time.monotonic()))


def _weight(event: Answered) -> int:
    """Roughly the bytes of a batch of progress; 0 for everything else."""
    if not isinstance(event, Progressed):
        return 0
    return _BATCH_BYTES + sum(len(item.data) for item in event.items)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
