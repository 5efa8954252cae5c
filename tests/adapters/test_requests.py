"""How many requests a call without faults takes, as docs/protocols.md says: counted by the server.

`http_job` is counted in tests/examples.
"""

from collections import Counter
from pathlib import Path

from reattach.adapters.contract import AgentConfig
from reattach.adapters.describe import requests_of
from reattach.adapters.thread import ThreadAdapter
from reattach.models.lifecycle import Status
from reattach.models.request import Request
from reattach.runtime.agent.log import read_log
from tests.agent.serving import serving
from tests.examples.host import POLICY, SETTLE_MS, Life, now_ms


def test_a_call_of_the_thread_protocol(tmp_path: Path) -> None:
    log = tmp_path / "agent.jsonl"
    with serving(log, "--latency", "300ms") as served:
        life = Life({"demo": AgentConfig("demo", "thread", served.url, policy=POLICY)}, "life-1")
        opened = now_ms()
        life.until(lambda: now_ms() > opened + SETTLE_MS, "the quiet time")
        life.ask(Request("call-1", "demo", b"1", now_ms()))
        life.until(lambda: len(life.outcomes) == 1, "the outcome")
        life.die()
    assert life.outcomes[0].status is Status.COMPLETED
    kinds = Counter(record["kind"] for record in read_log(log))
    assert (kinds["read"], kinds["post"], kinds["stream"]) == (2, 1, 1)
    assert all(requests_of(variant) == 4 for variant in ThreadAdapter.variants)
