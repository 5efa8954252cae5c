"""A `langgraph` adapter against a server, in one call."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from reattach.adapters import http
from reattach.adapters.contract import AgentConfig
from reattach.adapters.langgraph import LangGraphAdapter
from reattach.models.policy import Policy
from tests.adapters import wire

T = TypeVar("T")

PER_CALL: dict[str, Any] = {"assistant": "agent"}
SHARED: dict[str, Any] = {"assistant": "agent", "threads": "shared"}
RUN = "01a2298c-9647-711a-b6f9-e7ba6e0d034e"


def config(
    options: dict[str, Any],
    url: str = "http://127.0.0.1:9",
    *,
    token_env: str = "",
    result_bytes_max: int = 1024 * 1024,
) -> AgentConfig:
    policy = Policy(retention_ms=1_000, result_bytes_max=result_bytes_max)
    return AgentConfig("demo", "langgraph", url, token_env, options, policy)


def on(
    url: str,
    work: Callable[[LangGraphAdapter], Awaitable[T]],
    options: dict[str, Any] | None = None,
    *,
    carrier: str = "",
    **more: Any,
) -> T:
    """Run one piece of work with an adapter that is configured like this."""

    async def main() -> T:
        client = http.open_client(carrier=carrier)
        try:
            async with asyncio.timeout(30):
                return await work(LangGraphAdapter.configure(config(options or PER_CALL, url, **more), client))
        finally:
            await client.aclose()

    return asyncio.run(main())


def against(
    replies: list[bytes], work: Callable[[LangGraphAdapter], Awaitable[T]], options: dict[str, Any] | None = None
) -> tuple[T, list[str]]:
    """The same against a server that answers with these, request by request.

    Returns:
        The work's result, and the method and path of each request.
    """
    with wire.Server(wire.answers(*replies)) as server:
        answer = on(server.url, work, options)
    return answer, [" ".join(one.decode("latin-1").split(" ")[:2]) for one in server.whole]


def body(value: Any, status: str = "200 OK", *more: str) -> bytes:
    return wire.reply(json.dumps(value).encode(), status, "application/json", *more)


def a_run(status: str = "success", run_id: str = RUN, created: str = "2026-01-01T00:00:00+00:00", **marks: str) -> Any:
    metadata = {f"reattach_{name}": value for name, value in marks.items()}
    return {"run_id": run_id, "status": status, "created_at": created, "metadata": metadata}


def snapshot(values: Any = None, following: list[str] | None = None, tasks: Any = ()) -> Any:
    return [{"values": values, "next": following or [], "tasks": list(tasks)}]


def ignore(handle: str) -> None:
    """Nobody waits for the run's id."""
