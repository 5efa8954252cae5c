"""Threads and runs of the agent server: in memory, rebuilt from the log after a restart.

A run costs one timer. It goes on whoever is connected, and after the server's own restart it ends
when it would have ended.
"""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reattach.runtime.agent.faults import Dice, Latency, Rules
from reattach.runtime.agent.log import Log, Record, read_log, wall_ms

Key = tuple[str, str]


@dataclass(slots=True)
class Thread:
    """One conversation. `ends` wakes the streams that follow its current run."""

    ids: list[str] = field(default_factory=list)
    status: str = "not_started"
    message: Any = None
    due_ms: int = 0
    fate: str = "completed"
    ends: asyncio.Event | None = None
    timer: asyncio.TimerHandle | None = None


class Agent:
    """All threads of a server.

    Args:
        log_path: replayed first; then written to.
    """

    def __init__(self, log_path: Path, *, latency: Latency, rules: Rules, sync: bool = False) -> None:
        self.latency = latency
        self.dice = Dice(rules)
        self.rules_set_ms = wall_ms()
        self.threads: dict[Key, Thread] = {}
        records = list(read_log(log_path)) if log_path.exists() else []
        for record in records:
            self._replay(record)
        self.log = Log(log_path, sync=sync)

    @property
    def rules(self) -> Rules:
        return self.dice.rules

    def set_rules(self, rules: Rules) -> None:
        self.dice = Dice(rules)
        self.rules_set_ms = wall_ms()

    def start(self) -> None:
        """Let the runs that a former life started go on. Needs the running loop."""
        self.log.write("boot", threads=len(self.threads))
        for key, thread in self.threads.items():
            if thread.status == "running":
                self._schedule(key, thread)

    def close(self) -> None:
        for thread in self.threads.values():
            if thread.timer is not None:
                thread.timer.cancel()
        self.log.close()

    def admit(self, key: Key, message_id: str, message: Any) -> str:
        """Take a message: start a run, unless one is running. Returns the status to answer with."""
        thread = self.threads.get(key)
        if thread is None:
            thread = self.threads[key] = Thread()
        if thread.status == "running":
            return "running"
        if self.rules.knows_again and message_id in thread.ids:
            return thread.status
        fate = "completed"
        if self.dice.post("stuck_run", message_id):
            fate = "stuck"
        elif self.dice.post("fail_run", message_id):
            fate = "failed"
        due_ms = wall_ms() + self.latency.of(self.rules.seed, f"{message_id}/{len(thread.ids)}")
        turn = len(thread.ids) + 1
        self.log.write(
            "turn", agent=key[0], thread=key[1], id=message_id, turn=turn, due_ms=due_ms, fate=fate, message=message
        )
        self._begin(thread, message_id, message, due_ms, fate)
        self._schedule(key, thread)
        return "started"

    def status(self, key: Key) -> dict[str, Any]:
        """Build the status answer."""
        thread = self.threads.get(key)
        if thread is None:
            thread = Thread()
        answer: dict[str, Any] = {
            "thread_id": key[1],
            "status": thread.status,
            "turns": len(thread.ids),
            "last_message_id": thread.ids[-1] if thread.ids else None,
            "message_ids": thread.ids,
        }
        if thread.status == "completed":
            answer["result"] = {"echo": thread.message, "turn": len(thread.ids)}
        elif thread.status == "failed":
            answer["error"] = {"message": f"the agent gave up on {thread.ids[-1]}"}
        return answer

    def forget(self, key: Key | None) -> None:
        """Lose a thread, or all of them, as a server that lost its disk."""
        self.log.write("forget", agent=key[0] if key else None, thread=key[1] if key else None)
        self._forget(key)

    def _forget(self, key: Key | None) -> None:
        for one in [key] if key is not None else list(self.threads):
            thread = self.threads.pop(one, None)
            if thread is not None and thread.timer is not None:
                thread.timer.cancel()

    @staticmethod
    def _begin(thread: Thread, message_id: str, message: Any, due_ms: int, fate: str) -> None:
        thread.ids.append(message_id)
        thread.status = "running"
        thread.message = message
        thread.due_ms = due_ms
        thread.fate = fate

    def _schedule(self, key: Key, thread: Thread) -> None:
        if thread.fate != "stuck":
            delay_s = max(0, thread.due_ms - wall_ms()) / 1000
            thread.timer = asyncio.get_running_loop().call_later(delay_s, self._end, key, thread)

    def _end(self, key: Key, thread: Thread) -> None:
        self.log.write("end", agent=key[0], thread=key[1], turn=len(thread.ids), status=thread.fate)
        thread.status = thread.fate
        thread.timer = None
        if thread.ends is not None:
            thread.ends.set()
            thread.ends = None

    def _replay(self, record: Record) -> None:
        kind = record["kind"]
        if kind == "forget":
            self._forget((record["agent"], record["thread"]) if record["thread"] is not None else None)
        elif kind == "turn":
            thread = self.threads.setdefault((record["agent"], record["thread"]), Thread())
            self._begin(thread, record["id"], record["message"], record["due_ms"], record["fate"])
        elif kind == "end":
            ended = self.threads.get((record["agent"], record["thread"]))
            if ended is not None:
                ended.status = record["status"]
