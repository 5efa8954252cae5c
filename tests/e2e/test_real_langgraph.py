"""SIGKILL of the whole job against LangGraph's own server, counted by what its graph really ran.

Reproduce one: pytest tests/e2e/test_real_langgraph.py -k 'seed-2'. Set REATTACH_SEED to shift all seeds.
"""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from reattach.runtime.proxy.faults import Exchange, Hold, Rule
from reattach.runtime.proxy.proxy import FaultProxy
from tests.e2e.harness import random_moment, until
from tests.servers.job import RealWorld
from tests.servers.running import langgraph

pytestmark = [pytest.mark.flink, pytest.mark.slow]
BASE = int(os.environ.get("REATTACH_SEED", "0"))
POLICY = {"submit_timeout_ms": 5_000, "admission_ms": 1_000}
# What was sent since the last checkpoint is what a crash makes the job forget: rare ones leave more of it.
RARE = {"checkpoint_interval_ms": 3_000}


def agents(url: str) -> dict[str, dict[str, Any]]:
    """One agent whose calls have threads of their own, and one whose calls are turns of named threads."""
    options = {"assistant": "agent", "result": "messages.-1.content"}
    table = {"protocol": "langgraph", "url": url}
    return {
        "single": {**table, "options": options},
        "talk": {**table, "options": {**options, "threads": "shared"}},
    }


def asked(made: RealWorld) -> None:
    made.ask_for("single", each=12)
    made.ask_for("talk", threads=4, each=3)


@pytest.mark.parametrize("seed", range(BASE + 1, BASE + 3), ids=lambda seed: f"seed-{seed}")
def test_killed_at_a_random_moment(tmp_path: Path, seed: int) -> None:
    with langgraph(tmp_path / "server") as server:
        made = RealWorld(tmp_path / "w", server, agents(server.url), policy=POLICY, job=RARE, seed=seed)
        try:
            asked(made)
            made.start()
            made.until(made.executions, "the first run")
            moment = random_moment(seed, 0.0, 10.0)
            print(f"seed {seed}: killed {moment:.2f} s after the first run")
            time.sleep(moment)
            made.kill()
            before = len(made.executions())
            made.start()
            made.finish()
            made.assert_each_once()
            assert before < len(made.calls), "killed in the middle"
        finally:
            made.close()


def begins_a_call(exchange: Exchange) -> bool:
    """A fence is a run too, and names its call."""
    return exchange.method == "POST" and exchange.path.endswith("/runs") and b'"reattach_call"' in exchange.body


def held(proxy: FaultProxy, times: int, text: bytes) -> Rule:
    """Hold back so many POSTs that would start the run of a call with such a text; fences pass."""
    return proxy.rule(Hold(), match=lambda one: begins_a_call(one) and text in one.body, times=times)


def killed_while_held(made: RealWorld, *rules: Rule) -> None:
    made.start()
    made.until(lambda: all(len(rule.hits) == rule.times for rule in rules), "the POSTs that are held back")
    made.kill()


def test_posts_that_land_after_the_crash_on_threads_of_one_call(tmp_path: Path) -> None:
    """Half of them before the next life begins, half when every call has its outcome: a fence keeps those out."""
    with langgraph(tmp_path / "server") as server, FaultProxy(server.url) as proxy:
        made = RealWorld(tmp_path / "w", server, agents(proxy.url), policy=POLICY)
        try:
            early, late = held(proxy, 4, b"single-"), held(proxy, 4, b"single-")
            made.ask_for("single", each=24)
            killed_while_held(made, early, late)
            early.release()
            landed(early)
            made.start()
            made.finish()
            late.release()
            landed(late)
            assert [one.statuses for one in late.hits] == [[409]] * 4
            made.assert_each_once()
            print("early:", [one.statuses for one in early.hits])
        finally:
            made.close()


def test_posts_that_land_after_the_restart_on_named_threads(tmp_path: Path) -> None:
    """They land within the quiet time of the next life, which finds them by their marker and adopts them."""
    with langgraph(tmp_path / "server") as server, FaultProxy(server.url) as proxy:
        made = RealWorld(tmp_path / "w", server, agents(proxy.url), policy=POLICY)
        try:
            # Of the second turns, since a POST to a thread that nobody has made yet starts nothing.
            second = held(proxy, 3, b"-2 @")
            made.ask_for("talk", threads=6, each=3)
            killed_while_held(made, second)
            seen = len(proxy.exchanges)
            made.start()
            made.until(lambda: len(proxy.exchanges) > seen, "the first request of the next life")
            second.release()
            made.finish()
            assert [one.statuses for one in second.hits] == [[200]] * 3
            made.assert_each_once()
            for zombie in second.hits:
                assert [one for one in proxy.exchanges if one.body == zombie.body] == [zombie], (
                    "adopted, not sent again"
                )
        finally:
            made.close()


def landed(rule: Rule) -> None:
    until(lambda: all(one.over for one in rule.hits), "the end of what was held back", 30)
