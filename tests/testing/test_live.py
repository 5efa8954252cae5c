"""The machine against a live server, through the adapter that ships: few examples, in real time."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from reattach.adapters.contract import AgentConfig, Learn
from reattach.adapters.thread import ThreadAdapter
from reattach.models.answers import NotSent, SubmitAnswer, Unresolved
from reattach.models.errors import ConfigError
from reattach.models.invocation import Invocation
from reattach.models.policy import Policy
from reattach.models.request import Request
from reattach.testing import LIVE, LiveRemote, PropertyBroken
from tests.agent.serving import Served, serving
from tests.testing.making import machine

POLICY = Policy(
    submit_validity_ms=50,
    submit_timeout_ms=250,
    probe_timeout_ms=500,
    fetch_timeout_ms=500,
    slack_ms=20,
    admission_ms=100,
    overlap_ms=30,
    skew_max_ms=0,
    deadline_ms=60_000,
    drain_max_ms=2_000,
    watch_silence_ms=100,
    poll_ms=10,
    poll_max_ms=50,
    park_probe_ms=50,
    backoff_ms=5,
    backoff_max_ms=20,
    retention_ms=3_600_000,
)
FAULTS = {
    "loses answers": {"lose_answer": 0.7},
    "drops requests": {"drop_before": 0.7},
    "answers 500, whether it took the request or not": {"error_before": 0.5, "error_after": 0.5},
    "admits late": {"late": 1.0, "late_ms": 30, "late_answer": True},
    "turns requests down": {"refuse": 0.7, "retry_after_s": 0},
    "drops status requests": {"read_drop": 0.5},
    "cuts streams": {"stream": "cut"},
}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "agent.log", "--latency", "0ms-60ms") as server:
        yield server


def turns(log: Path, marker: str) -> int:
    """How many turns the server's own log has for a message."""
    records = [json.loads(line) for line in log.read_bytes().splitlines()]
    return sum(record["kind"] == "turn" and record["id"] == marker for record in records)


def echoes(result: bytes, request: Request) -> bool:
    """The server's results hold the message that they answer."""
    return bool(json.loads(result)["echo"] == json.loads(request.message))


def live(served: Served, adapter: type[ThreadAdapter] = ThreadAdapter, **more: Any) -> LiveRemote:
    config = AgentConfig("agent", "thread", served.url, options={"marker": "message_ids"}, policy=POLICY)
    rules = partial(served.control, "rules")
    whims: dict[str, Callable[[], object]] = {name: partial(rules, fault) for name, fault in FAULTS.items()}
    return LiveRemote(
        config,
        partial(turns, served.log),
        adapter=adapter,
        owns=echoes,
        whims=more.get("whims", whims),
        calm=partial(rules, {}),
    )


def search(make: Callable[[], LiveRemote], examples: int) -> None:
    chosen = settings(LIVE, max_examples=examples, stateful_step_count=25, derandomize=True)
    run_state_machine_as_test(machine(make), settings=chosen)


@pytest.mark.slow
def test_the_shipped_adapter_keeps_its_word_on_a_server_with_faults(served: Served) -> None:
    search(lambda: live(served), 4)
    assert sum(json.loads(line)["kind"] == "turn" for line in served.log.read_bytes().splitlines()) > 0


class Careless(ThreadAdapter):
    """Takes a connection that broke for one over which nothing was sent."""

    async def submit(self, inv: Invocation, learn: Learn) -> SubmitAnswer:
        answer = await super().submit(inv, learn)
        return NotSent(answer.cause) if isinstance(answer, Unresolved) else answer


@pytest.mark.slow
def test_an_adapter_that_says_more_than_it_knows_is_found(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    def make() -> LiveRemote:
        served.control("rules", {"lose_answer": 1.0, "times": 2})
        return live(served, Careless, whims={})

    # Real time does not repeat itself, so hypothesis may fail to show the failure again; it was told when it was met.
    with pytest.raises((PropertyBroken, Flaky, BaseExceptionGroup)):
        search(make, 20)
    assert "accepted twice: the remote has started 2 runs" in capsys.readouterr().err


def test_times_that_nobody_can_wait_for_are_refused(served: Served) -> None:
    config = AgentConfig("agent", "thread", served.url, policy=replace(POLICY, overlap_ms=60_000))
    with pytest.raises(ConfigError, match="60400 ms of real time would pass"):
        LiveRemote(config, lambda marker: 0)


def test_a_token_is_a_secret_of_the_remote(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_TOKEN", "t0ken-of-the-agent")
    config = AgentConfig("agent", "thread", served.url, token_env="AGENT_TOKEN", policy=POLICY)
    remote = LiveRemote(config, lambda marker: 0)
    assert remote.secrets == ("t0ken-of-the-agent",)
    remote.close()
    remote.close()
