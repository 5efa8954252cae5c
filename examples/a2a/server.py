"""An A2A agent of the usual kind, made with the A2A SDK: it takes a message, works on it for a while, and answers.

    GET  /.well-known/agent-card.json    where it is spoken to
    POST /rpc                            A2A 1.0 over JSON-RPC
         /rest/...                       the same over REST

The SDK does not know a message again: whoever sends twice has two tasks.

`--log FILE` keeps a line for each request and for each task that was started. `--lose N` hangs up on the
first N messages after they were taken, as a network may.
"""

import argparse
import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import uvicorn
from a2a.helpers import get_message_text, new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

STEP_S = 0.2


class Log:
    """Lines of JSON, in a file or nowhere."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def note(self, **record: Any) -> None:
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(record) + "\n")


class Agent(AgentExecutor):
    """Says back what it was told, after some steps."""

    def __init__(self, log: Log, seconds: float) -> None:
        self._log = log
        self._steps = max(1, round(seconds / STEP_S))

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = get_message_text(context.message)
        self._log.note(started=context.message.message_id, context=context.context_id)
        # From the message itself: so the task's history names it, by which it is found again.
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        for step in range(self._steps):
            await updater.start_work(updater.new_agent_message([new_text_part(f"step {step + 1}")]))
            await asyncio.sleep(STEP_S)
        await updater.add_artifact([new_text_part(f"you said: {text}")], name="answer")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class Noted:
    """Note each request, and lose the answers to some messages."""

    def __init__(self, app: Any, log: Log, lose: int) -> None:
        self._app, self._log, self._lose = app, log, lose

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or "/.well-known" in scope["path"]:
            await self._app(scope, receive, send)
            return
        body, more = b"", scope["method"] == "POST"
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        method = json.loads(body)["method"] if scope["path"] == "/rpc" else ""
        self._log.note(request=f"{scope['method']} {scope['path']} {method}".strip())
        given = False

        async def again() -> Any:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        lost = self._lose > 0 and (method == "SendMessage" or scope["path"].endswith("/message:send"))
        self._lose -= lost

        async def hang_up(_: Any) -> None:
            send.__self__.transport.abort()

        await self._app(scope, again, hang_up if lost else send)


def application(url: str, log: Log, seconds: float, lose: int) -> Any:
    card = AgentCard(
        name="echo",
        description="Says back what it was told.",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url=f"{url}/rpc", protocol_binding="JSONRPC", protocol_version="1.0"),
            AgentInterface(url=f"{url}/rest", protocol_binding="HTTP+JSON", protocol_version="1.0"),
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="echo", description="Says it back.", tags=["example"])],
    )
    handler = DefaultRequestHandler(Agent(log, seconds), InMemoryTaskStore(), agent_card=card)
    routes = [
        *create_agent_card_routes(card),
        *create_jsonrpc_routes(handler, "/rpc"),
        *create_rest_routes(handler, path_prefix="/rest"),
    ]
    return Noted(Starlette(routes=routes), log, lose)


def main() -> None:
    parser = argparse.ArgumentParser(description="An A2A agent that says back what it was told.")
    parser.add_argument("--port", type=int, default=8323, help="0 lets the system choose")
    parser.add_argument("--seconds", type=float, default=4.0, help="how long a task takes")
    parser.add_argument("--log", type=Path, help="append a line for each request and each task that was started")
    parser.add_argument("--lose", type=int, default=0, help="answers to lose, after the message was taken")
    given = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", given.port))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    print(f"listening on {url}", flush=True)
    app = application(url, Log(given.log), given.seconds, given.lose)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([listener])


if __name__ == "__main__":
    main()
