"""Carries out orders to remotes: one asyncio loop on one background thread, for one incarnation.

A host gives orders (`order`) and takes facts (`drain`); both are cheap and neither blocks. The
executor never touches stored state and decides nothing: it keeps the limits (requests in flight,
open streams, time, validity) and turns whatever happens into exactly one answer per order.

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
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reattach.adapters import registry
from reattach.adapters.contract import Adapter, AgentConfig
from reattach.adapters.http import open_client
from reattach.models.effects import RemoteEffect, Respond, Submit, Watch
from reattach.models.events import Answered, Progressed, WatchEnded
from reattach.models.invocation import Invocation
from reattach.runtime.calls import answer_without_sending, perform
from reattach.runtime.streams import follow

CLOSE_TIMEOUT_S: Final = 15.0
EVENTS_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Order:
    """One effect to carry out.

    Args:
        until: for sends, the monotonic time in seconds after which it must not leave any more.
    """

    key: str
    effect: RemoteEffect
    invocation: Invocation
    until: float


class Executor:
    """See the module's text.

    Args:
        agents: by name; their adapters are built at once.
        concurrency_max: requests in flight.
        streams_max: streams open at the same time; a watch above it waits for the next poll.

    Raises:
        ConfigError: an adapter refuses its configuration.
    """

    def __init__(
        self, agents: Mapping[str, AgentConfig], *, concurrency_max: int = 256, streams_max: int = 1024
    ) -> None:
        self._agents = dict(agents)
        self._concurrency_max = concurrency_max
        self._streams_max = streams_max
        self._inbox: deque[Order] = deque()
        self._events: deque[tuple[str, Answered]] = deque()
        self._sends: deque[Order] = deque()
        self._reads: dict[str, Order] = {}
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_flight = 0
        self._streams = 0
        self._scheduled = False
        self._closed = False
        self._adapters: dict[str, Adapter] = {}
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._run, name="reattach-executor", daemon=True)
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        except BaseException:
            self.close()
            raise

    def order(self, key: str, effect: RemoteEffect, invocation: Invocation) -> None:
        """Carry `effect` out for the record it was ordered for. Thread-safe; after `close` a no-op."""
        if self._closed:
            return
        until = 0.0
        if isinstance(effect, Submit | Respond):
            # Two clocks: a wall clock that is set back must not prolong the right to send.
            until = time.monotonic() + (effect.not_after_ms / 1000 - time.time())
        self._inbox.append(Order(key, effect, invocation, until))
        if not self._scheduled:
            self._scheduled = True
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._accept)

    def drain(self, most: int) -> list[tuple[str, Answered]]:
        """Take at most `most` facts, oldest first, each with its key."""
        events = self._events
        return [events.popleft() for _ in range(min(most, len(events)))]

    @property
    def pending(self) -> int:
        """Facts that wait to be drained."""
        return len(self._events)

    @property
    def busy(self) -> bool:
        """Something was ordered that may still bring a fact."""
        return bool(self._inbox or self._sends or self._reads or self._tasks or self._events)

    @property
    def in_flight(self) -> int:
        return self._in_flight

    @property
    def backlog(self) -> int:
        """Orders that have not been started."""
        return len(self._inbox) + len(self._sends) + len(self._reads)

    def close(self) -> None:
        """End every exchange and the loop. Idempotent.

        Guarantee: after the return not one more byte is sent (tests/runtime/test_executor.py).
        """
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.create_task, self._shut())
        self._thread.join(CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _open(self) -> None:
        self._client = open_client(connections_max=self._concurrency_max + self._streams_max)
        for name, config in self._agents.items():
            self._adapters[name] = registry.create(config, self._client)

    async def _shut(self) -> None:
        self._inbox.clear()
        self._sends.clear()
        self._reads.clear()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(Exception):
            await self._client.aclose()
        self._loop.stop()

    def _accept(self) -> None:
        self._scheduled = False
        while self._inbox:
            order = self._inbox.popleft()
            if isinstance(order.effect, Submit | Respond):
                self._sends.append(order)
                continue
            running = self._reading.pop(order.key, None)
            if running is not None:
                running.cancel()
            # Assigning to a key that is there keeps its place in the queue.
            self._reads[order.key] = order
        self._start()

    def _start(self) -> None:
        while self._in_flight < self._concurrency_max and not self._closed:
            if self._sends:
                self._spawn(self._request(self._sends.popleft()))
                self._in_flight += 1
                continue
            if not self._reads:
                return
            key = next(iter(self._reads))
            order = self._reads.pop(key)
            if isinstance(order.effect, Watch):
                self._reading[key] = self._spawn(self._watch(order, order.effect))
            else:
                self._reading[key] = self._spawn(self._request(order))
                self._in_flight += 1

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._closed:
            self._start()

    def _tell(self, key: str, event: Answered) -> None:
        # Progress is not the truth: it is dropped when the host is this far behind.
        if not isinstance(event, Progressed) or len(self._events) < EVENTS_MAX:
            self._events.append((key, event))

    async def _request(self, order: Order) -> None:
        key, effect = order.key, order.effect
        config = self._agents[order.invocation.request.agent]
        try:
            if order.until and (time.monotonic() > order.until or time.time() * 1000 > effect.not_after_ms):  # type: ignore[union-attr]
                self._tell(key, answer_without_sending(effect, "its time to be sent was over before its turn came"))
                return
            adapter = self._adapters[config.name]
            answer = await perform(adapter, effect, order.invocation, config.policy, lambda e: self._tell(key, e))
            self._tell(key, answer)
        finally:
            self._in_flight -= 1
            if self._reading.get(key) is asyncio.current_task():
                del self._reading[key]

    async def _watch(self, order: Order, effect: Watch) -> None:
        key = order.key
        config = self._agents[order.invocation.request.agent]
        if self._streams >= self._streams_max:
            await asyncio.sleep(config.policy.poll_ms / 1000)
            self._tell(key, WatchEnded(effect.ident, "as many streams are open as are allowed"))
            return
        self._streams += 1
        try:
            stream = self._adapters[config.name].watch(order.invocation, effect.cursor)
            await follow(stream, effect.ident, lambda event: self._tell(key, event))
        finally:
            self._streams -= 1
            if self._reading.get(key) is asyncio.current_task():
                del self._reading[key]


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
