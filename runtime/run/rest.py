"""Flink's REST interface, as much of it as the runner and who watches need. Every answer may be a few seconds old."""

import http.client
import json
import re
import socket
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Final

from reattach.models.lifecycle import Leaf
from reattach.runtime.levels import GROUP, LEVEL, level_of
from reattach.runtime.run.inbox import one_line

TIMEOUT_S: Final = 3.0
ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
OUTCOMES: Final = "outcomes_"


@dataclass(frozen=True, slots=True)
class Health:
    """How the job is.

    Args:
        state: Flink's word, such as RUNNING, RESTARTING, FAILED; "" when it did not answer.
        running: every task runs.
        checkpoints: completed ones, in this run.
        failure: the latest failure in one line, "" for none.
        failures: how many are on record.
    """

    state: str = ""
    running: bool = False
    checkpoints: int = 0
    failure: str = ""
    failures: int = 0


# No proxy from the environment stands between a process and itself.
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Rest:
    """Asks about one job.

    Args:
        port: on this machine.
        url: of the interface, where it is elsewhere.
    """

    def __init__(self, port: int, job_id: str, url: str = "") -> None:
        self._base = f"{url or f'http://127.0.0.1:{port}'}/jobs/{job_id}"
        self._found: dict[str, tuple[str, list[str]]] = {}

    def health(self) -> Health:
        try:
            job = self._get("")
            counts = self._get("/checkpoints")["counts"]
            history = (self._get("/exceptions").get("exceptionHistory") or {}).get("entries") or []
        except (OSError, ValueError, KeyError):
            return Health()
        tasks = [vertex["status"] for vertex in job["vertices"]]
        return Health(
            state=job["state"],
            running=bool(tasks) and all(task == "RUNNING" for task in tasks),
            checkpoints=counts["completed"],
            failure=root_cause(history[0].get("stacktrace", "")) if history else "",
            failures=len(history),
        )

    def live(self) -> dict[str, int]:
        """Calls that have not ended, by status; empty when the job does not tell."""
        counts: dict[str, int] = {}
        for leaf, count in self.live_by_leaf().items():
            counts[leaf.status.name] = counts.get(leaf.status.name, 0) + count
        return counts

    def live_by_leaf(self) -> dict[Leaf, int]:
        """Calls that have not ended; empty when the job does not tell."""
        found = self._told(LEVEL)
        return {leaf: found[name] for leaf in Leaf if (name := level_of(leaf)) in found}

    def outcomes(self) -> dict[Leaf, int]:
        """Calls that have ended since the host last started; empty when the job does not tell."""
        found = self._told(OUTCOMES)
        return {leaf: found[name] for leaf in Leaf if leaf.terminal and (name := OUTCOMES + leaf.value) in found}

    def _told(self, prefix: str) -> dict[str, int]:
        try:
            return self._sums(prefix)
        except (OSError, ValueError, KeyError):
            return {}

    def _sums(self, prefix: str) -> dict[str, int]:
        """Sum over all subtasks the metrics of a host whose names begin so."""
        if prefix not in self._found:
            for vertex in self._get("")["vertices"]:
                # Summed up there: names of all subtasks would be more than a request may be long.
                path = f"/vertices/{vertex['id']}/subtasks/metrics"
                names = [metric["id"] for metric in self._get(path) if f".{GROUP}.{prefix}" in metric["id"]]
                if names:
                    self._found[prefix] = path, names
        if prefix not in self._found:
            return {}
        path, names = self._found[prefix]
        found = self._get(f"{path}?agg=sum&get={','.join(names)}")
        return {metric["id"].rpartition(".")[2]: int(float(metric["sum"])) for metric in found}

    def _get(self, path: str) -> Any:
        return _get(self._base + path)


def jobs_at(url: str) -> list[tuple[str, str, str]]:
    """List the jobs that a JobManager knows: their ids, names and states.

    Raises:
        OSError, ValueError, KeyError: no such answer came.
    """
    return [(job["jid"], one_line(job["name"], 80), job["state"]) for job in _get(f"{url}/jobs/overview")["jobs"]]


def _get(url: str) -> Any:
    try:
        with _OPENER.open(url, timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read(ANSWER_BYTES_MAX))
    except http.client.HTTPException as error:
        raise OSError(f"no HTTP: {type(error).__name__}") from error


def root_cause(trace: str) -> str:
    """Find the line of a Java stack trace that says why, without the packages of its class."""
    causes = re.findall(r"^(?:Caused by: |: )?([\w.$]+(?:Exception|Error)\b.*)$", trace, re.MULTILINE)
    if not causes:
        return one_line(trace.strip().split("\n", 1)[0], 500)
    return one_line(re.sub(r"^(?:[\w$]+\.)+", "", causes[-1]), 500)


def free_port() -> int:
    """Find a port of the loopback interface that nobody uses at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
