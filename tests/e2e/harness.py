"""Real processes for end-to-end tests: an agent server, a job, SIGKILL, and counts from the server's log.

Everything here is started in a session of its own and ended by its own process group. Nothing is
believed but the server's log (what was really started) and the committed output files (what a
reader of the job's result sees).
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from reattach.runtime.agent.log import LogSummary, read_log
from reattach.runtime.processes import members
from reattach.runtime.run.checkpoints import completed

PATIENCE_S = 180.0
# One process is the whole job, so nothing of it outlives a SIGKILL; the rest is short, for tests.
POLICY: dict[str, Any] = {
    "submit_validity_ms": 1_000,
    "submit_timeout_ms": 2_000,
    "admission_ms": 0,
    "overlap_ms": 0,
    "slack_ms": 500,
    "poll_ms": 500,
    "poll_max_ms": 1_000,
    "recovery_spread_ms": 300,
    "retention_ms": 86_400_000,
}


def until(what: Callable[[], Any], why: str, patience_s: float = PATIENCE_S) -> Any:
    """Wait for a condition that must come true, and return it."""
    limit = time.monotonic() + patience_s
    while not (found := what()):
        assert time.monotonic() < limit, f"did not happen within {patience_s} s: {why}"
        time.sleep(0.05)
    return found


class Process:
    """A child with a session of its own."""

    def __init__(self, arguments: list[str], log: Path, **more: Any) -> None:
        self.log = log
        self._file = log.open("ab")
        self.child = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **more,
        )

    def kill(self) -> None:
        """SIGKILL every process of the session, and see them gone."""
        for pid in members(self.child.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.child.wait(30)
        until(lambda: not members(self.child.pid), "the end of every process of the job", 30)
        self._file.close()

    def text(self) -> str:
        return self.log.read_text(errors="replace")


class World:
    """One agent server and one job over a folder.

    Args:
        rules: the server's faults.
        policy: what differs from `POLICY`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        latency: str = "1s-4s",
        rules: Mapping[str, Any] | None = None,
        policy: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        job: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder = folder
        self.requests = folder / "requests"
        self.outcomes = folder / "outcomes"
        self.checkpoints = folder / "checkpoints"
        self.log = folder / "agent.jsonl"
        self.requests.mkdir(parents=True, exist_ok=True)
        self.expected: list[str] = []
        self._runs = 0
        self._latency, self._rules = latency, dict(rules or {})
        self.server = self._start_server()
        tables = {"options": options or {}, "limits": limits or {}, "policy": {**POLICY, **(policy or {})}}
        self._write_config(self._agents(tables), job or {})
        self.job: Process | None = None

    def _start_server(self) -> Process:
        arguments = [sys.executable, "-m", "reattach.runtime.agent", "--port", "0", "--log", str(self.log)]
        arguments += ["--latency", self._latency, "--rules", json.dumps(self._rules)]
        server = Process(arguments, self.folder / "agent.out")
        line = until(lambda: [one for one in server.text().splitlines() if "listening on" in one], "the agent server")
        self.url = line[-1].split()[-1]
        return server

    def _agents(self, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        """By name, with these tables of their own."""
        return {"echo": {"protocol": "thread", "url": self.url, **tables}}

    def _write_config(self, agents: Mapping[str, Mapping[str, Any]], job: Mapping[str, Any]) -> None:
        folders = {name: str(self.folder / name) for name in ("requests", "outcomes", "checkpoints")}
        tables: dict[str, Mapping[str, Any]] = {"job": {**folders, "checkpoint_interval_ms": 500, **job}}
        for name, agent in agents.items():
            own = {key: value for key, value in agent.items() if isinstance(value, Mapping)}
            tables[f"agents.{name}"] = {key: value for key, value in agent.items() if key not in own}
            tables |= {f"agents.{name}.{key}": value for key, value in own.items()}
        lines = []
        for name, table in tables.items():
            lines.append(f"[{name}]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in table.items()]
        self.config = self.folder / "job.toml"
        self.config.write_text("\n".join(lines) + "\n")

    def ask(self, count: int, prefix: str = "call", **more: Any) -> None:
        """Drop a file of requests into the watched folder, whole."""
        now = int(time.time() * 1000)
        names = [f"{prefix}-{number}" for number in range(count)]
        rows = [
            {"invocation_id": name, "agent": "echo", "message": {"from": name}, "requested_at_ms": now, **more}
            for name in names
        ]
        self.drop(prefix, [json.dumps(row) for row in rows])
        self.expected += names

    def drop(self, name: str, lines: list[str]) -> None:
        hidden = self.folder / f"{name}.tmp"
        hidden.write_text("".join(line + "\n" for line in lines))
        hidden.rename(self.requests / f"{name}.jsonl")

    def start(self, *more: str) -> Process:
        self._runs += 1
        arguments = [sys.executable, "-m", "reattach", "run", str(self.config), *more]
        self.job = Process(arguments, self.folder / f"job-{self._runs}.out")
        return self.job

    def kill(self) -> None:
        assert self.job is not None
        self.job.kill()

    def finish(self, patience_s: float = PATIENCE_S) -> None:
        """Wait until the job has stopped by itself."""
        assert self.job is not None
        job = self.job
        until(lambda: job.child.poll() is not None, "the job's own end", patience_s)
        assert job.child.returncode == 0, job.text()[-3_000:]

    def until(self, what: Callable[[], Any], why: str, patience_s: float = PATIENCE_S) -> Any:
        """Wait for a condition that must come true while the job lives."""

        def alive() -> Any:
            found = what()
            job = self.job
            assert found or job is None or job.child.poll() is None, f"the job ended: {job.text()[-2_000:]}"
            return found

        return until(alive, why, patience_s)

    def control(self, order: str, body: Mapping[str, Any]) -> None:
        """Change the server's rules, or let it forget."""
        request = urllib.request.Request(
            f"{self.url}/control/{order}", data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status < 300

    def seen(self) -> LogSummary:
        return LogSummary.of_file(self.log, self.expected)

    def kinds(self) -> Counter[str]:
        return Counter(record["kind"] for record in read_log(self.log)) if self.log.exists() else Counter()

    def completed(self) -> list[Path]:
        """The folders of completed checkpoints, oldest first."""
        return completed(self.checkpoints)

    def checkpoint_count(self) -> int:
        return len(self.completed())

    def outcomes_of(self) -> dict[str, list[dict[str, Any]]]:
        """Committed outcomes by invocation id: only what a reader may rely on."""
        found: dict[str, list[dict[str, Any]]] = {}
        for path in sorted(self.outcomes.glob("**/*")):
            if path.is_file() and not path.name.startswith((".", "_")) and ".inprogress" not in path.name:
                for line in path.read_text().splitlines():
                    outcome = json.loads(line)
                    found.setdefault(outcome["invocation_id"], []).append(outcome)
        return found

    def close(self) -> None:
        if self.job is not None and self.job.child.poll() is None:
            self.job.kill()
        self.server.kill()


@contextlib.contextmanager
def world(folder: Path, **settings: Any) -> Iterator[World]:
    made = World(folder, **settings)
    try:
        yield made
    finally:
        made.close()


class Counted(Protocol):
    """What a job was asked, what its server saw, and what was committed: by invocation id."""

    expected: list[str]

    def seen(self) -> LogSummary: ...

    def outcomes_of(self) -> dict[str, list[dict[str, Any]]]: ...


def assert_each_once(made: Counted) -> None:
    """Every call ran once on the server, and has exactly one committed outcome with its own result."""
    seen, outcomes = made.seen(), made.outcomes_of()
    assert seen.duplicates == 0, [name for name, call in seen.by_id.items() if call.turns > 1]
    assert seen.lost == 0
    assert set(outcomes) == set(made.expected)
    assert [name for name, rows in outcomes.items() if len(rows) != 1] == []
    for name, (outcome,) in outcomes.items():
        assert outcome["status"] == "COMPLETED", outcome
        assert outcome["result"]["echo"] == {"from": name}


def random_moment(seed: int, least_s: float, most_s: float) -> float:
    return random.Random(seed).uniform(least_s, most_s)
