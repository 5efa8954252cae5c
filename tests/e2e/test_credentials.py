"""No credential is in anything that a job leaves behind: every byte of every file is searched, also after a SIGKILL.

The remote says its callers' headers back in every place that has words: errors, refusals, statuses that nobody knows,
names, reasons, streams. A result is its own, and in those it says nothing of the kind.
"""

import base64
import itertools
import json
import re
import socket
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.adapters import wire
from tests.e2e.harness import Process, World
from tests.e2e.test_scenarios import checkpointed_since

pytestmark = pytest.mark.flink

# The middle of each is the same in every writing of text, and long enough to be nothing else.
CORES = {"REATTACH_TEST_TOKEN": "9f3c1a77e0b24d58a6", "REATTACH_TEST_KEY": "c81d5577f0a94be2b3"}
CREDENTIALS = {"REATTACH_TEST_TOKEN": "tok+9f3c1a77e0b24d58a6/~=", "REATTACH_TEST_KEY": "key%c81d5577f0a94be2b3&"}
TEXT = "the message of a call, which is no secret"
KINDS = {"runs": "COMPLETED", "breaks": "COMPLETED", "puzzles": "COMPLETED", "fails": "FAILED", "refuses": "FAILED"}


def echo_of(headers: str) -> str:
    """All headers in one line, the credential first, so that it is in what is cut as well."""
    lines = headers.split("\r\n")
    return "; ".join(sorted(lines, key=lambda one: not one.lower().startswith(("authorization", "api-key"))))


class Remote:
    """The `thread` protocol, and below `/v1` the Responses API; runs go on until they are let go.

    What is done with a call its message says: see `KINDS`.
    """

    def __init__(self) -> None:
        self.go = threading.Event()
        self.runs: dict[str, Any] = {}
        self.posts: Counter[str] = Counter()
        self._numbers = itertools.count()

    def __call__(self, server: wire.Server, connection: socket.socket) -> None:
        while request := server.request(connection):
            head, _, body = request.partition(b"\r\n\r\n")
            line, _, headers = head.decode("ascii").partition("\r\n")
            method, target, _ = line.split(" ")
            echo = echo_of(headers)
            name = target.removesuffix("/messages").removesuffix("/stream").rpartition("/")[2]
            kind = self.runs.get(name, {}).get("do", "")
            if target.endswith("/stream") and kind in ("runs", "fails"):
                self._stream(connection, kind, echo)
                return
            if method == "POST" and target == "/v1/responses":
                code, shown = self._create(json.loads(body), echo)
            elif method == "POST":
                code, shown = self._start(name, json.loads(body), echo)
            elif target.startswith("/v1/"):
                code, shown = 200, self._response(name, echo)
            else:
                code, shown = self._status(name, echo)
            more = json.dumps({"echo": echo, **shown}).encode()
            connection.sendall(wire.reply(more, f"{code} {echo}", "application/json", f"X-Echo: {echo}"))

    def _posted(self, call: str, message: Any) -> int:
        """The status of a POST; 200 starts a run."""
        self.posts[call] += 1
        if message["do"] == "refuses":
            return 401
        return 500 if message["do"] == "breaks" and self.posts[call] == 1 else 200

    def _start(self, thread: str, body: Any, echo: str) -> tuple[int, Any]:
        code = self._posted(body["message_id"], body["message"])
        if code != 200:
            return code, {"error": {"message": echo}}
        self.runs[thread] = body["message"]
        return 200, {"status": "started", "thread_id": thread}

    def _status(self, thread: str, echo: str) -> tuple[int, Any]:
        message = self.runs.get(thread)
        if message is None:
            return 404, {"error": echo}
        if message["do"] == "fails":
            return 200, {"status": "failed", "error": {"message": f"no: {echo}", "code": echo}}
        if self.go.is_set():
            return 200, {"status": "completed", "result": message}
        return 200, {"status": echo if message["do"] == "puzzles" else "running"}

    def _stream(self, connection: socket.socket, kind: str, echo: str) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        event = f"id: {echo}\nevent: progress\ndata: {json.dumps({'headers': echo})}\n\n"
        connection.sendall(event.encode())
        if kind == "runs":
            self.go.wait(300)

    def _create(self, body: Any, echo: str) -> tuple[int, Any]:
        (message,) = body["input"]
        name = f"resp_{next(self._numbers)}"
        code = self._posted(body["metadata"]["reattach_call"], message)
        if code != 200:
            said = f"Incorrect API key provided: {echo}"
            return code, {"error": {"message": said, "type": echo, "code": "invalid_api_key"}}
        self.runs[name] = {**message, "metadata": body["metadata"]}
        return 200, self._response(name, echo)

    def _response(self, name: str, echo: str) -> Any:
        message = self.runs[name]
        shown = {"id": name, "object": "response", "instructions": echo, "metadata": message["metadata"]}
        if message["do"] == "fails":
            return {**shown, "status": "failed", "error": {"message": f"no: {echo}", "code": "server_error"}}
        said = {"type": "message", "content": [{"type": "output_text", "text": message["text"]}]}
        return {**shown, "status": "completed" if self.go.is_set() else "in_progress", "output": [said]}


class Told(World):
    """A job with an agent of each protocol, each with a credential, and all that it can write but progress."""

    def __init__(self, folder: Path, server: wire.Server) -> None:
        self._remote = server
        self.journal, self.notices, self.logs = folder / "journal", folder / "notices", folder / "logs"
        self.rest = folder / "rest"
        folders = {"journal": str(self.journal), "notices": str(self.notices), "logs": str(self.logs)}
        super().__init__(folder, policy={"backoff_max_ms": 500}, job=folders)

    def _start_server(self) -> Process:
        # The remote is in this process; nothing has to be started for it.
        self.url = self._remote.url
        return Process(["true"], self.folder / "agent.out")

    def _agents(self, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        policy = tables["policy"]
        ahead = {name: value for name, value in policy.items() if name != "retention_ms"}
        options = {"model": "m", "stream": False, "token_header": "api-key"}
        return {
            "thread": {"protocol": "thread", "url": self.url, "token_env": "REATTACH_TEST_TOKEN", "policy": policy},
            "responses": {
                "protocol": "openai_responses",
                "url": f"{self.url}/v1",
                "token_env": "REATTACH_TEST_KEY",
                "options": options,
                "policy": ahead,
            },
        }

    def tell(self, agent: str, kinds: Iterable[str]) -> None:
        """Ask for one call of each of these kinds."""
        now = time.time_ns() // 1_000_000
        rows = {f"{agent}-{kind}": {"do": kind, "text": TEXT} for kind in kinds}
        lines = [
            json.dumps({"invocation_id": name, "agent": agent, "message": message, "requested_at_ms": now})
            for name, message in rows.items()
        ]
        self.drop(agent, lines)
        self.expected += rows

    def keep_rest(self) -> None:
        """Write down what Flink's REST interface shows: settings, failures, checkpoints, and every metric of ours."""
        (port,) = re.findall(r"Rest endpoint listening at [\w.]+:(\d+)", self.read(self.logs))
        self.rest.mkdir()

        def show(path: str) -> Any:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                content = answer.read()
            (self.rest / str(len(list(self.rest.iterdir())))).write_bytes(content)
            return json.loads(content)

        for path in ("/config", "/jobmanager/config", "/jobmanager/environment", "/taskmanagers"):
            show(path)
        (job,) = (f"/jobs/{one['id']}" for one in show("/jobs")["jobs"])
        for path in ("/config", "/exceptions", "/checkpoints", "/plan"):
            show(job + path)
        for vertex in show(job)["vertices"]:
            metrics = f"{job}/vertices/{vertex['id']}/metrics"
            names = [quote(one["id"]) for one in show(metrics) if "reattach" in one["id"]]
            for first in range(0, len(names), 20):
                show(f"{metrics}?get={','.join(names[first : first + 20])}")

    def read(self, folder: Path) -> str:
        """What is committed in one of the job's folders."""
        found = [path for path in sorted(folder.glob("**/*")) if path.is_file() and not path.name.startswith(".")]
        return "".join(path.read_text() for path in found)


def writings(text: str) -> set[bytes]:
    """A text as it may be written: plain, in percent, in UTF-16, in hexadecimal, and within a longer base64."""
    raw = text.encode()
    found = {raw, quote(text, safe="").encode(), text.encode("utf-16-le"), text.encode("utf-16-be"), raw.hex().encode()}
    for before in range(3):
        whole = base64.b64encode(bytes(before) + raw)
        # Without the characters that hold bits of what stands before and behind.
        inner = whole[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
        found |= {inner, inner.replace(b"+", b"-").replace(b"/", b"_")}
    return found


def holding(folder: Path, text: str) -> list[str]:
    """The files of a folder that hold a text, or are named by it, however it is written."""
    found, forms = [], writings(text)
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        content = path.read_bytes() if path.is_file() else b""
        if any(form in content or form in name.encode() for form in forms):
            found.append(name)
    return found


def assert_nowhere(folder: Path) -> None:
    for text in (*CORES.values(), *CREDENTIALS.values()):
        assert holding(folder, text) == []


@pytest.mark.parametrize("writing", ["plain", "percent", "utf-16", "base64"])
def test_the_search_finds_a_credential_however_it_is_written(tmp_path: Path, writing: str) -> None:
    for number in range(4):
        whole = "x" * number + CREDENTIALS["REATTACH_TEST_TOKEN"] + "y"
        encoded = base64.urlsafe_b64encode(whole.encode()) if number % 2 else base64.b64encode(whole.encode())
        written = {
            "plain": whole.encode(),
            "percent": quote(whole, safe="").encode(),
            "utf-16": b"z" * number + whole.encode("utf-16-be"),
            "base64": encoded,
        }
        (tmp_path / str(number)).write_bytes(b"\x00\xff" + written[writing] + b"\xfe")
    assert holding(tmp_path, CORES["REATTACH_TEST_TOKEN"]) == ["0", "1", "2", "3"]
    assert holding(tmp_path, CORES["REATTACH_TEST_KEY"]) == []


def test_no_credential_is_in_any_file_of_a_job_that_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    remote = Remote()
    with wire.Server(remote) as server:
        made = Told(tmp_path / "w", server)
        try:
            made.tell("thread", KINDS)
            made.tell("responses", ("runs", "fails", "refuses"))
            made.start()
            made.until(lambda: len(remote.runs) == 6, "every run")
            made.until(lambda: "unanswered" in made.read(made.notices), "word of the call that makes no sense")
            checkpointed_since(made)
            made.keep_rest()
            made.kill()
            assert_nowhere(tmp_path)
            assert holding(made.checkpoints, TEXT), "the search finds what is there"
            remote.go.set()
            made.start()
            made.finish()
        finally:
            remote.go.set()
            made.close()
    assert_nowhere(tmp_path)
    assert_each_as_it_should(made, remote)
    # All of these places hold what they are for, and would hold more.
    assert holding(made.outcomes, TEXT)
    assert holding(made.journal, "thread-runs"), "within base64"
    assert holding(made.rest, "reattach.submits"), "the metrics"
    assert holding(made.logs, "Completed checkpoint")
    assert "***" in made.read(made.notices)
    for request in server.whole:
        name = "REATTACH_TEST_KEY" if request.split(b" ")[1].startswith(b"/v1/") else "REATTACH_TEST_TOKEN"
        assert CREDENTIALS[name].encode() in request, "it was sent, and said back"


def assert_each_as_it_should(made: Told, remote: Remote) -> None:
    outcomes = made.outcomes_of()
    assert set(outcomes) == set(made.expected)
    for name, (outcome,) in outcomes.items():
        kind = name.partition("-")[2]
        assert outcome["status"] == KINDS[kind], outcome
        assert remote.posts[name] == (2 if kind == "breaks" else 1)
        if outcome["status"] == "COMPLETED":
            assert TEXT in json.dumps(outcome["result"])
        else:
            assert ("***" in outcome["failure"]["message"]) == (kind == "fails"), outcome
