"""The smallest host: the shipped driver and executor on the real clock, with crashes from a checkpoint.

It does what the Flink host does, in the same order: store, set the timer, send out, order.
"""

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from reattach.adapters.contract import AgentConfig
from reattach.models.codec import decode_thread
from reattach.models.effects import Hold
from reattach.models.events import Requested, Restored, ThreadEvent, TimeReached
from reattach.models.identity import request_key
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Status
from reattach.models.outcomes import Outcome
from reattach.models.policy import Policy
from reattach.models.request import Request
from reattach.runtime.config import check_agents
from reattach.runtime.driver import Driver, Key
from reattach.runtime.executor import Executor

PATIENCE_S = 60.0
# One process is the whole job here, and its servers are quick.
POLICY = Policy(
    retention_ms=86_400_000,
    submit_validity_ms=200,
    submit_timeout_ms=400,
    probe_timeout_ms=1_000,
    admission_ms=0,
    overlap_ms=0,
    slack_ms=200,
    poll_ms=300,
    backoff_ms=50,
    backoff_max_ms=200,
    recovery_spread_ms=0,
)
SETTLE_MS = 600
# For servers that are not.
PATIENT = replace(POLICY, submit_timeout_ms=2_000, submit_validity_ms=500, probe_timeout_ms=5_000)


def assert_page(example: Path) -> None:
    """Every file that an example's page names, and every page that it links, is there."""
    page = (example / "README.md").read_text()
    for name in re.findall(r"(?:python|reattach run) (\S+)", page):
        assert (example / name).is_file(), name
    for target in re.findall(r"\]\(([^)#:]+)\)", page):
        assert (example / target).exists(), target


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Life:
    """One incarnation.

    Args:
        states: what a checkpoint brings back.
        lineage: see `Driver`.
    """

    def __init__(
        self,
        agents: Mapping[str, AgentConfig],
        name: str,
        states: Mapping[Key, bytes] | None = None,
        *,
        lineage: bool = False,
    ) -> None:
        self.states: dict[Key, bytes] = dict(states or {})
        self.wakes: dict[Key, int] = {}
        self.outcomes: list[Outcome] = []
        self.facts = 0
        self._driver = Driver(
            check_agents(agents), incarnation=name, opened_ms=now_ms(), journal=False, lineage=lineage
        )
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
            if isinstance(effect, Hold):
                self.hold(key, effect)
            else:
                self._executor.order(f"{key[0]}\x00{key[1]}", effect, invocation)

    def hold(self, key: Key, effect: Hold) -> None:
        raise AssertionError("no agent here writes ahead")

    def turn(self) -> None:
        for name, fact, _ in self._executor.drain(100):
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


def after_crash(agents: Mapping[str, AgentConfig], asked: Request, moment: str, posted: Callable[[], bool]) -> Outcome:
    """The outcome of a call whose first life dies at a moment; the second knows only what a checkpoint held.

    Args:
        moment: "while running" and "at the end" are told by the life itself, all others by `posted`. The checkpoint
            is of the run for the first of them, else of before the POST.
    """
    first = Life(agents, "life-1")
    first.ask(asked)
    kept = dict(first.states)
    if moment == "while running":
        first.until(lambda: first.running, "a run")
        kept = dict(first.states)
    elif moment == "at the end":
        first.until(lambda: len(first.outcomes) == 1, "the outcome")
    else:
        first.until(posted, "the POST")
    first.die()
    second = Life(agents, "life-2", kept)
    second.ask(asked)
    second.until(lambda: len(second.outcomes) == 1, "the outcome")
    second.die()
    return second.outcomes[0]


def after_crashes(
    agents: Mapping[str, AgentConfig], asked: Sequence[Request], dice: random.Random, facts_max: int
) -> list[Outcome]:
    """Outcomes of the last of four lives: each dies after a random number of facts, restored from a moment before."""
    kept: dict[Key, bytes] = {}
    for number in range(3):
        life = Life(agents, f"life-{number}", kept)
        for one in asked:
            life.ask(one)
        kept_at, dies_at = sorted(dice.choices(range(1, facts_max), k=2))
        life.until_fact(kept_at)
        kept = dict(life.states)
        life.until_fact(dies_at)
        life.die()
    last = Life(agents, "life-last", kept)
    for one in asked:
        last.ask(one)
    last.until(lambda: not last.active, "the end of all")
    last.die()
    return last.outcomes
