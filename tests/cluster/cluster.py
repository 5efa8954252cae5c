"""A standalone Flink cluster of real processes, from the pip package and with the files of deploy/.

Each process has a session of its own, is known by its pid, and is ended by it. Ports are free ones on the loopback
interface; everything that is written lies in one folder.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyflink

from reattach.runtime.processes import members
from tests.e2e.harness import Process, until

ROOT: Final = Path(__file__).parents[2]
DEPLOY: Final = ROOT / "deploy"
# A death is noticed soon, for tests; the shipped file has times for real networks.
QUICK: Final[Mapping[str, str]] = {
    "heartbeat.interval": "500ms",
    "heartbeat.timeout": "3s",
    # One that was begun as a TaskManager died was seen to hang until then, and no outcome is committed meanwhile.
    "execution.checkpointing.timeout": "30s",
    "restart-strategy.exponential-delay.max-backoff": "1s",
}
SUBMIT_S: Final = 120


class Cluster:
    """One JobManager and any number of TaskManagers.

    Args:
        more: settings that differ from deploy/config.yaml and `QUICK`.
        python: the interpreter whose environment every process has.
    """

    def __init__(self, folder: Path, more: Mapping[str, str] | None = None, python: str = sys.executable) -> None:
        self.folder, self.python = folder, python
        self.conf = folder / "conf"
        (folder / "tmp").mkdir(parents=True)
        shutil.copytree(Path(pyflink.__path__[0]) / "conf", self.conf)
        rpc_port, self.rest_port = free_ports(2)
        settings = {
            **QUICK,
            "jobmanager.rpc.port": str(rpc_port),
            "rest.port": str(self.rest_port),
            "io.tmp.dirs": str(folder / "tmp"),
            **(more or {}),
        }
        (self.conf / "config.yaml").write_text(_with(settings, (DEPLOY / "config.yaml").read_text()))
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self._count = 0
        self.manager = self.start_manager()
        self.workers: list[Process] = []

    def start_manager(self) -> Process:
        self.manager = self._run("jobmanager")

        def answers() -> Any:
            assert self.manager.child.poll() is None, self.manager.text()[-3_000:]
            return self.get("/overview")

        until(answers, "the JobManager's REST interface", 120)
        return self.manager

    def start_workers(self, count: int, more: Mapping[str, str] | None = None, java: str = "") -> list[Process]:
        """Start TaskManagers, without waiting for them.

        Args:
            more: settings of these alone.
            java: options of their JVMs alone.
        """
        started = [self._run("taskmanager", more or {}, java) for _ in range(count)]
        self.workers += started
        return started

    def have_workers(self, count: int) -> None:
        """See that exactly so many TaskManagers are registered, and start what is missing."""
        self.workers = [one for one in self.workers if one.child.poll() is None]
        while len(self.workers) > count:
            self.workers.pop().kill()
        self.start_workers(count - len(self.workers))
        until(lambda: self.registered() == count, f"{count} TaskManagers", 120)

    def registered(self) -> int:
        return len((self.get("/taskmanagers") or {}).get("taskmanagers", ()))

    def submit(self, config: Path, *flags: str, script: tuple[str, ...] = ()) -> str:
        """`flink run -d`: returns the job's id."""
        done = self.flink("run", "-d", *flags, "-py", str(DEPLOY / "job.py"), str(config), *script)
        found = re.search(r"JobID ([0-9a-f]{32})", done.stdout)
        assert done.returncode == 0 and found, done.stdout[-4_000:] + done.stderr[-4_000:]
        return found[1]

    def flink(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = ["bash", "-c", '. "$0" && exec "$FLINK_HOME/bin/flink" "$@"', str(DEPLOY / "env.sh"), *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=self._environment(), capture_output=True, text=True, timeout=SUBMIT_S
        )

    def stop_with_savepoint(self, job: str, folder: Path) -> Path:
        """`flink stop`: returns the savepoint's own folder, when the job has ended."""
        stopped = self.flink("stop", "--savepointPath", f"file://{folder}", job)
        found = re.search(r"Savepoint completed\. Path: file:(\S+)", stopped.stdout)
        assert found, stopped.stdout + stopped.stderr
        return Path(found[1])

    def worker_of(self, job: str, subtask: int = 0) -> Process:
        """The TaskManager in which a subtask of the keyed function runs."""
        resource = until(lambda: self._place(job, subtask), "a running subtask")
        (worker,) = [one for one in self.workers if one.log.stem == resource]
        return worker

    def busy(self, job: str, workers: Sequence[Process]) -> list[Process]:
        """Those of the TaskManagers in which a subtask of the keyed function runs."""
        places = {self._place(job, subtask) for subtask in range(len(self.workers))}
        return [one for one in workers if one.log.stem in places]

    def _place(self, job: str, subtask: int) -> str:
        for vertex in (self.get(f"/jobs/{job}") or {}).get("vertices", ()):
            if "calls" in vertex["name"]:
                for one in (self.get(f"/jobs/{job}/vertices/{vertex['id']}") or {}).get("subtasks", ()):
                    if one["subtask"] == subtask and one["status"] == "RUNNING":
                        return str(one["taskmanager-id"])
        return ""

    def state(self, job: str) -> str:
        """The job's state in Flink's words; "" when there is no answer."""
        return str((self.get(f"/jobs/{job}") or {}).get("state", ""))

    def moved_from(self, job: str, worker: Process) -> bool:
        """The job runs, and none of the keyed function's subtasks in this TaskManager.

        Not `running` alone: for some seconds the JobManager tells what was, and has the lost one's tasks running. And
        `running` last: asked first, it may tell of the tasks of before, and the other of those that are to come.
        """
        return not self.busy(job, [worker]) and self.running(job)

    def running(self, job: str) -> bool:
        """Every task runs, of an attempt that the JobManager believes to be alive."""
        vertices = (self.get(f"/jobs/{job}") or {}).get("vertices", ())
        return bool(vertices) and all(one["status"] == "RUNNING" for one in vertices)

    def failures(self, job: str) -> list[dict[str, Any]]:
        return list((self.get(f"/jobs/{job}/exceptions") or {}).get("exceptionHistory", {}).get("entries", ()))

    def completed(self, job: str) -> int:
        """How many checkpoints have completed."""
        return int((self.get(f"/jobs/{job}/checkpoints") or {}).get("counts", {}).get("completed", 0))

    def cancel(self, job: str) -> None:
        request = urllib.request.Request(f"{self.url}/jobs/{job}?mode=cancel", method="PATCH")
        with contextlib.suppress(OSError), self._opener.open(request, timeout=10):
            pass
        until(lambda: self.state(job) in ("CANCELED", "FAILED", "FINISHED"), "the end of the job", 30)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.rest_port}"

    def get(self, path: str) -> Any:
        """A GET of Flink's REST interface; None without an answer."""
        try:
            with self._opener.open(self.url + path, timeout=10) as answer:
                return json.load(answer)
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        for process in (*self.workers, self.manager):
            # One that is stopped dies of a SIGKILL like any other.
            if process.child.poll() is None:
                process.kill()

    def _run(self, what: str, more: Mapping[str, str] = MappingProxyType({}), java: str = "") -> Process:
        self._count += 1
        name = f"{what}-{self._count}"
        script = f'. "$0" && exec "$FLINK_HOME/bin/{what}.sh" start-foreground "$@"'
        command = ["bash", "-c", script, str(DEPLOY / "env.sh")]
        if what == "taskmanager":
            command += ["-D", f"taskmanager.resource-id={name}"]
        for key, value in more.items():
            command += ["-D", f"{key}={value}"]
        environment = self._environment(name) | ({"JVM_ARGS": java} if java else {})
        return Process(command, self.folder / f"{name}.out", cwd=self.folder, env=environment)

    def _environment(self, name: str = "client") -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("FLINK_", "PYFLINK_"))}
        return inherited | {
            "PYTHON": self.python,
            "CLUSTER_DIR": str(self.folder),
            "FLINK_IDENT_STRING": name,
        }


def stop(process: Process) -> None:
    """SIGSTOP: it holds its connections, and answers nobody."""
    for pid in members(process.child.pid):
        os.kill(pid, signal.SIGSTOP)


def go_on(process: Process) -> None:
    """SIGCONT after `stop`."""
    for pid in members(process.child.pid):
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def cluster(folder: Path, more: Mapping[str, str] | None = None, python: str = sys.executable) -> Iterator[Cluster]:
    made = Cluster(folder, more, python)
    try:
        yield made
    finally:
        made.close()


def _with(settings: Mapping[str, str], text: str) -> str:
    """Replace lines of the shipped file, and add what it does not say."""
    kept = [line for line in text.splitlines() if line.partition(":")[0] not in settings]
    return "\n".join([*kept, *(f"{key}: {value}" for key, value in settings.items())]) + "\n"


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
