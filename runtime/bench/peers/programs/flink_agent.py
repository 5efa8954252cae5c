"""The agent of the Flink Agents job.

Flink's own process imports it by name, so what it has to know is in the environment of that process.
"""

import asyncio
import os
import threading
from functools import cache
from typing import Any

import aiohttp
from flink_agents.api.agents.agent import Agent
from flink_agents.api.decorators import action
from flink_agents.api.events.event import Event, InputEvent, OutputEvent
from flink_agents.api.runner_context import RunnerContext
from work import Call, outcome, result_of, status_of, submit

URL, CONCURRENCY, RUN_MS = (os.environ.get(f"CALLS_{name}", "0") for name in ("URL", "CONCURRENCY", "RUN_MS"))


class Client:
    """One loop in a thread of its own: an action has no loop, and what it waits for must be a function that blocks."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.session = self.run(self._open())

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=int(CONCURRENCY)))


lock = threading.Lock()
client_of_process = cache(Client)


def client() -> Client:
    with lock:
        return client_of_process()


async def ask(call: Call) -> Any:
    session = client().session
    await submit(session, URL, call)
    return await result_of(session, URL, call, int(RUN_MS))


async def ask_again(call: Call) -> Any:
    """What may have been sent before the crash is looked for, and sent if it is not there."""
    session = client().session
    if (await status_of(session, URL, call))["status"] == "not_started":
        await submit(session, URL, call)
    return await result_of(session, URL, call, int(RUN_MS))


class CallAgent(Agent):
    """One durable call for each request."""

    @action(InputEvent.EVENT_TYPE)
    @staticmethod
    async def on_request(event: Event, ctx: RunnerContext) -> None:
        row = InputEvent.from_event(event).input
        call = Call(row["invocation_id"], row["agent"], row["message"])

        def call_agent() -> Any:
            return client().run(ask(call))

        def reconcile() -> Any:
            return client().run(ask_again(call))

        result = await ctx.durable_execute_async(call_agent, reconciler=reconcile)
        ctx.send_event(OutputEvent(output=outcome(call.name, result)))
