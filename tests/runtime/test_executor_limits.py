"""One agent's limits in the executor: what they hold back, what they leave to others, and that nothing is lost."""

import time
from typing import Any

from reattach.adapters.contract import Limits
from reattach.models import answers as a
from reattach.models import events as e
from reattach.runtime.executor import Executor
from reattach.runtime.limits import BURST_S
from tests.runtime.scripted import facts, until
from tests.runtime.wired import Net, agent, probe, submit, watch


class TestSlots:
    def test_an_agent_that_hangs_takes_its_own_slots_only(self, wire: Any, net: Net) -> None:
        executor = wire(agent("hung", Limits(concurrency_max=3)), agent("well"), concurrency_max=4)
        net["hung"].status = None
        for number in range(100):
            probe(executor, "hung", f"h{number}")
        until(lambda: net["hung"].there == 3, "all that it may take")
        for number in range(100):
            probe(executor, "well", f"w{number}")
        assert {key[0] for key, _ in facts(executor, 100)} == {"w"}
        assert net["hung"].most == 3 and len(net["hung"].asked) == 3

    def test_a_slot_that_is_given_back_is_taken_by_the_next(self, wire: Any, net: Net) -> None:
        executor = wire(agent("small", Limits(concurrency_max=1)))
        for number in range(200):
            probe(executor, "small", f"s{number}")
        assert {type(fact.answer) for _, fact in facts(executor, 200)} == {a.Absent}
        assert net["small"].most == 1

    def test_agents_take_turns_at_the_slots_that_all_share(self, wire: Any, net: Net) -> None:
        executor = wire(agent("busy"), agent("calm"), concurrency_max=1)
        net["busy"].status = None
        probe(executor, "busy", "first")
        until(lambda: net["busy"].there == 1, "one that holds the slot")
        for number in range(500):
            probe(executor, "busy", f"b{number}")
        probe(executor, "calm", "c")
        net["busy"].status = 404
        probe(executor, "busy", "first", 2)
        told = [key for key, _ in facts(executor, 502)]
        assert told.index("c") <= 2

    def test_a_send_that_gets_no_slot_in_its_time_is_not_sent_and_told_so_while_the_slots_are_still_taken(
        self, wire: Any, net: Net
    ) -> None:
        executor = wire(agent("hung", Limits(concurrency_max=1), submit_validity_ms=60))
        net["hung"].status = None
        probe(executor, "hung", "first")
        until(lambda: net["hung"].there == 1, "one that holds the slot")
        for number in range(50):
            submit(executor, "hung", f"s{number}")
        told = facts(executor, 50)
        assert all(isinstance(fact.answer, a.NotSent) for _, fact in told)
        assert [key for key, _ in told] == [f"s{number}" for number in range(50)]
        assert net["hung"].methods == ["GET"]

    def test_a_read_whose_caller_will_have_given_up_is_not_asked(self, wire: Any, net: Net) -> None:
        executor = wire(agent("hung", Limits(concurrency_max=1), slack_ms=0, probe_timeout_ms=300))
        net["hung"].status = None
        submit(executor, "hung", "first")
        until(lambda: net["hung"].there == 1, "one that holds the slot")
        probe(executor, "hung", "r")
        ((_, fact),) = facts(executor, 1)
        assert isinstance(fact.answer, a.Unknown) and not fact.answer.final
        assert net["hung"].methods == ["POST"]

    def test_streams_of_one_agent(self, wire: Any, net: Net) -> None:
        executor = wire(agent("few", Limits(streams_max=2), poll_ms=20), agent("many"), streams_max=4)
        net["few"].status = net["many"].status = None
        for number in range(3):
            watch(executor, "few", f"f{number}")
        ((key, fact),) = facts(executor, 1)
        assert isinstance(fact, e.WatchEnded) and "as many streams" in fact.cause
        watch(executor, "many", "m0")
        watch(executor, "many", "m1")
        until(lambda: net["many"].there == 2, "streams of the other")
        assert net["few"].most == 2
        for name in ("f0", "f1", "f2"):
            if name != key:
                probe(executor, "few", name, 2)
        until(lambda: executor._dispatch._streams == 2, "theirs to be given back")
        assert executor._dispatch.round.lanes["few"].streams == 0


class TestRate:
    def test_no_request_is_early(self, wire: Any, net: Net) -> None:
        executor = wire(agent("slow", Limits(requests_per_second=500)), agent("free"))
        began = time.monotonic()
        for number in range(400):
            (probe if number % 2 else submit)(executor, "slow", f"s{number}")
        probe(executor, "free", "f")
        assert facts_until(executor, "f") < 400, "the other one need not wait"
        until(lambda: len(net["slow"].asked) == 400, "all of them")
        assert_never_early(net, "slow", began, 500)

    def test_what_waits_for_its_rate_longer_than_it_may_is_told_so(self, wire: Any, net: Net) -> None:
        executor = wire(agent("slow", Limits(requests_per_second=1), submit_validity_ms=50))
        for number in range(20):
            submit(executor, "slow", f"s{number}")
        told = [type(fact.answer) for _, fact in facts(executor, 20)]
        assert told.count(a.NotSent) == 20 - len(net["slow"].asked)
        assert told.count(a.Accepted) == len(net["slow"].asked) < 20

    def test_ten_thousand_restored_calls_do_not_stampede(self, wire: Any, net: Net) -> None:
        """All at once, as after a restore without any spread: the limits alone hold."""
        executor = wire(agent("agent", Limits(concurrency_max=20, requests_per_second=4_000)), concurrency_max=512)
        began = time.monotonic()
        for number in range(10_000):
            probe(executor, "agent", f"c{number}")
        until(lambda: executor.pending == 10_000, "ten thousand answers")
        told = executor.drain(20_000)
        assert {key for key, _, _ in told} == {f"c{number}" for number in range(10_000)}
        asked = [fact for _, fact, _ in told if isinstance(fact.answer, a.Absent)]
        assert len(asked) == len(net["agent"].asked) > 0
        assert all(isinstance(fact.answer, a.Absent | a.Unknown) for _, fact, _ in told)
        assert net["agent"].most <= 20
        assert_never_early(net, "agent", began, 4_000)
        until(lambda: not executor.busy, "rest")


def facts_until(executor: Executor, key: str) -> int:
    """How many facts came, that of `key` the last."""
    came = 0
    while True:
        until(lambda: executor.pending > 0, f"an answer for {key}")
        for each, _, _ in executor.drain(1):
            came += 1
            if each == key:
                return came


def assert_never_early(net: Net, name: str, began: float, rate: int) -> None:
    """The n-th request leaves no sooner than its token can be there, however slow the machine is."""
    burst = max(1.0, rate * BURST_S)
    for number, (_, at) in enumerate(net[name].asked, 1):
        assert at >= began + (number - burst) / rate - 1e-6
