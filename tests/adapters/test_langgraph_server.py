"""The `langgraph` adapter against LangGraph's own server: what it promises is counted in the graph's effects.

The fence is verified here: no late POST runs under it, wherever it was held back.
"""

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from reattach.adapters.contract import AgentConfig
from reattach.adapters.describe import requests_of
from reattach.adapters.langgraph import LangGraphAdapter
from reattach.models.answers import (
    Absent,
    Accepted,
    Confirmed,
    Fenced,
    Occupied,
    Phase,
    Present,
    Taken,
    Unknown,
    Unresolved,
)
from reattach.models.events import CancelOrdered, ResponseGiven
from reattach.models.identity import request_key, thread_id_of
from reattach.models.invocation import Invocation, Response
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import FailureCode
from reattach.models.request import Request
from reattach.runtime.proxy.faults import Cut, Exchange, Hold, Twice, Where
from reattach.runtime.proxy.proxy import FaultProxy
from tests.adapters import wire
from tests.adapters.graphs import PER_CALL, SHARED, ignore, on
from tests.e2e.harness import until
from tests.examples.host import PATIENT, Life, after_crash, now_ms
from tests.servers.running import Running, langgraph


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with langgraph(tmp_path_factory.mktemp("langgraph")) as running:
        yield running


def call(words: str = "hello", **more: Any) -> Invocation:
    name = f"call-{uuid.uuid4()}"
    return wire.invocation(name, message=json.dumps(f"{name} {words}").encode(), **more)


def executed(server: Running, inv: Invocation, kind: str = "message") -> int:
    """How often the graph really ran for a call."""
    if kind == "answer":
        return sum(one["thread"] == thread_id_of(inv.request, 1, inv.slot) for one in server.executions("answer"))
    return sum(one["text"].startswith(inv.id + " ") for one in server.executions(kind))


def runs(exchange: Exchange) -> bool:
    return exchange.method == "POST" and exchange.path.endswith("/runs")


def threads(exchange: Exchange) -> bool:
    return exchange.method == "POST" and exchange.path.endswith("/threads")


def ended(server: Running, inv: Invocation) -> Any:
    """The probe's answer when the run is over."""
    found: list[Any] = []

    def over() -> bool:
        found.append(on(server.url, lambda adapter: adapter.probe(inv)))
        return isinstance(found[-1], Present) and found[-1].phase is not Phase.RUNNING

    until(over, "the end of the run")
    return found[-1]


@pytest.mark.parametrize("landed", [False, True], ids=["held back", "landed before"])
def test_under_a_fence_no_late_post_runs(server: Running, landed: bool) -> None:
    inv = call()
    with FaultProxy(server.url) as proxy:
        rule = proxy.rule(Cut(Where.SENT) if landed else Hold(), match=runs)
        assert isinstance(on(proxy.url, lambda adapter: adapter.submit(inv, ignore)), Unresolved)
        if landed:
            until(lambda: executed(server, inv) == 1, "the run")
            ended(server, inv)
        assert on(proxy.url, lambda adapter: adapter.fence(inv)) == Fenced()
        found = on(proxy.url, lambda adapter: adapter.probe(inv))
        assert isinstance(found, Present if landed else Absent), found
        # A fence that is there already is as good: nobody takes one away.
        assert on(proxy.url, lambda adapter: adapter.fence(inv)) == Fenced()
        rule.release()
        (late,) = rule.hits
        assert proxy.wait(late, 30) and late.forwarded == 1
        assert late.statuses == ([] if landed else [409])
    # The answer to the last request is the proof: the server has refused it, or had run it before.
    assert executed(server, inv) == landed
    assert isinstance(on(server.url, lambda adapter: adapter.probe(inv)), Present if landed else Absent)


def test_a_fence_does_not_close_a_thread_on_which_the_run_is(server: Running) -> None:
    inv = call("@2s")
    assert isinstance(on(server.url, lambda adapter: adapter.submit(inv, ignore)), Accepted)
    assert isinstance(on(server.url, lambda adapter: adapter.fence(inv)), Occupied)
    assert ended(server, inv).phase is Phase.COMPLETED


def test_a_late_making_of_the_thread_lets_nobody_send(server: Running) -> None:
    """The first life's request to make the thread lands when the second has closed the slot."""
    inv = call()
    with FaultProxy(server.url) as proxy:
        rule = proxy.rule(Hold(), match=threads)
        assert isinstance(on(proxy.url, lambda adapter: adapter.submit(inv, ignore)), Unresolved)
        assert on(server.url, lambda adapter: adapter.fence(inv)) == Fenced()
        rule.release()
        assert proxy.wait(rule.hits[0], 30) and rule.hits[0].statuses == [409]
        assert not any(runs(one) for one in proxy.exchanges)
    assert isinstance(on(server.url, lambda adapter: adapter.submit(inv, ignore)), Occupied)
    assert executed(server, inv) == 0


@pytest.mark.parametrize("seed", range(4))
def test_a_post_and_a_fence_at_once_have_one_winner(server: Running, seed: int) -> None:
    """Through the server's own race: whichever comes first, what the list shows afterwards is the truth."""

    async def race(adapter: LangGraphAdapter) -> list[Any]:
        calls = [call(f"seed {seed}") for _ in range(10)]
        pairs = [asyncio.gather(adapter.submit(one, ignore), adapter.fence(one)) for one in calls]
        answers = await asyncio.gather(*pairs)
        return list(zip(calls, answers, strict=True))

    for inv, (submitted, fenced) in on(server.url, race):
        assert isinstance(submitted, Accepted) != isinstance(fenced, Fenced), (submitted, fenced)
        if isinstance(submitted, Accepted):
            ended(server, inv)
        assert executed(server, inv) == isinstance(submitted, Accepted)


def test_the_same_post_twice_is_one_run(server: Running) -> None:
    inv = call("@1s")
    with FaultProxy(server.url) as proxy:
        proxy.rule(Twice(), match=runs)
        assert isinstance(on(proxy.url, lambda adapter: adapter.submit(inv, ignore)), Occupied)
    assert ended(server, inv).phase is Phase.COMPLETED and executed(server, inv) == 1


def test_nobody_else_protects_a_thread_of_several_calls(server: Running) -> None:
    """What the quiet time is for: a POST that lands after the run has ended is a second run."""
    inv = call(thread_id=str(uuid.uuid4()))
    with FaultProxy(server.url) as proxy:
        rule = proxy.rule(Hold(), match=runs, skip=1)
        assert isinstance(on(proxy.url, lambda adapter: adapter.submit(inv, ignore), SHARED), Unresolved)
        assert on(server.url, lambda adapter: adapter.probe(inv), SHARED) == Absent(None)
        assert isinstance(on(server.url, lambda adapter: adapter.submit(inv, ignore), SHARED), Accepted)
        until(lambda: executed(server, inv) == 1, "the run")
        first = on(server.url, lambda adapter: adapter.probe(inv), SHARED)
        until(lambda: not _runs_on(server, inv), "the run's end")
        rule.release()
        until(lambda: executed(server, inv) == 2, "the zombie's run")
        # The first one stays the call's own.
        again = on(server.url, lambda adapter: adapter.probe(inv), SHARED)
        assert isinstance(again, Present) and isinstance(first, Present) and again.handle == first.handle


def _runs_on(server: Running, inv: Invocation) -> bool:
    found = on(server.url, lambda adapter: adapter.probe(inv), SHARED)
    return not isinstance(found, Present) or found.phase is Phase.RUNNING


def test_the_handle_is_known_before_the_answer_has_ended(server: Running) -> None:
    inv = call()
    learned: list[str] = []
    with FaultProxy(server.url) as proxy:
        proxy.rule(Cut(Where.BODY, at=1), match=runs)
        answer = on(proxy.url, lambda adapter: adapter.submit(inv, lambda handle: learned.append(handle)))
    assert answer == Accepted(learned[0]) and ended(server, inv).handle == learned[0]


def test_a_question_is_answered_once_also_under_a_fence(server: Running) -> None:
    inv = call("?ask")
    assert isinstance(on(server.url, lambda adapter: adapter.submit(inv, ignore)), Accepted)
    asked = ended(server, inv)
    assert asked.phase is Phase.AWAITING_INPUT and b"which one?" in asked.question
    assert on(server.url, lambda adapter: adapter.fence(inv)) == Fenced()
    answer = replace(inv, response=Response("r-1", asked.question_id, b'"the blue one"'))
    taken = on(server.url, lambda adapter: adapter.respond(answer))
    assert isinstance(taken, Accepted) and taken.handle != asked.handle
    done = ended(server, inv)
    assert done.phase is Phase.COMPLETED and b"the blue one" in done.result and done.handle == taken.handle
    assert executed(server, inv) == 1 and executed(server, inv, "answer") == 1
    # By the old handle the same is found.
    assert on(server.url, lambda adapter: adapter.probe(replace(inv, handle=asked.handle))) == done


def test_a_run_is_cancelled(server: Running) -> None:
    inv = call("@30s")
    accepted = on(server.url, lambda adapter: adapter.submit(inv, ignore))
    assert isinstance(accepted, Accepted)
    inv = replace(inv, handle=accepted.handle)
    until(lambda: executed(server, inv) == 1, "the run")
    assert on(server.url, lambda adapter: adapter.cancel(inv)) == Confirmed()
    assert on(server.url, lambda adapter: adapter.probe(inv)) == Present(Phase.CANCELLED, accepted.handle)
    assert on(server.url, lambda adapter: adapter.cancel(inv)) == Taken()


def test_a_stream_goes_on_where_it_broke(server: Running) -> None:
    inv = call("@500ms")
    accepted = on(server.url, lambda adapter: adapter.submit(inv, ignore))
    assert isinstance(accepted, Accepted)
    inv = replace(inv, handle=accepted.handle)

    async def read(adapter: LangGraphAdapter, cursor: str) -> list[Any]:
        return [one async for one in adapter.watch(inv, cursor)]

    whole = on(server.url, lambda adapter: read(adapter, ""))
    ticks = [one for one in whole if b'"tick"' in one.data]
    assert len(ticks) == 5 and all(one.cursor for one in whole)
    with FaultProxy(server.url) as proxy:
        proxy.rule(Cut(Where.BODY, events=3), match=lambda one: one.path.endswith("/stream"))
        start = on(proxy.url, lambda adapter: read(adapter, ""))
    assert start == whole[:3]
    assert start + on(server.url, lambda adapter: read(adapter, start[-1].cursor)) == whole
    unknown = replace(inv, handle=str(uuid.uuid4()))
    assert on(server.url, lambda adapter: _all(adapter, unknown)) == []


async def _all(adapter: LangGraphAdapter, inv: Invocation) -> list[Any]:
    return [one async for one in adapter.watch(inv, "")]


def test_an_unknown_assistant_and_a_run_that_nobody_knows(server: Running) -> None:
    refused = on(server.url, lambda adapter: adapter.submit(call(), ignore), {**PER_CALL, "assistant": "nobody"})
    assert "HTTP 422" in refused.failure.message  # type: ignore[union-attr]
    odd = replace(call(), handle=str(uuid.uuid4()))
    assert on(server.url, lambda adapter: adapter.probe(odd)) == Absent(None)
    assert on(server.url, lambda adapter: adapter.cancel(odd)) == Taken()
    assert isinstance(on(server.url, lambda adapter: adapter.probe(replace(odd, handle="no-uuid"))), Unknown)


def agent(url: str, options: dict[str, Any] = PER_CALL) -> dict[str, AgentConfig]:
    return {"lg": AgentConfig("lg", "langgraph", url, options=options, policy=PATIENT)}


def request(number: int, words: str, name: str, thread_id: str = "") -> Request:
    marker = f"{name}-{number}"
    return Request(marker, "lg", json.dumps(f"{marker} {words}").encode(), now_ms(), thread_id=thread_id)


@pytest.mark.parametrize("options", [PER_CALL, SHARED], ids=["per call", "shared"])
def test_the_requests_of_a_call_are_those_that_its_row_says(server: Running, options: dict[str, Any]) -> None:
    variant = LangGraphAdapter.variants[options is SHARED]
    thread = "" if options is PER_CALL else str(uuid.uuid4())
    if thread:
        # The first turn of a conversation makes its thread by two requests more.
        httpx.post(f"{server.url}/threads", json={"thread_id": thread}).raise_for_status()
    with FaultProxy(server.url) as proxy:
        life = Life(agent(proxy.url, options), "life-1")
        opened = now_ms()
        life.until(lambda: now_ms() > opened + 2_600, "the quiet time")
        life.ask(request(1, "@500ms", f"count-{uuid.uuid4()}", thread))
        life.until(lambda: len(life.outcomes) == 1, "the outcome")
        life.die()
        assert life.outcomes[0].status is Status.COMPLETED
        assert len(proxy.exchanges) == requests_of(variant), [str(one) for one in proxy.exchanges]


@pytest.mark.parametrize("moment", ["at the POST", "at its loss", "while running", "at the end"])
@pytest.mark.parametrize("options", [PER_CALL, SHARED], ids=["per call", "shared"])
def test_a_crash_starts_nothing_twice(server: Running, options: dict[str, Any], moment: str) -> None:
    asked = request(1, "@500ms", f"crash-{uuid.uuid4()}", "" if options is PER_CALL else f"t-{uuid.uuid4()}")
    with FaultProxy(server.url) as proxy:
        if moment == "at its loss":
            proxy.rule(Cut(Where.SENT), match=runs, skip=0 if options is PER_CALL else 1)
        outcome = after_crash(agent(proxy.url, options), asked, moment, lambda: _executions(server, asked) == 1)
        assert outcome.status is Status.COMPLETED
    assert _executions(server, asked) == 1


def _executions(server: Running, asked: Request) -> int:
    return Counter(one["text"] for one in server.executions())[json.loads(asked.message)]


def test_zombies_of_every_life_and_none_runs(server: Running) -> None:
    """Each life's POST is held back and its answer lost; all land when the last life has sent its own."""
    asked = [request(number, "@300ms", f"zombie-{uuid.uuid4()}") for number in range(4)]
    with FaultProxy(server.url) as proxy:
        rule = proxy.rule(Hold(), match=runs, times=8)
        for number in range(2):
            life = Life(agent(proxy.url), f"life-{number}")
            for one in asked:
                life.ask(one)
            held = 4 * (number + 1)
            life.until(lambda held=held: len(rule.hits) >= held, "held POSTs")  # type: ignore[misc]
            life.die()
        last = Life(agent(proxy.url), "life-last")
        for one in asked:
            last.ask(one)
        last.until(lambda: len(last.outcomes) == 4, "all outcomes")
        rule.release()
        assert all(proxy.wait(one, 30) for one in rule.hits)
        last.die()
    assert all(one.status is Status.COMPLETED for one in last.outcomes)
    assert [_executions(server, one) for one in asked] == [1, 1, 1, 1]


def test_turns_of_a_conversation_run_in_order(server: Running) -> None:
    thread, name = f"t-{uuid.uuid4()}", f"turn-{uuid.uuid4()}"
    life = Life(agent(server.url, SHARED), "life-1")
    for number in range(4):
        life.ask(request(number, "@200ms", name, thread))
    life.until(lambda: len(life.outcomes) == 4, "all outcomes")
    life.die()
    mine = [one for one in server.executions() if one["text"].startswith(name)]
    assert [one["turn"] for one in mine] == [1, 2, 3, 4]
    assert [one["text"].split(" ")[0] for one in mine] == [f"{name}-{number}" for number in range(4)]


def test_questions_and_cancels_through_the_whole_engine(server: Running) -> None:
    asks, long = request(1, "?ask", f"ask-{uuid.uuid4()}"), request(2, "@30s", f"ask-{uuid.uuid4()}")
    life = Life(agent(server.url), "life-1")
    life.ask(asks)
    life.ask(long)
    waiting = Leaf.RU_AWAITING_INPUT
    life.until(lambda: [one.leaf for one in life.active if one.id == asks.invocation_id] == [waiting], "the question")
    (inv,) = [one for one in life.active if one.id == asks.invocation_id]
    life.apply(request_key(asks), ResponseGiven(asks.invocation_id, 1, "r-1", inv.question_id, b'"green"'))
    life.until(lambda: len(life.outcomes) == 1, "the outcome")
    assert b"green" in (life.outcomes[0].result or b"")
    life.until(lambda: life.running, "the long run")
    life.apply(request_key(long), CancelOrdered(long.invocation_id, 1))
    life.until(lambda: len(life.outcomes) == 2, "the cancel")
    life.die()
    failure = life.outcomes[1].failure
    assert failure is not None and failure.code is FailureCode.CANCELLED
