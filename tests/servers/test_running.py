"""Each real server starts, answers, runs one message once, and leaves nothing behind."""

import socket
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from reattach.runtime.processes import members
from tests.servers import running
from tests.servers.running import Running, a2a, a2a_old, langgraph

pytestmark = pytest.mark.slow
THREAD = str(uuid.UUID(int=7))
Start = Callable[[Path], AbstractContextManager[Running]]


def ask_langgraph(server: Running, text: str) -> str:
    httpx.post(f"{server.url}/threads", json={"thread_id": THREAD, "if_exists": "do_nothing"}).raise_for_status()
    body = {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": text}]}}
    answer = httpx.post(f"{server.url}/threads/{THREAD}/runs/wait", json=body, timeout=30).raise_for_status().json()
    return str(answer["messages"][-1]["content"])


def message(text: str, **parts: Any) -> dict[str, Any]:
    return {"messageId": "m-1", "contextId": THREAD, "parts": [{"text": text, **parts}]}


def rpc(url: str, method: str, params: dict[str, Any], **headers: str) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer: dict[str, Any] = httpx.post(url, json=body, headers=headers, timeout=30).raise_for_status().json()
    assert "error" not in answer, answer
    return dict(answer["result"])


def ask_a2a(server: Running, text: str) -> str:
    params = {"message": {**message(text), "role": "ROLE_USER"}}
    task = rpc(f"{server.url}/rpc", "SendMessage", params, **{"A2A-Version": "1.0"})["task"]
    assert task["history"][0]["messageId"] == "m-1"
    return str(task["artifacts"][0]["parts"][0]["text"])


def ask_a2a_by_rest(server: Running, text: str) -> str:
    params = {"message": {**message(text), "role": "ROLE_USER"}}
    answer = httpx.post(f"{server.url}/rest/message:send", json=params, headers={"A2A-Version": "1.0"}, timeout=30)
    return str(answer.raise_for_status().json()["task"]["artifacts"][0]["parts"][0]["text"])


def ask_a2a_old(server: Running, text: str, path: str = "/") -> str:
    params = {"message": {**message(text, kind="text"), "role": "user"}}
    task = rpc(f"{server.url}{path}", "message/send", params)
    return str(task["artifacts"][0]["parts"][0]["text"])


SERVERS: dict[str, tuple[Start, list[Callable[[Running, str], str]]]] = {
    "langgraph": (langgraph, [ask_langgraph]),
    "a2a": (a2a, [ask_a2a, ask_a2a_by_rest, lambda server, text: ask_a2a_old(server, text, "/rpc")]),
    "a2a_old": (a2a_old, [ask_a2a_old]),
}


@pytest.mark.parametrize("name", SERVERS)
def test_it_starts_answers_and_leaves_nothing_behind(tmp_path: Path, name: str) -> None:
    start, ways = SERVERS[name]
    with start(tmp_path / "server") as server:
        for turn, ask in enumerate(ways, 1):
            assert server.executions() == server.executions(None)
            assert len(server.executions()) == turn - 1
            assert ask(server, "hello @200ms") == f"turn {turn}: hello @200ms"
        for turn, one in enumerate(server.executions(), 1):
            assert (one["kind"], one["text"], one["thread"], one["turn"]) == (
                "message", "hello @200ms", THREAD, turn,
            )  # fmt: skip
        pid = server.pid
        assert pid in members(pid)
    assert members(pid) == []


def test_it_can_be_stopped_and_killed(tmp_path: Path) -> None:
    for order in (Running.stop, Running.kill):
        with a2a(tmp_path / order.__name__) as server:
            order(server)
            assert members(server.pid) == []
            with pytest.raises(httpx.ConnectError):
                httpx.get(server.url)


def test_a_port_that_is_taken_is_not_the_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds: LangGraph's moves to another port by itself, the others end."""
    for start in (langgraph, a2a):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            free = running._free_port()
            ports = iter([port, free])
            monkeypatch.setattr(running, "_free_port", lambda ports=ports: next(ports))
            with start(tmp_path / start.__name__) as server:
                assert server.url.endswith(f":{free}")
                assert next(ports, None) is None
        monkeypatch.undo()


def test_a_missing_environment_says_what_makes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVERS", str(tmp_path))
    with pytest.raises(AssertionError, match="run `make servers`"), langgraph(tmp_path / "server"):
        raise NotImplementedError


def test_a_server_that_ends_by_itself_is_told_with_its_log(tmp_path: Path) -> None:
    broken = running._uvicorn(tmp_path, "a2a", "tests.servers.nothing_there:app")
    with pytest.raises(AssertionError, match="Could not import module"), broken:
        raise NotImplementedError


def test_langgraph_asks_people(tmp_path: Path) -> None:
    with langgraph(tmp_path / "server") as server:
        httpx.post(f"{server.url}/threads", json={"thread_id": THREAD}).raise_for_status()
        runs = f"{server.url}/threads/{THREAD}/runs/wait"
        first = {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "choose ?ask"}]}}
        asked = httpx.post(runs, json=first, timeout=30).raise_for_status().json()
        assert asked["__interrupt__"][0]["value"] == {"question": "which one?"}
        again = {"assistant_id": "agent", "command": {"resume": "blue"}}
        ended = httpx.post(runs, json=again, timeout=30).raise_for_status().json()
        assert ended["messages"][-1]["content"] == "turn 1: choose ?ask -> blue"
        assert [one["kind"] for one in server.executions(None)] == ["message", "answer"]
        failing = {**first, "input": {"messages": [{"role": "user", "content": "hello !fail"}]}}
        assert "__error__" in httpx.post(runs, json=failing, timeout=30).json()


@pytest.mark.parametrize("start", [a2a, a2a_old])
def test_a2a_has_every_state(tmp_path: Path, start: Start) -> None:
    new = start is a2a
    with start(tmp_path / "server") as server:

        def send(text: str, **more: str) -> dict[str, Any]:
            if new:
                params = {"message": {**message(text), "role": "ROLE_USER", **more}}
                answer = rpc(f"{server.url}/rpc", "SendMessage", params, **{"A2A-Version": "1.0"})
                return dict(answer.get("task") or answer["message"])
            params = {"message": {**message(text, kind="text"), "role": "user", **more}}
            return rpc(server.url, "message/send", params)

        def state(answer: dict[str, Any]) -> str:
            return str(answer["status"]["state"]).removeprefix("TASK_STATE_").lower().replace("_", "-")

        assert state(send("hello !failed")) == "failed"
        with pytest.raises(AssertionError, match="the message asked for a failure"):
            send("hello !fail")
        assert state(send("hello !reject")) == "rejected"
        assert state(send("hello ?auth")) == "auth-required"
        asked = send("choose ?ask")
        assert (state(asked), asked["status"]["message"]["parts"][0]["text"]) == ("input-required", "which one?")
        ended = send("blue", taskId=asked["id"], messageId="m-2")
        assert state(ended) == "completed"
        assert ended["artifacts"][0]["parts"][0]["text"] == "turn 5: choose ?ask -> blue"
        said = send("hello !message")
        assert said["parts"][0]["text"] == "turn 6: hello !message"
        assert len(server.executions()) == 6
        assert len(server.executions("answer")) == 1
        chunks = send("hello @300ms !chunks")
        assert [part["text"] for part in chunks["artifacts"][0]["parts"]] == ["tick0 ", "tick1 ", "tick2 "]
