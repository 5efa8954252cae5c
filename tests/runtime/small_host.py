"""The least host there can be: the shared driver and the real executor, states in a dictionary, wake-ups in a heap."""

import heapq
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import httpx

from reattach.models.effects import Submit
from reattach.models.events import ThreadEvent, TimeReached
from reattach.models.outcomes import Outcome
from reattach.models.policy import Terms
from reattach.runtime.config import check_agents
from reattach.runtime.driver import Driver, Key
from reattach.runtime.executor import Executor
from tests.runtime.scripted import PATIENCE_S
from tests.runtime.wired import Remote


class ThreadRemote(Remote):
    """The reference protocol's server, whose runs are done as soon as they are accepted."""

    def __init__(self) -> None:
        super().__init__()
        self.status = 200
        self.posts: Counter[str] = Counter()

    async def answer(self, request: httpx.Request) -> httpx.Response:
        answer = await super().answer(request)
        if answer.status_code >= 300:
            return answer
        thread = request.url.path.removesuffix("/messages").rsplit("/", 1)[-1]
        if request.method == "POST":
            self.posts[thread] += 1
            return httpx.Response(202, json={"status": "started"})
        if thread in self.posts:
            return httpx.Response(200, json={"status": "completed", "result": 1})
        return httpx.Response(404, json={})


class SmallHost:
    """One incarnation. `outcomes` is by key, `orders` counts what was ordered, by key and kind."""

    def __init__(self, executor: Executor, states: dict[Key, bytes] | None = None, name: str = "life-1") -> None:
        self.executor = executor
        self.began_s = time.monotonic()
        self.states = states or {}
        self.outcomes: dict[Key, Outcome] = {}
        self.orders: Counter[tuple[Key, type]] = Counter()
        terms: dict[str, Terms] = check_agents(executor._agents)
        self._driver = Driver(terms, incarnation=name, opened_ms=self._now_ms(), journal=False)
        self._wakes: list[tuple[int, Key]] = []
        self._due: dict[Key, int] = {}
        self._keys: dict[str, Key] = {}

    def apply(self, key: Key, event: ThreadEvent) -> None:
        applied = self._driver.apply(key, self.states.get(key), event, self._now_ms())
        self.states.pop(key, None)
        if applied.stored is not None:
            self.states[key] = applied.stored
        if applied.wake_at_ms and applied.wake_at_ms != self._due.get(key):
            heapq.heappush(self._wakes, (applied.wake_at_ms, key))
        self._due[key] = applied.wake_at_ms
        for outcome in applied.outcomes:
            assert key not in self.outcomes
            self.outcomes[key] = outcome
        text = "/".join(key)
        self._keys[text] = key
        for effect, inv in applied.orders:
            self.orders[key, type(effect)] += 1
            self.executor.order(text, effect, inv)

    def apply_all(self, events: Iterable[tuple[Key, ThreadEvent]]) -> None:
        for key, event in events:
            self.apply(key, event)

    def run(self, until: Any, why: str, patience_s: float = PATIENCE_S) -> None:
        """Serve facts and wake-ups until `until()` holds."""
        limit = time.monotonic() + patience_s
        while not until():
            assert time.monotonic() < limit, f"did not happen: {why}"
            if not self.step():
                time.sleep(0.001)

    def step(self) -> int:
        facts = self.executor.drain(1_000)
        for text, fact, _ in facts:
            self.apply(self._keys[text], fact)
        served = len(facts)
        while self._wakes and self._wakes[0][0] <= self._now_ms():
            at_ms, key = heapq.heappop(self._wakes)
            if self._due[key] == at_ms and key not in self.outcomes:
                self._due[key] = 0
                self.apply(key, TimeReached())
                served += 1
        return served

    def ordered(self, kind: type = Submit) -> int:
        return sum(count for (_, each), count in self.orders.items() if each is kind)

    @staticmethod
    def _now_ms() -> int:
        return time.time_ns() // 1_000_000
