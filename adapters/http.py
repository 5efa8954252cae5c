"""The one seam to HTTP: what a request came to, as a value.

Adapters call `read` for requests that may be repeated and `send_once` for the one that may not, and
get a `Reply` (a status arrived), `Unsent` (provably nothing left this machine) or `Lost` (anything
else: the remote may have acted). No foreign exception passes, nothing is retried, redirects are not
followed, and bodies are read up to a limit. Causes name the kind of the fault, never a URL, a
payload or a credential.

Total time limits belong to the caller, who cancels; a cancelled exchange stops sending at once.
"""

import asyncio
import contextlib
import errno
import logging
import os
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import httpx

from reattach.adapters.wire import Arrived, Bridge, HttpxWire, Patience, Unwritable, Wire
from reattach.models.errors import ConfigError

try:
    from reattach.adapters.carrier import Carrier
except ImportError:  # httptools is optional: httpx's own pool does the same work, many times slower.
    Carrier = None  # type: ignore[assignment, misc]

CONNECT_S: Final = 5.0
BODY_S: Final = 5.0
CONNECTIONS_MAX: Final = 512

_NEVER_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
)
_CONNECTING: Final = frozenset(
    {"ClientConnectorError", "ConnectionTimeoutError", "InvalidURL", "NonHttpUrlClientError"}
)
PATIENCE: Final = Patience(connect_s=CONNECT_S, pool_s=CONNECT_S)

_MEANING: Final = {
    "ConnectError": "no connection",
    "ConnectTimeout": "no connection in time",
    "PoolTimeout": "no free connection in time",
    "ReadTimeout": "no answer in time",
    "RemoteProtocolError": "the connection ended without a whole answer",
    "ReadError": "the connection broke",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """A status arrived.

    Args:
        body: at most the limit that was asked for.
        fault: "" when the body is whole, else one line on what is wrong with it.
        over: the body was longer than the limit, and `body` is its beginning.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    fault: str = ""
    over: bool = False


@dataclass(frozen=True, slots=True)
class Unsent:
    """Provably nothing left this machine."""

    cause: str


@dataclass(frozen=True, slots=True)
class Lost:
    """No status arrived; the request may have been acted on."""

    cause: str


Answer = Reply | Unsent | Lost
OnHead = Callable[[int, Mapping[str, str]], None]


class Client(httpx.AsyncClient):
    """An httpx client whose wire the seam uses directly, without the client's own layers.

    Those add cookies, redirects, hooks and a log line per request, at many times the cost of the rest. Adapters of
    others may use them all the same: `client.get` ends up on the same wire.
    """

    def __init__(self, wire: Wire | httpx.AsyncBaseTransport) -> None:
        self.wire: Wire = (
            HttpxWire(wire.handle_async_request, wire.aclose) if isinstance(wire, httpx.AsyncBaseTransport) else wire
        )
        super().__init__(transport=Bridge(self.wire), trust_env=False, follow_redirects=False, timeout=None)

    async def aclose(self) -> None:
        await super().aclose()
        await self.wire.aclose()


def open_client(*, connections_max: int = CONNECTIONS_MAX, carrier: str = "") -> httpx.AsyncClient:
    """Build the client that all adapters of one worker share.

    TLS is verified (`verifying`), no proxy is taken from the environment, nothing is retried.

    Args:
        connections_max: at least as many as requests and streams may be in flight.
        carrier: "httptools" or "httpx"; "" for the faster one that is installed.

    Raises:
        ConfigError: the carrier is not installed, or `SSL_CERT_FILE` cannot be read.
    """
    if carrier != "httpx" and Carrier is not None:
        return Client(Carrier(connections_max=connections_max, tls=verifying()))
    if carrier == "httptools":
        raise ConfigError("carrier: httptools is not installed")
    # At DEBUG it prints the heads of answers, in which a remote may echo the token.
    logging.getLogger("httpcore.http11").setLevel(logging.INFO)
    limits = httpx.Limits(
        max_connections=connections_max, max_keepalive_connections=connections_max, keepalive_expiry=3
    )
    return Client(httpx.AsyncHTTPTransport(verify=verifying(), limits=limits, retries=0, trust_env=False))


def verifying() -> ssl.SSLContext:
    """Trust what `SSL_CERT_FILE` or else `SSL_CERT_DIR` of the environment names; without both, certifi's list.

    There is no way to trust everything.

    Raises:
        ConfigError: the file cannot be read. Found out by a POST, that would look like a remote that is down.
    """
    try:
        return httpx.create_ssl_context()
    except OSError:
        named = os.environ.get("SSL_CERT_FILE", "")
        raise ConfigError(f"SSL_CERT_FILE = {named!r}: must be a file of certificates in PEM format") from None


async def read(client: httpx.AsyncClient, url: str, headers: Mapping[str, str], bytes_max: int) -> Answer:
    """GET, which may be repeated at will."""
    return await _exchange(client, "GET", url, headers, None, bytes_max, None, None)


async def send_once(
    client: httpx.AsyncClient,
    url: str,
    headers: Mapping[str, str],
    content: bytes,
    bytes_max: int,
    *,
    method: str = "POST",
    on_head: OnHead | None = None,
    patient: bool = False,
) -> Answer:
    """POST, leaving this machine at most once.

    Args:
        method: for protocols whose submit is a PUT, or whose cancel is a DELETE.
        patient: the answer's body may take its time, as with `read`: for protocols that read by POST.
        on_head: takes the status and the headers as soon as they have arrived, before the body; must not raise.

    Guarantee: the server counts one request at most, however the exchange ends; and after the
    return, or a cancellation, no byte of it leaves any more (tests/adapters/test_exchange.py).
    """
    return await _exchange(client, method, url, headers, content, bytes_max, on_head, None if patient else BODY_S)


@asynccontextmanager
async def open_stream(
    client: httpx.AsyncClient, url: str, headers: Mapping[str, str], *, content: bytes | None = None
) -> AsyncIterator[Arrived | Unsent | Lost]:
    """GET without reading the body; it ends with the context.

    Args:
        content: makes it a POST of these bytes, for protocols that ask for a stream in that way.
    """
    arrived = await _head(client, "GET" if content is None else "POST", url, headers, content)
    try:
        yield arrived
    finally:
        if isinstance(arrived, Arrived):
            await _close(arrived)


async def _exchange(
    client: httpx.AsyncClient,
    method: str,
    url: str,
    headers: Mapping[str, str],
    content: bytes | None,
    bytes_max: int,
    on_head: OnHead | None,
    body_s: float | None,
) -> Answer:
    arrived = await _head(client, method, url, headers, content)
    if not isinstance(arrived, Arrived):
        return arrived
    try:
        if on_head is not None:
            on_head(arrived.status, arrived.headers)
        return await rest_of(arrived, bytes_max, body_s)
    finally:
        await _close(arrived)


async def rest_of(arrived: Arrived, bytes_max: int, body_s: float | None) -> Reply:
    """Read the body of an open answer, such as one of `open_stream` that turned out to be no stream."""
    body = bytearray()
    fault = await _body(arrived, body, bytes_max, body_s)
    over = len(body) > bytes_max
    del body[bytes_max:]
    return Reply(arrived.status, arrived.headers, bytes(body), fault, over)


async def _head(
    client: httpx.AsyncClient, method: str, url: str, headers: Mapping[str, str], content: bytes | None
) -> Arrived | Unsent | Lost:
    if isinstance(client, Client):
        wire = client.wire
    else:
        wire = HttpxWire(partial(client.send, stream=True, follow_redirects=False))
    try:
        return await wire.carry(method, url, headers, content, PATIENCE)
    except Unwritable as error:
        return Unsent(f"the request cannot be written ({error})")
    except Exception as error:
        return Unsent(cause_of(error)) if never_sent(error) else Lost(cause_of(error))


async def _body(arrived: Arrived, body: bytearray, bytes_max: int, limit_s: float | None) -> str:
    """Read into `body`; "" or what is wrong with it. A known status is worth more than its body."""
    if arrived.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        return "the body is compressed, which was not asked for"
    waits = contextlib.nullcontext() if limit_s is None else asyncio.timeout(limit_s)
    try:
        async with waits:
            while chunk := await arrived.chunk():
                body += chunk[: bytes_max - len(body) + 1]
                if len(body) > bytes_max:
                    return f"the body is over {bytes_max} bytes"
    except TimeoutError:
        return f"the body did not end within {limit_s} s"
    except Exception as error:
        return cause_of(error)
    return ""


async def _close(arrived: Arrived) -> None:
    try:
        await arrived.aclose()
    except Exception:
        # The answer is known; how its connection ends cannot change it.
        return


def never_sent(error: BaseException) -> bool:
    """Say whether an error proves that not one byte of the request left.

    The class alone does not: bridges from aiohttp, which somebody may have built his client over, raise
    `ConnectTimeout` for every broken connection, so a cause that comes from aiohttp must be one of its connect errors.
    """
    if not isinstance(error, _NEVER_SENT):
        return False
    cause = error.__cause__
    if cause is None or not type(cause).__module__.startswith("aiohttp"):
        return True
    return any(base.__name__ in _CONNECTING for base in type(cause).__mro__)


def cause_of(error: BaseException) -> str:
    """Describe a transport error in one line, in our words only."""
    name = type(error).__name__
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            break
        if isinstance(seen, ssl.SSLError):
            # Its number is OpenSSL's and none of the system's.
            if said := _of_tls(seen):
                return f"{name}: {said}"
        elif isinstance(seen, OSError) and isinstance(seen.errno, int) and seen.errno in errno.errorcode:
            return f"{name}: {os.strerror(seen.errno)}"
        seen = seen.__cause__ or seen.__context__
    return f"{name}: {_MEANING[name]}" if name in _MEANING else name


def _of_tls(error: ssl.SSLError) -> str:
    """Say what OpenSSL found wrong, "" where only a cause of it knows; the name of the host is left out."""
    found = getattr(error, "verify_message", None)
    if isinstance(found, str) and found:
        return f"certificate verify failed: {found.partition(',')[0]}"
    reason = getattr(error, "reason", None)
    return f"TLS failed: {reason.replace('_', ' ').lower()}" if isinstance(reason, str) and reason else ""
