"""A remote behind the reference protocol, without a socket: it is up, down, or hangs, as a test says."""

import asyncio
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx

from reattach.adapters.contract import AgentConfig, Limits
from reattach.adapters.http import Client
from reattach.models import effects as f
from reattach.models.invocation import Invocation
from reattach.models.policy import Policy
from reattach.runtime.executor import Executor
from tests.runtime.scripted import call, ident

LATER = 2**52


class Remote:
    """One host name's remote.

    Attributes:
        status: what it answers to a GET and to a POST, an exception to raise, or None to hang.
        asked: what arrived, in order, with the time.
        most: how many requests were there at the same time.
    """

    def __init__(self) -> None:
        self.status: int | Exception | None = 404
        self.body: Mapping[str, Any] = {}
        self.asked: list[tuple[str, float]] = []
        self.there = 0
        self.most = 0
        self.hanging = threading.Event()

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.asked]

    async def answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((request.method, time.monotonic()))
        self.there += 1
        self.most = max(self.most, self.there)
        try:
            if self.status is None:
                self.hanging.set()
                await asyncio.Event().wait()
            # Let others come in, so that `most` can show what is there at the same time.
            await asyncio.sleep(0)
            if isinstance(self.status, Exception):
                raise self.status
            assert self.status is not None
            code = 202 if request.method == "POST" and self.status < 500 else self.status
            return httpx.Response(code, json=dict(self.body))
        finally:
            self.there -= 1


class Net:
    """Remotes by host name, as the transport that an executor opens."""

    def __init__(self) -> None:
        self.remotes: dict[str, Remote] = {}

    def __getitem__(self, name: str) -> Remote:
        return self.remotes.setdefault(name, Remote())

    def open_client(self, *, connections_max: int) -> httpx.AsyncClient:
        return Client(httpx.MockTransport(lambda request: self[request.url.host].answer(request)))


def agent(name: str, limits: Limits | None = None, **policy: Any) -> AgentConfig:
    return AgentConfig(
        name,
        "thread",
        f"http://{name}",
        policy=Policy(**{"retention_ms": 86_400_000, **policy}),
        limits=limits or Limits(),
    )


def of(agent: str, name: str) -> Invocation:
    inv = call(name)
    return replace(inv, request=replace(inv.request, agent=agent, thread_id=""))


def probe(executor: Executor, agent: str, name: str, epoch: int = 1) -> None:
    inv = of(agent, name)
    executor.order(name, f.Probe(ident(inv, epoch)), inv)


def submit(executor: Executor, agent: str, name: str) -> None:
    inv = of(agent, name)
    executor.order(name, f.Submit(ident(inv), LATER), inv)


def watch(executor: Executor, agent: str, name: str) -> None:
    inv = of(agent, name)
    executor.order(name, f.Watch(ident(inv), ""), inv)
