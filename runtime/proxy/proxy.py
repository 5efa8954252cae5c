"""A loopback proxy for HTTP/1.1 that does with a request what it is told: cut, hold back, double, answer, stall, split.

It runs in a thread of its own, so that an adapter that blocks its loop does not stop it. Each request is
read whole, matched with the rules in their order, and forwarded over a connection of its own. What it has
seen is kept in `exchanges`.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from reattach.runtime.proxy.faults import Exchange, Fault, Match, Rule, anything
from reattach.runtime.proxy.relay import Relay

START_S: Final = 10.0


class FaultProxy:
    """A context manager.

    Args:
        upstream: base URL of the server, http only.
        on_seen: is shown each request, before its rules are looked up.

    Raises:
        ValueError: it is no such URL.
    """

    def __init__(self, upstream: str, on_seen: Callable[[Exchange], object] = anything) -> None:
        parts = urlsplit(upstream)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"{upstream!r}: the fault proxy needs an absolute URL of a server that speaks plain http")
        self.host, self.port = parts.hostname, parts.port or 80
        self._path = parts.path.rstrip("/")
        self.on_seen = on_seen
        self.exchanges: list[Exchange] = []
        self._rules: list[Rule] = []
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._run, name="fault proxy", daemon=True)
        self._up = threading.Event()
        self._down: asyncio.Event | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._up.wait(START_S) or self._server is None:
            raise OSError("the fault proxy did not start")
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{self._path}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._down is not None
        self._loop.call_soon_threadsafe(self._down.set)
        self._thread.join(START_S)

    def rule(self, fault: Fault, *, match: Match = anything, skip: int = 0, times: int = 1) -> Rule:
        """Set a fault.

        Args:
            skip: matching requests that pass first.
            times: how many are met after those; 0 for no end.
        """
        made = Rule(fault, match, skip, times, loop=self._loop)
        self._rules.append(made)
        return made

    def drop(self, rule: Rule) -> None:
        """Take one rule back, and let go what it holds."""
        self._rules = [one for one in self._rules if one is not rule]
        rule.release()

    def clear(self) -> None:
        """Take all rules back, and let go what they hold."""
        for rule in self._rules:
            self.drop(rule)

    def wait(self, exchange: Exchange, patience_s: float) -> bool:
        """Wait until nothing of an exchange is to come any more; False when it takes longer."""
        limit = time.monotonic() + patience_s
        while not exchange.over and time.monotonic() < limit:
            time.sleep(0.002)
        return exchange.over

    def take(self, exchange: Exchange) -> Rule | None:
        """Note a request, and find the rule that meets it; called by the relay."""
        self.exchanges.append(exchange)
        self.on_seen(exchange)
        return next((rule for rule in self._rules if rule.takes(exchange)), None)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._main())
        finally:
            self._up.set()
            self._loop.close()

    async def _main(self) -> None:
        self._down = asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(Relay(self, reader, writer).run())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        self._server = await asyncio.start_server(connected, "127.0.0.1", 0)
        self._up.set()
        await self._down.wait()
        self._server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
