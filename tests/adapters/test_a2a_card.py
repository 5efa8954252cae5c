"""The options of an A2A agent and its card: what is read of foreign URLs, when, and what is never sent to them."""

import asyncio
import json
import time
from typing import Any

import pytest

from reattach.adapters import a2a_card, http
from reattach.adapters.a2a import A2AAdapter
from reattach.adapters.a2a_card import Interface, Misfit, Options, choose, read_options
from reattach.adapters.contract import AgentConfig, variants_of
from reattach.adapters.describe import requests_of
from reattach.models.answers import Absent, Accepted, NotSent, Refused, Unknown
from reattach.models.errors import ConfigError
from reattach.models.policy import Absence, CancelKind, Evidence, Policy, StreamKind
from tests.adapters import wire
from tests.adapters.a2a_agents import KNOWN, OLD, OWN, config, listed, on, sent, task

BASE = "https://agents.example.com/team"
HOST = "https://agents.example.com"
AUTO: dict[str, Any] = {"endpoint": ""}


def one(url: Any, binding: Any = "JSONRPC", version: Any = "1.0", **more: Any) -> dict[str, Any]:
    return {"url": url, "protocolBinding": binding, "protocolVersion": version, **more}


def card(*interfaces: Any, **more: Any) -> dict[str, Any]:
    return {"name": "x", "supportedInterfaces": list(interfaces), **more}


MORE = {"preferredTransport": "GRPC", "additionalInterfaces": [{"url": f"{HOST}/j", "transport": "JSONRPC"}]}
OLD_CARD = {"url": f"{HOST}/a2a", "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nope": 1}, "options.nope: no such option (known: binding, card, endpoint, lists, version)"),
        ({"version": "2"}, "options.version: must be one of 'auto', '1.0', '0.3'"),
        ({"binding": "grpc"}, "options.binding: must be one of 'auto', 'jsonrpc', 'rest'"),
        ({"version": "0.3", "binding": "rest"}, "options.binding: A2A 0.3 is spoken over JSON-RPC only"),
        ({"version": "0.3", "lists": False}, "options.lists: A2A 0.3 has no lists"),
        ({"lists": "no"}, "options.lists: must be true or false"),
        ({"endpoint": "ftp://x"}, "options.endpoint: must be an absolute http or https URL"),
        ({"endpoint": "https://u:p@x"}, "options.endpoint: must not hold credentials"),
        ({"endpoint": "https://x", "card": "/c"}, "options.card: no card is read where the endpoint is set"),
        ({"card": "c"}, "options.card: must be a path below the agent's url"),
        ({"card": "/a b"}, "options.card: must be a path below the agent's url"),
        ({"card": 7}, "options.card: must be a string"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_options(config(options))
    assert f"agents.demo.{words}" in str(caught.value)


def test_what_can_be_promised_follows_from_the_version_and_the_lists() -> None:
    assert [variant.name for variant in variants_of(A2AAdapter)] == ["1.0", "1.0 without lists", "0.3"]
    for variant in A2AAdapter.variants:
        adapter = A2AAdapter.configure(config(dict(variant.options)), http.open_client())
        assert adapter.capabilities == variant.capabilities
        assert variant.capabilities.cancel is CancelKind.CONFIRMED and variant.capabilities.responds
    new, blind, old = (variant.capabilities for variant in A2AAdapter.variants)
    assert (new.evidence, new.absence, new.stream) == (Evidence.MARKER, Absence.AFTER_QUIET, StreamKind.LIVE)
    assert (blind.evidence, blind.absence, blind.stream) == (Evidence.HANDLE_ONLY, Absence.NEVER, StreamKind.LIVE)
    assert (old.evidence, old.absence, old.stream) == (Evidence.HANDLE_ONLY, Absence.NEVER, StreamKind.NONE)
    assert [requests_of(variant) for variant in A2AAdapter.variants] == [4, 3, 2]


RPC_AT, REST_AT = one(f"{HOST}/rpc"), one(f"{HOST}/rest", "HTTP+JSON")


@pytest.mark.parametrize(
    ("shown", "options", "expected"),
    [
        (card(RPC_AT, REST_AT), Options(), Interface(f"{HOST}/rpc")),
        (card(REST_AT, RPC_AT), Options(), Interface(f"{HOST}/rest", rest=True)),
        (card(REST_AT, RPC_AT), Options(binding="jsonrpc"), Interface(f"{HOST}/rpc")),
        (card(RPC_AT, REST_AT), Options(binding="rest"), Interface(f"{HOST}/rest", rest=True)),
        (card(one(f"{HOST}/9", version="1.1")), Options(), Interface(f"{HOST}/9")),
        (card(one(f"{HOST}/9", version="1.1"), RPC_AT), Options(version="1.0"), Interface(f"{HOST}/rpc")),
        (card(one(f"{HOST}/0", version="0.3"), RPC_AT), Options(), Interface(f"{HOST}/rpc")),
        (card(one(f"{HOST}/0", version="0.3"), RPC_AT), Options(version="0.3"), Interface(f"{HOST}/0", old=True)),
        (card(one(f"{HOST}/g", "GRPC"), RPC_AT), Options(), Interface(f"{HOST}/rpc")),
        (card(one("https://elsewhere/rpc"), RPC_AT), Options(), Interface(f"{HOST}/rpc")),
        (card(one(f"{HOST}:443/rpc")), Options(), Interface(f"{HOST}:443/rpc")),
        (card(one("HTTPS://Agents.Example.COM/rpc")), Options(), Interface("HTTPS://Agents.Example.COM/rpc")),
        (card(one(f"{HOST}/rpc", tenant="x")), Options(), Interface(f"{HOST}/rpc", tenant="x")),
        (OLD_CARD, Options(version="0.3"), Interface(f"{HOST}/a2a", old=True)),
        ({**OLD_CARD, **card(RPC_AT)}, Options(), Interface(f"{HOST}/rpc")),
        ({**OLD_CARD, **MORE}, Options(version="0.3"), Interface(f"{HOST}/j", old=True)),
    ],
)  # fmt: skip
def test_the_first_interface_that_fits_is_taken(shown: Any, options: Options, expected: Interface) -> None:
    assert choose(shown, options, BASE) == expected


ELSEWHERE = [
    "https://agents.example.com.evil.org/rpc",
    "http://agents.example.com/rpc",
    "https://agents.example.com:8443/rpc",
    "https://evil.org/rpc",
    "https://agents.example.com@evil.org/rpc",
    "https://me:pw@agents.example.com/rpc",
    "https://evil.org\\@agents.example.com/rpc",
    "https://agents.example.com/rpc#x",
    "https://agents.example.com/r pc",
    "//agents.example.com/rpc",
    "/rpc",
    "https://[::1/rpc",
    "https://agents.example.com:99999/rpc",
    "",
]


@pytest.mark.parametrize("url", ELSEWHERE)
def test_an_interface_elsewhere_is_named_by_the_configuration_or_not_at_all(url: str) -> None:
    found = choose(card(one(url)), Options(), BASE)
    assert isinstance(found, Misfit) and "options.endpoint" in found.cause and "evil" not in found.cause
    assert isinstance(choose({"url": url}, Options(version="0.3"), BASE), Misfit)


def test_the_same_port_without_encryption_is_elsewhere() -> None:
    found = choose(card(one("http://agents.example.com:8443/rpc")), Options(), "https://agents.example.com:8443")
    assert isinstance(found, Misfit)


@pytest.mark.parametrize(
    ("shown", "options", "words"),
    [
        (OLD_CARD, Options(), "set options.version = '0.3'"),
        (card(one(f"{HOST}/0", version="0.3")), Options(binding="jsonrpc"), "set options.version = '0.3'"),
        (card(RPC_AT), Options(binding="rest"), "no interface of A2A 1.x over REST"),
        (card(RPC_AT), Options(version="0.3"), "no interface of A2A 0.3 over JSON-RPC"),
        (card(one(f"{HOST}/9", version="1.1")), Options(version="1.0"), "no interface of A2A 1.0"),
        (card(one(f"{HOST}/9", version="2.0")), Options(), "no interface of A2A 1.x"),
        (card(), Options(), "no interface of A2A 1.x"),
        ({"supportedInterfaces": 7, "additionalInterfaces": {}, "url": 7}, Options(), "no interface"),
        (
            card(7, None, {"url": 7}, one(7), one(f"{HOST}/x", []), one(f"{HOST}/x", version=1)),
            Options(),
            "no interface",
        ),
    ],
)
def test_a_card_that_does_not_fit_says_what_to_do(shown: Any, options: Options, words: str) -> None:
    found = choose(shown, options, BASE)
    assert isinstance(found, Misfit) and words in found.cause and found.cause.isprintable()


class Agent:
    """A server with a card, and how often that was read."""

    def __init__(self, *, old: bool = False, broken: int = 0, elsewhere: str = "") -> None:
        self.old, self.broken, self.elsewhere = old, broken, elsewhere
        self.cards = 0
        self.others: list[bytes] = []

    def __call__(self, server: wire.Server, connection: Any) -> None:
        while whole := server.request(connection):
            if not whole.startswith(b"GET /"):
                self.others.append(whole)
                given = OLD if self.old else {}
                connection.sendall(listed(given) if b"ListTasks" in whole else sent(given, task(given=given)))
                continue
            self.cards += 1
            where = f"{self.elsewhere or server.url}/rpc"
            shown = {"url": where} if self.old else card(one(where))
            fails = self.cards <= self.broken
            connection.sendall(wire.reply(json.dumps(shown).encode(), "503 No" if fails else "200 OK"))


async def both(adapter: A2AAdapter) -> tuple[Any, Any]:
    return await adapter.probe(OWN), await adapter.submit(OWN, lambda handle: None)


def test_configuring_asks_nobody() -> None:
    with wire.Server(Agent()) as server:
        A2AAdapter.configure(config({}, server.url), http.open_client())
        assert server.connections == 0


def test_the_card_is_read_once_for_all_who_wait_for_it() -> None:
    async def work(adapter: A2AAdapter) -> list[Any]:
        return await asyncio.gather(*(adapter.probe(OWN) for _ in range(20)))

    agent = Agent()
    with wire.Server(agent) as server:
        assert on(server.url, AUTO, work) == [Absent(None)] * 20
        assert agent.cards == 1 and server.whole[0].startswith(b"GET /.well-known/agent-card.json HTTP")


def test_a_card_is_read_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent()

    async def work(adapter: A2AAdapter) -> None:
        now = [100.0]
        monkeypatch.setattr(time, "monotonic", lambda: now[0])
        for now[0] in (
            100.0,
            100.0 + a2a_card.CARD_KEPT_S - 1,
            100.0 + a2a_card.CARD_KEPT_S,
            101.0 + a2a_card.CARD_KEPT_S,
        ):
            assert await adapter.probe(OWN) == Absent(None)

    with wire.Server(agent) as server:
        on(server.url, AUTO, work)
    assert agent.cards == 2


def test_a_card_that_cannot_be_read_is_not_kept_and_nothing_is_sent() -> None:
    async def work(adapter: A2AAdapter) -> list[Any]:
        first = await both(adapter)
        return [*first, await adapter.cancel(KNOWN), [i async for i in adapter.watch(KNOWN, "")], *await both(adapter)]

    agent = Agent(broken=4)
    with wire.Server(agent) as server:
        found, refused, cancelled, items, later, accepted = on(server.url, AUTO, work)
    assert isinstance(found, Unknown) and not found.final and "agent card" in found.cause and "503" in found.cause
    assert isinstance(refused, NotSent) and isinstance(cancelled, Unknown) and items == []
    assert later == Absent(None) and accepted == Accepted("t-7") and len(agent.others) == 2


@pytest.mark.parametrize(
    "reply",
    [
        wire.reply(b"[]"),
        wire.reply(b"{}", "200 OK", "text/html"),
        wire.reply(b"\xff"),
        wire.reply(b"{" * 100_000),
        wire.reply(b'{"a":"' + b"x" * 300_000 + b'"}'),
        wire.reply(b"", "301 Away", "text/html", "Location: http://127.0.0.1:9/"),
    ],
)
def test_a_card_that_is_none(reply: bytes) -> None:
    with wire.Server(wire.answers(reply)) as server:
        found, refused = on(server.url, AUTO, both)
        assert len(server.whole) == 2
    assert isinstance(found, Unknown) and not found.final and "agent card" in found.cause
    assert isinstance(refused, NotSent)


def test_an_agent_of_0_3_alone_is_not_spoken_to_without_being_asked_for() -> None:
    agent = Agent(old=True)
    with wire.Server(agent) as server:
        found, refused = on(server.url, AUTO, both)
        assert isinstance(found, Unknown) and found.final and "options.version = '0.3'" in found.cause
        assert isinstance(refused, Refused) and "options.version = '0.3'" in refused.failure.message
        assert agent.others == []
        assert on(server.url, {**AUTO, "version": "0.3"}, both)[1] == Accepted("t-7")


def test_a_card_cannot_send_credentials_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REATTACH_TEST_TOKEN", "tok-3f9a1c77e0")
    with wire.Server(wire.answers(b"")) as other, wire.Server(Agent(elsewhere=other.url)) as server:
        found, refused = on(server.url, AUTO, both, token_env="REATTACH_TEST_TOKEN")
        assert other.connections == 0
        assert isinstance(found, Unknown) and found.final and "options.endpoint" in found.cause
        assert isinstance(refused, Refused) and "options.endpoint" in refused.failure.message


def test_a_configured_endpoint_is_used_without_a_card_wherever_it_is() -> None:
    agent = Agent()
    with wire.Server(agent) as server, wire.Server(wire.answers(b"")) as base:
        assert on(base.url, {"endpoint": f"{server.url}/x"}, both) == (Absent(None), Accepted("t-7"))
        assert agent.cards == 0 and base.connections == 0
        assert [whole.split(b" ")[1] for whole in agent.others] == [b"/x", b"/x"]


def test_a_card_may_stand_elsewhere_below_the_url() -> None:
    agent = Agent()
    with wire.Server(agent) as server:
        assert on(server.url, {"card": "/cards/1?of=x"}, both)[0] == Absent(None)
        assert server.whole[0].startswith(b"GET /cards/1?of=x HTTP")


def test_a_card_that_takes_too_long_is_no_message_that_was_sent() -> None:
    """Nobody can be asked about a lost answer, so what never left must be told as such."""
    with wire.Server(wire.is_silent) as server:
        policy = Policy(retention_ms=1_000, submit_timeout_ms=400, probe_timeout_ms=400)
        answer = asyncio.run(
            _submitted(AgentConfig("demo", "a2a", server.url, options={"lists": False}, policy=policy))
        )
    assert answer == NotSent("the agent card cannot be read: no answer within 0.2 s")


async def _submitted(agent: AgentConfig) -> Any:
    async with http.open_client() as client:
        return await A2AAdapter.configure(agent, client).submit(OWN, lambda handle: None)
