"""Begins the orders that wait, in their turn and within the limits, and sees each one to its answer.

Lives on the executor's loop and is called from nowhere else, but for `busy`, `backlog` and `in_flight`,
which may be read from any thread: an order is always put into its next place before it leaves its last.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from reattach.adapters.contract import Adapter, AgentConfig
from reattach.models.effects import Hold, Respond, Submit, Watch
from reattach.models.events import Answered, WatchEnded
from reattach.runtime.calls import perform
from reattach.runtime.facts import doubt, not_sent
from reattach.runtime.limits import Kind
from reattach.runtime.queues import LATE, Lane, Order, Round, Run
from reattach.runtime.streams import follow
from reattach.runtime.witness import SIGHT

SWEEP_S: Final = 0.1


class Dispatch:
    """See the module's text.

    Args:
        agents: by name.
        adapters: by agent; filled before the first order.
        concurrency_max, streams_max: of all agents together.
        tell: takes each fact with its order's key.
        awake: whether this process may still send: see `runtime.pulse`.

    Attributes:
        closed: nothing is begun any more; may be set from any thread.
        reading: by key, the read that is under way.
    """

    def __init__(
        self,
        agents: Mapping[str, AgentConfig],
        adapters: Mapping[str, Adapter],
        *,
        concurrency_max: int,
        streams_max: int,
        tell: Callable[[str, Answered], None],
        awake: Callable[[], bool],
    ) -> None:
        self._awake = awake
        self._agents = agents
        self._adapters = adapters
        self._concurrency_max = concurrency_max
        self._streams_max = streams_max
        self._tell = tell
        self.closed = False
        self._sweeping = False
        self._streams = 0
        self.in_flight = 0
        self.round = Round(Lane(name, config.limits) for name, config in agents.items())
        self.reading: dict[str, asyncio.Task[None]] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        return bool(len(self.round) or self.tasks)

    @property
    def backlog(self) -> int:
        """Orders that have not been started."""
        return len(self.round)

    @property
    def down(self) -> dict[str, str]:
        """Agents whose breaker is open, and why their last request failed."""
        return {lane.name: lane.cause for lane in self.round.lanes.values() if not lane.breaker.closed}

    def put(self, order: Order) -> None:
        """Let an order wait for `start`. A read ends an older one for its key that is under way."""
        running = None if order.kind is Kind.SEND else self.reading.pop(order.key, None)
        if running is not None:
            running.cancel()
        self.round.put(order)

    def start(self) -> None:
        """Begin what may begin, as long as there are slots."""
        now_s = time.monotonic()
        while not self.closed and self.in_flight < self._concurrency_max:
            lane = self.round.turn()
            if lane is None:
                break
            self._turn_down(lane, now_s)
            order = lane.next(now_s)
            if order is not None:
                self._begin(lane, order)
                lane.drop(order)
                continue
            wait_s = 0.0 if lane.full or not len(lane) else lane.bucket.wait_s(now_s)
            self.round.leave(lane, asleep=wait_s > 0)
            if wait_s:
                asyncio.get_running_loop().call_later(wait_s, self._wake, lane)
        if not self._sweeping and len(self.round) and not self.closed:
            self._sweeping = True
            asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)

    def close(self) -> list[asyncio.Task[None]]:
        """Begin nothing more, and order what is under way to stop.

        Returns:
            What has not ended yet.
        """
        self.closed = True
        self.round.clear()
        tasks = list(self.tasks)
        for task in tasks:
            task.cancel()
        return tasks

    def _wake(self, lane: Lane) -> None:
        """Its rate allows one more."""
        lane.asleep = False
        self.round.join(lane)
        self.start()

    def _sweep(self) -> None:
        """Turn down what is to be turned down, also in lanes whose turn does not come."""
        self._sweeping = False
        now_s = time.monotonic()
        for lane in self.round.lanes.values():
            self._turn_down(lane, now_s)
        self.start()

    def _turn_down(self, lane: Lane, now_s: float) -> None:
        while (refused := lane.refused(now_s)) is not None:
            order, cause = refused
            effect = order.effect
            assert not isinstance(effect, Hold)
            fact = not_sent(effect, cause) if isinstance(effect, Submit | Respond) else doubt(effect, cause)
            self._tell(order.key, fact)
            lane.drop(order)

    def _begin(self, lane: Lane, order: Order) -> None:
        run = lane.begin(order, stream=self._streams < self._streams_max)
        if order.kind is Kind.STREAM:
            self._streams += run.stream
            task = asyncio.get_running_loop().create_task(self._watch(run))
        else:
            self.in_flight += 1
            task = asyncio.get_running_loop().create_task(self._request(run))
        if order.kind is not Kind.SEND:
            self.reading[order.key] = task
        self.tasks.add(task)
        task.add_done_callback(partial(self._done, run))

    def _done(self, run: Run, task: asyncio.Task[None]) -> None:
        # Not at the end of the coroutine: one that is cancelled before its first step never gets there.
        if run.order.kind is Kind.STREAM:
            self._streams -= run.stream
        else:
            self.in_flight -= 1
        run.lane.end(run, time.monotonic(), stopped=task.cancelled())
        if self.reading.get(run.order.key) is task:
            del self.reading[run.order.key]
        self.tasks.discard(task)
        self.round.join(run.lane)
        self.start()

    async def _request(self, run: Run) -> None:
        key, effect = run.order.key, run.order.effect
        assert not isinstance(effect, Hold)
        if isinstance(effect, Submit | Respond) and _too_late(run.order.until, effect.not_after_ms):
            self._tell(key, not_sent(effect, LATE))
            return
        if isinstance(effect, Submit | Respond) and not self._awake():
            self._tell(key, not_sent(effect, "this process stood still, and another may have taken its place"))
            return
        SIGHT.set(run.sight)
        policy, adapter = self._agents[run.lane.name].policy, self._adapters[run.lane.name]
        self._tell(key, await perform(adapter, effect, run.order.invocation, policy, partial(self._tell, key)))

    async def _watch(self, run: Run) -> None:
        key, effect = run.order.key, run.order.effect
        assert isinstance(effect, Watch)
        if not run.stream:
            await asyncio.sleep(self._agents[run.lane.name].policy.poll_ms / 1000)
            self._tell(key, WatchEnded(effect.ident, "as many streams are open as are allowed"))
            return
        SIGHT.set(run.sight)
        watch = partial(self._adapters[run.lane.name].watch, run.order.invocation, effect.cursor)
        await follow(watch, effect.ident, partial(self._tell, key))


def _too_late(until: float, not_after_ms: int) -> bool:
    return time.monotonic() > until or time.time() * 1000 > not_after_ms
