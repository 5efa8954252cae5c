"""Start real servers on loopback, each a process group of its own in a folder of its own.

    with langgraph(tmp_path / "server") as server:
        httpx.post(f"{server.url}/threads", json={})
        assert [one["text"] for one in server.executions()] == []

A server whose environment is missing is a failure, not a skip: a promise that nobody checks is none.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.e2e.harness import Process
from tests.servers.behaviour import EFFECTS

ROOT: Final = Path(__file__).resolve().parents[2]
PATIENCE_S: Final = 60.0
STARTS_MAX: Final = 5
HOST: Final = "127.0.0.1"
# LangGraph's server moves to another port without being asked when its own is taken.
MOVED: Final = "is already in use"
# Settings for other programs, which would change what the server does.
FOREIGN: Final = ("PYTHON", "LANGCHAIN_", "LANGGRAPH_", "LANGSMITH_")


class PortTaken(Exception):
    """Somebody took the port between our look and the server's."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers.

    Args:
        url: its base, without a slash at the end.
        effects: what its agent really did, one JSON object a line.
        pid: the server's process, which leads its process group.
    """

    url: str
    effects: Path
    pid: int
    process: Process

    def executions(self, kind: str | None = "message") -> list[dict[str, Any]]:
        """What the agent really did, oldest first: `kind` is `message`, `answer`, or None for both."""
        if not self.effects.exists():
            return []
        lines = [json.loads(line) for line in self.effects.read_text().splitlines()]
        return [line for line in lines if kind in (None, line["kind"])]

    def kill(self) -> None:
        """SIGKILL the whole process group."""
        self.process.kill()

    def stop(self) -> None:
        """Ask it to end, and kill what has not ended in ten seconds."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.child.wait(10)
        self.process.kill()


@contextlib.contextmanager
def langgraph(
    folder: Path, environment: Mapping[str, str] | None = None, *, app: Path = ROOT / "tests/servers/langgraph_app"
) -> Iterator[Running]:
    """LangGraph's development server with one graph, `agent`. Its state is in `folder`.

    Args:
        app: a folder with the graph and its `langgraph.json`; copied.
        environment: variables for the server, for example `LANGGRAPH_DISABLE_FILE_PERSISTENCE`.
    """
    shutil.copytree(app, folder, dirs_exist_ok=True)
    command = [executable("langgraph", "langgraph"), "dev", "--no-browser", "--no-reload", "--host", HOST]
    # It runs one job at a time unless it is told otherwise.
    command += ["--n-jobs-per-worker", "10"]
    quiet = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "NO_COLOR": "1"}
    with _running(folder, command, {**quiet, **(environment or {})}, "/ok") as server:
        yield server


@contextlib.contextmanager
def a2a(folder: Path) -> Iterator[Running]:
    """A server of the A2A SDK 1.x: 1.0 at `/rpc` and `/rest`, and 0.3 at the same addresses."""
    with _uvicorn(folder, "a2a", "tests.servers.a2a_app:app") as server:
        yield server


@contextlib.contextmanager
def a2a_old(folder: Path) -> Iterator[Running]:
    """A server of the A2A SDK 0.3: JSON-RPC at `/`."""
    with _uvicorn(folder, "a2a_old", "tests.servers.a2a_old_app:app") as server:
        yield server


def executable(environment: str, name: str) -> str:
    """A program of a server's own environment.

    Raises:
        AssertionError: it is not there; the text says what makes it.
    """
    folder = Path(os.environ.get("SERVERS", ".servers"))
    found = ROOT / folder / environment / "bin" / name
    assert found.is_file(), f"no {environment} server in {ROOT / folder}: run `make servers`"
    return str(found)


@contextlib.contextmanager
def _uvicorn(folder: Path, environment: str, app: str) -> Iterator[Running]:
    command = [executable(environment, "python"), "-m", "uvicorn", app, "--host", HOST, "--log-level", "warning"]
    with _running(folder, command, {}, "/.well-known/agent-card.json") as server:
        yield server


@contextlib.contextmanager
def _running(folder: Path, command: list[str], more: Mapping[str, str], ready: str) -> Iterator[Running]:
    folder.mkdir(parents=True, exist_ok=True)
    for _ in range(STARTS_MAX - 1):
        with contextlib.suppress(PortTaken):
            server = _start(folder, command, more, ready)
            break
    else:
        server = _start(folder, command, more, ready)
    try:
        yield server
    finally:
        server.process.kill()


def _start(folder: Path, command: list[str], more: Mapping[str, str], ready: str) -> Running:
    port = _free_port()
    url, effects, log = f"http://{HOST}:{port}", folder / "effects.jsonl", folder / f"server-{port}.log"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    environment |= {EFFECTS: str(effects), "REATTACH_TEST_URL": url, "PYTHONPATH": str(ROOT), **more}
    # The sources are the checkout's: nothing is written beside them.
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    process = Process([*command, "--port", str(port)], log, cwd=folder, env=environment)
    try:
        _wait(process, url + ready)
    except BaseException:
        process.kill()
        raise
    return Running(url, effects, process.child.pid, process)


def _wait(process: Process, ready: str) -> None:
    """Until it answers at the address which it was given."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        # The process first, then the answer: else it could be that of another one on the same port.
        ended = process.child.poll() is not None
        text = process.text()
        if MOVED in text or (ended and "address already in use" in text):
            raise PortTaken
        assert not ended, f"the server ended by itself:\n{text[-3_000:]}"
        if _answers(ready) and process.child.poll() is None and MOVED not in process.text():
            return
        assert time.monotonic() < deadline, f"no answer from {ready} in {PATIENCE_S} s:\n{text[-3_000:]}"
        time.sleep(0.05)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
