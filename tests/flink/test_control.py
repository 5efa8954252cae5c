"""Orders of people to the host, on a stand-in for Flink."""

import json
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reattach.adapters import registry
from reattach.models import answers as a
from reattach.models.control import parse_order
from reattach.models.errors import ConfigError
from reattach.runtime.flink.function import UNREADABLE, order_key_of, request_key_of
from reattach.runtime.flink.host import NOTICES, REJECTS, Host
from tests.flink.stage import QUICK, Stage
from tests.flink.test_host import line, outcomes, side
from tests.runtime.scripted import Script, ScriptedAdapter, config


class Asking(Script):
    """A remote whose run asks a question, and goes on when it is answered."""

    def __init__(self) -> None:
        super().__init__()
        self.posts = 0
        self.answers: list[bytes] = []
        self.asks = True

    async def play(self, kind: str, inv: Any, usual: Any) -> Any:
        await super().play(kind, inv, usual)
        if kind == "submit":
            self.posts += 1
        if kind == "respond":
            self.answers.append(inv.response.payload)
        if kind == "probe" and self.posts:
            if not self.asks:
                return a.Present(a.Phase.RUNNING, "run")
            if not self.answers:
                return a.Present(a.Phase.AWAITING_INPUT, "run", question_id="q1", question=b'"?"')
            return a.Present(a.Phase.COMPLETED, "run", result=b'"ok"')
        return usual


class Controlled(Stage):
    """A subtask with the second input."""

    def order(self, value: Any, key: str = "") -> list[Any]:
        return self._callback(key or order_key_of(value), lambda: self.host.control(value, self))

    def say(self, name: str, **more: Any) -> None:
        self.send(request_key_of(line(name, **more)), line(name, **more))

    def notices(self) -> list[dict[str, Any]]:
        return [json.loads(one) for one in side(self, NOTICES)]


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Asking:
    monkeypatch.setitem(registry._BUILT_IN, "scripted", ScriptedAdapter)
    return Asking()


def order(kind: str, name: str = "a", **more: Any) -> str:
    return json.dumps({"order": kind, "agent": "agent", "invocation_id": name, "generation": 1, **more})


ANSWER = order("respond", response_id="r1", question_id="q1", payload="yes")


def asked(stage: Controlled) -> None:
    stage.say("a")
    stage.run(lambda: any(one["kind"] == "awaiting_input" for one in stage.notices()), "the question")


def test_a_call_that_nobody_knows_is_answered_and_nothing_is_kept(make: Any) -> None:
    stage = Controlled(make())
    for thread in ({}, {"thread_id": "t"}):
        stage.order(order("cancel", **thread))
    assert [(one["kind"], one["invocation_id"]) for one in stage.notices()] == [("refused", "a")] * 2
    assert "no such call" in stage.notices()[0]["message"]
    assert not stage.state and not stage.timers_set


def test_a_cancel_ends_the_call_once_however_often_it_comes(make: Any, remote: Asking) -> None:
    remote.asks = False
    stage = Controlled(make())
    stage.say("a", thread_id="t")
    stage.run(lambda: remote.posts == 1, "the POST")
    for _ in range(3):
        stage.order(order("cancel", thread_id="t"))
    stage.run(lambda: bool(outcomes(stage)), "the outcome")
    stage.order(order("cancel", thread_id="t"))
    (outcome,) = outcomes(stage)
    assert outcome["failure"]["code"] == "cancelled"
    assert stage.notices() == []


def test_a_call_that_has_ended_is_answered_with_late(make: Any, remote: Asking) -> None:
    stage = Controlled(make())
    asked(stage)
    stage.order(ANSWER)
    stage.run(lambda: bool(outcomes(stage)), "the outcome")
    stage.order(order("cancel"))
    assert stage.notices()[-1]["kind"] == "late"
    assert "has ended (COMPLETED)" in stage.notices()[-1]["message"]


def test_an_order_that_is_parsed_already_is_taken(make: Any, remote: Asking) -> None:
    stage = Controlled(make())
    asked(stage)
    stage.order(parse_order(ANSWER, payload_bytes_max=100))
    stage.run(lambda: bool(outcomes(stage)), "the outcome")
    assert remote.answers == [b'"yes"']


def test_an_answer_that_is_read_again_after_a_crash_is_given_once(make: Any, remote: Asking) -> None:
    """It comes before the restored key's own slot; the state knows the question and not the answer."""
    old = Controlled(make())
    asked(old)
    snapshot = old.snapshot()
    old.order(ANSWER)
    remote.gate.clear()
    old.host.close()
    remote.gate.set()
    assert remote.answers == []
    stage = Controlled(make(recovery_spread_ms=600_000), snapshot)
    stage.order(ANSWER)
    stage.order(ANSWER)
    stage.run(lambda: bool(outcomes(stage)), "the outcome")
    assert outcomes(stage)[0]["status"] == "COMPLETED"
    assert remote.answers == [b'"yes"']
    assert not [one for one in stage.notices() if one["kind"] == "refused"]


def test_an_order_about_another_call_of_a_restored_thread_takes_the_thread_over(make: Any, remote: Asking) -> None:
    """Else the thread would have lost its slot, and its call would wait for its own timer."""
    remote.asks = False
    slow = {"poll_ms": 60_000, "poll_max_ms": 60_000, "watch_silence_ms": 60_000}
    old = Controlled(make(**slow))
    old.say("a", thread_id="t")
    old.run(lambda: remote.posts == 1 and not old.pumping, "the next poll to be far away")
    snapshot = old.snapshot()
    old.host.close()
    asked_before = len(remote.asked)
    stage = Controlled(make(recovery_spread_ms=600_000, **slow), snapshot)
    stage.order(order("cancel", "b", thread_id="t"))
    stage.run(lambda: ("probe", "a") in remote.asked[asked_before:], "the look at the restored call")


def test_nor_is_it_given_again_when_it_had_its_effect(make: Any, remote: Asking) -> None:
    old = Controlled(make())
    asked(old)
    snapshot = old.snapshot()
    old.order(ANSWER)
    old.run(lambda: remote.answers != [], "the answer")
    old.host.close()
    stage = Controlled(make(), snapshot)
    stage.order(ANSWER)
    stage.run(lambda: bool(outcomes(stage)), "the outcome")
    assert remote.answers == [b'"yes"']
    assert remote.posts == 1


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("{", "not JSON"),
        (order("kill"), "order: no such order"),
        (order("cancel", invocation="x"), "invocation: no such field"),
        (order("cancel", agent="other"), "agent: none named 'other' is configured (agent)"),
        (order("respond", response_id="r", question_id="q", payload="x" * 300_000), "payload: 300002 bytes, the limit"),
        (None, "neither a line of JSON nor an Order: NoneType"),
    ],
    ids=["cut", "kind", "field", "agent", "too-long", "nothing"],
)
def test_what_cannot_be_taken_is_rejected_with_its_reason(make: Any, value: Any, reason: str) -> None:
    stage = Controlled(make())
    stage.order(value)
    (rejected,) = side(stage, REJECTS)
    assert reason in json.loads(rejected)["reason"]
    assert not stage.state and not stage.notices()


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=st.binary(max_size=200) | st.text(max_size=200) | st.none() | st.integers())
def test_no_line_raises(make: Any, value: Any) -> None:
    stage = getattr(make, "stage", None) or Controlled(make())
    make.stage = stage
    assert order_key_of(value) == UNREADABLE
    stage.order(value)
    json.loads(side(stage, REJECTS)[-1])


def test_a_stream_with_other_keys_is_refused(make: Any) -> None:
    with pytest.raises(ConfigError, match="order_key_of"):
        Controlled(make()).order(order("cancel"), key="a")


def test_orders_and_requests_of_a_call_have_one_key() -> None:
    for thread in ({}, {"thread_id": "t"}):
        assert order_key_of(order("cancel", **thread)) == request_key_of(line("a", **thread))
    parsed = parse_order(order("cancel"), payload_bytes_max=1)
    assert order_key_of(parsed) == order_key_of(order("cancel"))


class Forgetful(Asking):
    """A remote that cannot tell what became of a first POST."""

    async def play(self, kind: str, inv: Any, usual: Any) -> Any:
        if kind == "probe":
            await Script.play(self, kind, inv, usual)
            if inv.generation > 1:
                return a.Present(a.Phase.COMPLETED, "run-2", result=b'"ok"') if self.posts == 2 else a.Absent()
            if inv.handle:
                return a.Present(a.Phase.COMPLETED, inv.handle, result=b'"ok"')
            return a.Unknown("no such question", final=True) if self.posts else a.Absent()
        answer = await super().play(kind, inv, usual)
        return a.Unresolved("reset") if kind == "submit" and inv.generation == 1 else answer


RESUBMIT = order("resubmit", ordered_at_ms=int(time.time() * 1000))


@pytest.mark.parametrize(
    ("what", "status", "posts"),
    [
        (RESUBMIT, "COMPLETED", 2),
        (order("adopt", handle="run-7"), "COMPLETED", 1),
        (order("abandon"), "FAILED", 1),
    ],
    ids=["resubmit", "adopt", "abandon"],
)
@pytest.mark.parametrize("crash", [False, True], ids=["in-one-life", "read-again-after-a-crash"])
def test_a_parked_call_is_decided_once_however_often_it_is_ordered(
    monkeypatch: pytest.MonkeyPatch, what: str, status: str, posts: int, crash: bool
) -> None:
    monkeypatch.setitem(registry._BUILT_IN, "scripted", ScriptedAdapter)
    remote = Forgetful()
    made = [Host({"agent": config(remote, **QUICK)}) for _ in range(2)]
    stage = Controlled(made[0])
    stage.say("a")
    stage.run(lambda: any(one["kind"] == "parked" for one in stage.notices()), "the parked call")
    assert remote.posts == 1
    snapshot = stage.snapshot()
    for _ in range(2):
        stage.order(what)
    stage.run(lambda: bool(outcomes(stage)), "the outcome")
    if crash:
        made[0].close()
        stage = Controlled(made[1], snapshot)
        stage.order(what)
        stage.run(lambda: bool(outcomes(stage)), "the outcome of the second life")
    stage.order(what)
    (outcome,) = outcomes(stage)
    assert (outcome["status"], remote.posts) == (status, posts)
    assert not [one for one in stage.notices() if one["kind"] == "refused"]
    for host in made[: 2 if crash else 1]:
        host.close()
