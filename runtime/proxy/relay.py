"""One connection of a client through the proxy: reads requests, and carries out what their rules say.

h11 reads and writes the heads and the framing of both sides, so that bodies with a length and chunked ones
pass alike, and a client keeps its connection.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final, Protocol

import h11

from reattach.runtime.proxy.faults import (
    BODY_KEPT_MAX,
    Answer,
    Cut,
    Exchange,
    Hold,
    Rule,
    Silence,
    Twice,
    Where,
)
from reattach.runtime.proxy.peer import CHUNK_BYTES, Peer, Shape, pause

_HOP: Final = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"te", b"upgrade", b"expect"})
Headers = list[tuple[bytes, bytes]]


class Desk(Protocol):
    """What a relay needs of its proxy."""

    host: str
    port: int

    def take(self, exchange: Exchange) -> Rule | None: ...


class _Over(Exception):
    """The client's connection has come to its end."""


class Relay:
    """See the module's text."""

    def __init__(self, desk: Desk, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._desk = desk
        self._client = Peer(h11.SERVER, (reader, writer))

    async def run(self) -> None:
        try:
            while True:
                exchange = await self._request()
                rule = self._desk.take(exchange)
                exchange.fault = rule.fault if rule is not None else None
                try:
                    await self._carry(exchange, rule)
                except BaseException:
                    # Over means that the client can know of it too.
                    await self._client.closed()
                    raise
                finally:
                    exchange.over = True
                self._client.http.start_next_cycle()
        except (_Over, OSError, EOFError, h11.ProtocolError):
            pass
        finally:
            self._client.end()

    async def _request(self) -> Exchange:
        head = await self._client.event()
        if not isinstance(head, h11.Request):
            raise _Over
        body = bytearray()
        while isinstance(event := await self._client.event(), h11.Data):
            body += event.data
        if not isinstance(event, h11.EndOfMessage):
            raise _Over
        names = {name.decode().lower(): value.decode("latin-1") for name, value in head.headers}
        made = Exchange(head.method.decode(), head.target.decode("latin-1"), names, bytes(body))
        self._headers: Headers = [
            (name, value) for name, value in head.headers.raw_items() if name.lower() not in (*_HOP, b"host")
        ]
        return made

    async def _carry(self, exchange: Exchange, rule: Rule | None) -> None:
        fault = rule.fault if rule is not None else None
        match fault:
            case Cut(Where.BEFORE):
                self._cut(fault.reset)
            case Cut(Where.REQUEST, at):
                size = len(exchange.body)
                await self._forward(exchange, limit=max(0, size + at) if at < 0 else min(at, size))
                self._cut(fault.reset)
            case Cut(Where.SENT):
                server = await self._forward(exchange)
                self._client.end(reset=fault.reset)
                server.end(reset=fault.reset)
                raise _Over
            case Cut(Where.ANSWERED):
                await self._swallow(exchange)
                self._cut(fault.reset)
            case Cut(Where.HEAD):
                await self._swallow(exchange)
                await self._client.write(b"HTTP/1.1 20")
                self._cut(fault.reset)
            case Hold(reset) if rule is not None:
                self._client.end(reset=reset)
                await rule.released.wait()
                await self._swallow(exchange)
                raise _Over
            case Answer():
                if fault.forward:
                    await self._swallow(exchange)
                await self._while_connected(exchange, self._answer(fault))
            case _:
                await self._while_connected(exchange, self._pass(exchange, rule))

    def _cut(self, reset: bool) -> None:
        self._client.end(reset=reset)
        raise _Over

    async def _forward(self, exchange: Exchange, limit: int | None = None) -> Peer:
        """Give the request to the server: all of it, or so many bytes of its body and then an end."""
        server = Peer(h11.CLIENT, await asyncio.open_connection(self._desk.host, self._desk.port))
        host = f"{self._desk.host}:{self._desk.port}".encode()
        headers = [(b"Host", host), *self._headers, (b"Connection", b"close")]
        await server.send(
            h11.Request(method=exchange.method, target=exchange.target.encode("latin-1"), headers=headers)
        )
        exchange.reached = True
        body = exchange.body if limit is None else exchange.body[:limit]
        if body:
            await server.send(h11.Data(data=body))
        if limit is None:
            await server.send(h11.EndOfMessage())
            exchange.forwarded += 1
        else:
            server.end()
        return server

    async def _swallow(self, exchange: Exchange) -> None:
        """Let the server answer in full, and pass nothing of it on."""
        server = await self._forward(exchange)
        try:
            async for _ in self._response(exchange, server):
                pass
        finally:
            server.end()

    async def _response(self, exchange: Exchange, server: Peer) -> AsyncIterator[Any]:
        """The server's answer: a head, pieces of its body, an end."""
        while True:
            event = await server.event()
            if isinstance(event, h11.Response):
                exchange.statuses.append(event.status_code)
                exchange.answer_headers = {k.decode().lower(): v.decode("latin-1") for k, v in event.headers}
                exchange.answer.clear()
            elif isinstance(event, h11.Data):
                exchange.answer += event.data[: BODY_KEPT_MAX - len(exchange.answer)]
            elif not isinstance(event, h11.InformationalResponse | h11.EndOfMessage):
                raise EOFError
            yield event
            if isinstance(event, h11.EndOfMessage):
                return

    async def _while_connected(self, exchange: Exchange, work: Any) -> None:
        """Go on as long as the client listens; a client that goes away takes its request with it."""
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._client.reader.read(CHUNK_BYTES))
        try:
            await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                data = b"" if gone.exception() is not None else gone.result()
                if data:
                    # The next request, from a client that has read this answer to its end.
                    self._client.http.receive_data(data)
                elif not task.done():
                    exchange.client_gone = True
                    raise _Over
            await task
        finally:
            for one in (task, gone):
                one.cancel()
            await asyncio.gather(task, gone, return_exceptions=True)

    async def _pass(self, exchange: Exchange, rule: Rule | None) -> None:
        """Forward the request and pass the answer on, as the rule says."""
        fault = rule.fault if rule is not None else None
        if isinstance(fault, Twice):
            await self._swallow(exchange)
        server = await self._forward(exchange)
        shape = Shape(fault)
        try:
            if isinstance(fault, Silence) and rule is not None:
                await rule.released.wait()
            async for event in self._response(exchange, server):
                match event:
                    case h11.Response():
                        await self._client.send(_head(event.status_code, event.headers.raw_items()))
                        # Before the first byte of the body a cut at 0 is already due.
                        if shape.due(b""):
                            await self._stop(fault, rule)
                    case h11.Data():
                        for piece in shape.pieces(bytes(event.data)):
                            await self._client.send(h11.Data(data=piece))
                            await shape.pace()
                        if shape.over:
                            await self._stop(fault, rule)
                            for piece in shape.rest():
                                await self._client.send(h11.Data(data=piece))
                    case h11.EndOfMessage():
                        if isinstance(fault, Cut):
                            # The body was shorter than the cut: it is cut at its end, before the end is told.
                            await self._stop(fault, rule)
                        await self._client.send(event)
        finally:
            server.end()

    async def _stop(self, fault: Any, rule: Rule | None) -> None:
        if isinstance(fault, Cut):
            self._cut(fault.reset)
        assert rule is not None
        await rule.released.wait()

    async def _answer(self, fault: Answer) -> None:
        if fault.raw:
            await self._client.write(fault.raw)
            self._cut(False)
        headers = [(name.encode(), value.encode("latin-1")) for name, value in fault.headers.items()]
        if fault.repeat == 1:
            headers.append((b"Content-Length", str(len(fault.body)).encode()))
        await self._client.send(_head(fault.status, headers))
        ends = [*fault.pieces, len(fault.body)]
        for number, (start, end) in enumerate(zip([0, *fault.pieces], ends, strict=True), 1):
            if start < end and fault.repeat == 1:
                await self._client.send(h11.Data(data=fault.body[start:end]))
                await pause(number)
        sent = 0
        while fault.repeat != 1 and (sent < fault.repeat or not fault.repeat):
            await self._client.send(h11.Data(data=fault.body))
            sent += 1
        await self._client.send(h11.EndOfMessage())


def _head(status: int, headers: Any) -> h11.Response:
    kept = [(name, value) for name, value in headers if name.lower() not in _HOP]
    return h11.Response(status_code=status, headers=kept)
