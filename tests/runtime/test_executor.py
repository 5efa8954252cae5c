"""The executor: one answer per order, limits that hold, and an end after which nothing is sent."""

import socket
import threading
import time
from typing import Any

import pytest

from reattach.adapters.contract import AgentConfig
from reattach.models import answers as a
from reattach.models import effects as f
from reattach.models import events as e
from reattach.models.errors import ConfigError
from reattach.models.policy import Policy
from reattach.runtime import incarnations
from reattach.runtime.executor import Executor
from tests.runtime.scripted import Script, call, facts, ident, until

LATER = 2**52
pytestmark = pytest.mark.usefixtures("scripted")


EFFECTS = [
    (lambda i: f.Probe(i), e.ProbeAnswered),
    (lambda i: f.Submit(i, LATER), e.SubmitAnswered),
    (lambda i: f.Fetch(i), e.FetchAnswered),
    (lambda i: f.Fence(i), e.FenceAnswered),
    (lambda i: f.Cancel(i), e.CancelAnswered),
    (lambda i: f.Respond(i, LATER), e.RespondAnswered),
    (lambda i: f.Watch(i, ""), e.WatchEnded),
]


@pytest.mark.parametrize(("effect", "answer"), EFFECTS)
def test_every_order_has_one_answer_under_its_identity(make: Any, effect: Any, answer: Any) -> None:
    executor, inv = make(), call("a")
    executor.order("k", effect(ident(inv)), inv)
    ((key, fact),) = facts(executor, 1)
    assert key == "k"
    assert isinstance(fact, answer)
    assert fact.ident == ident(inv)
    until(lambda: not executor.busy, "rest after the answer")


@pytest.mark.parametrize(("effect", "answer"), EFFECTS)
def test_an_adapter_that_breaks_loses_no_answer_and_tells_no_secret(
    make: Any, script: Script, effect: Any, answer: Any
) -> None:
    script.replies = {
        kind: RuntimeError("tok-123") for kind in ("probe", "submit", "fetch", "fence", "cancel", "respond", "watch")
    }
    executor, inv = make(), call("a")
    executor.order("k", effect(ident(inv)), inv)
    ((_, fact),) = facts(executor, 1)
    assert isinstance(fact, answer)
    assert "tok-123" not in repr(fact)
    assert "RuntimeError" in repr(fact)


@pytest.mark.parametrize(("effect", "answer"), EFFECTS[:-1])
def test_an_adapter_that_hangs_is_given_up(make: Any, script: Script, effect: Any, answer: Any) -> None:
    script.gate.clear()
    limits = {"submit_timeout_ms": 30, "probe_timeout_ms": 30, "fetch_timeout_ms": 30}
    executor, inv = make(policy=limits), call("a")
    executor.order("k", effect(ident(inv)), inv)
    ((_, fact),) = facts(executor, 1)
    assert isinstance(fact, answer)
    assert isinstance(fact.answer, a.Unknown | a.Unresolved)
    assert "30 ms" in fact.answer.cause
    assert len(script.cancelled) == 1


def test_a_handle_is_told_before_the_answer(make: Any, script: Script) -> None:
    script.replies["learn"] = "run-7"
    executor, inv = make(), call("a")
    executor.order("k", f.Submit(ident(inv), LATER), inv)
    (_, first), (_, second) = facts(executor, 2)
    assert first == e.HandleLearned(ident(inv), "run-7")
    assert isinstance(second, e.SubmitAnswered)


class TestReads:
    def test_a_newer_read_takes_the_place_of_one_under_way(self, make: Any, script: Script) -> None:
        """S22: one attempt in flight, always."""
        script.gate.clear()
        executor, inv = make(), call("a")
        executor.order("k", f.Probe(ident(inv, 1)), inv)
        until(lambda: len(script.asked) == 1, "the first probe")
        executor.order("k", f.Probe(ident(inv, 2)), inv)
        until(lambda: len(script.cancelled) == 1, "its end")
        script.gate.set()
        ((_, fact),) = facts(executor, 1)
        assert fact.ident.epoch == 2

    def test_and_of_one_that_waits_keeping_its_place(self, make: Any, script: Script) -> None:
        script.gate.clear()
        executor = make(concurrency_max=1)
        calls = [call(name) for name in "abc"]
        for inv in calls:
            executor.order(inv.id, f.Probe(ident(inv, 1)), inv)
        until(lambda: executor.backlog == 2, "two waiting")
        executor.order("b", f.Probe(ident(calls[1], 2)), calls[1])
        script.gate.set()
        got = [(key, fact.ident.epoch) for key, fact in facts(executor, 3)]
        assert got == [("a", 1), ("b", 2), ("c", 1)]

    def test_a_watch_gives_way_to_a_probe(self, make: Any, script: Script) -> None:
        script.gate.clear()
        executor, inv = make(), call("a")
        executor.order("k", f.Watch(ident(inv, 1), ""), inv)
        until(lambda: script.asked == [("watch", "a")], "the stream")
        executor.order("k", f.Probe(ident(inv, 2)), inv)
        until(lambda: ("probe", "a") in script.asked, "the probe")
        script.gate.set()
        ((_, fact),) = facts(executor, 1)
        assert isinstance(fact, e.ProbeAnswered)


class TestSends:
    def test_no_other_order_interrupts_a_send(self, make: Any, script: Script) -> None:
        script.gate.clear()
        executor, inv = make(), call("a")
        executor.order("k", f.Submit(ident(inv, 1), LATER), inv)
        until(lambda: script.asked == [("submit", "a")], "the send")
        executor.order("k", f.Probe(ident(inv, 2)), inv)
        until(lambda: len(script.asked) == 2, "the probe")
        script.gate.set()
        assert {type(fact) for _, fact in facts(executor, 2)} == {e.SubmitAnswered, e.ProbeAnswered}
        assert script.cancelled == []

    @pytest.mark.parametrize("late", [0, int(time.time() * 1000) - 1], ids=["long-past", "just-past"])
    def test_what_is_late_never_leaves(self, make: Any, script: Script, late: int) -> None:
        executor, inv = make(), call("a")
        executor.order("k", f.Submit(ident(inv), late), inv)
        executor.order("k", f.Respond(ident(inv), late), inv)
        answered = [fact.answer for _, fact in facts(executor, 2)]
        assert all(isinstance(answer, a.NotSent) for answer in answered)
        assert script.asked == []

    def test_a_wall_clock_that_is_set_back_prolongs_nothing(
        self, make: Any, script: Script, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script.gate.clear()
        executor = make(concurrency_max=1, policy={"submit_timeout_ms": 60_000})
        first, second = call("a"), call("b")
        executor.order("a", f.Submit(ident(first), LATER), first)
        until(lambda: len(script.asked) == 1, "the first send")
        soon = int(time.time() * 1000) + 50
        executor.order("b", f.Submit(ident(second), soon), second)
        real = time.time
        monkeypatch.setattr("reattach.runtime.executor.time.time", lambda: real() - 3_600)
        until(lambda: real() * 1000 > soon + 50, "its validity to pass")
        script.gate.set()
        answers = {key: fact.answer for key, fact in facts(executor, 2)}
        assert isinstance(answers["b"], a.NotSent)
        assert script.asked == [("submit", "a")]

    def test_sends_go_first(self, make: Any, script: Script) -> None:
        script.gate.clear()
        executor = make(concurrency_max=1)
        calls = [call(name) for name in "abc"]
        executor.order("a", f.Probe(ident(calls[0])), calls[0])
        until(lambda: len(script.asked) == 1, "the first read")
        executor.order("b", f.Probe(ident(calls[1])), calls[1])
        executor.order("c", f.Submit(ident(calls[2]), LATER), calls[2])
        script.gate.set()
        assert [key for key, _ in facts(executor, 3)] == ["a", "c", "b"]


class TestLimits:
    def test_requests_in_flight(self, make: Any, script: Script) -> None:
        script.gate.clear()
        executor = make(concurrency_max=4)
        for number in range(20):
            inv = call(f"c{number}")
            executor.order(inv.id, f.Probe(ident(inv)), inv)
        until(lambda: executor.in_flight == 4, "four in flight")
        script.gate.set()
        facts(executor, 20)
        assert script.most == 4

    def test_streams_do_not_take_the_place_of_requests(self, make: Any, script: Script) -> None:
        script.gate.clear()
        executor = make(concurrency_max=1, streams_max=2, policy={"poll_ms": 20, "watch_silence_ms": 1_000})
        for number in range(3):
            inv = call(f"c{number}")
            executor.order(inv.id, f.Watch(ident(inv), ""), inv)
        ((_, refused),) = facts(executor, 1)
        assert isinstance(refused, e.WatchEnded)
        assert "as many streams" in refused.cause
        assert script.most == 2
        inv = call("probe")
        executor.order("probe", f.Probe(ident(inv)), inv)
        until(lambda: ("probe", "probe") in script.asked, "a request beside the streams")

    def test_stream_events_come_in_batches(self, make: Any, script: Script) -> None:
        script.replies["items"] = 600
        executor, inv = make(), call("a")
        executor.order("k", f.Watch(ident(inv), ""), inv)
        until(lambda: not executor._dispatch.tasks and executor.pending > 0, "the end of the stream")
        got = [fact for _, fact, _ in executor.drain(1_000)]
        assert isinstance(got[-1], e.WatchEnded)
        batches = [fact for fact in got if isinstance(fact, e.Progressed)]
        assert sum(len(batch.items) for batch in batches) == 600
        assert len(batches) <= 4

    def test_many_orders_leave_nothing_behind(self, make: Any, script: Script) -> None:
        executor, inv = make(), call("a")
        for number in range(10_000):
            executor.order(f"k{number}", f.Probe(ident(inv)), inv)
        until(lambda: executor.pending == 10_000, "ten thousand answers")
        assert len(executor.drain(20_000)) == 10_000
        until(lambda: not executor.busy, "rest")
        assert not executor._dispatch.reading and not executor._dispatch.tasks and executor.in_flight == 0


class TestTheEnd:
    def test_close_ends_everything_at_once(self, make: Any, script: Script) -> None:
        script.gate.clear()
        executor = make()
        for number in range(3):
            inv = call(f"c{number}")
            executor.order(inv.id, f.Submit(ident(inv), LATER), inv)
        until(lambda: len(script.asked) == 3, "three sends")
        executor.close()
        executor.close()
        assert len(script.cancelled) == 3
        assert not executor._thread.is_alive()
        inv = call("late")
        executor.order("late", f.Submit(ident(inv), LATER), inv)
        assert len(script.asked) == 3

    def test_a_new_incarnation_ends_the_old_one_first(self, make: Any, script: Script) -> None:
        script.gate.clear()
        place = ("job", "operator", 0)
        old = incarnations.take_over(place, make)
        inv = call("a")
        old.order("a", f.Submit(ident(inv), LATER), inv)
        until(lambda: len(script.asked) == 1, "a send")
        alive: list[bool] = []

        def make_new() -> Executor:
            alive.append(old._thread.is_alive())
            built: Executor = make()
            return built

        new = incarnations.take_over(place, make_new)
        assert alive == [False]
        assert script.cancelled == [("submit", "a")]
        incarnations.release(place, old)
        assert incarnations.take_over(("job", "operator", 1), make) is not new
        incarnations.release(place, new)
        assert place not in incarnations._open

    def test_a_bad_configuration_leaves_no_thread(self) -> None:
        before = threading.active_count()
        with pytest.raises(ConfigError, match="no protocol 'nonsense'"):
            Executor({"agent": AgentConfig("agent", "nonsense", "http://127.0.0.1:9")})
        assert threading.active_count() == before

    def test_after_close_no_byte_of_a_real_post_arrives(self) -> None:
        """A server that reads slowly: the rest of the body stays here when the incarnation ends."""
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        port = listener.getsockname()[1]
        policy = Policy(retention_ms=1_000, message_bytes_max=64 * 1024 * 1024)
        executor = Executor({"agent": AgentConfig("agent", "thread", f"http://127.0.0.1:{port}", policy=policy)})
        from dataclasses import replace

        inv = call("a")
        big = replace(inv, request=replace(inv.request, message=b'"' + b"x" * 20_000_000 + b'"'))
        executor.order("a", f.Submit(ident(inv), LATER), big)
        connection, _ = listener.accept()
        connection.settimeout(20)
        assert connection.recv(1_000)
        executor.close()
        received, ended = 0, False
        try:
            while chunk := connection.recv(1 << 20):
                received += len(chunk)
            ended = True
        except ConnectionResetError:
            ended = True
        assert ended
        assert received < 20_000_000
        connection.close()
        listener.close()
