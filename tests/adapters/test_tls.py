"""Certificates are verified, over either carrier: behind a bad one not a byte arrives, and the cause says so.

The servers are real and speak TLS. Each case is judged by what the server could read: of a request that is
called `Unsent`, that must be nothing.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from reattach.adapters import http, registry
from reattach.adapters.contract import AgentConfig
from reattach.models.answers import Accepted, NotSent, Present, Unknown
from reattach.models.errors import ConfigError
from tests.adapters import tls, wire
from tests.adapters.loop import run
from tests.adapters.tls import Authorities, Behave, https

TOKEN = "tok-3f9a1c77e0"
CARRIERS = pytest.mark.parametrize("carrier", ["httptools", "httpx"])
# By name: what the server shows, under which name it is asked for, and what the cause has to say.
BAD: dict[str, tuple[Callable[[Authorities], Any], str, str]] = {
    "self-signed": (Authorities.self_signed, tls.HOST, "self.signed certificate"),
    "unknown authority": (Authorities.of_nobody_known, tls.HOST, "unable to get local issuer certificate"),
    "another name": (Authorities.for_another_host, tls.NAME, "Hostname mismatch"),
    "another address": (Authorities.for_another_host, tls.HOST, "IP address mismatch"),
    "expired": (Authorities.expired, tls.HOST, "certificate has expired"),
}


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> Authorities:
    return Authorities(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def trusted(authorities: Authorities, monkeypatch: pytest.MonkeyPatch) -> Authorities:
    """They are those of this machine: a bad certificate is bad for its own reason alone."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authorities.file))
    return authorities


def post(url: str, carrier: str) -> http.Answer:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    return run(lambda client: http.send_once(client, f"{url}/x", headers, b'{"a":1}', 1000), carrier)


def speaks_plain_http(server: wire.Server, connection: Any) -> None:
    """It reads all that comes, and answers what does not begin like a request as such servers do."""
    server.whole.append(connection.recv(65536))
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


@CARRIERS
@pytest.mark.parametrize("host", [tls.HOST, tls.NAME])
def test_what_the_machine_trusts_is_trusted(trusted: Authorities, carrier: str, host: str) -> None:
    """`SSL_CERT_FILE` is how a private authority is named; without this case all others could hold for no reason."""
    with wire.Server(tls.secured(trusted.good(), wire.answers(wire.reply()))) as server:
        answer = post(https(server, host), carrier)
        (request,) = server.whole
    assert isinstance(answer, http.Reply) and answer.status == 200
    assert TOKEN.encode() in request and server.received == len(request)


@CARRIERS
@pytest.mark.parametrize("bad", BAD)
def test_behind_a_bad_certificate_nothing_is_sent(
    trusted: Authorities, carrier: str, bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    shown, host, why = BAD[bad]
    caplog.set_level("DEBUG")
    with wire.Server(tls.secured(shown(trusted), wire.answers(wire.reply()))) as server:
        answer = post(https(server, host), carrier)
    assert server.connections == 1 and server.received == 0
    assert isinstance(answer, http.Unsent)
    assert re.fullmatch(f"ConnectError: certificate verify failed: {why}", answer.cause)
    assert TOKEN not in caplog.text


@CARRIERS
@pytest.mark.parametrize("named", ["file", "folder", "nothing"])
def test_only_what_the_environment_names_is_trusted(
    authorities: Authorities, carrier: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file counts before a folder; a list that comes with Python only where neither is named."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    if named != "nothing":
        monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    if named == "file":
        monkeypatch.setenv("SSL_CERT_FILE", str(authorities.file))
    with wire.Server(tls.secured(authorities.good(), wire.answers(wire.reply()))) as server:
        answer = post(https(server), carrier)
    assert isinstance(answer, http.Reply if named == "file" else http.Unsent)
    assert (server.received == 0) == (named != "file")


@CARRIERS
@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n"], ids=["none", "empty", "cut"])
def test_a_file_that_cannot_be_trusted_is_told_at_once(
    carrier: str, content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by the first POST: it would look like a remote that is down."""
    file = tmp_path / "ours.pem"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(ConfigError, match="SSL_CERT_FILE = '.*ours.pem': must be a file of certificates in PEM format"):
        http.open_client(carrier=carrier)


@CARRIERS
def test_a_server_without_tls_gets_no_request(carrier: str) -> None:
    """What it gets is the beginning of a handshake, in which there is nothing of ours."""
    with wire.Server(speaks_plain_http) as server:
        answer = post(https(server), carrier)
    (begun,) = server.whole
    assert begun[:2] == b"\x16\x03" and b"POST" not in begun and TOKEN.encode() not in begun
    assert isinstance(answer, http.Unsent)
    assert re.fullmatch(r"ConnectError: TLS failed: [a-z ]+", answer.cause)


@CARRIERS
def test_a_server_that_wants_a_certificate_of_its_client_leaves_doubt(trusted: Authorities, carrier: str) -> None:
    """TLS 1.3 is up before the server has looked: the request is on its way, and is not called unsent."""
    with wire.Server(tls.secured(trusted.asking_back(), wire.answers(wire.reply()))) as server:
        answer = post(https(server), carrier)
    assert isinstance(answer, http.Lost) and server.received == 0


def asked(url: str, carrier: str) -> tuple[Any, Any, list[Any]]:
    """What a submit, a probe and a watch of the `thread` adapter come to."""

    async def work(client: httpx.AsyncClient) -> tuple[Any, Any, list[Any]]:
        adapter = registry.create(AgentConfig("demo", "thread", url, token_env="REATTACH_TEST_TOKEN"), client)
        inv = wire.invocation()
        watched = [item async for item in adapter.watch(inv, "")]
        return await adapter.submit(inv, lambda handle: None), await adapter.probe(inv), watched

    return run(work, carrier)


@CARRIERS
def test_an_adapter_tells_that_it_is_the_certificate(
    trusted: Authorities, carrier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not sent, so the call waits for a right one and goes on; and an operator reads why."""
    monkeypatch.setenv("REATTACH_TEST_TOKEN", TOKEN)
    running: Behave = wire.answers(wire.reply(b'{"status": "running"}'))
    with wire.Server(tls.secured(trusted.of_nobody_known(), running)) as server:
        submitted, probed, watched = asked(https(server), carrier)
    why = "ConnectError: certificate verify failed: unable to get local issuer certificate"
    assert (submitted, probed, watched) == (NotSent(why), Unknown(why), [])
    assert server.connections == 3 and server.received == 0
    with wire.Server(tls.secured(trusted.good(), running)) as server:
        submitted, probed, watched = asked(https(server), carrier)
    assert isinstance(submitted, Accepted) and isinstance(probed, Present)
    assert len(server.whole) == 3 and all(TOKEN.encode() in request for request in server.whole)
