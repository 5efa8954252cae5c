"""A job over Kafka with real processes: broker, agent server, `deploy/kafka/job.py`, and SIGKILL to each.

Nothing is believed but the agent server's log (what was really started) and what a consumer reads under
read_committed (what others see of the job's result).
"""

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from reattach.runtime.agent.log import LogSummary
from reattach.runtime.run.checkpoints import completed
from tests.e2e.harness import POLICY, Process, until
from tests.kafka.broker import ROOT, Broker, jars

PATIENCE_S: Final = 180.0
PARTITIONS: Final = 2
PASSWORD: Final = "kept-out-of-everything-5d1f"
TOPICS: Final = ("requests", "outcomes", "rejects", "journal", "notices")


class Pipeline:
    """Requests in a topic, agents behind HTTP, outcomes in a topic.

    Args:
        folder: must not exist; its name begins the names of the topics.
        latency: of the agent's runs.
        overlap_ms, parallelism: for a job on a cluster.
    """

    def __init__(self, folder: Path, kafka: Broker, latency: str, *, overlap_ms: int = 0, parallelism: int = 1) -> None:
        folder.mkdir()
        self._policy, self._parallelism = {**POLICY, "overlap_ms": overlap_ms}, parallelism
        self.folder, self.kafka, self._latency = folder, kafka, latency
        self.checkpoints, self._log = folder / "checkpoints", folder / "agent.jsonl"
        self.expected: list[str] = []
        self._runs = 0
        self.job: Process | None = None
        for name in TOPICS:
            kafka.client.create(self._topic(name), PARTITIONS)
        self.server = self._start_server()
        self._write_config()

    def _start_server(self) -> Process:
        command = [sys.executable, "-m", "reattach.runtime.agent", "--port", "0", "--log", str(self._log)]
        server = Process([*command, "--latency", self._latency], self.folder / "agent.out")
        line = until(lambda: [one for one in server.text().splitlines() if "listening on" in one], "the agent server")
        self._url = line[-1].split()[-1]
        return server

    def _write_config(self) -> None:
        tables: dict[str, dict[str, Any]] = {
            "job": {
                **{name: self._topic(name) for name in TOPICS},
                "name": self.folder.name,
                "checkpoints": "checkpoints",
                "parallelism": self._parallelism,
                "checkpoint_interval_ms": 500,
            },
            "agents.echo": {"protocol": "thread", "url": self._url},
            "agents.echo.policy": self._policy,
        }
        lines = []
        for name, table in tables.items():
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
        (self.folder / "job.toml").write_text("\n".join(lines) + "\n")
        # A password that nothing asks for on a plain connection, to be looked for afterwards.
        lines = ["# Of Kafka", f"bootstrap.servers={self.kafka.address}", f"ssl.key.password={PASSWORD}", ""]
        (self.folder / "client.properties").write_text("\n".join(lines))

    def ask(self, count: int, prefix: str = "call") -> None:
        names = [f"{prefix}-{number}" for number in range(count)]
        self.send([self.request(name) for name in names])
        self.expected += names

    def send(self, values: list[bytes | None]) -> None:
        self.kafka.client.send(self._topic("requests"), values)

    def request(self, name: str, message: object = None) -> bytes:
        message = {"from": name} if message is None else message
        row = {"invocation_id": name, "agent": "echo", "message": message, "requested_at_ms": int(time.time() * 1000)}
        return json.dumps(row, ensure_ascii=False).encode("utf-8", "backslashreplace")

    @property
    def command(self) -> list[str]:
        """The job and its arguments."""
        (connector,) = jars("connector")
        job = [str(ROOT / "deploy" / "kafka" / "job.py"), str(self.folder / "job.toml")]
        return [*job, "--client", str(self.folder / "client.properties"), "--connector", str(connector)]

    def start(self) -> None:
        self._runs += 1
        self.job = Process([sys.executable, *self.command], self.folder / f"job-{self._runs}.out", cwd=self.folder)

    def kill(self) -> None:
        assert self.job is not None
        self.job.kill()

    def kill_at_checkpoint(self) -> None:
        """SIGKILL in the moment in which the next checkpoint is complete."""
        before = set(completed(self.checkpoints))
        limit = time.monotonic() + PATIENCE_S
        while not set(completed(self.checkpoints)) - before:
            assert time.monotonic() < limit, "no checkpoint"
        assert self.job is not None
        # The JVM dies with its client, sooner than every process of the job is found.
        os.kill(self.job.child.pid, signal.SIGKILL)
        self.kill()

    def until(self, what: Callable[[], Any], why: str) -> Any:
        """Wait for a condition that must come true while the job lives."""

        def alive() -> Any:
            found, job = what(), self.job
            assert found or job is None or job.child.poll() is None, f"the job ended: {job.text()[-2_000:]}"
            return found

        return until(alive, why, PATIENCE_S)

    def seen(self) -> LogSummary:
        return LogSummary.of_file(self._log, self.expected)

    def values(self, name: str) -> list[bytes]:
        """The committed records of a topic."""
        return self.kafka.client.read(self._topic(name))

    def outcomes_of(self) -> dict[str, list[dict[str, Any]]]:
        """Committed outcomes by invocation id."""
        found: dict[str, list[dict[str, Any]]] = {}
        for outcome in map(json.loads, self.values("outcomes")):
            found.setdefault(outcome["invocation_id"], []).append(outcome)
        return found

    def finish(self) -> None:
        """Wait for every outcome, and then for what two more checkpoints may still commit."""
        self.until(lambda: set(self.outcomes_of()) >= set(self.expected), "every outcome")
        self.more_checkpoints(2)

    def more_checkpoints(self, count: int) -> None:
        for _ in range(count):
            before = set(completed(self.checkpoints))
            self.until(lambda known=before: set(completed(self.checkpoints)) - known, "one more checkpoint")  # type: ignore[misc]

    def _topic(self, name: str) -> str:
        return f"{self.folder.name}.{name}"

    def close(self) -> None:
        if self.job is not None and self.job.child.poll() is None:
            self.job.kill()
        self.server.kill()


@contextlib.contextmanager
def pipeline(folder: Path, kafka: Broker, latency: str = "2s-6s", **cluster: int) -> Iterator[Pipeline]:
    made = Pipeline(folder, kafka, latency, **cluster)
    try:
        yield made
    finally:
        made.close()


def assert_no_password(made: Pipeline) -> None:
    """It stands in no checkpoint, no log and no temporary file."""
    files = [path for path in made.folder.rglob("*") if path.is_file() and path.name != "client.properties"]
    assert any(path.name == "_metadata" for path in files)
    assert [path.name for path in files if PASSWORD.encode() in path.read_bytes()] == []
