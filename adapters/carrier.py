"""Carries requests over HTTP/1.1 connections that are kept: what jobs use, as it costs a tenth of httpx's own pool.

It does what a durable call needs of a client, and no more: no retries but of a GET whose kept connection had died,
no redirects, no proxies, no cookies, no decoding, no look at the environment. The path goes out as it is given. What
left and what did not is told by where it failed: before a connection was there, nothing has left.
tests/adapters/test_exchange.py pins each of it by what a server had.
"""

import asyncio
import re
import ssl
import time
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

import httpx

from reattach.adapters.connection import Connection, Incoming, Origin
from reattach.adapters.wire import Patience, Unwritable, written

# Shorter than the 5 s after which common servers (uvicorn, Node) drop an idle connection: a request
# written into a connection that is being closed has an unresolved fate.
KEEPALIVE_S: Final = 3.0
_TARGET: Final = re.compile(r"[!-\"$-~]*")


class Carrier:
    """A pool of connections; belongs to the loop that runs.

    Args:
        connections_max: open at the same time; a request beyond it waits.
        tls: verifies the certificates of servers.
    """

    def __init__(self, *, connections_max: int, tls: ssl.SSLContext) -> None:
        self._most, self._tls = connections_max, tls
        self._open: set[Connection] = set()
        self._opening = 0
        self._idle: dict[Origin, list[tuple[float, Connection]]] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    async def carry(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, patience: Patience
    ) -> Incoming:
        """See `Wire.carry`."""
        origin, target = _read(url)
        head = _head(method, target, origin.header, headers, content)
        connection, kept = await self._connection(origin, patience, kept=True)
        incoming = connection.begin(head, content)
        try:
            return await _headed(incoming)
        except (httpx.ReadError, httpx.RemoteProtocolError):
            if method != "GET" or not kept or incoming.heard:
                raise
        # The kept connection had died in the meantime. A read may be repeated, and nothing else.
        connection, _ = await self._connection(origin, patience, kept=False)
        return await _headed(connection.begin(head, content))

    async def aclose(self) -> None:
        """End every connection."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in list(self._open):
            connection.end()
        for waiter in self._waiting:
            _wake(waiter)

    async def _connection(self, origin: Origin, patience: Patience, *, kept: bool) -> tuple[Connection, bool]:
        """A connection, and whether it was used before."""
        known = self._kept(origin) if kept else None
        if known is None and self._full:
            known = await self._place(origin, patience.pool_s, kept=kept)
        if known is not None:
            return known, True
        self._opening += 1
        try:
            connection = None if self._closed else await self._connect(origin, patience.connect_s)
        finally:
            self._opening -= 1
            self._wake_one()
        if connection is None or self._closed:
            raise httpx.ConnectError("the client is closed")
        return connection, False

    @property
    def _full(self) -> bool:
        return len(self._open) + self._opening >= self._most

    def _kept(self, origin: Origin) -> Connection | None:
        """One that is idle, the youngest first."""
        idle = self._idle.get(origin)
        while idle:
            since_s, connection = idle.pop()
            if connection.fit and time.monotonic() - since_s < KEEPALIVE_S:
                return connection
            connection.end()
        return None

    async def _place(self, origin: Origin, pool_s: float, *, kept: bool) -> Connection | None:
        """Wait for an idle connection, or for None as soon as another may be opened."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(pool_s):
                while self._full and not self._closed:
                    if kept and (known := self._kept(origin)) is not None:
                        return known
                    self._give_up_one()
                    waiter = loop.create_future()
                    self._waiting.append(waiter)
                    try:
                        await waiter
                    finally:
                        if waiter in self._waiting:
                            self._waiting.remove(waiter)
        except TimeoutError:
            raise httpx.PoolTimeout("no free connection in time") from None
        return None

    def _give_up_one(self) -> None:
        """End an idle connection, which makes room when it has gone."""
        for idle in self._idle.values():
            if idle:
                idle.pop(0)[1].end()
                return

    async def _connect(self, origin: Origin, connect_s: float) -> Connection:
        loop, secure = asyncio.get_running_loop(), origin.secure
        try:
            async with asyncio.timeout(connect_s):
                _, connection = await loop.create_connection(
                    lambda: Connection(origin, self),
                    origin.host,
                    origin.port,
                    ssl=self._tls if secure else None,
                    server_hostname=origin.host if secure else None,
                    ssl_handshake_timeout=connect_s if secure else None,
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout("no connection in time") from error
        except (OSError, ssl.SSLError, UnicodeError) as error:
            raise httpx.ConnectError("no connection") from error
        return connection

    def made(self, connection: Connection) -> None:
        self._open.add(connection)
        if self._closed:
            connection.end()

    def free(self, connection: Connection) -> None:
        self._idle.setdefault(connection.origin, []).append((time.monotonic(), connection))
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(KEEPALIVE_S, self._end_idle)
        self._wake_one()

    def gone(self, connection: Connection) -> None:
        self._open.discard(connection)
        idle = self._idle.get(connection.origin, [])
        idle[:] = [one for one in idle if one[1] is not connection]
        self._wake_one()

    def _end_idle(self) -> None:
        """Break off what has been idle for too long."""
        self._sweep = None
        before_s = time.monotonic() - KEEPALIVE_S
        for idle in self._idle.values():
            for since_s, connection in idle:
                if since_s <= before_s:
                    connection.end()
        if any(self._idle.values()):
            self._sweep = asyncio.get_running_loop().call_later(KEEPALIVE_S, self._end_idle)

    def _wake_one(self) -> None:
        if self._waiting:
            _wake(self._waiting.popleft())


async def _headed(incoming: Incoming) -> Incoming:
    """Wait for the head; whatever ends the wait sooner ends the connection."""
    try:
        await incoming.head()
    except BaseException:
        incoming.leave()
        raise
    return incoming


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


def _read(url: str) -> tuple[Origin, str]:
    """Where a URL leads, and what is asked for there."""
    begin = url.find("://") + 3
    end = min((at for at in (url.find("/", begin), url.find("?", begin)) if at >= 0), default=len(url))
    origin, target = _origin(url[:end]), url[end:]
    if not _TARGET.fullmatch(target):
        raise Unwritable("not a path that can be requested")
    return origin, target if target.startswith("/") else f"/{target}"


@lru_cache(maxsize=256)
def _origin(text: str) -> Origin:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise Unwritable("not a URL that can be requested") from None
    if parts.scheme not in ("http", "https") or not host or not text.isascii() or "@" in parts.netloc:
        raise Unwritable("not a URL that can be requested")
    secure = parts.scheme == "https"
    return Origin(host, port or (443 if secure else 80), secure, parts.netloc)


def _head(method: str, target: str, host: str, headers: Mapping[str, str], content: bytes | None) -> bytes:
    lines = b"".join(b"%b: %b\r\n" % line for line in written(headers))
    length = b"" if content is None else b"Content-Length: %d\r\n" % len(content)
    return b"%b%b%b\r\n" % (f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n".encode("ascii"), lines, length)
