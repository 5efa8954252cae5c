"""The Flink job of `reattach run` against a real server, and what its agent's own count says of it."""

import json
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.harness import Process, World
from tests.servers.behaviour import reply
from tests.servers.running import Running

ROUNDS_MS = (300, 1_500)


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was asked for: its name, its agent, its place on a named thread, and its text."""

    name: str
    agent: str
    thread: str
    turn: int
    text: str


class RealWorld(World):
    """One real server, and one job over a folder.

    Args:
        agents: for each agent of the job its table: `protocol`, `url` and `options`.
        policy: what differs from the harness's `POLICY`.
        job: what differs in the job's table.
        seed: of how long each call runs.
    """

    def __init__(
        self,
        folder: Path,
        server: Running,
        agents: Mapping[str, Mapping[str, Any]],
        *,
        policy: Mapping[str, Any] | None = None,
        job: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        self._real, self._real_agents, self._random = server, agents, random.Random(seed)
        self.calls: list[Call] = []
        super().__init__(folder, policy=policy, job=job)

    def _start_server(self) -> Process:
        return self._real.process

    def _agents(self, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        return {name: {**agent, "policy": tables["policy"]} for name, agent in self._real_agents.items()}

    def ask_for(self, agent: str, *, threads: int = 0, each: int = 1) -> None:
        """Ask for `each` turns of so many named threads; without a number for as many threads of one call."""
        rows = []
        for turn in range(1, each + 1):
            for thread in range(max(threads, 1)):
                name = f"{agent}-{thread}-{turn}"
                text = f"{name} @{self._random.randint(*ROUNDS_MS)}ms"
                call = Call(name, agent, f"talk/{thread}" if threads else "", turn if threads else 1, text)
                row = {"invocation_id": name, "agent": agent, "message": text, "requested_at_ms": _now_ms()}
                if threads:
                    row |= {"thread_id": call.thread, "turn": turn}
                self.calls.append(call)
                rows.append(json.dumps(row))
        self.drop(agent, rows)
        self.expected += [call.name for call in self.calls if call.agent == agent]

    def executions(self) -> list[dict[str, Any]]:
        return self._real.executions()

    def assert_each_once(self) -> None:
        """Every call ran once on the server, and has one committed outcome with its own result; turns came in order."""
        ran = Counter(one["text"] for one in self.executions())
        assert {text: times for text, times in ran.items() if times > 1} == {}, "duplicates"
        assert {call.text for call in self.calls} - set(ran) == set(), "lost"
        assert set(ran) == {call.text for call in self.calls}
        outcomes = self.outcomes_of()
        assert set(outcomes) == {call.name for call in self.calls}
        for call in self.calls:
            (outcome,) = outcomes[call.name]
            assert outcome["status"] == "COMPLETED", outcome
            assert reply(call.turn, call.text) in json.dumps(outcome["result"]), outcome
        self._assert_order()

    def _assert_order(self) -> None:
        """The server saw the turns of each named thread one after the other, in their order, and on one thread."""
        calls = {call.text: call for call in self.calls}
        seen: dict[tuple[str, str], list[tuple[str, int, int]]] = {}
        for one in self.executions():
            call = calls[one["text"]]
            seen.setdefault((call.agent, call.thread or call.name), []).append((one["thread"], one["turn"], call.turn))
        for place, turns in seen.items():
            assert [turn for _, turn, _ in turns] == [turn for _, _, turn in turns], (place, turns)
            assert [turn for _, _, turn in turns] == list(range(1, len(turns) + 1)), (place, turns)
        remote = [{thread for thread, _, _ in turns} for turns in seen.values()]
        assert sum(map(len, remote)) == len(set().union(*remote)) == len(seen), "one thread of the server's for each"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
