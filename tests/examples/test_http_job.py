"""The example of an in-house job service: its server, its configuration, crashes and lost answers; without Flink."""

import json
import os
import random
import shutil
import sys
import time
import urllib.request
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from reattach.adapters.contract import AgentConfig
from reattach.models.events import CancelOrdered
from reattach.models.identity import dedup_key_of, request_key
from reattach.models.lifecycle import Status
from reattach.models.outcomes import FailureCode
from reattach.models.request import Request
from tests.e2e.harness import Process, until
from tests.examples.example import Example, served
from tests.examples.host import POLICY, SETTLE_MS, Life, after_crash, after_crashes, assert_page, now_ms

EXAMPLE = Path(__file__).parents[2] / "examples" / "http_job"
BASE = int(os.environ.get("REATTACH_SEED", "0"))


def example(folder: Path, *arguments: str) -> AbstractContextManager[Example]:
    return served(folder, EXAMPLE, sys.executable, POLICY, *arguments)


def request(agent: str, number: int = 1) -> Request:
    return Request(f"order-{number}", agent, b'{"order":%d}' % number, now_ms())


def watching(agents: dict[str, AgentConfig], *, watch: bool) -> dict[str, AgentConfig]:
    return {name: replace(agent, policy=replace(agent.policy, watch=watch)) for name, agent in agents.items()}


@pytest.mark.parametrize(
    ("agent", "watch", "expected"),
    [
        ("listed", True, ["GET /jobs", "POST /jobs", "GET /jobs/job-1"]),
        ("keyed", False, ["POST /jobs", "GET /jobs/job-1"]),
        ("keyed", True, ["POST /jobs", "GET /jobs/job-1/events", "GET /jobs/job-1"]),
    ],
)
def test_requests_of_one_call_without_faults(tmp_path: Path, agent: str, watch: bool, expected: list[str]) -> None:
    with example(tmp_path, "--seconds", "0.1") as made:
        life = Life(watching(made.agents, watch=watch), "life-1")
        opened = now_ms()
        # A job that has just opened waits for what an earlier one may have sent; this one is older than that.
        life.until(lambda: now_ms() > opened + SETTLE_MS, "the quiet time")
        life.ask(request(agent))
        life.until(lambda: len(life.outcomes) == 1, "the outcome")
        life.die()
        (outcome,) = life.outcomes
        assert outcome.status is Status.COMPLETED and outcome.result == b'{"echo":{"order":1}}'
        assert outcome.handle == "job-1" and outcome.attempts == 1
        assert made.requests() == expected


@pytest.mark.parametrize("agent", ["keyed", "listed"])
def test_lost_answers_are_found_and_nothing_is_started_twice(tmp_path: Path, agent: str) -> None:
    with example(tmp_path, "--seconds", "0.3", "--lose", "4") as made:
        life = Life(made.agents, "life-1")
        for number in range(6):
            life.ask(request(agent, number))
        life.until(lambda: len(life.outcomes) == 6, "all outcomes")
        life.die()
        assert all(outcome.status is Status.COMPLETED for outcome in life.outcomes)
        assert made.started() == Counter({dedup_key_of(request(agent, number), 1): 1 for number in range(6)})


@pytest.mark.parametrize("agent", ["keyed", "listed"])
@pytest.mark.parametrize("moment", ["at the POST", "at its loss", "while running"])
def test_a_crash_starts_nothing_twice(tmp_path: Path, agent: str, moment: str) -> None:
    """The second life knows only what a checkpoint held: nothing, or the call before its POST."""
    with example(tmp_path, "--seconds", "1.5", "--lose", "1" if moment == "at its loss" else "0") as made:
        asked = request(agent)
        outcome = after_crash(made.agents, asked, moment, lambda: made.started().total() == 1)
        assert outcome.status is Status.COMPLETED
        assert outcome.result == b'{"echo":{"order":1}}'
        assert made.started() == Counter({dedup_key_of(asked, 1): 1})


@pytest.mark.parametrize("seed", range(BASE + 1, BASE + 7), ids=lambda seed: f"seed-{seed}")
def test_killed_again_and_again_over_old_checkpoints(tmp_path: Path, seed: int) -> None:
    """Four lives, each dying after a random number of facts, restored from a checkpoint of some moment before."""
    dice = random.Random(seed)
    with example(tmp_path, "--seconds", "1", "--lose", "3") as made:
        asked = [request(agent, number) for number in range(4) for agent in ("keyed", "listed")]
        outcomes = after_crashes(made.agents, asked, dice, 30)
        assert made.started() == Counter({dedup_key_of(one, 1): 1 for one in asked})
        assert all(outcome.status is Status.COMPLETED for outcome in outcomes), outcomes


def test_a_cancelled_call_ends_its_job(tmp_path: Path) -> None:
    with example(tmp_path, "--seconds", "60") as made:
        life = Life(made.agents, "life-1")
        asked = request("keyed")
        life.ask(asked)
        life.until(lambda: life.running, "a run")
        life.apply(request_key(asked), CancelOrdered(asked.invocation_id, 1))
        life.until(lambda: len(life.outcomes) == 1, "the outcome")
        life.die()
        failure = life.outcomes[0].failure
        assert failure is not None and failure.code is FailureCode.CANCELLED
        assert "DELETE /jobs/job-1" in made.requests()


def test_without_evidence_the_server_would_start_it_twice(tmp_path: Path) -> None:
    """The server does not protect anybody: the count above can fail."""
    with example(tmp_path, "--seconds", "0") as made:
        for _ in range(2):
            body = json.dumps({"ref": "r", "input": 1}).encode()
            urllib.request.urlopen(f"{made.url}/jobs", body, timeout=10).close()
        assert made.started() == Counter({"r": 2})


def test_asking_writes_requests_for_both_agents(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE / "ask.py", tmp_path)
    asking = Process([sys.executable, "ask.py", "3"], tmp_path / "ask.out", cwd=tmp_path)
    until(lambda: asking.child.poll() is not None, "its end")
    (file,) = (tmp_path / "requests").glob("*.jsonl")
    agents = [json.loads(line)["agent"] for line in file.read_text().splitlines()]
    assert agents == ["listed", "keyed", "listed"]
    assert (
        asking.child.returncode == 0
        and time.time() * 1000 >= json.loads(file.read_text().splitlines()[0])["requested_at_ms"]
    )


def test_what_its_page_names_is_there() -> None:
    assert_page(EXAMPLE)
