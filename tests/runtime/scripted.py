"""An adapter whose answers a test holds back and lets go, and waiting for what must come."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar, Self

import httpx

from reattach.adapters.contract import AgentConfig, Learn
from reattach.models import answers as a
from reattach.models.events import Ident
from reattach.models.invocation import Invocation
from reattach.models.policy import Capabilities, Policy
from reattach.runtime.executor import Executor
from tests.fsm.making import env, started

PATIENCE_S = 20.0


class Script:
    """What a scripted adapter does, and what it was asked to do."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.cancelled: list[tuple[str, str]] = []
        self.running = 0
        self.most = 0
        self.replies: dict[str, Any] = {}
        self.gate = threading.Event()
        self.gate.set()

    async def play(self, kind: str, inv: Invocation, usual: Any) -> Any:
        self.asked.append((kind, inv.id))
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            while not self.gate.is_set():
                await asyncio.sleep(0.002)
            reply = self.replies.get(kind, usual)
            if isinstance(reply, BaseException):
                raise reply
            return reply
        except asyncio.CancelledError:
            self.cancelled.append((kind, inv.id))
            raise
        finally:
            self.running -= 1


class ScriptedAdapter:
    protocol: ClassVar[str] = "scripted"

    def __init__(self, script: Script) -> None:
        self.script = script
        self.capabilities = Capabilities()

    @classmethod
    def configure(cls, config: AgentConfig, client: httpx.AsyncClient) -> Self:
        return cls(config.options["script"])

    async def probe(self, inv: Invocation) -> a.ProbeAnswer:
        answer: a.ProbeAnswer = await self.script.play("probe", inv, a.Absent())
        return answer

    async def submit(self, inv: Invocation, learn: Learn) -> a.SubmitAnswer:
        if "learn" in self.script.replies:
            learn(self.script.replies["learn"])
        answer: a.SubmitAnswer = await self.script.play("submit", inv, a.Accepted())
        return answer

    async def watch(self, inv: Invocation, cursor: str) -> AsyncIterator[a.Progress]:
        for number in range(self.script.replies.get("items", 0)):
            yield a.Progress(b"%d" % number)
        await self.script.play("watch", inv, None)

    async def fetch(self, inv: Invocation) -> a.FetchAnswer:
        answer: a.FetchAnswer = await self.script.play("fetch", inv, a.NotReady())
        return answer

    async def cancel(self, inv: Invocation) -> a.CancelAnswer:
        answer: a.CancelAnswer = await self.script.play("cancel", inv, a.Taken())
        return answer

    async def fence(self, inv: Invocation) -> a.FenceAnswer:
        answer: a.FenceAnswer = await self.script.play("fence", inv, a.Fenced())
        return answer

    async def respond(self, inv: Invocation) -> a.SubmitAnswer:
        answer: a.SubmitAnswer = await self.script.play("respond", inv, a.Accepted())
        return answer


def config(script: Script, **policy: Any) -> AgentConfig:
    return AgentConfig(
        "agent",
        "scripted",
        "http://127.0.0.1:9",
        options={"script": script},
        policy=Policy(**{"retention_ms": 1_000, **policy}),
    )


def call(name: str) -> Invocation:
    return started(env(), name=name).invocation


def ident(inv: Invocation, epoch: int = 1) -> Ident:
    return Ident("life-1", inv.id, 1, epoch)


def until(what: Callable[[], bool], why: str) -> None:
    """Wait for a condition that must come true."""
    limit = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < limit, f"did not happen: {why}"
        time.sleep(0.002)


def facts(executor: Executor, count: int) -> list[tuple[str, Any]]:
    """The next `count` facts; and no more than those."""
    until(lambda: executor.pending >= count, f"{count} facts, there are {executor.pending}")
    return [(key, fact) for key, fact, _ in executor.drain(count + 1)]
