"""Whole calls through limits and outages: the driver's decisions and the executor's answers together."""

import time
from itertools import pairwise
from typing import Any

import httpx
import pytest

from reattach.adapters.contract import Limits
from reattach.models.answers import Absent, Accepted, NotSent, Unknown
from reattach.models.codec import decode_thread
from reattach.models.effects import Probe, Submit
from reattach.models.events import Ident, ProbeAnswered, Requested, Restored, SubmitAnswered, ThreadEvent, TimeReached
from reattach.models.identity import request_key
from reattach.models.lifecycle import Status
from reattach.models.policy import Capabilities, Evidence, Policy, Terms
from reattach.models.request import Request
from reattach.runtime.driver import Driver, Key
from reattach.runtime.queues import DOWN
from tests.runtime.small_host import SmallHost, ThreadRemote
from tests.runtime.test_executor_limits import assert_never_early
from tests.runtime.wired import Net, agent

QUICK: dict[str, Any] = {
    "overlap_ms": 0,
    "admission_ms": 0,
    "submit_validity_ms": 300,
    "submit_timeout_ms": 700,
    "poll_ms": 20,
    "backoff_ms": 10,
    "backoff_max_ms": 200,
    "watch": False,
}


def requested(count: int) -> list[tuple[Key, Requested]]:
    requests = [Request(f"c{n}", "agent", b'"x"', requested_at_ms=SmallHost._now_ms()) for n in range(count)]
    return [(request_key(each), Requested(each)) for each in requests]


def test_restored_calls_come_through_their_agents_limits_and_each_is_posted_once(wire: Any, net: Net) -> None:
    """Restored before their POSTs, all at once: four requests for each, and never more than are allowed."""
    old = SmallHost(wire(agent("agent", **QUICK)))
    net.remotes["agent"] = remote = ThreadRemote()
    old.apply_all(requested(500))
    old.executor.close()
    remote.asked.clear()
    remote.most = 0
    executor = wire(agent("agent", Limits(concurrency_max=7, requests_per_second=800), **QUICK))
    host = SmallHost(executor, dict(old.states), "life-2")
    began = host.began_s
    host.apply_all((key, Restored()) for key in old.states)
    host.run(lambda: len(host.outcomes) == 500, "500 outcomes", 60)
    assert {outcome.status for outcome in host.outcomes.values()} == {Status.COMPLETED}
    assert len(remote.posts) == 500 and set(remote.posts.values()) == {1}
    assert remote.most <= 7
    assert_never_early(net, "agent", began, 800)


@pytest.mark.parametrize("fault", [503, httpx.ConnectError("no"), None], ids=["busy", "refused", "hanging"])
def test_an_outage_loses_nothing_and_the_remote_is_left_alone(wire: Any, net: Net, fault: Any) -> None:
    limits = Limits(breaker_failures=5, breaker_open_ms=50, concurrency_max=10)
    host = SmallHost(wire(agent("agent", limits, probe_timeout_ms=500, **QUICK)))
    net.remotes["agent"] = remote = ThreadRemote()
    host.apply_all(requested(100))
    host.run(lambda: host.ordered(Submit) >= 30, "some of them sent")
    remote.status = fault
    host.run(lambda: list(host.executor.down) == ["agent"], "an open breaker")
    asked, ordered, since = len(remote.asked), sum(host.orders.values()), time.monotonic()
    host.run(lambda: sum(host.orders.values()) >= ordered + 300, "orders that come back")
    trials = len(remote.asked) - asked
    # One each 50 ms; and what was under way when it went down may have come through after all, and others with it.
    assert trials <= (time.monotonic() - since) / 0.05 + 20
    remote.status = 200
    host.run(lambda: len(host.outcomes) == 100, "every outcome", 60)
    assert {outcome.status for outcome in host.outcomes.values()} == {Status.COMPLETED}
    assert len(remote.posts) == 100 and set(remote.posts.values()) == {1}


class Alone:
    """One call whose every order is turned down, on a clock that jumps from one wake-up to the next."""

    def __init__(self, *facts: Any) -> None:
        self.now = 1_000_000
        # `agent` does not matter here, and the defaults of a job of one's own do.
        terms = Terms(Capabilities(evidence=Evidence.CONTAINER), Policy(retention_ms=7 * 86_400_000, watch=False))
        self.driver = Driver({"agent": terms}, incarnation="life-1", opened_ms=self.now - 600_000, journal=False)
        self.stored: bytes | None = None
        self.ordered: list[tuple[int, type]] = []
        self.facts = list(facts)
        self.apply(Requested(Request("c", "agent", b'"x"', requested_at_ms=self.now)))

    def apply(self, event: ThreadEvent) -> None:
        applied = self.driver.apply(("agent", "t"), self.stored, event, self.now)
        self.stored, self.wake = applied.stored, applied.wake_at_ms
        for effect, inv in applied.orders:
            self.ordered.append((self.now, type(effect)))
            assert isinstance(effect, Probe | Submit)
            ident = Ident("life-1", inv.id, inv.generation, inv.epoch)
            fact = self.facts.pop(0) if self.facts else None
            self.now += 1
            if isinstance(effect, Probe):
                self.apply(ProbeAnswered(ident, fact or Unknown(DOWN)))
            else:
                self.apply(SubmitAnswered(ident, fact or NotSent(DOWN)))

    def until(self, limit_ms: int) -> list[int]:
        end = self.now + limit_ms
        self.ordered.clear()
        while self.stored is not None and decode_thread(self.stored).active and self.wake <= end:
            self.now = max(self.now, self.wake)
            self.apply(TimeReached())
        return [at for at, _ in self.ordered]


@pytest.mark.parametrize(
    ("facts", "kind"),
    [((), Probe), ((Absent(),), Submit), ((Absent(), Accepted()), Probe)],
    ids=["new", "about-to-send", "running"],
)
def test_orders_that_are_turned_down_at_once_come_back_ever_more_slowly(facts: Any, kind: type) -> None:
    """No hot loop: some ten times in the first minute, then not more than every 15 s, and never nearer than 100 ms."""
    call = Alone(*facts)
    came = call.until(60_000)
    assert 5 <= len(came) <= 12
    assert {each for _, each in call.ordered} == {kind}
    gaps = [later - earlier for earlier, later in pairwise(came)]
    assert min(gaps) >= 100
    assert 100 <= len(call.until(3_600_000)) <= 3_600_000 / 15_000
