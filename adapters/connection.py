"""One connection of the `Carrier`: an exchange at a time, parsed by httptools (Node's llhttp).

A connection is fit for another exchange only when the answer ended where it should, the whole request had left
before that, the server does not mind, and not one byte came after it. In every other case it is broken off: what
has not left the kernel by then never does. Closing it in order would go on writing what is buffered, which is how a
cancelled POST lands after its caller has given up.
"""

import asyncio
import contextlib
import socket
import struct
from typing import Any, Final, NamedTuple, Protocol, cast

import httptools
import httpx

from reattach.adapters.wire import Arrived

HEAD_BYTES_MAX: Final = 64 * 1024
# Above it the server waits until somebody reads.
BUFFER_BYTES_MAX: Final = 256 * 1024
_RESET: Final = struct.pack("ii", 1, 0)
_NO_ANSWER: Final = "the server closed the connection without an answer"


class Origin(NamedTuple):
    """Where connections go.

    Args:
        header: how requests name it.
    """

    host: str
    port: int
    secure: bool
    header: str


class Headers(dict[str, str]):
    """Headers of an answer by their names in lower case; of several of one name, all of them in a row."""

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name.lower(), default)

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.lower())


class Incoming(Arrived):
    """The answer to the request that a connection has just sent."""

    headers: Headers

    def __init__(self, connection: "Connection") -> None:
        self.status = 0
        self.headers = Headers()
        #: Something of an answer has been seen.
        self.heard = False
        self.ended = False
        self._connection = connection
        self._chunks: list[bytes] = []
        self._held = 0
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def head(self) -> None:
        """Wait for the head."""
        while not self.status:
            await self._more()

    async def chunk(self) -> bytes:
        while not self._chunks:
            if self.ended:
                return b""
            await self._more()
        taken = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._held = 0
        self._connection.go_on(self)
        return taken

    async def aclose(self) -> None:
        self.leave()

    def leave(self) -> None:
        """Break the exchange off, if it is not over."""
        if not self.ended:
            self._connection.break_off()

    async def _more(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def put(self, chunk: bytes) -> bool:
        """Take a piece of the body; False when enough is held."""
        self._chunks.append(chunk)
        self._held += len(chunk)
        return self._held <= BUFFER_BYTES_MAX

    def fail(self, error: Exception) -> None:
        self._error = error
        self.wake()


class Owner(Protocol):
    """Who keeps connections."""

    def made(self, connection: "Connection") -> None: ...

    def free(self, connection: "Connection") -> None:
        """It is fit for another exchange."""
        ...

    def gone(self, connection: "Connection") -> None:
        """It has ended; said once of each that was made."""
        ...


class Connection(asyncio.Protocol):
    """See the module's text."""

    _transport: asyncio.Transport

    def __init__(self, origin: Origin, owner: Owner) -> None:
        self.origin = origin
        self._owner = owner
        self._incoming: Incoming | None = None
        self._parser: Any = None
        self._head_bytes = 0
        self._interim = self._paused = self._complete = self._spoilt = False

    @property
    def fit(self) -> bool:
        return self._incoming is None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's are of a class of their own.
        self._transport = cast("asyncio.Transport", transport)
        self._owner.made(self)

    def begin(self, head: bytes, content: bytes | None) -> Incoming:
        """Send a request."""
        self._incoming = Incoming(self)
        # A fresh one each time: nothing that one answer did to it reaches the next.
        self._parser = httptools.HttpResponseParser(self)
        self._head_bytes = 0
        self._interim = self._complete = self._spoilt = False
        if self._transport.is_closing():
            self._incoming.fail(httpx.RemoteProtocolError(_NO_ANSWER))
        else:
            self._transport.write(head + content if content else head)
        return self._incoming

    def go_on(self, incoming: Incoming) -> None:
        """Read on; what was held has been taken."""
        if self._paused and incoming is self._incoming:
            self._paused = False
            self._transport.resume_reading()

    def end(self) -> None:
        """End it, in order when it is idle."""
        if self._incoming is None:
            self._transport.close()
        else:
            self.break_off()

    def break_off(self) -> None:
        """End it at once: nothing more leaves, and the server is told by a reset."""
        sock = self._transport.get_extra_info("socket")
        if sock is not None:
            with contextlib.suppress(OSError):
                # The kernel then drops what it has not sent yet.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        incoming = self._incoming
        if incoming is None:
            # Nobody asked for anything.
            self.break_off()
            return
        incoming.heard = True
        if not incoming.status:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self._complete:
                self._broken(httpx.RemoteProtocolError("the answer is not HTTP"), error)
                return
            self._spoilt = True
        if not incoming.status and self._head_bytes > HEAD_BYTES_MAX:
            self._broken(httpx.RemoteProtocolError("the answer's head is too long"), None)
            return
        if self._complete:
            self._end(incoming)
        incoming.wake()

    def eof_received(self) -> None:
        """The transport closes itself."""

    def connection_lost(self, error: Exception | None) -> None:
        incoming, self._incoming = self._incoming, None
        if incoming is not None and not incoming.ended:
            if error is not None:
                broke = httpx.ReadError("the connection broke")
                broke.__cause__ = error
                incoming.fail(broke)
            elif incoming.status and _lasts_until_the_end(incoming):
                incoming.ended = True
                incoming.wake()
            else:
                incoming.fail(httpx.RemoteProtocolError("the answer was cut" if incoming.heard else _NO_ANSWER))
        self._owner.gone(self)

    def on_message_begin(self) -> None:
        self._spoilt = self._spoilt or self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        incoming = self._incoming
        if incoming is not None and not self._complete:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            headers = incoming.headers
            headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        incoming = self._incoming
        if incoming is None or self._complete:
            return
        status = self._parser.get_status_code()
        self._interim = status < 200
        if self._interim:
            incoming.headers.clear()
        else:
            incoming.status = status

    def on_body(self, body: bytes) -> None:
        incoming = self._incoming
        if incoming is not None and not self._complete and not incoming.put(body) and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        self._complete = not self._interim
        # The parser forgets it with the next byte.
        self._spoilt = self._spoilt or (self._complete and not self._parser.should_keep_alive())

    def _end(self, incoming: Incoming) -> None:
        """The answer is whole."""
        incoming.ended = True
        self._incoming = None
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        early = self._transport.get_write_buffer_size() > 0
        if self._spoilt or early:
            self.break_off()
        else:
            self._owner.free(self)

    def _broken(self, error: Exception, cause: Exception | None) -> None:
        error.__cause__ = cause
        incoming, self._incoming = self._incoming, None
        if incoming is not None:
            incoming.fail(error)
        self.break_off()


def _lasts_until_the_end(incoming: Incoming) -> bool:
    """The body of this answer ends with its connection, as no head says where."""
    headers = incoming.headers
    return "content-length" not in headers and "chunked" not in headers.get("transfer-encoding", "").lower()
