"""A request can never choose the URL: whatever its fields hold, each protocol asks where it is configured to.

Every id, message, handle and cursor is an attempt to get away from there, and so is all that the remote answers. What
leaves the client is compared with the URLs that the protocol has, of which each must have been asked at least once.
"""

import asyncio
import itertools
import json
import re
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from reattach.adapters import http, registry
from reattach.adapters.contract import Adapter, AgentConfig
from reattach.adapters.wire import Arrived, Patience, Wire
from reattach.models.errors import InvalidRequest
from reattach.models.invocation import Invocation, Response
from reattach.models.policy import Policy, SubmitAfter
from reattach.models.request import parse_request
from reattach.runtime.flink.inputs import read_request
from tests.adapters import wire

CARRIERS = pytest.mark.parametrize("carrier", ["httptools", "httpx"])
TOKEN = "tok-3f9a1c77e0"
# What one escaped id looks like, and one within a query.
ID = r"[A-Za-z0-9_.~%-]+"
VALUE = r"[A-Za-z0-9_.~%+*-]+"
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
WORDS = {"status_map": {"running": "running", "completed": "completed"}}
SENT = {
    "accept", "accept-encoding", "a2a-version", "authorization", "cache-control", "connection", "content-length",
    "content-type", "host", "idempotency-key", "last-event-id", "user-agent",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A protocol as it is configured, and every request that it has: method and target, below `/base`."""

    protocol: str
    options: dict[str, Any]
    asked: tuple[str, ...]


CASES = {
    "thread": Case(
        "thread",
        {"marker": "message_ids"},
        (
            f"POST /api/agents/demo/threads/{ID}/messages",
            f"GET /api/agents/demo/threads/{ID}",
            f"GET /api/agents/demo/threads/{ID}/stream",
        ),
    ),
    "http_job by an id of ours": Case(
        "http_job",
        {
            "submit": "/threads/{thread}/jobs?ref={marker}&key={key}",
            "status": "/jobs/{marker}?in={thread}",
            "result": "/jobs/{handle}/result",
            "cancel": "/jobs/{handle}/cancel",
            "stream": "/jobs/{marker}/events",
            "stream_resumes": True,
            "idempotency": {"lifetime_ms": 1_000},
            "handle_header": "Location",
            **WORDS,
        },
        (
            rf"POST /threads/{ID}/jobs\?ref={ID}&key={ID}",
            rf"GET /jobs/{ID}\?in={ID}",
            f"GET /jobs/{ID}/result",
            f"POST /jobs/{ID}/cancel",
            f"GET /jobs/{ID}/events",
        ),
    ),
    "http_job by a list": Case(
        "http_job",
        {
            "submit": "/jobs",
            "status": "/jobs/{handle}",
            "list": "/jobs?ref={marker}",
            "list_next": "/jobs?ref={marker}&page={page}",
            "paths": {"marker": "ref", "next": "next"},
            **WORDS,
        },
        ("POST /jobs", f"GET /jobs/{ID}", rf"GET /jobs\?ref={ID}", rf"GET /jobs\?ref={ID}&page={ID}"),
    ),
    "langgraph": Case(
        "langgraph",
        {"assistant": "agent"},
        (
            "POST /threads",
            f"POST /threads/{UUID}/runs",
            rf"GET /threads/{UUID}/runs\?limit=100&offset=0&[a-z_&=]+",
            f"GET /threads/{UUID}/runs/{ID}",
            f"POST /threads/{UUID}/history",
            rf"POST /threads/{UUID}/runs/{ID}/cancel\?wait=true&action=interrupt",
            rf"GET /threads/{UUID}/runs/{ID}/stream\?cancel_on_disconnect=false&[a-z_&=]+",
        ),
    ),
    "a2a over REST": Case(
        "a2a",
        {"binding": "rest"},
        (
            r"GET /\.well-known/agent-card\.json",
            "POST /rest/message:send",
            rf"GET /rest/tasks\?contextId={VALUE}&historyLength=[0-9]+&pageSize=100(?:&pageToken={VALUE})?",
            rf"GET /rest/tasks/{ID}\?historyLength=[0-9]+",
            f"POST /rest/tasks/{ID}:cancel",
            f"GET /rest/tasks/{ID}:subscribe",
        ),
    ),
    "a2a over JSON-RPC": Case("a2a", {"binding": "jsonrpc"}, (r"GET /\.well-known/agent-card\.json", "POST /rpc")),
    "a2a 0.3": Case("a2a", {"version": "0.3"}, (r"GET /\.well-known/agent-card\.json", "POST /old")),
    "openai_responses": Case(
        "openai_responses",
        {"model": "m-1"},
        (
            "POST /responses",
            f"GET /responses/{ID}",
            rf"GET /responses/{ID}\?stream=true(?:&starting_after=[0-9]+)?",
            f"POST /responses/{ID}/cancel",
        ),
    ),
}


class Remote:
    """Answers with as much of each protocol as leads to its next request, and names `evil` wherever a name may be.

    Args:
        base: where the agent card is, which names the same places at `evil` first.
        away: every answer is a redirect.
    """

    def __init__(self, evil: str, *, away: bool = False) -> None:
        self.evil, self.away, self.base = evil, away, ""
        self._headers = tuple(f"{name}: {evil}" for name in ("Location", "Content-Location", "Refresh", "Link"))
        self._codes = itertools.cycle(("301 A", "302 B", "303 C", "307 D", "308 E") if away else ("200 OK",))

    def __call__(self, server: wire.Server, connection: socket.socket) -> None:
        while request := server.request(connection):
            target = request.split(b" ")[1].decode("ascii")
            shown = json.dumps(self._card() if "agent-card" in target else self._shown(target, request))
            connection.sendall(wire.reply(shown.encode(), next(self._codes), "application/json", *self._headers))

    def _shown(self, target: str, request: bytes) -> Any:
        if "/runs?" in target:
            return []
        if request.startswith(b"GET") and "/runs/" in target:
            return {"run_id": target.rpartition("/")[2], "status": "success", "created_at": "1", "metadata": {}}
        sent = json.loads(request.partition(b"\r\n\r\n")[2] or b"{}")
        further = "" if re.search(rb"[?&]page|pageToken", request) else self.evil
        page = {"items": [], "tasks": [], "next": further, "nextPageToken": further}
        return {
            **dict.fromkeys(("id", "url", "href", "location", "run_id", "callback", "endpoint"), self.evil),
            **page,
            "status": "running",
            "thread_id": sent.get("thread_id", self.evil),
            "result": page,
        }

    def _card(self) -> Any:
        kinds = (("rest", "HTTP+JSON"), ("rpc", "JSONRPC"))
        offered = [
            {"url": f"{at}/{path}", "protocolBinding": binding, "protocolVersion": "1.0"}
            for at in (self.evil, self.base)
            for path, binding in kinds
        ]
        old = [{"url": f"{at}/old", "transport": "JSONRPC"} for at in (self.evil, self.base)]
        return {"url": self.evil, "supportedInterfaces": offered, "additionalInterfaces": old}


class Recorded:
    """Keeps every request: what goes to a host that nobody is would not be seen otherwise."""

    def __init__(self, carrier: Wire) -> None:
        self._carrier = carrier
        self.urls: list[str] = []
        self.refused: list[Mapping[str, str]] = []

    async def carry(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, patience: Patience
    ) -> Arrived:
        self.urls.append(url)
        try:
            return await self._carrier.carry(method, url, headers, content, patience)
        except Exception:
            self.refused.append(headers)
            raise

    async def aclose(self) -> None:
        await self._carrier.aclose()


def hostile(evil: str) -> list[str]:
    """Ways out of a segment, a path, a query, a host and a header."""
    host = evil.removeprefix("http:")
    out = [evil, f"{evil}/", host, f"@{host[2:]}", f":9{host}", "http://evil", "//evil", "\\\\evil"]
    out += ["../../x", "..", ".", "/", "..%5c..", "%2f..%2f..%2fx", "%2e%2e", "\\..\\..", "日本/../é"]
    out += ["?x=1", "#x", "&page=x", ";x=1", "{handle}", "a\r\nX-Evil: 1", "a\r\n\r\nGET /evil HTTP/1.1\r\n\r\n"]
    return out


def calls_of(text: str) -> list[Invocation]:
    """Calls with this text in every field that a request or a remote fills, with and without a thread and a handle."""
    names = ("url", "endpoint", "host", "thread_id", "tenant")
    message = json.dumps({**dict.fromkeys(names, text), "x": [text]}).encode()
    made = []
    for thread, handle in itertools.product(("", text), ("", text)):
        inv = wire.invocation(text, thread_id=thread, turn=1, message=message, handle=handle)
        request = replace(inv.request, metadata=message)
        made.append(replace(inv, request=request, response=Response(text, text, message), question_id=text))
    return made


async def everything(adapter: Adapter, inv: Invocation, cursor: str) -> None:
    """All that an adapter can be told to do about a call."""
    await adapter.probe(inv)
    await adapter.submit(inv, lambda handle: None)
    async for _ in adapter.watch(inv, cursor):
        pass
    await adapter.fetch(inv)
    await adapter.cancel(inv)
    await adapter.fence(inv)
    if inv.response is not None:
        await adapter.respond(inv)


def asked(case: Case, carrier: str, remote: Remote, calls: list[tuple[Invocation, str]]) -> Counter[str]:
    """Do everything about these calls, each with its cursor: all goes to the configured host, and below its path.

    Returns:
        How often each of the protocol's requests arrived.
    """

    async def main(base: str) -> Recorded:
        opened = http.open_client(carrier=carrier)
        assert isinstance(opened, http.Client)
        recorded = Recorded(opened.wire)
        policy = Policy(retention_ms=1_000, submit_after=SubmitAfter.CHECKPOINT)
        config = AgentConfig("demo", case.protocol, f"{base}/", "REATTACH_TEST_TOKEN", case.options, policy)
        async with asyncio.timeout(60), http.Client(recorded) as client:
            adapter = registry.create(config, client)
            for inv, cursor in calls:
                await everything(adapter, inv, cursor)
        return recorded

    with wire.Server(remote) as server:
        host, remote.base = server.url.removeprefix("http://"), f"{server.url}/base"
        recorded = asyncio.run(main(remote.base))
    assert [url for url in recorded.urls if not url.startswith(f"{remote.base}/")] == []
    assert len(server.whole) == len(recorded.urls) - len(recorded.refused)
    # A cursor goes into a header, where carriers let no line end pass.
    assert all("\n" in headers["Last-Event-ID"] for headers in recorded.refused)
    return Counter(kind_of(case, host, request) for request in server.whole)


def kind_of(case: Case, host: str, request: bytes) -> str:
    """Which of the protocol's requests this is; it must be one of them, with no header but those that we send."""
    line, *rest = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    kinds = [kind for kind in case.asked if re.fullmatch(kind.replace(" ", " /base", 1) + r" HTTP/1\.1", line)]
    assert len(kinds) == 1, line
    headers = [(name.lower(), value.strip()) for name, _, value in (one.partition(":") for one in rest)]
    assert len(dict(headers)) == len(headers) and dict(headers).keys() <= SENT, headers
    assert dict(headers)["host"] == host and TOKEN in dict(headers)["authorization"]
    return kinds[0]


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REATTACH_TEST_TOKEN", TOKEN)


@pytest.fixture
def evil() -> Iterator[wire.Server]:
    with wire.Server(wire.answers(wire.reply())) as server:
        yield server


def test_no_protocol_is_left_out() -> None:
    assert {case.protocol for case in CASES.values()} == set(registry.built_in())


@CARRIERS
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_nothing_in_a_call_or_an_answer_leads_elsewhere(case: Case, carrier: str, evil: wire.Server) -> None:
    calls = [(inv, text) for text in hostile(evil.url) for inv in calls_of(text)]
    calls += [(wire.invocation(handle=handle), "3") for handle in ("", "r-7")]
    found = asked(case, carrier, Remote(evil.url), calls)
    assert evil.connections == 0
    assert set(found) == set(case.asked), "each request that the protocol has was made"


@CARRIERS
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_no_protocol_follows_a_redirect(case: Case, carrier: str, evil: wire.Server) -> None:
    calls = [(wire.invocation(thread_id=thread, handle=handle), "") for thread in ("", "t") for handle in ("", "r-7")]
    found = asked(case, carrier, Remote(evil.url, away=True), calls)
    assert evil.connections == 0
    assert sum(found.values()) >= len(calls)


@pytest.mark.parametrize("name", ["url", "endpoint", "host", "base_url", "headers", "token", "token_env", "options"])
def test_a_request_has_no_field_for_it(name: str) -> None:
    line = {"invocation_id": "a", "agent": "demo", "message": 1, "requested_at_ms": 1, name: "http://evil"}
    with pytest.raises(InvalidRequest, match=f"{name}: no such field"):
        parse_request(json.dumps(line), message_bytes_max=1_000)


@pytest.mark.parametrize("agent", ["http://evil", "//evil", "../demo", "demo/../x", "demo?x", "Demo", "demo "])
def test_an_agent_is_one_of_the_configuration(agent: str) -> None:
    """Its URL is looked up under the exact name, and there is no other way to one."""
    line = json.dumps({"invocation_id": "a", "agent": agent, "message": 1, "requested_at_ms": 1})
    agents = {"demo": AgentConfig("demo", "thread", "http://127.0.0.1:9")}
    assert read_request(line, agents) == f"agent: no agent named {agent!r} is configured (known: demo)"
