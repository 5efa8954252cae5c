"""Whole calls of `openai_responses` by the shipped driver and executor, counted by the stand-in for the API."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from reattach.adapters.contract import AgentConfig
from reattach.adapters.describe import requests_of
from reattach.adapters.openai_responses import OpenAIResponsesAdapter
from reattach.models.effects import Hold
from reattach.models.events import CancelOrdered, CheckpointCompleted, Ident
from reattach.models.identity import request_key
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import FailureCode, RemoteFate
from reattach.models.policy import Policy, SubmitAfter
from reattach.models.request import Request
from reattach.runtime.driver import Key
from tests.adapters.openai_api import Api, api
from tests.adapters.responses import STREAMED
from tests.examples.host import Life, now_ms

# Many times longer than a parked call waits between two looks.
LONG_MS = 1_000
POLICY = Policy(
    submit_after=SubmitAfter.CHECKPOINT,
    admission_ms=0,
    overlap_ms=0,
    slack_ms=200,
    poll_ms=300,
    park_probe_ms=50,
    backoff_ms=50,
    backoff_max_ms=200,
    recovery_spread_ms=0,
)


class HoldingLife(Life):
    """A host that lets a POST go only when a checkpoint holds its intent, as such remotes need it.

    `kept` is what that checkpoint would bring back; each life here begins with its job's latest one.
    """

    def __init__(self, agents: Mapping[str, AgentConfig], name: str, states: Mapping[Key, bytes] | None = None) -> None:
        self.kept = dict(states or {})
        self.held: dict[Key, Ident] = {}
        super().__init__(agents, name, states, lineage=True)

    def hold(self, key: Key, effect: Hold) -> None:
        self.held[key] = effect.ident

    def turn(self) -> None:
        if self.held:
            held, self.held = self.held, {}
            self.kept = dict(self.states)
            for key, ident in held.items():
                self.apply(key, CheckpointCompleted(ident))
        super().turn()

    @property
    def parked(self) -> bool:
        return any(one.leaf is Leaf.SU_PARKED for one in self.active)


def agents(made: Api, given: dict[str, Any] = STREAMED) -> dict[str, AgentConfig]:
    return {"demo": AgentConfig("demo", "openai_responses", made.url, options=given, policy=POLICY)}


def asked(text: str, **more: Any) -> Request:
    return Request("call-1", "demo", json.dumps(text).encode(), now_ms(), **more)


class TestHost:
    """Whole calls by the shipped driver and executor."""

    @pytest.mark.parametrize("variant", OpenAIResponsesAdapter.variants, ids=lambda one: one.name)
    def test_how_many_requests_a_call_takes(self, tmp_path: Path, variant: Any) -> None:
        with api(tmp_path) as made:
            life = HoldingLife(agents(made, dict(variant.options)), "life-1")
            life.ask(asked("hello @0ms"))
            life.until(lambda: len(life.outcomes) == 1, "the outcome")
            life.die()
            requests, accepted = made.requests(), made.accepted()
        outcome = life.outcomes[0]
        assert outcome.status is Status.COMPLETED and outcome.result is not None
        assert json.loads(outcome.result)["output_text"] == "hello @0ms"
        assert accepted == Counter({"call-1": 1}) and len(requests) == requests_of(variant), requests

    def test_a_crash_while_it_runs_is_followed_by_reading_only(self, tmp_path: Path) -> None:
        with api(tmp_path) as made:
            call = asked("hello @1500ms")
            first = HoldingLife(agents(made), "life-1")
            first.ask(call)
            first.until(lambda: first.running, "a run")
            kept = dict(first.states)
            first.die()
            second = HoldingLife(agents(made), "life-2", kept)
            second.ask(call)
            second.until(lambda: len(second.outcomes) == 1, "the outcome")
            second.die()
            assert second.outcomes[0].status is Status.COMPLETED
            assert made.accepted() == Counter({"call-1": 1})
            assert made.requests().count("POST /v1/responses") == 1

    @pytest.mark.parametrize("word", ["@lose", "@no-event"])
    def test_a_lost_answer_parks_the_call_and_nothing_is_sent_again(self, tmp_path: Path, word: str) -> None:
        with api(tmp_path) as made:
            life = HoldingLife(agents(made), "life-1")
            life.ask(asked(f"hello {word}"))
            life.until(lambda: life.parked, "a parked call")
            opened, kept = now_ms(), dict(life.states)
            life.until(lambda: now_ms() > opened + LONG_MS, "a long time")
            assert life.parked and life.outcomes == []
            life.die()
            later = HoldingLife(agents(made), "life-2", kept)
            opened = now_ms()
            later.until(lambda: now_ms() > opened + LONG_MS, "a long time")
            assert later.parked and later.outcomes == []
            later.die()
            assert made.accepted() == Counter({"call-1": 1}) and made.requests() == ["POST /v1/responses"]

    def test_a_crash_back_to_before_the_post_parks_it_too(self, tmp_path: Path) -> None:
        """The checkpoint that let the POST go knows of no answer: whether there is a run cannot be asked."""
        with api(tmp_path) as made:
            call = asked("hello")
            first = HoldingLife(agents(made), "life-1")
            first.ask(call)
            first.until(lambda: made.accepted().total() == 1, "the POST")
            first.die()
            second = HoldingLife(agents(made), "life-2", first.kept)
            second.ask(call)
            second.until(lambda: second.parked, "a parked call")
            opened = now_ms()
            second.until(lambda: now_ms() > opened + LONG_MS, "a long time")
            assert second.parked and second.outcomes == []
            second.die()
            assert made.accepted() == Counter({"call-1": 1})

    def test_a_cancelled_call_ends_its_run(self, tmp_path: Path) -> None:
        with api(tmp_path) as made:
            call = asked("hello @60000ms")
            life = HoldingLife(agents(made), "life-1")
            life.ask(call)
            life.until(lambda: life.running, "a run")
            life.apply(request_key(call), CancelOrdered("call-1", 1))
            life.until(lambda: len(life.outcomes) == 1, "the outcome")
            life.die()
            failure = life.outcomes[0].failure
            assert failure is not None and failure.code is FailureCode.CANCELLED and failure.remote.settled
            assert made.requests().count("POST /v1/responses/ID/cancel") == 1

    def test_a_run_that_fails_is_told(self, tmp_path: Path) -> None:
        with api(tmp_path) as made:
            life = HoldingLife(agents(made), "life-1")
            life.ask(asked("hello @incomplete @50ms"))
            life.until(lambda: len(life.outcomes) == 1, "the outcome")
            life.die()
            (outcome,) = life.outcomes
            assert outcome.handle == made.ids()[0]
        failure = outcome.failure
        assert failure is not None and (failure.code, failure.remote) == (FailureCode.REMOTE_FAILED, RemoteFate.ENDED)
        assert failure.message.startswith("incomplete: max_output_tokens")

    def test_a_run_that_was_deleted_is_lost_and_not_sent_again(self, tmp_path: Path) -> None:
        with api(tmp_path) as made:
            life = HoldingLife(agents(made), "life-1")
            life.ask(asked("hello @60000ms"))
            life.until(lambda: life.running, "a run")
            httpx.delete(f"{made.url}/responses/{made.ids()[0]}").raise_for_status()
            life.until(lambda: len(life.outcomes) == 1, "the outcome")
            life.die()
            failure = life.outcomes[0].failure
            assert failure is not None and failure.code is FailureCode.LOST
            assert made.accepted() == Counter({"call-1": 1})
