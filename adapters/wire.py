"""Below the seam: a `Wire` carries one request to an answer whose body is still to come.

Two wires are there: `carrier.Carrier`, which jobs use, and any of httpx's transports in a `HttpxWire`. A
`Bridge` is the way back: it shows a wire to an `httpx.AsyncClient`, so that adapters may use all of httpx's API.

A wire raises httpx's exceptions. `ConnectError`, `ConnectTimeout` and `PoolTimeout` mean that not one byte of the
request has left, and so does `Unwritable`; every other one leaves that open.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import httpx

_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE: Final = re.compile(r"[^\x00-\x1f\x7f]*")
_LONG_S: Final = 3_600.0
# A wire writes them itself.
_OURS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection"})


class Unwritable(ValueError):
    """The request cannot be written as HTTP; nothing was sent."""


def written(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Headers as bytes: a cursor that a remote has named is UTF-8, and a line end in it would begin another header.

    Raises:
        Unwritable: a name or a value that no header can have.
    """
    lines = []
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise Unwritable("a header that cannot be sent")
        try:
            lines.append((name.encode(), value.encode()))
        except UnicodeEncodeError:
            raise Unwritable("a header that is not Unicode text") from None
    return lines


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a request may wait before it leaves.

    Args:
        connect_s: for a new connection, its TLS included.
        pool_s: for a place among the connections.
    """

    connect_s: float
    pool_s: float


class Arrived(ABC):
    """The head of an answer has arrived.

    Attributes:
        headers: found by any case of their names.
    """

    status: int
    headers: Mapping[str, str]

    @abstractmethod
    async def chunk(self) -> bytes:
        """The next piece of the body, b"" at its end.

        Raises:
            httpx.TransportError: it was cut.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Leave the rest. After the end of the body there is nothing left to do."""


class Wire(Protocol):
    """Carries requests."""

    async def carry(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, patience: Patience
    ) -> Arrived:
        """Send a request once, unless it is a GET, and wait for the head of its answer.

        Raises:
            Unwritable, httpx.TransportError: see the module's text.
        """
        ...

    async def aclose(self) -> None: ...


class HttpxWire:
    """What sends requests of httpx, as a wire: one of its own transports, or somebody's client.

    Args:
        send: gives the response with its body unread.
        close: ends it.
    """

    def __init__(
        self,
        send: Callable[[httpx.Request], Awaitable[httpx.Response]],
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._send, self._close = send, close

    async def carry(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, patience: Patience
    ) -> Arrived:
        limits = {"connect": patience.connect_s, "pool": patience.pool_s, "read": None, "write": None}
        lines = written(headers)
        try:
            request = httpx.Request(method, url, headers=lines, content=content, extensions={"timeout": limits})
        except (httpx.InvalidURL, ValueError, TypeError) as error:
            raise Unwritable(type(error).__name__) from None
        return _Answered(await self._send(request))

    async def aclose(self) -> None:
        if self._close is not None:
            await self._close()


class _Answered(Arrived):
    """An answer of httpx."""

    def __init__(self, response: httpx.Response) -> None:
        self.status, self.headers = response.status_code, response.headers
        self._stream = response.stream
        self._chunks: AsyncIterator[bytes] = aiter(self._stream)  # type: ignore[arg-type]

    async def chunk(self) -> bytes:
        async for chunk in self._chunks:
            if chunk:
                return chunk
        return b""

    async def aclose(self) -> None:
        await self._stream.aclose()  # type: ignore[union-attr]


class Bridge(httpx.AsyncBaseTransport):
    """A wire as a transport of httpx. It is not closed with it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        limits: Mapping[str, Any] = request.extensions.get("timeout", {})
        patience = Patience(limits.get("connect") or _LONG_S, limits.get("pool") or _LONG_S)
        content = await request.aread()
        headers = {name: value for name, value in request.headers.items() if name not in _OURS}
        body = None if request.method in ("GET", "HEAD") and not content else content
        try:
            async with asyncio.timeout(limits.get("read")):
                arrived = await self._wire.carry(request.method, str(request.url), headers, body, patience)
        except TimeoutError as error:
            raise httpx.ReadTimeout("no answer in time", request=request) from error
        except Unwritable as error:
            raise httpx.UnsupportedProtocol(str(error), request=request) from error
        return httpx.Response(arrived.status, headers=dict(arrived.headers), stream=_Rest(arrived), request=request)


class _Rest(httpx.AsyncByteStream):
    def __init__(self, arrived: Arrived) -> None:
        self._arrived = arrived

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await self._arrived.chunk():
            yield chunk

    async def aclose(self) -> None:
        await self._arrived.aclose()
