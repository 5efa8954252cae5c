"""A wrong configuration is one line that names the key; a secret is in none of the lines."""

import asyncio
import logging
import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import Any

import httpx
import pytest

from reattach.adapters import http, registry
from reattach.adapters.contract import AgentConfig
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.thread import ThreadAdapter
from reattach.models.errors import ConfigError
from reattach.models.policy import Evidence
from tests.adapters import wire

SECRET = "tok-3f9a1c77e0"


@pytest.fixture
async def client() -> Any:
    async with http.open_client() as one:
        yield one


def config(**more: Any) -> AgentConfig:
    return AgentConfig(**{"name": "demo", "protocol": "thread", "url": "http://127.0.0.1:1", **more})


WRONG = [
    ({"protocol": "nope"}, r"agents.demo.protocol: no protocol 'nope'; known: .*thread"),
    ({"url": ""}, "agents.demo.url"),
    ({"url": "ftp://h/"}, "agents.demo.url"),
    ({"url": "h:80/x"}, "agents.demo.url"),
    ({"url": "http://"}, "agents.demo.url"),
    ({"url": "http://h:99999999/"}, "agents.demo.url"),
    ({"url": "http://[::1/"}, "agents.demo.url"),
    ({"url": "http://h/ x"}, "agents.demo.url"),
    ({"url": "http://h/\r\nX: y"}, "agents.demo.url"),
    ({"url": "http://me:pw@h/"}, "agents.demo.url: must not hold credentials"),
    ({"url": "http://h/?a=b"}, "agents.demo.url: must not have a query"),
    ({"url": "http://h/#f"}, "agents.demo.url: must not have a query"),
    ({"token_env": "REATTACH_TEST_NONE"}, "agents.demo.token_env: the environment variable REATTACH_TEST_NONE is not"),
    ({"token_env": "REATTACH_TEST_BAD"}, "agents.demo.token_env: the value of REATTACH_TEST_BAD is not a token"),
    ({"token_env": SECRET}, "agents.demo.token_env: no environment variable of this name; name one"),
    ({"url": "http://h:"}, "agents.demo.url: must be an absolute"),
    ({"options": {"markr": "x"}}, "agents.demo.options.markr: no such option"),
    ({"options": {"marker": 3}}, "agents.demo.options.marker"),
    ({"options": {"marker": "a..b"}}, "agents.demo.options.marker"),
    ({"options": {"agent": ""}}, "agents.demo.options.agent"),
    ({"options": {"agent": "a\nb"}}, "agents.demo.options.agent"),
]


@pytest.mark.parametrize(("wrong", "says"), WRONG)
async def test_what_is_wrong_is_named(
    wrong: dict[str, Any], says: str, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REATTACH_TEST_BAD", f"{SECRET} x\n")
    with pytest.raises(ConfigError, match=says) as caught:
        registry.create(config(**wrong), client)
    assert SECRET not in str(caught.value) and "pw" not in str(caught.value) and "\n" not in str(caught.value)


async def test_the_marker_decides_the_evidence(client: httpx.AsyncClient) -> None:
    marked = registry.create(config(options={"marker": "meta.last"}), client)
    assert marked.capabilities.evidence is Evidence.MARKER
    assert registry.create(config(), client).capabilities.evidence is Evidence.CONTAINER


async def test_a_nested_marker_is_found(client: httpx.AsyncClient) -> None:
    body = b'{"status": "running", "meta": {"last": "call-1"}}'
    with wire.Server(wire.answers(wire.reply(body))) as server:
        adapter = registry.create(config(url=server.url, options={"marker": "meta.last"}), client)
        assert "RUNNING" in str(await adapter.probe(wire.invocation(thread_id="t")))


def test_entry_points_are_adapters_too(monkeypatch: pytest.MonkeyPatch) -> None:
    points = (
        EntryPoint("mine", "reattach.adapters.thread:ThreadAdapter", registry.GROUP),
        EntryPoint("broken", "reattach.no_such_module:X", registry.GROUP),
        EntryPoint("thread", "reattach.no_such_module:X", registry.GROUP),
    )
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    assert registry.known() == tuple(sorted({"broken", "mine", *registry.built_in()}))
    assert registry.find("mine") is ThreadAdapter and registry.find("thread") is ThreadAdapter
    with pytest.raises(ConfigError, match="agents.x.protocol: 'broken' is registered as"):
        registry.find("broken", name="x")


def test_importing_the_registry_imports_no_flink() -> None:
    code = "import sys, reattach.adapters.registry; print({'pyflink', 'py4j'} & sys.modules.keys() == set())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def echoing(server: wire.Server, connection: Any) -> None:
    """Say the caller's credentials back, in every place that has text."""
    while request := server.request(connection):
        assert SECRET.encode() in request
        if b"/stream" in request:
            return
        text = f'"Bearer {SECRET}"'
        body = f'{{"status": "failed", "error": {{"message": {text}}}}}'
        if b"odd" in request:
            body = f'{{"status": {text}, "thread_id": {text}}}'
        status = "418 " + SECRET if request.startswith(b"POST") else "200 " + SECRET
        connection.sendall(wire.reply(body.encode(), status, "application/json", f"X-Echo: {SECRET}"))


@pytest.mark.parametrize("carrier", ["httptools", "httpx"])
def test_the_token_is_nowhere(
    carrier: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REATTACH_TEST_TOKEN", SECRET)
    caplog.set_level(logging.DEBUG)
    said: list[str] = []

    async def work(url: str) -> None:
        client = http.open_client(carrier=carrier)
        one = config(url=url, token_env="REATTACH_TEST_TOKEN")
        adapter = registry.create(one, client)
        said.extend((repr(one), repr(adapter), repr(adapter.__dict__), repr(client), str(client.headers)))
        for inv in (wire.invocation(), wire.invocation("odd", thread_id="")):
            said.append(repr(await adapter.probe(inv)))
            said.append(repr(await adapter.fetch(inv)))
            said.append(repr(await adapter.submit(inv, lambda handle: None)))
            said.extend([repr(item) async for item in adapter.watch(inv, "")])
        await client.aclose()

    with wire.Server(echoing) as server:
        asyncio.run(work(server.url), debug=True)
        assert len(server.whole) >= 8
    for fault in (wire.hangs_up_after_the_request, wire.speaks_no_http, wire.sends_a_huge_head, wire.cuts_the_body):
        with wire.Server(fault) as broken:
            asyncio.run(work(broken.url), debug=True)
    out, err = capfd.readouterr()
    assert "***" in str(said)
    assert SECRET not in "\n".join((*said, caplog.text, out, err))


@pytest.mark.parametrize("shift", range(len(SECRET)))
def test_no_part_of_a_token_is_left_where_a_text_is_cut(shift: int) -> None:
    """A remote that repeats it again and again, with the cut anywhere in it."""
    said = Endpoint("http://remote", SECRET).clean("x" * shift + SECRET * 100, 200)
    assert len(said) <= 200
    assert not any(SECRET[:count] in said for count in range(4, len(SECRET) + 1))
