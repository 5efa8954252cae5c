"""Servers that speak TLS, with certificates that are made when a test begins; what gets through is counted."""

import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, cast

import trustme

from tests.adapters import wire

HOST: Final = "127.0.0.1"
NAME: Final = "localhost"
Behave = Callable[[wire.Server, socket.socket], None]


class Authorities:
    """An authority that may be trusted, and one that nobody knows. Each method is a server's side of TLS.

    Args:
        folder: for the certificates that have to be files.
    """

    def __init__(self, folder: Path) -> None:
        self._ours, self._unknown, self._folder = trustme.CA(), trustme.CA(), folder
        self.file = folder / "ours.pem"
        self._ours.cert_pem.write_to_path(self.file)

    def good(self) -> ssl.SSLContext:
        return _bearing(self._ours.issue_cert(HOST, NAME))

    def for_another_host(self) -> ssl.SSLContext:
        return _bearing(self._ours.issue_cert("127.0.0.2", "elsewhere.example"))

    def expired(self) -> ssl.SSLContext:
        now = datetime.now(UTC)
        began, ended = now - timedelta(days=9), now - timedelta(days=1)
        return _bearing(self._ours.issue_cert(HOST, NAME, not_before=began, not_after=ended))

    def of_nobody_known(self) -> ssl.SSLContext:
        return _bearing(self._unknown.issue_cert(HOST, NAME))

    def self_signed(self) -> ssl.SSLContext:
        both = self._folder / "self-signed.pem"
        both.write_bytes(self._unknown.private_key_pem.bytes() + self._unknown.cert_pem.bytes())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)
        return context

    def asking_back(self) -> ssl.SSLContext:
        """A good one that wants a certificate of its client as well."""
        context = self.good()
        self._ours.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
        return context


def _bearing(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


class _Heard:
    """A connection that adds what is read from it to `received` of its server."""

    def __init__(self, server: wire.Server, connection: socket.socket) -> None:
        self._server, self._connection = server, connection

    def recv(self, size: int) -> bytes:
        data = self._connection.recv(size)
        self._server.received += len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def heard(behave: Behave) -> Behave:
    """The same, with every byte counted in `received`, those of half a request too."""

    def counting(server: wire.Server, connection: socket.socket) -> None:
        behave(server, cast(socket.socket, _Heard(server, connection)))

    return counting


def secured(context: ssl.SSLContext, behave: Behave) -> Behave:
    """The same behind TLS: what is counted has come through it."""

    def behind(server: wire.Server, connection: socket.socket) -> None:
        # Where the client turns the certificate down this raises, and nothing is ever read.
        with context.wrap_socket(connection, server_side=True) as through:
            heard(behave)(server, through)

    return behind


def https(server: wire.Server, host: str = HOST) -> str:
    return server.url.replace("http:", "https:").replace(HOST, host)
