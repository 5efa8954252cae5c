"""What one call costs inside the engine, without any I/O: microseconds and bytes, on one core.

One undisturbed call is led through its whole life, again and again: requested, asked about, sent, followed, read. Each
figure is the best of several rounds, since whatever else the machine does can only add to it.
"""

import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from reattach.fsm.env import Env
from reattach.fsm.thread import step_thread
from reattach.models.answers import Absent, Accepted, Phase, Present
from reattach.models.codec import decode_thread, encode_thread
from reattach.models.effects import Effect, Probe, Submit, Watch
from reattach.models.events import ProbeAnswered, Requested, SubmitAnswered, ThreadEvent, WatchEnded
from reattach.models.policy import Capabilities, Evidence, Policy, StreamKind, Terms
from reattach.models.request import Request
from reattach.models.thread import ThreadState
from reattach.runtime.driver import Driver
from reattach.runtime.explore.default import Bounds
from reattach.runtime.explore.search import search
from reattach.runtime.simulation.many import Plan
from reattach.runtime.simulation.many import run_one as simulate

ROUNDS: Final = 5
CALLS: Final = 2_000
SIMULATED: Final = 300
EXPLORED: Final = Bounds("status-only", crashes=1, checkpoints=1, losses=1)
AGENT: Final = "agent"
NOW_MS: Final = 1_800_000_000_000
MESSAGE: Final = b'"' + b"x" * 200 + b'"'


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the result."""

    name: str
    value: float
    unit: str


def terms() -> Terms:
    able = Capabilities(evidence=Evidence.CONTAINER, stream=StreamKind.LIVE)
    return Terms(able, Policy(retention_ms=86_400_000, overlap_ms=0))


def request(number: int) -> Request:
    return Request(f"order-{number:08}", AGENT, MESSAGE, NOW_MS)


def answer(effect: Effect, posted: bool) -> ThreadEvent:
    """What the remote says to an order; its run is over when its stream is."""
    match effect:
        case Probe(ident):
            return ProbeAnswered(ident, Present(Phase.COMPLETED, result=b'{"text":"done"}') if posted else Absent())
        case Submit(ident):
            return SubmitAnswered(ident, Accepted())
        case Watch(ident):
            return WatchEnded(ident, "")
    raise AssertionError(f"an undisturbed call orders no {type(effect).__name__}")


def steps_of_a_call() -> list[tuple[bytes | None, ThreadEvent, Env]]:
    """Every step of one call: the bytes before it, the fact, the surroundings."""
    now_ms = NOW_MS + 600_000
    env = Env(now_ms, NOW_MS, "life-1", terms(), False)
    stored: bytes | None = None
    event: ThreadEvent = Requested(request(1))
    posted, taken = False, []
    while True:
        taken.append((stored, event, env))
        state = None if stored is None else decode_thread(stored)
        result = step_thread(state, event, env)
        assert result.state is not None
        stored = encode_thread(result.state)
        orders = [effect for effect, _ in result.effects if isinstance(effect, Probe | Submit | Watch)]
        if not orders:
            return taken
        posted = posted or isinstance(orders[-1], Submit)
        event = answer(orders[-1], posted)


def figures() -> Iterator[Figure]:
    """Measure everything; takes some seconds."""
    steps = steps_of_a_call()
    states = [decode_thread(stored) for stored, _, _ in steps if stored is not None]
    blobs = [encode_thread(state) for state in states]
    yield Figure("steps of an undisturbed call", len(steps), "steps")
    yield Figure("stored, a call under way with a message of 202 bytes", max(map(len, blobs)), "bytes")
    yield Figure("decode a thread", _best_us(lambda: [decode_thread(blob) for blob in blobs]) / len(blobs), "µs")
    yield Figure("encode a thread", _best_us(lambda: [encode_thread(state) for state in states]) / len(states), "µs")
    yield Figure("step, with decode and encode", _best_us(lambda: _all(steps)) / len(steps), "µs")
    for journal in (False, True):
        name = "driver, per step, with its journal entry" if journal else "driver, per step"
        yield Figure(name, _driver_us(len(steps), journal), "µs")
    yield Figure("memory that a step takes, with decode and encode", _peak_bytes(steps), "bytes")
    searched = search(EXPLORED.scenario)
    yield Figure("worlds that the exhaustive search visits", searched.states / searched.seconds, "per second")
    world = simulate(Plan(1, SIMULATED, "all"))
    yield Figure("calls simulated with every fault", world.calls / world.seconds, "per second")


def _peak_bytes(steps: list[tuple[bytes | None, ThreadEvent, Env]]) -> float:
    """At its most, of all that a step makes, what it stores included; the mean of the steps."""
    peaks = []
    for one in steps:
        tracemalloc.start()
        _all([one])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return sum(peaks) / len(peaks)


def _all(steps: list[tuple[bytes | None, ThreadEvent, Env]]) -> None:
    for stored, event, env in steps:
        state: ThreadState | None = None if stored is None else decode_thread(stored)
        result = step_thread(state, event, env)
        if result.state is not None:
            encode_thread(result.state)


def _driver_us(steps: int, journal: bool) -> float:
    def lives() -> None:
        driver = Driver({AGENT: terms()}, incarnation="life-1", opened_ms=NOW_MS, journal=journal)
        for number in range(CALLS):
            key, stored, posted = (AGENT, f"order-{number:08}"), None, False
            event: ThreadEvent | None = Requested(request(number))
            while event is not None:
                applied = driver.apply(key, stored, event, NOW_MS + 600_000)
                stored, event = applied.stored, None
                for effect, _ in applied.orders:
                    posted = posted or isinstance(effect, Submit)
                    event = answer(effect, posted)

    return _best_us(lives, times=1) / CALLS / steps


def _best_us(work: Callable[[], object], times: int = 500) -> float:
    """Microseconds of one call of `work`."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(times):
            work()
        best = min(best, (time.perf_counter() - began) / times)
    return best * 1_000_000
