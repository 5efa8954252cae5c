"""The `a2a` adapter against the servers of the A2A SDK, 1.x and 0.3, and LangGraph: counted by what the agents did."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from reattach.adapters.a2a import A2AAdapter
from reattach.adapters.a2a_tasks import ONLY_A_MESSAGE
from reattach.adapters.contract import AgentConfig
from reattach.adapters.describe import requests_of
from reattach.models.answers import Absent, Accepted, Confirmed, Phase, Present, Refused, Unknown, Unresolved
from reattach.models.events import CancelOrdered, ResponseGiven
from reattach.models.identity import request_key
from reattach.models.invocation import Invocation, Response
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import FailureCode
from reattach.models.request import Request
from reattach.runtime.driver import Key
from reattach.runtime.proxy.faults import Cut, Exchange, Hold, Where
from reattach.runtime.proxy.proxy import FaultProxy
from tests.adapters import wire
from tests.adapters.a2a_agents import on
from tests.e2e.harness import until
from tests.examples.host import PATIENT, Life, after_crash, now_ms
from tests.servers.running import Running, a2a, a2a_old, langgraph

pytestmark = pytest.mark.slow
QUIET_MS = 2_600
WAYS: dict[str, dict[str, Any]] = {
    "jsonrpc": {"binding": "jsonrpc", "path": "/rpc"},
    "rest": {"binding": "rest", "path": "/rest"},
    "0.3 of 1.x": {"version": "0.3", "path": "/rpc"},
    "0.3": {"version": "0.3", "path": "/"},
}
NEW = ["jsonrpc", "rest"]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Running]]:
    with a2a(tmp_path_factory.mktemp("a2a")) as new, a2a_old(tmp_path_factory.mktemp("old")) as old:
        yield {"0.3": old, "0.3 of 1.x": new, "jsonrpc": new, "rest": new}


def options(way: str, url: str) -> dict[str, Any]:
    """How the interface is spoken to through a proxy, which no card names."""
    given = dict(WAYS[way])
    return {"endpoint": url + given.pop("path"), **given}


def call(words: str = "hello", **more: Any) -> Invocation:
    name = f"call-{uuid.uuid4()}"
    return wire.invocation(name, message=json.dumps(f"{name} {words}").encode(), **more)


def at(way: str, url: str, work: Any) -> Any:
    return on(url, options(way, url), work)


def submit(way: str, url: str, inv: Invocation) -> Any:
    return at(way, url, lambda adapter: adapter.submit(inv, lambda handle: None))


def probe(way: str, url: str, inv: Invocation) -> Any:
    return at(way, url, lambda adapter: adapter.probe(inv))


def accepted(way: str, url: str, inv: Invocation) -> Invocation:
    answer = submit(way, url, inv)
    assert isinstance(answer, Accepted), answer
    return replace(inv, handle=answer.handle)


def executed(server: Running, name: str) -> int:
    """How often the agent really ran for a call."""
    return sum(one["text"].startswith(name + " ") for one in server.executions())


def answered(server: Running, response: str) -> int:
    return sum(one["text"] == response for one in server.executions("answer"))


def ended(way: str, server: Running, inv: Invocation) -> Present:
    """The probe's answer when the agent does not work on it any more."""
    found: list[Any] = []

    def over() -> bool:
        found.append(probe(way, server.url, inv))
        return isinstance(found[-1], Present) and found[-1].phase is not Phase.RUNNING

    until(over, "the end of the task")
    last: Present = found[-1]
    return last


@pytest.mark.parametrize("way", WAYS)
def test_a_task_from_its_message_to_its_result(servers: dict[str, Running], way: str) -> None:
    server = servers[way]
    inv = accepted(way, server.url, call("@300ms"))
    done = ended(way, server, inv)
    assert done.phase is Phase.COMPLETED and done.result is not None
    result = json.loads(done.result)
    assert result["artifacts"][0]["parts"][0]["text"] == f"turn 1: {inv.id} @300ms" and result["message"] is None
    assert at(way, server.url, lambda adapter: adapter.fetch(inv)).value == done.result
    assert at(way, server.url, lambda adapter: adapter.cancel(inv)) == Confirmed()
    assert executed(server, inv.id) == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("words", "phase", "says"),
    [
        ("!failed", Phase.FAILED, "the message asked for a failure"),
        ("!fail", Phase.FAILED, ""),
        ("!reject", Phase.FAILED, "the agent rejected the task: the message asked for a refusal"),
        ("?auth", Phase.AWAITING_INPUT, "which one?"),
    ],
)
def test_other_ends(servers: dict[str, Running], way: str, words: str, phase: Phase, says: str) -> None:
    if (way, words) == ("0.3", "!fail"):
        pytest.skip("0.3.26 leaves the task of an agent that broke as it was: working, for ever")
    server = servers[way]
    done = ended(way, server, accepted(way, server.url, call(words)))
    assert done.phase is phase
    assert says in (done.failure.message if done.failure else done.question.decode())


@pytest.mark.parametrize("way", WAYS)
def test_an_unknown_task_is_absent(servers: dict[str, Running], way: str) -> None:
    assert probe(way, servers[way].url, wire.invocation(handle=str(uuid.uuid4()))) == Absent(None)


@pytest.mark.parametrize("way", WAYS)
def test_a_task_is_cancelled(servers: dict[str, Running], way: str) -> None:
    server = servers[way]
    inv = accepted(way, server.url, call("@30s"))
    until(lambda: executed(server, inv.id) == 1, "the work")
    assert at(way, server.url, lambda adapter: adapter.cancel(inv)) == Confirmed()
    assert probe(way, server.url, inv) == Present(Phase.CANCELLED, inv.handle)
    assert at(way, server.url, lambda adapter: adapter.cancel(inv)) == Confirmed()


@pytest.mark.parametrize("way", WAYS)
def test_a_question_is_answered_once_and_its_answer_is_seen(servers: dict[str, Running], way: str) -> None:
    server = servers[way]
    inv = accepted(way, server.url, call("?ask"))
    asked = ended(way, server, inv)
    assert asked.phase is Phase.AWAITING_INPUT and b"which one?" in asked.question
    assert probe(way, server.url, inv) == asked
    text = f"blue {uuid.uuid4()}"
    inv = replace(
        inv, question_id=asked.question_id, response=Response("r-1", asked.question_id, json.dumps(text).encode())
    )
    assert at(way, server.url, lambda adapter: adapter.respond(inv)) == Accepted(inv.handle)
    done = ended(way, server, inv)
    assert done.phase is Phase.COMPLETED and text.encode() in (done.result or b"")
    assert isinstance(at(way, server.url, lambda adapter: adapter.respond(inv)), Refused)
    assert answered(server, text) == 1


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_that_answers_with_a_message_ran_once(servers: dict[str, Running], way: str) -> None:
    server = servers[way]
    inv = accepted(way, server.url, call("!message"))
    found = probe(way, server.url, inv)
    assert isinstance(found, Present) and found.failure is not None and found.failure.message == ONLY_A_MESSAGE
    assert executed(server, inv.id) == 1


@pytest.mark.parametrize("way", NEW)
def test_a_lost_message_is_found_by_its_marker(servers: dict[str, Running], way: str) -> None:
    server = servers[way]
    thread = f"talk-{uuid.uuid4()}"
    earlier = ended(way, server, accepted(way, server.url, call(thread_id=thread)))
    for inv in (call("@1s"), call("@1s", thread_id=thread)):
        assert probe(way, server.url, inv) == Absent(None)
        with FaultProxy(server.url) as proxy:
            proxy.rule(Cut(Where.SENT), match=sends)
            assert isinstance(submit(way, proxy.url, inv), Unresolved)
        until(lambda inv=inv: executed(server, inv.id) == 1, "the work")  # type: ignore[misc]
        found = probe(way, server.url, inv)
        assert isinstance(found, Present) and found.handle != earlier.handle
        assert ended(way, server, inv).handle == found.handle


@pytest.mark.parametrize("way", NEW)
def test_nobody_protects_a_context_from_a_second_message(servers: dict[str, Running], way: str) -> None:
    """What the quiet time is for, and that the counts above can fail: the same message again is a second task."""
    server = servers[way]
    inv = call()
    first = ended(way, server, accepted(way, server.url, inv))
    accepted(way, server.url, inv)
    until(lambda: executed(server, inv.id) == 2, "the second")
    until(lambda: probe(way, server.url, inv) == replace(first, result=None), "the first task as the call's own")


@pytest.mark.parametrize("way", ["0.3", "0.3 of 1.x"])
def test_a_lost_message_of_0_3_stays_unresolved(servers: dict[str, Running], way: str) -> None:
    server, inv = servers[way], call()
    with FaultProxy(server.url) as proxy:
        proxy.rule(Cut(Where.SENT), match=sends)
        assert isinstance(submit(way, proxy.url, inv), Unresolved)
        found = probe(way, proxy.url, inv)
        assert isinstance(found, Unknown) and found.final and len(proxy.exchanges) == 1
    until(lambda: executed(server, inv.id) == 1, "the work")


def sends(exchange: Exchange) -> bool:
    return any(name in exchange.body for name in (b'"SendMessage"', b'"message/send"')) or exchange.path.endswith(
        ":send"
    )


def answers_a_question(exchange: Exchange) -> bool:
    return sends(exchange) and b'"taskId"' in exchange.body


@pytest.mark.parametrize("way", NEW)
def test_a_stream_shows_where_the_task_stands_and_goes_on(servers: dict[str, Running], way: str) -> None:
    server = servers[way]
    inv = accepted(way, server.url, call("!chunks @500ms"))

    async def read(adapter: A2AAdapter) -> list[Any]:
        return [json.loads(one.data) async for one in adapter.watch(inv, "")]

    events = at(way, server.url, read)
    assert "task" in events[0] and events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert at(way, server.url, read) == []
    waiting = accepted(way, server.url, call("?ask"))
    inv = waiting
    # The server keeps the stream of a task that waits open; here it ends.
    assert "INPUT_REQUIRED" in json.dumps(at(way, server.url, read)[-1])


def agent(way: str, url: str) -> dict[str, AgentConfig]:
    return {"one": AgentConfig("one", "a2a", url, options=options(way, url), policy=PATIENT)}


def request(words: str, thread_id: str = "") -> Request:
    name = f"call-{uuid.uuid4()}"
    return Request(name, "one", json.dumps(f"{name} {words}").encode(), now_ms(), thread_id=thread_id)


@pytest.mark.parametrize("way", NEW)
@pytest.mark.parametrize("watch", [True, False])
def test_the_requests_of_a_call_are_those_that_its_row_says(servers: dict[str, Running], way: str, watch: bool) -> None:
    with FaultProxy(servers[way].url) as proxy:
        agents = agent(way, proxy.url)
        agents["one"] = replace(agents["one"], policy=replace(PATIENT, watch=watch, poll_ms=2_000))
        life = Life(agents, "life-1")
        opened = now_ms()
        life.until(lambda: now_ms() > opened + QUIET_MS, "the quiet time")
        life.ask(request("@500ms"))
        life.until(lambda: len(life.outcomes) == 1, "the outcome")
        life.die()
        assert life.outcomes[0].status is Status.COMPLETED
        expected = requests_of(A2AAdapter.variants[0]) - (not watch)
        assert len(proxy.exchanges) == expected, [str(one) for one in proxy.exchanges]
        assert sum(map(sends, proxy.exchanges)) == 1


@pytest.mark.parametrize("way", ["0.3", "0.3 of 1.x"])
def test_the_requests_of_a_call_of_0_3(servers: dict[str, Running], way: str) -> None:
    """Its agent has to be asked for with write-ahead, which this host has not: so the two requests by themselves."""
    inv = call()
    with FaultProxy(servers[way].url) as proxy:
        inv = accepted(way, proxy.url, inv)
        ended(way, servers[way], inv)
        found = probe(way, proxy.url, inv)
        assert isinstance(found, Present) and found.result is not None
        assert len(proxy.exchanges) == requests_of(A2AAdapter.variants[2])


@pytest.mark.parametrize("way", NEW)
@pytest.mark.parametrize("moment", ["at the POST", "at its loss", "while running", "at the end"])
@pytest.mark.parametrize("thread", ["", "talk"], ids=["own", "named"])
def test_a_crash_starts_nothing_twice(servers: dict[str, Running], way: str, moment: str, thread: str) -> None:
    server = servers[way]
    asked = request("@500ms", thread and f"{thread}-{uuid.uuid4()}")
    with FaultProxy(server.url) as proxy:
        if moment == "at its loss":
            proxy.rule(Cut(Where.SENT), match=sends)
        outcome = after_crash(agent(way, proxy.url), asked, moment, lambda: executed(server, asked.invocation_id) == 1)
        assert outcome.status is Status.COMPLETED
        assert asked.invocation_id.encode() in (outcome.result or b"")
    assert executed(server, asked.invocation_id) == 1


@pytest.mark.parametrize("way", NEW)
def test_a_message_that_lands_within_the_quiet_time_of_the_next_life_is_joined(
    servers: dict[str, Running], way: str
) -> None:
    server, asked = servers[way], request("@300ms")
    with FaultProxy(server.url) as proxy:
        rule = proxy.rule(Hold(), match=sends)
        first = Life(agent(way, proxy.url), "life-1")
        first.ask(asked)
        kept: dict[Key, bytes] = dict(first.states)
        first.until(lambda: len(rule.hits) == 1, "the POST")
        first.die()
        second = Life(agent(way, proxy.url), "life-2", kept)
        second.ask(asked)
        # Its first question is answered before the message lands: nothing is there.
        second.until(lambda: second.facts >= 1, "the first answer")
        rule.release()
        second.until(lambda: len(second.outcomes) == 1, "the outcome")
        second.die()
        assert second.outcomes[0].status is Status.COMPLETED and second.outcomes[0].attempts == 0
    assert executed(server, asked.invocation_id) == 1


@pytest.mark.parametrize("way", NEW)
@pytest.mark.parametrize("cut", [Where.SENT, Where.BEFORE], ids=["taken", "not taken"])
@pytest.mark.parametrize("crash", [False, True], ids=["lost", "lost and crashed"])
def test_an_answer_to_a_question_is_given_once(servers: dict[str, Running], way: str, cut: Where, crash: bool) -> None:
    server, asked = servers[way], request("?ask")
    text = f"blue {uuid.uuid4()}"
    with FaultProxy(server.url) as proxy:
        proxy.rule(Cut(cut), match=answers_a_question)
        life = Life(agent(way, proxy.url), "life-1")
        life.ask(asked)
        life.until(lambda: life.active[0].leaf is Leaf.RU_AWAITING_INPUT, "the question")
        key = request_key(asked)
        given = ResponseGiven(asked.invocation_id, 1, "r-1", life.active[0].question_id, json.dumps(text).encode())
        life.apply(key, given)
        if crash:
            kept = dict(life.states)
            life.until(lambda: any(map(answers_a_question, proxy.exchanges)), "the answer's message")
            life.die()
            life = Life(agent(way, proxy.url), "life-2", kept)
        life.until(lambda: len(life.outcomes) == 1, "the outcome")
        life.die()
        assert life.outcomes[0].status is Status.COMPLETED
        assert text.encode() in (life.outcomes[0].result or b"")
        assert sum(map(answers_a_question, proxy.exchanges)) == (1 if cut is Where.SENT else 2)
    assert answered(server, text) == 1 and executed(server, asked.invocation_id) == 1


@pytest.mark.parametrize("way", NEW)
def test_ends_that_are_told_through_a_whole_call(servers: dict[str, Running], way: str) -> None:
    server = servers[way]
    life = Life(agent(way, server.url), "life-1")
    asked = {words: request(words) for words in ("!message", "!failed", "!reject", "@30s")}
    for one in asked.values():
        life.ask(one)
    life.until(lambda: len(life.outcomes) == 3 and life.running, "three ends")
    life.apply(request_key(asked["@30s"]), CancelOrdered(asked["@30s"].invocation_id, 1))
    life.until(lambda: len(life.outcomes) == 4, "the cancel")
    life.die()
    ends = {one.invocation_id: one.failure for one in life.outcomes}
    told = {words: ends[one.invocation_id] for words, one in asked.items()}
    assert told["!message"] is not None and told["!message"].message == ONLY_A_MESSAGE
    assert told["!message"].code is FailureCode.REMOTE_FAILED
    assert told["@30s"] is not None and told["@30s"].code is FailureCode.CANCELLED
    assert all(executed(server, one.invocation_id) == 1 for one in asked.values())


def test_a_server_that_forgot_its_tasks_makes_a_call_lost_and_not_a_second_run(tmp_path: Path) -> None:
    with a2a(tmp_path / "server") as server, FaultProxy(server.url) as proxy:
        life = Life(agent("jsonrpc", proxy.url), "life-1")
        asked = request("@30s")
        life.ask(asked)
        life.until(lambda: life.running and life.active[0].handle != "", "a run")
        server.kill()
        with a2a(tmp_path / "other") as other:
            proxy.host, proxy.port = "127.0.0.1", int(other.url.rpartition(":")[2])
            life.until(lambda: len(life.outcomes) == 1, "the outcome")
            life.die()
            failure = life.outcomes[0].failure
            assert failure is not None and failure.code is FailureCode.LOST
            assert executed(server, asked.invocation_id) == 1 and executed(other, asked.invocation_id) == 0


def test_an_agent_of_0_3_alone_is_not_sent_to_unless_told_so(servers: dict[str, Running]) -> None:
    server, inv = servers["0.3"], call()
    card = {"endpoint": ""}
    assert "options.version = '0.3'" in on(server.url, card, lambda adapter: adapter.probe(inv)).cause  # type: ignore[union-attr]
    assert isinstance(on(server.url, card, lambda adapter: adapter.submit(inv, lambda handle: None)), Refused)
    assert executed(server, inv.id) == 0
    old = {**card, "version": "0.3"}
    assert isinstance(on(server.url, old, lambda adapter: adapter.submit(inv, lambda handle: None)), Accepted)


def test_the_cards_of_the_servers_are_enough(servers: dict[str, Running]) -> None:
    for given in ({"endpoint": ""}, {"endpoint": "", "binding": "rest"}, {"endpoint": "", "version": "0.3"}):
        inv = call()

        async def work(adapter: A2AAdapter, inv: Invocation = inv) -> Any:
            return await adapter.submit(inv, lambda handle: None)

        assert isinstance(on(servers["jsonrpc"].url, given, work), Accepted)


def test_langgraphs_own_a2a_is_spoken_to(tmp_path: Path) -> None:
    """Another implementation: it blocks, cuts histories, has no streams, and shows answers in the history alone."""
    with langgraph(tmp_path / "server") as server:
        found = httpx.post(f"{server.url}/assistants/search", json={}).raise_for_status().json()
        card = {"card": f"/.well-known/agent-card.json?assistant_id={found[0]['assistant_id']}"}
        policy = replace(PATIENT, submit_timeout_ms=1_000)
        life = Life({"one": AgentConfig("one", "a2a", server.url, options=card, policy=policy)}, "life-1")
        # The first answers within the time for a POST; the second does not, and is found in the list.
        asked = [request("@100ms"), request("@3s")]
        for one in asked:
            life.ask(one)
        life.until(lambda: len(life.outcomes) == 2, "both outcomes")
        life.die()
        for outcome in life.outcomes:
            assert outcome.status is Status.COMPLETED and outcome.attempts == 1, outcome
            assert f"turn 1: {outcome.invocation_id}".encode() in (outcome.result or b"")
        assert [executed(server, one.invocation_id) for one in asked] == [1, 1]
