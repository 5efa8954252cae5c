"""An `a2a` adapter against a server of plain sockets, over each of its three wires."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from reattach.adapters import http
from reattach.adapters.a2a import A2AAdapter
from reattach.adapters.contract import AgentConfig
from reattach.models.identity import thread_id_of
from reattach.models.invocation import Invocation
from reattach.models.policy import Policy
from tests.adapters import wire

T = TypeVar("T")

RPC: dict[str, Any] = {"binding": "jsonrpc"}
REST: dict[str, Any] = {"binding": "rest"}
OLD: dict[str, Any] = {"version": "0.3"}
WIRES = {"jsonrpc": RPC, "rest": REST, "0.3": OLD}
NEW = {"jsonrpc": RPC, "rest": REST}
OWN = wire.invocation()
KNOWN = wire.invocation(handle="t-7")
SHARED = wire.invocation(thread_id="t")
CONTEXT = thread_id_of(OWN.request, 1)


def config(
    given: dict[str, Any], url: str = "http://127.0.0.1:9", *, result_bytes_max: int = 1024 * 1024, token_env: str = ""
) -> AgentConfig:
    policy = Policy(retention_ms=1_000, result_bytes_max=result_bytes_max)
    return AgentConfig("demo", "a2a", url, token_env, given, policy)


def on(
    url: str, given: dict[str, Any], work: Callable[[A2AAdapter], Awaitable[T]], *, carrier: str = "", **more: Any
) -> T:
    """Run one piece of work with an adapter whose interface is at `/a` of this server: no card is read."""

    async def main() -> T:
        client = http.open_client(carrier=carrier)
        options = given if "card" in given or given.get("endpoint") == "" else {"endpoint": f"{url}/a", **given}
        try:
            async with asyncio.timeout(30):
                return await work(A2AAdapter.configure(config(options, url, **more), client))
        finally:
            await client.aclose()

    return asyncio.run(main())


def against(
    replies: bytes | list[bytes], given: dict[str, Any], work: Callable[[A2AAdapter], Awaitable[T]], **more: Any
) -> T:
    """The same against a server that answers with this, request by request."""
    with wire.Server(wire.answers(*([replies] if isinstance(replies, bytes) else replies))) as server:
        return on(server.url, given, work, **more)


def told(given: dict[str, Any], value: Any, status: str = "200 OK") -> bytes:
    """An answer that carries this value, as the wire wraps it."""
    shown = value if given is REST else {"jsonrpc": "2.0", "id": 1, "result": value}
    return wire.reply(json.dumps(shown).encode(), status)


def sent(given: dict[str, Any], shown: dict[str, Any]) -> bytes:
    """The answer to a message, which is a task."""
    return told(given, shown if given is OLD else {"task": shown})


def fault(given: dict[str, Any], code: int, reason: str, status: str = "400 Bad Request") -> bytes:
    """An error by the protocol's own rules."""
    if given is not REST:
        error = {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": f"about {reason}"}}
        return wire.reply(json.dumps(error).encode())
    shown = {"code": 400, "message": f"about {reason}", "details": [{"x": 1}, {"reason": reason}]}
    return wire.reply(json.dumps({"error": shown}).encode(), status)


def state(given: dict[str, Any], word: str) -> str:
    return word if given is OLD else "TASK_STATE_" + word.upper().replace("-", "_")


def message(name: str, text: str = "hi", *, mine: bool = False) -> dict[str, Any]:
    return {"messageId": name, "role": "ROLE_USER" if mine else "ROLE_AGENT", "parts": [{"text": text}]}


def task(word: str = "working", *, name: str = "t-7", given: dict[str, Any] = RPC, **more: Any) -> dict[str, Any]:
    """A task as an agent shows it; `said` is the message of its status."""
    status: dict[str, Any] = {"state": state(given, word)}
    if said := more.pop("said", None):
        status["message"] = said
    if at := more.pop("at", ""):
        status["timestamp"] = at
    if given is OLD:
        more["kind"] = "task"
    return {"id": name, "status": status, **more}


def mine(name: str = "t-7", word: str = "working", marker: str = "call-1", context: str = CONTEXT) -> dict[str, Any]:
    """A listed task that holds the call's message."""
    return task(word, name=name, contextId=context, history=[message(marker, mine=True)])


def listed(given: dict[str, Any], *tasks: Any, token: str = "", **more: Any) -> bytes:
    return told(given, {"tasks": list(tasks), "nextPageToken": token, "pageSize": 100, **more})


def waiting(question_id: str, *, inv: Invocation = KNOWN) -> Invocation:
    return replace(inv, question_id=question_id)
