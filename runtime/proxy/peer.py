"""One side of a proxied exchange, and where the body of an answer is cut, held or split."""

import asyncio
import contextlib
import socket
import struct
from typing import Any, Final

import h11

from reattach.runtime.proxy.faults import Cut, Fault, Split, Stall, Where

CHUNK_BYTES: Final = 64 * 1024
# Pieces that are to arrive by themselves need a moment: nothing tells a sender when its reader has read. Of many
# pieces the first ones have it, and the others come as they come.
PACE_S: Final = 0.0005
PACED_MAX: Final = 500
CLOSE_S: Final = 1.0
_RESET: Final = struct.pack("ii", 1, 0)
_BLANKS: Final = (b"\n\n", b"\r\n\r\n", b"\r\r")


class Peer:
    """One side: a connection and what h11 knows of it."""

    def __init__(self, role: type[h11.CLIENT | h11.SERVER], streams: Any) -> None:
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self.reader, self.writer = streams
        self.http = h11.Connection(role)
        sock = self.writer.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def event(self) -> Any:
        while (event := self.http.next_event()) is h11.NEED_DATA:
            self.http.receive_data(await self.reader.read(CHUNK_BYTES))
        return event

    async def send(self, event: Any) -> None:
        await self.write(self.http.send(event) or b"")

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def end(self, *, reset: bool = False) -> None:
        """Close with FIN, after what was written; or with RST, at once."""
        sock = self.writer.get_extra_info("socket")
        if reset and sock is not None:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.writer.transport.abort()
        else:
            self.writer.close()

    async def closed(self) -> None:
        """Close, and wait until that is done; not for long where nobody reads what is still to be sent."""
        self.writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self.writer.wait_closed()


class Shape:
    """Says which pieces of an answer's body pass, and when a fault is due."""

    def __init__(self, fault: Fault | None) -> None:
        self._fault = fault
        self._seen = b""
        self._passed = 0
        self.over = False
        self._done = False
        self._paced = 0

    def due(self, chunk: bytes) -> bool:
        """Take a chunk, and say whether the answer has come to the place of its fault."""
        self._seen += chunk
        self.over = not self._done and self._place() is not None
        return self.over

    def pieces(self, chunk: bytes) -> list[bytes]:
        """Take a chunk, and give what passes now."""
        if not isinstance(self._fault, Cut | Stall | Split):
            return [chunk]
        end = self._place() if self.due(chunk) else len(self._seen)
        return self._upto(end)

    def rest(self) -> list[bytes]:
        """What a stall has kept back."""
        self.over, self._done = False, True
        return self._upto(len(self._seen))

    async def pace(self) -> None:
        """Wait between two pieces."""
        if isinstance(self._fault, Split):
            self._paced += 1
            await pause(self._paced)

    def _upto(self, end: int | None) -> list[bytes]:
        piece, self._passed = self._seen[self._passed : end], end or self._passed
        size = self._fault.size if isinstance(self._fault, Split) else max(1, len(piece))
        return [piece[at : at + size] for at in range(0, len(piece), size)]

    def _place(self) -> int | None:
        match self._fault:
            case Cut(Where.BODY, at, 0):
                return at if len(self._seen) >= at else None
            case Cut(Where.BODY, _, events) | Stall(events):
                return _after_events(self._seen, events)
        return None


async def pause(number: int) -> None:
    """Wait behind a piece, by its number."""
    await asyncio.sleep(PACE_S if number <= PACED_MAX else 0)


def _after_events(body: bytes, count: int) -> int | None:
    """Where the first so many events of a stream end; comments are none. None before they have come."""
    at = 0
    while count:
        ends = [body.find(blank, at) + len(blank) for blank in _BLANKS if body.find(blank, at) >= 0]
        if not ends:
            return None
        block, at = body[at : min(ends)], min(ends)
        count -= any(line.startswith(b"data") for line in block.splitlines())
    return at
