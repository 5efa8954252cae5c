"""An `openai_responses` adapter against a server of plain sockets, in one call."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from reattach.adapters import http
from reattach.adapters.contract import AgentConfig
from reattach.adapters.openai_responses import OpenAIResponsesAdapter
from reattach.models.answers import SubmitAnswer
from reattach.models.invocation import Invocation
from reattach.models.policy import Policy, SubmitAfter
from tests.adapters import wire

T = TypeVar("T")
Work = Callable[[OpenAIResponsesAdapter], Awaitable[T]]

STREAMED: dict[str, Any] = {"model": "m-1"}
POLLED: dict[str, Any] = {"model": "m-1", "stream": False}
OWN = wire.invocation()
KNOWN = wire.invocation(handle="resp_7")


def config(
    given: dict[str, Any],
    url: str = "http://127.0.0.1:9/v1",
    *,
    result_bytes_max: int = 1024 * 1024,
    token_env: str = "",
) -> AgentConfig:
    policy = Policy(submit_after=SubmitAfter.CHECKPOINT, result_bytes_max=result_bytes_max)
    return AgentConfig("demo", "openai_responses", url, token_env, given, policy)


def on(url: str, given: dict[str, Any], work: Work[T], *, carrier: str = "", **more: Any) -> T:
    """Run one piece of work with an adapter that is configured like this; `url` includes the version."""

    async def main() -> T:
        client = http.open_client(carrier=carrier)
        try:
            async with asyncio.timeout(30):
                return await work(OpenAIResponsesAdapter.configure(config(given, url, **more), client))
        finally:
            await client.aclose()

    return asyncio.run(main())


def against(reply: bytes | list[bytes], given: dict[str, Any], work: Work[T], **more: Any) -> T:
    """The same against a server that answers with this, request by request."""
    replies = [reply] if isinstance(reply, bytes) else reply
    with wire.Server(wire.answers(*replies)) as server:
        return on(server.url, given, work, **more)


def body(value: Any, status: str = "200 OK", *more: str) -> bytes:
    return wire.reply(json.dumps(value).encode(), status, "application/json", *more)


def events(*told: Any) -> bytes:
    """A whole stream: an object is an event under its own `type`, a text is a frame as it stands."""
    frames = [one if isinstance(one, str) else f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in told]
    return wire.reply("".join(frames).encode(), "200 OK", "text/event-stream")


def event(name: str, number: int, **members: Any) -> dict[str, Any]:
    return {"type": name, "sequence_number": number, **members}


CREATED = event("response.created", 0, response={"id": "resp_7", "status": "queued"})


def response(status: Any = "queued", **members: Any) -> dict[str, Any]:
    return {"id": "resp_7", "object": "response", "status": status, "output": [], **members}


def submit(url: str, given: dict[str, Any], inv: Invocation = OWN, **more: Any) -> tuple[SubmitAnswer, list[str]]:
    """Submit, with what was learned on the way."""
    learned: list[str] = []

    async def work(adapter: OpenAIResponsesAdapter) -> SubmitAnswer:
        return await adapter.submit(inv, lambda handle: learned.append(handle))

    return on(url, given, work, **more), learned


def submit_to(reply: bytes, given: dict[str, Any], inv: Invocation = OWN) -> tuple[SubmitAnswer, list[str]]:
    with wire.Server(wire.answers(reply)) as server:
        answer = submit(server.url, given, inv)
        assert len(server.whole) == 1
    return answer


def watched(reply: bytes, cursor: str = "", given: dict[str, Any] | None = None) -> list[tuple[Any, str]]:
    """What a watch of that stream yields: the event and its cursor."""

    async def work(adapter: OpenAIResponsesAdapter) -> list[tuple[Any, str]]:
        return [(json.loads(item.data), item.cursor) async for item in adapter.watch(KNOWN, cursor)]

    return against(reply, STREAMED if given is None else given, work)
