"""The example of an A2A agent: its server, its configuration, crashes and lost answers; without Flink."""

import json
import random
import shutil
import sys
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from reattach.models.events import CancelOrdered
from reattach.models.identity import request_key
from reattach.models.lifecycle import Status
from reattach.models.outcomes import FailureCode
from reattach.models.request import Request
from tests.e2e.harness import Process, until
from tests.examples.example import Example, served
from tests.examples.host import PATIENT, Life, after_crash, after_crashes, assert_page, now_ms
from tests.examples.test_http_job import BASE
from tests.servers.running import executable

pytestmark = pytest.mark.slow
EXAMPLE = Path(__file__).parents[2] / "examples" / "a2a"
QUIET_MS = 2_600


def example(folder: Path, *arguments: str) -> AbstractContextManager[Example]:
    return served(folder, EXAMPLE, executable("a2a", "python"), PATIENT, *arguments)


def request(agent: str, number: int = 1) -> Request:
    thread = "" if agent == "once" else f"customer-{number % 2}"
    return Request(f"{agent}-{number}", agent, f'"question {number}"'.encode(), now_ms(), thread_id=thread)


SENT = {
    "once": ["POST /rpc ListTasks", "POST /rpc SendMessage", "POST /rpc SubscribeToTask", "POST /rpc GetTask"],
    "chat": ["GET /rest/tasks", "POST /rest/message:send", "GET /rest/tasks/ID:subscribe", "GET /rest/tasks/ID"],
}


@pytest.mark.parametrize("agent", SENT)
def test_requests_of_one_call_without_faults(tmp_path: Path, agent: str) -> None:
    with example(tmp_path, "--seconds", "0.4") as made:
        life = Life(made.agents, "life-1")
        opened = now_ms()
        # A job that has just opened waits for what an earlier one may have sent; this one is older than that.
        life.until(lambda: now_ms() > opened + QUIET_MS, "the quiet time")
        life.ask(request(agent))
        life.until(lambda: len(life.outcomes) == 1, "the outcome")
        life.die()
        (outcome,) = life.outcomes
        assert outcome.status is Status.COMPLETED and outcome.attempts == 1 and outcome.result is not None
        assert json.loads(outcome.result)["artifacts"][0]["parts"][0]["text"] == "you said: question 1"
        assert [one.replace(outcome.handle, "ID") for one in made.requests()] == SENT[agent]


@pytest.mark.parametrize("agent", SENT)
def test_lost_answers_are_found_and_nothing_is_started_twice(tmp_path: Path, agent: str) -> None:
    with example(tmp_path, "--seconds", "0.4", "--lose", "4") as made:
        life = Life(made.agents, "life-1")
        asked = [request(agent, number) for number in range(6)]
        for one in asked:
            life.ask(one)
        life.until(lambda: len(life.outcomes) == 6, "all outcomes")
        life.die()
        assert all(outcome.status is Status.COMPLETED for outcome in life.outcomes)
        assert made.started() == Counter({one.invocation_id: 1 for one in asked})


@pytest.mark.parametrize("agent", SENT)
@pytest.mark.parametrize("moment", ["at the POST", "at its loss", "while running"])
def test_a_crash_starts_nothing_twice(tmp_path: Path, agent: str, moment: str) -> None:
    """The second life knows only what a checkpoint held: nothing, or the call before its POST."""
    with example(tmp_path, "--seconds", "1.5", "--lose", "1" if moment == "at its loss" else "0") as made:
        asked = request(agent)
        outcome = after_crash(made.agents, asked, moment, lambda: made.started().total() == 1)
        assert outcome.status is Status.COMPLETED and b"question 1" in (outcome.result or b"")
        assert made.started() == Counter({asked.invocation_id: 1})


@pytest.mark.parametrize("seed", range(BASE + 1, BASE + 5), ids=lambda seed: f"seed-{seed}")
def test_killed_again_and_again_over_old_checkpoints(tmp_path: Path, seed: int) -> None:
    """Four lives, each dying after a random number of facts, restored from a checkpoint of some moment before."""
    dice = random.Random(seed)
    with example(tmp_path, "--seconds", "1", "--lose", "3") as made:
        asked = [request(agent, number) for number in range(4) for agent in SENT]
        outcomes = after_crashes(made.agents, asked, dice, 40)
        assert made.started() == Counter({one.invocation_id: 1 for one in asked})
        assert all(outcome.status is Status.COMPLETED for outcome in outcomes), outcomes


def test_a_cancelled_call_ends_its_task(tmp_path: Path) -> None:
    with example(tmp_path, "--seconds", "60") as made:
        life = Life(made.agents, "life-1")
        asked = request("chat")
        life.ask(asked)
        life.until(lambda: life.running, "a run")
        life.apply(request_key(asked), CancelOrdered(asked.invocation_id, 1))
        life.until(lambda: len(life.outcomes) == 1, "the outcome")
        life.die()
        failure = life.outcomes[0].failure
        assert failure is not None and failure.code is FailureCode.CANCELLED
        assert any(one.endswith(":cancel") for one in made.requests())


def test_without_evidence_the_server_would_start_it_twice(tmp_path: Path) -> None:
    """The server does not protect anybody: the count above can fail."""
    with example(tmp_path, "--seconds", "0") as made:
        message = {"messageId": "m", "contextId": "c", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
        for _ in range(2):
            sent = httpx.post(
                f"{made.url}/rest/message:send", json={"message": message}, headers={"A2A-Version": "1.0"}
            )
            sent.raise_for_status()
        assert made.started() == Counter({"m": 2})


def test_asking_writes_requests_for_both_agents(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE / "ask.py", tmp_path)
    asking = Process([sys.executable, "ask.py", "3"], tmp_path / "ask.out", cwd=tmp_path)
    until(lambda: asking.child.poll() is not None, "its end")
    (file,) = (tmp_path / "requests").glob("*.jsonl")
    agents = [json.loads(line)["agent"] for line in file.read_text().splitlines()]
    assert agents == ["chat", "once", "chat"] and asking.child.returncode == 0


def test_what_its_page_names_is_there() -> None:
    assert_page(EXAMPLE)
