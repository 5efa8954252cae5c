"""aiohttp's connector under httpx's API: five times cheaper than httpx's own pool at 256 connections.

The published bridge (`httpx-aiohttp` 0.2) does the same, and is not safe for a request that must
not be repeated. It reports a server that read the whole request and then hung up as
`ConnectTimeout`, which means "never sent" everywhere else, and it lets yarl rewrite the path, so
that an id of two dots climbs out of its prefix. This transport maps by aiohttp's own classes, sends
the path as it is given, and ends a broken exchange so that nothing of it leaves later: closing a
transport would go on writing what is buffered, which is how a cancelled POST lands after its
caller has given up. And it keeps aiohttp from sending anything but a GET again: aiohttp does so for
every method that HTTP calls idempotent, PUT among them. tests/adapters/test_exchange.py pins all four.

It does not retry, follow redirects, read the environment, keep cookies or decode bodies.
"""

import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import aiohttp
import httpx
from yarl import URL

# Shorter than the 5 s after which common servers (uvicorn, Node) drop an idle connection: a request
# written into a connection that is being closed has an unresolved fate.
KEEPALIVE_S: Final = 3.0
CHUNK_BYTES: Final = 64 * 1024
_RESET: Final = struct.pack("ii", 1, 0)


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Carry httpx requests over an aiohttp session.

    Args:
        connections_max: open connections at most; a request above it waits for `pool` seconds.
        tls: verifies the certificates of servers.
    """

    def __init__(self, *, connections_max: int, tls: ssl.SSLContext) -> None:
        self._connections_max = connections_max
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._closed:
            raise httpx.ConnectError("the client is closed", request=request)
        if self._session is None:
            self._session = self._open()
        limits = request.extensions.get("timeout", {})
        body = await request.aread()
        try:
            response = await self._session.request(
                request.method,
                URL(str(request.url), encoded=True),
                headers=list(request.headers.multi_items()),
                skip_auto_headers=("Content-Type",),
                data=body or None,
                allow_redirects=False,
                middlewares=None if request.method == "GET" else (_once,),
                timeout=aiohttp.ClientTimeout(
                    connect=limits.get("pool"), sock_connect=limits.get("connect"), sock_read=limits.get("read")
                ),
            )
        except _Broken as broken:
            raise as_httpx(broken.error) from broken.error
        except Exception as error:
            raise as_httpx(error) from error
        return httpx.Response(response.status, headers=response.raw_headers, stream=_Body(response), request=request)

    async def aclose(self) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        # Built here and not in the constructor: a session belongs to the loop that runs now.
        connector = aiohttp.TCPConnector(
            limit=self._connections_max,
            keepalive_timeout=KEEPALIVE_S,
            ssl=self._tls,
        )
        return aiohttp.ClientSession(
            connector=connector,
            response_class=_Response,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            read_bufsize=CHUNK_BYTES,
            timeout=aiohttp.ClientTimeout(total=None),
        )


def as_httpx(error: Exception) -> Exception:
    """Name an aiohttp error in httpx's terms: connect errors only where nothing can have been sent."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            return httpx.ConnectTimeout("no connection in time")
        case aiohttp.ClientConnectorError():
            return httpx.ConnectError("no connection")
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return httpx.UnsupportedProtocol("not a URL that can be requested")
        case TimeoutError():
            return httpx.ReadTimeout("no bytes in time")
        case aiohttp.ServerDisconnectedError():
            return httpx.RemoteProtocolError("the server closed the connection without an answer")
        case aiohttp.ClientPayloadError():
            return httpx.RemoteProtocolError("the answer was cut")
        case aiohttp.ClientResponseError():
            return httpx.RemoteProtocolError("the answer is not HTTP")
        case aiohttp.ClientConnectionError() | OSError():
            return httpx.ReadError("the connection broke")
    return error


class _Broken(Exception):
    """A broken connection under a name that aiohttp does not know, and so does not try again for."""

    def __init__(self, error: Exception) -> None:
        self.error = error


async def _once(
    request: aiohttp.ClientRequest, handler: Callable[[aiohttp.ClientRequest], Awaitable[aiohttp.ClientResponse]]
) -> aiohttp.ClientResponse:
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _Broken(error) from error


class _Response(aiohttp.ClientResponse):
    """A response that ends its connection at once when it is closed before its end."""

    def close(self) -> None:
        connection = self.connection
        transport = None if connection is None else connection.transport
        if transport is not None:
            _discard_unsent(transport.get_extra_info("socket"))
            transport.abort()
        super().close()


def _discard_unsent(sock: Any) -> None:
    """Let the kernel drop what it has not sent yet when the socket is closed."""
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except Exception as error:
            raise as_httpx(error) from error

    async def aclose(self) -> None:
        # After the last byte the connection is back in the pool and there is nothing left to close.
        self._response.close()
