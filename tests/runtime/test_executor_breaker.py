"""The breaker in the executor: a remote that is down is left alone, nothing is lost, and its return is found."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from reattach.adapters.contract import Limits
from reattach.models import answers as a
from reattach.runtime.executor import Executor
from reattach.runtime.queues import DOWN
from tests.runtime.scripted import facts, until
from tests.runtime.wired import Net, agent, probe, submit, watch

FOR_EVER_MS = 3_600_000


def break_down(executor: Executor, net: Net, agent: str, failures: int) -> None:
    net[agent].status = 503
    for number in range(failures):
        probe(executor, agent, f"down{number}")
    facts(executor, failures)
    until(lambda: list(executor.down) == [agent], "an open breaker")


class TestBreaker:
    LIMITS = Limits(breaker_failures=5, breaker_open_ms=FOR_EVER_MS)
    READY = Limits(breaker_failures=5, breaker_open_ms=1)

    @pytest.mark.parametrize(
        ("status", "cause"),
        [
            (500, "status 500"),
            (503, "status 503"),
            (httpx.ConnectError("no"), "ConnectError: no connection"),
            (httpx.ReadError("broke"), "ReadError: the connection broke"),
        ],
        ids=repr,
    )
    def test_while_it_is_open_nothing_is_sent_and_everything_is_answered(
        self, wire: Any, net: Net, status: Any, cause: str
    ) -> None:
        executor = wire(agent("down", self.LIMITS), agent("well"))
        net["down"].status = status
        for number in range(5):
            (probe if number % 2 else submit)(executor, "down", f"d{number}")
        facts(executor, 5)
        until(lambda: list(executor.down) == ["down"], "an open breaker")
        submit(executor, "down", "s")
        probe(executor, "down", "r")
        watch(executor, "down", "w")
        told = dict(facts(executor, 3))
        assert executor.down == {"down": cause}
        why = f"{DOWN}; the latest: {cause}"
        assert told["s"].answer == a.NotSent(why)
        assert told["r"].answer == a.Unknown(why)
        assert told["w"].cause == why
        assert len(net["down"].asked) == 5
        submit(executor, "well", "x")
        ((_, fact),) = facts(executor, 1)
        assert isinstance(fact.answer, a.Accepted)

    def test_one_that_hangs_opens_it_and_all_that_wait_are_answered(self, wire: Any, net: Net) -> None:
        limits = replace(self.LIMITS, concurrency_max=5)
        executor = wire(agent("hung", limits, probe_timeout_ms=50, submit_timeout_ms=50, slack_ms=60_000))
        net["hung"].status = None
        for number in range(5):
            probe(executor, "hung", f"h{number}")
        until(lambda: net["hung"].there == 5, "all its slots")
        for number in range(10_000):
            submit(executor, "hung", f"s{number}")
        kinds = [type(fact.answer) for key, fact in facts(executor, 10_005) if key.startswith("s")]
        sent = net["hung"].methods.count("POST")
        # Each slot that the first of them give back may be taken before the last has failed.
        assert sent < 10
        assert kinds.count(a.Unresolved) == sent
        assert kinds.count(a.NotSent) == 10_000 - sent

    def test_it_closes_again_when_a_read_gets_through(self, wire: Any, net: Net) -> None:
        executor = wire(agent("down", self.READY))
        break_down(executor, net, "down", 5)
        net["down"].status = 404
        answer, epoch = None, 1
        while not isinstance(answer, a.Absent):
            probe(executor, "down", "r", epoch := epoch + 1)
            ((_, fact),) = facts(executor, 1)
            answer = fact.answer
        until(lambda: not executor.down, "a closed breaker")
        submit(executor, "down", "s")
        ((_, fact),) = facts(executor, 1)
        assert isinstance(fact.answer, a.Accepted)

    def test_a_send_may_try_too_or_calls_with_nothing_to_ask_would_wait_for_ever(self, wire: Any, net: Net) -> None:
        executor = wire(agent("down", self.READY))
        break_down(executor, net, "down", 5)
        net["down"].status = 404
        answers: list[Any] = []
        while a.Accepted() not in answers:
            submit(executor, "down", f"s{len(answers)}")
            answers += [fact.answer for _, fact in facts(executor, 1)]
        assert set(answers) <= {a.NotSent(f"{DOWN}; the latest: status 503"), a.Accepted()}
        assert net["down"].methods.count("POST") == 1
        until(lambda: not executor.down, "a closed breaker")

    def test_one_trial_at_a_time(self, wire: Any, net: Net) -> None:
        executor = wire(agent("down", self.READY))
        break_down(executor, net, "down", 5)
        net["down"].status = None
        epoch = 1
        while not net["down"].there:
            probe(executor, "down", "trial", epoch := epoch + 1)
            until(lambda: executor.pending > 0 or net["down"].there > 0, "an answer or a trial")
            executor.drain(10)
        for number in range(20):
            (probe if number % 2 else submit)(executor, "down", f"x{number}")
        facts(executor, 20)
        assert net["down"].there == 1

    def test_a_trial_that_is_replaced_leaves_the_way_to_the_next(self, wire: Any, net: Net) -> None:
        executor = wire(agent("down", self.READY))
        break_down(executor, net, "down", 5)
        net["down"].status = None
        probe(executor, "down", "trial", 2)
        until(lambda: executor.pending > 0 or net["down"].there > 0, "an answer or a trial")
        net["down"].status = 404
        epoch, answers = 3, [a.Unknown(DOWN)]
        while not isinstance(answers[-1], a.Absent):
            probe(executor, "down", "trial", epoch := epoch + 1)
            until(lambda: executor.pending > 0, "an answer")
            answers += [fact.answer for _, fact, _ in executor.drain(10)]
        until(lambda: not executor.down, "a closed breaker")

    @pytest.mark.parametrize(("status", "body"), [(401, {}), (404, {}), (429, {}), (200, {"status": "odd"})])
    def test_a_remote_that_answers_is_up_whatever_it_says(self, wire: Any, net: Net, status: int, body: Any) -> None:
        """`Unknown` may be the honest answer of a remote that is well: only the wire tells the two apart."""
        executor = wire(agent("up", self.LIMITS))
        net["up"].status, net["up"].body = status, body
        for number in range(50):
            probe(executor, "up", f"r{number}")
        facts(executor, 50)
        assert not executor.down and len(net["up"].asked) == 50

    def test_reads_that_were_ordered_to_stop_are_no_failures(self, wire: Any, net: Net) -> None:
        executor = wire(agent("slow", self.LIMITS))
        net["slow"].status = None
        for epoch in range(1, 21):
            probe(executor, "slow", "r", epoch)
            until(lambda at=epoch: len(net["slow"].asked) == at, "the request")  # type: ignore[misc]
        net["slow"].status = 404
        probe(executor, "slow", "r", 99)
        facts(executor, 1)
        assert not executor.down

    def test_switched_off(self, wire: Any, net: Net) -> None:
        executor = wire(agent("down", Limits(breaker_failures=0)))
        net["down"].status = 503
        for number in range(100):
            probe(executor, "down", f"r{number}")
        facts(executor, 100)
        assert not executor.down and len(net["down"].asked) == 100
