"""An `http_job` adapter against a server of plain sockets, in one call."""

import asyncio
import copy
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from reattach.adapters import http
from reattach.adapters.contract import AgentConfig
from reattach.adapters.http_job import HttpJobAdapter
from reattach.models.policy import Policy
from tests.adapters import wire

T = TypeVar("T")

WORDS = {"queued": "running", "working": "running", "done": "completed", "bad": "failed", "gone": "absent"}
BY_ID: dict[str, Any] = {"submit": "/jobs", "status": "/jobs/{marker}", "status_map": WORDS}
BY_HANDLE: dict[str, Any] = {**BY_ID, "status": "/jobs/{handle}"}
BY_THREAD: dict[str, Any] = {**BY_ID, "submit": "/threads/{thread}", "status": "/threads/{thread}"}
BY_LIST: dict[str, Any] = {**BY_HANDLE, "list": "/jobs?ref={marker}", "paths": {"marker": "ref"}}
WITH_KEY: dict[str, Any] = {**BY_HANDLE, "idempotency": {"lifetime_ms": 86_400_000}}
OWN = wire.invocation()
SHARED = wire.invocation(thread_id="t")


def options(base: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**copy.deepcopy(base), **more}


def config(
    given: dict[str, Any], url: str = "http://127.0.0.1:9", *, result_bytes_max: int = 1024 * 1024, token_env: str = ""
) -> AgentConfig:
    policy = Policy(retention_ms=1_000, result_bytes_max=result_bytes_max)
    return AgentConfig("demo", "http_job", url, token_env, given, policy)


def on(
    url: str, given: dict[str, Any], work: Callable[[HttpJobAdapter], Awaitable[T]], *, carrier: str = "", **more: Any
) -> T:
    """Run one piece of work with an adapter that is configured like this."""

    async def main() -> T:
        client = http.open_client(carrier=carrier)
        try:
            async with asyncio.timeout(30):
                return await work(HttpJobAdapter.configure(config(given, url, **more), client))
        finally:
            await client.aclose()

    return asyncio.run(main())


def against(reply: bytes | list[bytes], given: dict[str, Any], work: Callable[[HttpJobAdapter], Awaitable[T]]) -> T:
    """The same against a server that answers with this, request by request."""
    replies = [reply] if isinstance(reply, bytes) else reply
    with wire.Server(wire.answers(*replies)) as server:
        return on(server.url, given, work)


def body(text: str, status: str = "200 OK", *more: str) -> bytes:
    return wire.reply(text.encode(), status, "application/json", *more)
