"""SIGKILL of the whole job against the A2A SDK's own server, counted by what its agent really ran.

Reproduce one: pytest tests/e2e/test_real_a2a.py -k 'seed-2'. Set REATTACH_SEED to shift all seeds.
"""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from reattach.runtime.proxy.faults import Exchange, Hold, Silence
from reattach.runtime.proxy.proxy import FaultProxy
from tests.e2e.harness import random_moment
from tests.servers.job import RealWorld
from tests.servers.running import a2a

pytestmark = [pytest.mark.flink, pytest.mark.slow]
BASE = int(os.environ.get("REATTACH_SEED", "0"))
POLICY = {"submit_timeout_ms": 5_000, "admission_ms": 1_000}
# What was sent since the last checkpoint is what a crash makes the job forget: rare ones leave more of it.
RARE = {"checkpoint_interval_ms": 3_000}


def agents(single: dict[str, Any], talk: dict[str, Any], url: str) -> dict[str, dict[str, Any]]:
    """One agent whose calls have contexts of their own, and one whose calls are turns of named contexts."""
    table = {"protocol": "a2a", "url": url}
    return {"single": {**table, "options": single}, "talk": {**table, "options": talk}}


def asked(made: RealWorld) -> None:
    made.ask_for("single", each=12)
    made.ask_for("talk", threads=4, each=3)


@pytest.mark.parametrize("seed", range(BASE + 1, BASE + 3), ids=lambda seed: f"seed-{seed}")
def test_killed_at_a_random_moment(tmp_path: Path, seed: int) -> None:
    with a2a(tmp_path / "server") as server:
        ways = agents({"binding": "jsonrpc"}, {"binding": "rest"}, server.url)
        made = RealWorld(tmp_path / "w", server, ways, policy=POLICY, job=RARE, seed=seed)
        try:
            asked(made)
            made.start()
            made.until(made.executions, "the first task")
            moment = random_moment(seed, 0.0, 5.0)
            print(f"seed {seed}: killed {moment:.2f} s after the first task")
            time.sleep(moment)
            made.kill()
            before = len(made.executions())
            made.start()
            made.finish()
            made.assert_each_once()
            assert before < len(made.calls), "killed in the middle"
        finally:
            made.close()


def test_posts_that_land_after_the_restart(tmp_path: Path) -> None:
    """Some had their answer kept back, some land within the quiet time of the next life: all are adopted."""
    with a2a(tmp_path / "server") as server, FaultProxy(server.url) as proxy:
        # The card names the server, and the requests go through the proxy.
        single = {"endpoint": f"{proxy.url}/rpc", "binding": "jsonrpc"}
        talk = {"endpoint": f"{proxy.url}/rest", "binding": "rest"}
        made = RealWorld(tmp_path / "w", server, agents(single, talk, server.url), policy=POLICY)

        def sends(exchange: Exchange, agent: bytes) -> bool:
            return exchange.method == "POST" and b"%b-" % agent in exchange.body

        try:
            held = [proxy.rule(Hold(), match=lambda one: sends(one, b"single"), times=3)]
            held.append(proxy.rule(Hold(), match=lambda one: sends(one, b"talk"), times=2))
            silent = proxy.rule(Silence(), match=lambda one: sends(one, b"single"), times=3)
            asked(made)
            made.start()
            rules = [*held, silent]
            made.until(lambda: all(len(rule.hits) == rule.times for rule in rules), "the POSTs that are held back")
            made.kill()
            seen = len(proxy.exchanges)
            made.start()
            made.until(lambda: len(proxy.exchanges) > seen, "the first request of the next life")
            for rule in held:
                rule.release()
            made.finish()
            assert [one.statuses for rule in held for one in rule.hits] == [[200]] * 5
            made.assert_each_once()
            for rule in rules:
                for one in rule.hits:
                    same = [other for other in proxy.exchanges if other.body == one.body]
                    assert same == [one], "adopted, not sent again"
        finally:
            made.close()
