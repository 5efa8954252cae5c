"""What the conformance kit must be told of a server and its adapter, and how the server is started."""

import contextlib
import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from reattach.adapters.contract import Adapter
from reattach.models.errors import ConfigError
from reattach.models.policy import Policy
from reattach.runtime.proxy.faults import Match, writes

VARIABLE: Final = "REATTACH_CONFORMANCE_TOKEN"
START_S: Final = 60.0
STOP_S: Final = 10.0
MIB: Final = 1024 * 1024
CONFORMANCE_POLICY: Final = Policy(
    submit_timeout_ms=5_000, probe_timeout_ms=5_000, fetch_timeout_ms=5_000, retention_ms=3_600_000
)
Kind = Literal["quick", "slow", "failing", "asking"]


def quick_only(call_id: str, kind: Kind) -> Any:
    """The plainest messages: the call's id, and no other kind."""
    return {"call": call_id} if kind == "quick" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server, its adapter, and what only their author knows.

    Args:
        protocol: the adapter's name; with `adapter` any name.
        executions: counts, on the server's side, how often the run of a call's id was started.
        message: the JSON value that makes a run of one kind for a call's id: `quick` ends soon, `slow` takes
            about 1 or 2 s and tells of its work where there are streams, `failing` fails, `asking` asks one
            question and ends when it is answered. None for a kind that the server does not have.
        answers: counts, on the server's side, the answers to its question that a call's run has worked with.
        answer: the JSON value that answers the question of a call's run.
        owns: whether a result is the one of this call's id, where that can be seen.
        url: the server's base URL, plain http; with `command` only what comes behind host and port.
        command: starts the server; `{port}` stands for a free port. "" where it runs already.
        ready: path that answers 2xx as soon as the server can be used.
        environment: variables for the command, beside those of the tests.
        adapter: the class to test, when it is not registered under `protocol`.
        options: as in a job's configuration; `{url}` in a text stands for the fault proxy's URL.
        policy: as in a job's configuration; its `admission_ms` must hold for this server.
        token_env: the variable of the credential; a made-up one unless the environment has it. "" for none.
        carrier: the HTTP client: "httptools", "httpx", or "" for the one that a job would take here.
        submits: says of a request whether it is the one that starts a run, or answers a question, and so may not
            be repeated. Every request is shown to it as it comes.
        requests: requests of a call without faults, where it is not what the capabilities promise.
        learns_from: what of the submit's answer is enough for the run's name, where that is promised.
        believes_2xx: every 2xx of a submit or a cancel counts, whatever its body, by the protocol's own rule: then
            a sign-in page that a gateway answers with is believed.
        cursor_exact: a resumed stream goes on exactly where it broke; False where the server only tries to.
        memory_bytes_max: what may be held at once for the longest answers.
        patience_s: longest wait for something that must come.
    """

    protocol: str
    executions: Callable[[str], int]
    message: Callable[[str, Kind], Any] = quick_only
    answers: Callable[[str], int] | None = None
    answer: Callable[[str], Any] = lambda call_id: f"answer of {call_id}"
    owns: Callable[[bytes, str], bool] | None = None
    url: str = ""
    command: Sequence[str] = ()
    ready: str = "/"
    environment: Mapping[str, str] = field(default_factory=dict)
    adapter: type[Adapter] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    policy: Policy = CONFORMANCE_POLICY
    token_env: str = VARIABLE
    carrier: str = ""
    submits: Match = writes
    requests: int | None = None
    learns_from: Literal["", "head", "first_event", "body"] = ""
    believes_2xx: bool = False
    cursor_exact: bool = True
    memory_bytes_max: int = 32 * MIB
    patience_s: float = 15.0

    def __post_init__(self) -> None:
        if not self.command and not self.url.startswith("http://"):
            raise ConfigError("url: must be the plain http URL of a server that runs, or set command")


@contextlib.contextmanager
def running(target: Target) -> Iterator[Target]:
    """Start the target's server, where it has a command, and end it afterwards.

    Yields:
        The target with its whole URL.

    Raises:
        ConfigError: the server ends by itself or does not answer; the text shows what it said.
    """
    if not target.command:
        yield target
        return
    port = _free_port()
    base = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [part.replace("{port}", str(port)) for part in target.command],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, **target.environment},
        )
        try:
            fault = _wait(process, base + target.ready)
            if fault:
                said.seek(0)
                raise ConfigError(f"command: {fault}; it said:\n{said.read()[-3_000:].decode(errors='replace')}")
            yield replace(target, url=base + target.url, command=())
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def count_lines(file: Path, *texts: str) -> int:
    """Count the lines of a server's log that hold all of these texts; 0 when there is no file yet."""
    if not file.exists():
        return 0
    return sum(all(text in line for text in texts) for line in file.read_text(errors="replace").splitlines())


def _wait(process: "subprocess.Popen[bytes]", ready: str) -> str:
    limit = time.monotonic() + START_S
    while process.poll() is None:
        try:
            with urllib.request.urlopen(ready, timeout=2):  # noqa: S310
                return ""
        except urllib.error.HTTPError as error:
            error.close()
        except OSError:
            pass
        if time.monotonic() > limit:
            return f"no 2xx from {ready} in {START_S:.0f} s"
        time.sleep(0.02)
    return f"the server ended by itself with code {process.returncode}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
