"""The agent server's HTTP side: an ASGI application without a framework in the hot path.

    POST /api/agents/{agent}/threads/{thread}/messages
    GET  /api/agents/{agent}/threads/{thread}
    GET  /api/agents/{agent}/threads/{thread}/stream
    POST /control/rules     new rules, a JSON object
    POST /control/forget    {} or {"agent": ..., "thread": ...}
    GET  /control/summary   counts from the log

Paths are split before they are decoded, so that any id is one segment.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from starlette.responses import JSONResponse, Response, StreamingResponse

from reattach.models.errors import ConfigError
from reattach.runtime.agent.faults import Rules
from reattach.runtime.agent.log import LogSummary, wall_ms
from reattach.runtime.agent.state import Agent, Key, Thread

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

BODY_BYTES_MAX: Final = 4 * 1024 * 1024
LONG_LINE_BYTES: Final = 100 * 1024 * 1024
_NO_MESSAGE: Final = object()


class Application:
    """ASGI; one per process.

    Args:
        progress_ms: time between two progress events of a stream.
    """

    def __init__(self, agent: Agent, log_path: Path, *, progress_ms: int = 1_000) -> None:
        self._agent = agent
        self._log_path = log_path
        self._progress_s = progress_ms / 1000

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        # Split before decoding: "%2F" in an id is not a separator.
        path = [unquote(part) for part in scope["raw_path"].decode("ascii", "replace").split("/")[1:]]
        match scope["method"], path:
            case "GET", ["api", "agents", agent, "threads", thread]:
                await self._read((agent, thread), scope, receive, send)
            case "POST", ["api", "agents", agent, "threads", thread, "messages"]:
                await self._post((agent, thread), scope, receive, send)
            case "GET", ["api", "agents", agent, "threads", thread, "stream"]:
                await self._stream((agent, thread), scope, receive, send)
            case "POST", ["control", order]:
                await self._control(order, scope, receive, send)
            case "GET", ["control", "summary"]:
                await JSONResponse(_counts(LogSummary.of_file(self._log_path)))(scope, receive, send)
            case _:
                await JSONResponse({"error": "no such path"}, 404)(scope, receive, send)

    async def _read(self, key: Key, scope: Scope, receive: Receive, send: Send) -> None:
        agent, rules, dice = self._agent, self._agent.rules, self._agent.dice
        down = wall_ms() < agent.rules_set_ms + rules.reads_down_ms
        if dice.first_reads(key[1]) or down or dice.read("read_error", key[1]):
            agent.log.write("read", agent=key[0], thread=key[1], status="unavailable")
            await JSONResponse({"error": "unavailable"}, 503)(scope, receive, send)
            return
        status = agent.status(key)
        body = JSONResponse(status)
        agent.log.write("read", agent=key[0], thread=key[1], status=status["status"])
        if rules.read_ms:
            await asyncio.sleep(rules.read_ms / 1000)
        if dice.read("read_drop", key[1]):
            await _drop(receive, send)
            return
        await body(scope, receive, send)

    async def _post(self, key: Key, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        if body is None:
            # The sender went away within its request: this was never a POST.
            return
        message_id, message = _message(body)
        if message is _NO_MESSAGE:
            self._posted(key, message_id, "malformed")
            await JSONResponse({"error": "needs message and message_id"}, 422)(scope, receive, send)
            return
        refusal = self._turned_down(key, message_id)
        if refusal is not None:
            if isinstance(refusal, Response):
                await refusal(scope, receive, send)
            else:
                await _drop(receive, send)
            return
        await self._accept(key, message_id, message, scope, receive, send)

    def _turned_down(self, key: Key, message_id: str) -> Response | bool | None:
        """Decide against a POST: an answer, True to hang up, or None to accept it."""
        rules, dice = self._agent.rules, self._agent.dice
        if dice.post("drop_before", message_id):
            self._posted(key, message_id, "dropped")
            return True
        if dice.post("refuse", message_id):
            self._posted(key, message_id, "refused")
            headers = {"Retry-After": str(rules.retry_after_s)} if rules.retry_after_s >= 0 else {}
            return JSONResponse({"error": "refused"}, rules.refuse_status, headers)
        if dice.post("error_before", message_id):
            self._posted(key, message_id, "error")
            return JSONResponse({"error": "internal"}, 500)
        return None

    async def _accept(
        self, key: Key, message_id: str, message: Any, scope: Scope, receive: Receive, send: Send
    ) -> None:
        agent, rules, dice = self._agent, self._agent.rules, self._agent.dice
        lose = dice.post("lose_answer", message_id)
        broken = dice.post("error_after", message_id)
        if dice.post("late", message_id):
            self._posted(key, message_id, "late")
            admission = asyncio.get_running_loop().create_future()

            def admit() -> None:
                status = agent.admit(key, message_id, message)
                if not admission.done():
                    admission.set_result(status)

            # A timer, not this request: the message gets in whether or not its sender waits.
            asyncio.get_running_loop().call_later(rules.late_ms / 1000, admit)
            status = "started" if rules.late_answer else await admission
        else:
            known = agent.threads.get(key, Thread())
            again = known.status == "running" or (rules.knows_again and message_id in known.ids)
            self._posted(key, message_id, "repeated" if again else "accepted")
            status = agent.admit(key, message_id, message)
        if rules.answer_ms:
            await asyncio.sleep(rules.answer_ms / 1000)
        if lose:
            await _drop(receive, send)
            return
        answer = JSONResponse({"thread_id": key[1], "status": status})
        await (JSONResponse({"error": "internal"}, 500) if broken else answer)(scope, receive, send)

    def _posted(self, key: Key, message_id: str, did: str) -> None:
        self._agent.log.write("post", agent=key[0], thread=key[1], id=message_id, did=did)

    async def _stream(self, key: Key, scope: Scope, receive: Receive, send: Send) -> None:
        mode = self._agent.rules.stream
        self._agent.log.write("stream", agent=key[0], thread=key[1])
        if mode == "none":
            await JSONResponse({"error": "no streams here"}, 404)(scope, receive, send)
            return
        headers = {"Cache-Control": "no-store"}
        if mode == "long_line":
            await StreamingResponse(_long_line(), 200, headers, "text/event-stream")(scope, receive, send)
            return
        events = self._events(key, endless=mode == "endless", cut=mode == "cut")
        response = StreamingResponse(events, 200, headers, "text/event-stream")
        try:
            await response(scope, receive, send)
        except _CutError:
            await _drop(receive, send)

    async def _events(self, key: Key, *, endless: bool, cut: bool) -> Any:
        thread = self._agent.threads.get(key)
        number = 0
        yield b": stream\n\n"
        while endless or (thread is not None and thread.status == "running"):
            number += 1
            data = json.dumps({"n": number, "turn": len(thread.ids) if thread else 0})
            yield f"event: progress\ndata: {data}\n\n".encode()
            if cut:
                raise _CutError
            await self._pause(thread)
        yield b"event: end\ndata: {}\n\n"

    async def _pause(self, thread: Thread | None) -> None:
        if thread is None or thread.status != "running":
            await asyncio.sleep(self._progress_s)
            return
        if thread.ends is None:
            thread.ends = asyncio.Event()
        try:
            async with asyncio.timeout(self._progress_s):
                await thread.ends.wait()
        except TimeoutError:
            return

    async def _control(self, order: str, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            value = json.loads(await _body(receive) or b"{}")
            if order == "rules":
                self._agent.set_rules(Rules.parse(value))
            elif order == "forget":
                self._agent.forget((value["agent"], value["thread"]) if value else None)
            else:
                raise ConfigError(f"{order}: no such order (known: rules, forget)")
        except (ValueError, KeyError, TypeError, ConfigError) as error:
            await JSONResponse({"error": str(error)}, 400)(scope, receive, send)
            return
        await JSONResponse({"done": order})(scope, receive, send)


class _CutError(Exception):
    """The stream's connection is to be dropped."""


async def _long_line() -> Any:
    yield b"event: progress\ndata: "
    for _ in range(LONG_LINE_BYTES // 65_536):
        yield b"x" * 65_536


def _counts(summary: LogSummary) -> dict[str, int]:
    names = ("calls", "posts", "turns", "duplicates", "lost", "unfinished", "reads", "streams")
    return {name: getattr(summary, name) for name in names}


def _message(body: bytes) -> tuple[str, Any]:
    try:
        value = json.loads(body)
        message_id = value["message_id"]
        return (message_id, value["message"]) if isinstance(message_id, str) else ("", _NO_MESSAGE)
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", _NO_MESSAGE


async def _body(receive: Receive) -> bytes | None:
    """Read a whole request body; None when its sender went away or it is too long."""
    body = bytearray()
    while True:
        event = await receive()
        if event["type"] != "http.request":
            return None
        body += event.get("body", b"")
        if len(body) > BODY_BYTES_MAX:
            return None
        if not event.get("more_body"):
            return bytes(body)


async def _drop(receive: Receive, send: Send) -> None:
    """Hang up without an answer. ASGI has no word for it, so this asks uvicorn's connection."""
    cycle = getattr(send, "__self__", None)
    transport = getattr(cycle, "transport", None)
    if transport is None:
        raise RuntimeError("only uvicorn's connections can be dropped")
    transport.abort()
    while (await receive())["type"] != "http.disconnect":
        pass
