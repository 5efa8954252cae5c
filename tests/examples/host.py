"""The smallest host: the shipped driver and executor on the real clock, with crashes from a checkpoint.

It does what the Flink host does, in the same order: store, set the timer, send out, order.
"""

import time
from collections.abc import Callable, Mapping

from reattach.adapters.contract import AgentConfig
from reattach.models.codec import decode_thread
from reattach.models.effects import Hold
from reattach.models.events import Requested, Restored, ThreadEvent, TimeReached
from reattach.models.identity import request_key
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Status
from reattach.models.outcomes import Outcome
from reattach.models.request import Request
from reattach.runtime.config import check_agents
from reattach.runtime.driver import Driver, Key
from reattach.runtime.executor import Executor

PATIENCE_S = 60.0


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Life:
    """One incarnation.

    Args:
        states: what a checkpoint brings back.
    """

    def __init__(self, agents: Mapping[str, AgentConfig], name: str, states: Mapping[Key, bytes] | None = None) -> None:
        self.states: dict[Key, bytes] = dict(states or {})
        self.wakes: dict[Key, int] = {}
        self.outcomes: list[Outcome] = []
        self.facts = 0
        self._driver = Driver(check_agents(agents), incarnation=name, opened_ms=now_ms(), journal=False)
        self._executor = Executor(agents)
        for key in list(self.states):
            self.apply(key, Restored())

    def ask(self, request: Request) -> None:
        self.apply(request_key(request), Requested(request))

    def apply(self, key: Key, event: ThreadEvent) -> None:
        applied = self._driver.apply(key, self.states.get(key), event, now_ms())
        self.wakes[key] = applied.wake_at_ms
        if applied.stored is None:
            self.states.pop(key, None)
        else:
            self.states[key] = applied.stored
        self.outcomes += applied.outcomes
        for effect, invocation in applied.orders:
            assert not isinstance(effect, Hold)
            self._executor.order(f"{key[0]}\x00{key[1]}", effect, invocation)

    def turn(self) -> None:
        for name, fact in self._executor.drain(100):
            agent, _, thread = name.partition("\x00")
            self.facts += 1
            self.apply((agent, thread), fact)
        for key, wake in list(self.wakes.items()):
            if wake and now_ms() >= wake:
                self.apply(key, TimeReached())

    def until(self, what: Callable[[], bool], why: str) -> None:
        limit = time.monotonic() + PATIENCE_S
        while not what():
            assert time.monotonic() < limit, f"did not happen: {why}"
            self.turn()
            time.sleep(0.005)

    def until_fact(self, number: int) -> None:
        """Go on until so many facts have come, or nothing is left to do."""
        self.until(lambda: self.facts >= number or not self.active, f"fact {number}")

    @property
    def active(self) -> list[Invocation]:
        """The calls that have not ended."""
        found = (decode_thread(stored).active for stored in self.states.values())
        return [one for one in found if one is not None]

    @property
    def running(self) -> bool:
        return any(one.status is Status.RUNNING for one in self.active)

    def die(self) -> None:
        """End as a killed process does: what is in flight is cut, nothing is stored any more."""
        self._executor.close()
