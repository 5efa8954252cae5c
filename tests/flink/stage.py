"""A small stand-in for one keyed subtask: state by key, timers, the current key, snapshots.

It knows what the host relies on and no more: timers are few (equal ones are one), fire oldest first
with their key current, and a snapshot holds state and timers, nothing of Python's. It checks on every
callback what must always hold: a thread that has to be woken has a durable timer by then.
"""

import heapq
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from reattach.models.codec import decode_thread
from reattach.runtime.flink import host as host_module
from reattach.runtime.flink.host import PUMP_KEY, Host

# A policy whose times a test can wait for.
QUICK: dict[str, Any] = {
    "submit_validity_ms": 200,
    "submit_timeout_ms": 200,
    "probe_timeout_ms": 200,
    "fetch_timeout_ms": 200,
    "overlap_ms": 0,
    "slack_ms": 50,
    "backoff_ms": 10,
    "backoff_max_ms": 50,
    "poll_ms": 20,
    "poll_max_ms": 50,
    "recovery_spread_ms": 50,
    "watch": False,
    "retention_ms": 86_400_000,
}


class JavaCounter:
    """Of Flink's: no name is needed, and it may go down."""

    def __init__(self) -> None:
        self.count = 0

    def inc(self, by: int) -> None:
        self.count += by


class JavaHistogram:
    def __init__(self) -> None:
        self.values: list[int] = []

    def update(self, value: int) -> None:
        self.values.append(value)


class JavaGroup:
    """A metric group that holds what was registered in it."""

    def __init__(self) -> None:
        self.counters: dict[str, JavaCounter] = {}
        self.histograms: dict[str, JavaHistogram] = {}

    def addGroup(self, name: str) -> "JavaGroup":  # noqa: N802 - Java's name
        assert name == "reattach"
        return self

    def counter(self, name: str) -> JavaCounter:
        assert name not in self.counters | self.histograms
        return self.counters.setdefault(name, JavaCounter())

    def histogram(self, name: str, histogram: JavaHistogram) -> JavaHistogram:
        assert name not in self.counters | self.histograms
        return self.histograms.setdefault(name, histogram)

    def counts(self) -> dict[str, int]:
        """What is not 0."""
        return {name: counter.count for name, counter in self.counters.items() if counter.count}


Snapshot = tuple[dict[str, bytes], set[tuple[int, str]]]


class Stage:
    """One life of a subtask around a host.

    Args:
        restored: a snapshot of an earlier life.
        now_ms: the wall clock, as Flink's timers see it.
    """

    def __init__(self, host: Host, restored: Snapshot | None = None, now_ms: Callable[[], int] | None = None) -> None:
        state, timers = restored or ({}, set())
        self.host = host
        self.state = dict(state)
        self.timers_set = set(timers)
        self._queue = sorted(timers)
        self._of: dict[str, set[int]] = defaultdict(set)
        for at, key in timers:
            self._of[key].add(at)
        self._touched = set(state)
        self.now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self.current = ""
        self.steps: list[str] = []
        self.outputs: list[Any] = []
        self.pumps = 0
        self.timers = self
        self.metrics = JavaGroup()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(host_module, "KeyedBackend", lambda context: self)
            host.open(self)

    # What the host sees of the backend.
    def switch_to(self, key: str) -> None:
        self.current = key

    def keys(self, state_name: str) -> list[str]:
        return list(self.state)

    def own_key(self, prefix: str) -> str:
        return f"{prefix}0"

    def metric_group(self) -> "JavaGroup":
        return self.metrics

    def histogram(self, window: int) -> "JavaHistogram":
        return JavaHistogram()

    def place(self) -> tuple[str, str, int]:
        return "job", str(id(self)), 0

    def register_processing_time_timer(self, at_ms: int) -> None:
        assert self.current, "a timer without a key"
        self.steps.append("timer")
        if (at_ms, self.current) not in self.timers_set:
            self.timers_set.add((at_ms, self.current))
            self._of[self.current].add(at_ms)
            heapq.heappush(self._queue, (at_ms, self.current))

    # What it sees of a context, and of the state.
    def get_current_key(self) -> str:
        return self._callback_key

    def get_state(self, descriptor: Any) -> "Stage":
        return self

    def value(self) -> bytes | None:
        return self.state.get(self.current)

    def update(self, value: bytes) -> None:
        assert isinstance(value, bytes)
        self.steps.append("store")
        self._touched.add(self.current)
        self.state[self.current] = value

    def clear(self) -> None:
        self.steps.append("store")
        self.state.pop(self.current, None)

    # What a test does.
    def send(self, key: str, value: Any) -> list[Any]:
        """Deliver an element; give back what came out."""
        return self._callback(key, lambda: self.host.process(value, self))

    def fire(self, until_ms: int | None = None) -> list[Any]:
        """Fire the timers that are due by now, or by `until_ms`, whatever the wall clock shows."""
        out: list[Any] = []
        limit = self.now_ms() if until_ms is None else until_ms
        while self._queue and self._queue[0][0] <= limit:
            at, key = heapq.heappop(self._queue)
            self.timers_set.discard((at, key))
            self._of[key].discard(at)
            self.pumps += key.startswith(PUMP_KEY)
            out += self.fire_one(key, at)
        return out

    def fire_one(self, key: str, at_ms: int) -> list[Any]:
        """Fire a timer, also one that nobody set."""
        self._touched.add(key)
        return self._callback(key, lambda: self.host.on_timer(at_ms, self))

    def run(self, done: Callable[[], bool], why: str, patience_s: float = 20.0) -> list[Any]:
        """Let time pass until something has come true."""
        limit = time.monotonic() + patience_s
        out: list[Any] = []
        while not done():
            assert time.monotonic() < limit, f"did not happen: {why}"
            out += self.fire()
            time.sleep(0.001)
        return out

    def snapshot(self) -> Snapshot:
        return dict(self.state), set(self.timers_set)

    @property
    def pumping(self) -> bool:
        return any(times for key, times in self._of.items() if key.startswith(PUMP_KEY))

    def _callback(self, key: str, work: Callable[[], Any]) -> list[Any]:
        self._callback_key = self.current = key
        out = list(work())
        assert self.current == key, "the key is the caller's again"
        self.outputs += out
        self._check()
        return out

    def _check(self) -> None:
        for key in self._touched:
            stored = self.state.get(key)
            wake_at_ms = 0 if stored is None else decode_thread(stored).wake_at_ms
            if key in self.host._foreign:
                assert self.pumping, "a restored thread that nobody takes over"
            elif wake_at_ms:
                assert min(self._of[key], default=wake_at_ms + 1) <= wake_at_ms, "a thread that nobody wakes"
        self._touched.clear()
