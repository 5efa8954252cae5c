"""A stand-in for the OpenAI Responses API: `python -m tests.servers.openai_fake --port 0 --log FILE`.

    POST   /v1/responses                     starts a run; every POST starts another, whatever its Idempotency-Key
    GET    /v1/responses/{id}                the response; with `stream=true` its events, after `starting_after`
    POST   /v1/responses/{id}/cancel         ends a background run; a repeated one answers with what there is
    DELETE /v1/responses/{id}                forgets it

There is no list. Runs in the background go on without a listener, others end with their connection;
only what was created with `background` and `stream` can be streamed again. The answer is the input's
text, and words in that text say how the run goes:

    @300ms        how long it takes, in place of `--duration-ms`
    @fail         it fails                      @incomplete   it meets max_output_tokens
    @call         it ends with a function call
    @lose         the POST is accepted, and its answer is never sent
    @no-event     ... and its stream ends before the first event
    @one-event    ... and its stream breaks after the first event
    @cut          every resumed stream breaks after three events

The log has one JSON line per request, one per accepted response with its metadata, and one per run
that died with its connection. What the documentation of the API leaves open is marked "assumed".
"""

import argparse
import asyncio
import json
import re
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from tests.servers.openai_runs import ENDED, Run, started

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class _Cut(Exception):
    """The connection is to be closed where it is."""


class Application:
    """ASGI; one per process.

    Args:
        token: what a caller has to bear, "" for nothing.
        retention_ms: how long a response is kept after its end.
    """

    def __init__(self, log: Path, *, token: str = "", duration_ms: int = 100, retention_ms: int = 86_400_000) -> None:
        self._log = log
        self._token = token
        self._duration_s = duration_ms / 1000
        self._retention_s = retention_ms / 1000
        self._runs: dict[str, Run] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        query = scope["query_string"].decode()
        self._write(request=f"{scope['method']} {scope['path']}" + (f"?{query}" if query else ""))
        try:
            response = await self._route(request)
            await response(scope, receive, send)
        except _Cut:
            _hang_up(send)

    def _write(self, **record: Any) -> None:
        with self._log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    async def _route(self, request: Request) -> Response:
        if self._token and request.headers.get("authorization") != f"Bearer {self._token}":
            return _error(401, "Incorrect API key provided.", code="invalid_api_key")
        path = [unquote(part) for part in request.scope["raw_path"].decode().split("/")[1:]]
        match request.method, path:
            case "POST", ["v1", "responses"]:
                return await self._create(request)
            case "GET", ["v1", "responses", name]:
                return self._stream(name, request) if _wants_stream(request) else self._read(name)
            case "POST", ["v1", "responses", name, "cancel"]:
                return self._cancel(name)
            case "DELETE", ["v1", "responses", name]:
                return self._delete(name)
        return _error(404, f"Invalid URL ({request.method} {request.url.path})")

    async def _create(self, request: Request) -> Response:
        try:
            body = json.loads(await request.body())
        except ValueError:
            return _error(400, "We could not parse the JSON body of your request.")
        wrong = _wrong(body)
        if wrong:
            return _error(400, f"Invalid value for '{wrong}'.", wrong, "invalid_value")
        run = started(body, self._duration_s)
        name = run.response["id"]
        self._runs[name] = run
        self._write(accepted=run.response["metadata"], id=name, input=body["input"])
        if "lose" in run.words:
            raise _Cut
        if run.stream:
            most = 0 if "no-event" in run.words else 1 if "one-event" in run.words else sys.maxsize
            return _events(self._follow(run, -1, most))
        if not run.response["background"] and run.task is not None:
            await run.task
        return JSONResponse(run.response)

    async def _follow(self, run: Run, after: int, most: int) -> AsyncIterator[bytes]:
        """Yield events as they come; the connection breaks after `most`."""
        sent = after + 1
        try:
            while True:
                while sent < len(run.events):
                    if sent - after > most:
                        raise _Cut
                    yield run.events[sent]
                    sent += 1
                if run.response["status"] in ENDED:
                    return
                await run.changed.wait()
        finally:
            if not run.response["background"] and run.response["status"] not in ENDED and run.task is not None:
                run.task.cancel()
                self._write(died=run.response["id"])

    def _find(self, name: str) -> Run | None:
        run = self._runs.get(name)
        if run is not None and run.ended_at and time.monotonic() - run.ended_at >= self._retention_s:
            del self._runs[name]
            return None
        return run if run is not None and run.response["store"] is not False else None

    def _read(self, name: str) -> Response:
        run = self._find(name)
        return _absent(name) if run is None else JSONResponse(run.response)

    def _stream(self, name: str, request: Request) -> Response:
        run = self._find(name)
        if run is None or not run.response["background"]:
            return _absent(name)
        if not run.stream:
            # The guide says that it cannot be; the status is assumed.
            return _error(400, "This response was not created with stream=true and cannot be streamed.", "stream")
        after = parse_qs(request.url.query).get("starting_after", ["-1"])[0]
        if not re.fullmatch(r"-1|\d{1,9}", after):
            return _error(400, "Invalid value for 'starting_after'.", "starting_after", "invalid_value")
        return _events(self._follow(run, int(after), 3 if "cut" in run.words else sys.maxsize))

    def _cancel(self, name: str) -> Response:
        run = self._find(name)
        if run is None:
            return _absent(name)
        if not run.response["background"]:
            # Documented as impossible; the status and the words are assumed.
            return _error(400, "Cannot cancel a synchronous response.")
        if run.response["status"] not in ENDED and run.task is not None:
            run.task.cancel()
            run.move("cancelled")
        return JSONResponse(run.response)

    def _delete(self, name: str) -> Response:
        run = self._find(name)
        if run is None:
            return _absent(name)
        if run.response["status"] not in ENDED and run.task is not None:
            run.task.cancel()
            run.move("cancelled")
        del self._runs[name]
        return JSONResponse({"id": name, "object": "response", "deleted": True})


def _wants_stream(request: Request) -> bool:
    return parse_qs(request.url.query).get("stream") == ["true"]


def _wrong(body: Any) -> str:
    """Name the first parameter that the API would turn down."""
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        return "model"
    if not isinstance(body.get("input"), str | list):
        return "input"
    if body.get("background") is True and body.get("store") is False:
        return "background"
    pairs = body.get("metadata") or {}
    sound = isinstance(pairs, dict) and len(pairs) <= 16
    if not sound or not all(
        len(key) <= 64 and isinstance(text, str) and len(text) <= 512 for key, text in pairs.items()
    ):
        return "metadata"
    return ""


def _error(status: int, message: str, param: str | None = None, code: str | None = None) -> Response:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return JSONResponse({"error": error}, status)


def _absent(name: str) -> Response:
    return _error(404, f"Response with id '{name}' not found.")


def _events(events: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(events, 200, {"Cache-Control": "no-store"}, "text/event-stream")


def _hang_up(send: Send) -> None:
    """Close without another word; what was sent still arrives. ASGI cannot say so, uvicorn's connection can."""
    send.__self__.transport.close()  # type: ignore[attr-defined]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="openai_fake", description="A stand-in for the OpenAI Responses API.")
    parser.add_argument("--port", type=int, default=0, help="0 lets the system choose")
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--token", default="", help="what callers must bear")
    parser.add_argument("--duration-ms", type=int, default=100)
    parser.add_argument(
        "--retention-ms", type=int, default=86_400_000, help="how long a response is kept after its end"
    )
    given = parser.parse_args(arguments)
    app = Application(given.log, token=given.token, duration_ms=given.duration_ms, retention_ms=given.retention_ms)
    listener = socket.create_server(("127.0.0.1", given.port))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/v1", flush=True)
    config = uvicorn.Config(app, lifespan="off", log_level="critical", access_log=False, timeout_graceful_shutdown=1)
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
