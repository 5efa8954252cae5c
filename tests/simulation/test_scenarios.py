"""Public reports of what goes wrong elsewhere, as stories in the simulated world.

These are the scenarios of docs/scenarios.md that no test shows with real processes. Each has one
named fault, and is counted on the server's side. Each is told a second time with the core broken in
the way that the report is about, and must then come out otherwise.
"""

import re
from dataclasses import replace

import pytest

from reattach.fsm import orders
from reattach.fsm.draft import Draft
from reattach.models.errors import ConfigError
from reattach.models.events import CancelOrdered
from reattach.models.invocation import Tenure
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import FailureCode, NoticeKind, RemoteFate
from reattach.models.policy import Absence, SubmitAfter, Terms
from reattach.runtime.driver import Key
from reattach.runtime.mutants.catalogue import MUTANTS
from reattach.runtime.mutants.patching import line, reline, swap
from reattach.runtime.simulation.faults import Faults
from reattach.runtime.simulation.ledger import Broken
from reattach.runtime.simulation.remotes import DEDUPLICATING, HANDLE_ONLY, MARKER_LIST, STATUS_ONLY
from tests.packaging.layers import ROOT
from tests.simulation.scene import NAME, NOTHING, Scene

CALLS = tuple(f"call-{number}" for number in range(1, 21))
RUNNING = (Leaf.RU_WATCHING, Leaf.RU_PROBING, Leaf.RU_FETCHING)


def forget_at_a_restart(monkeypatch: pytest.MonkeyPatch, **fields: object) -> None:
    """Let a new incarnation find some fields as they were in the beginning."""
    whole = Draft._take_tenure

    def forgetful(d: Draft, tenure: Tenure) -> None:
        if tenure.incarnation != d.env.incarnation:
            for name, value in fields.items():
                setattr(d, name, value)
        whole(d, tenure)

    monkeypatch.setattr(Draft, "_take_tenure", forgetful)


class TestS6:
    """apache/airflow #64828, prefect #6411: a token that is too coarse, or used again."""

    def test_s6_the_same_id_with_another_payload_is_an_error_not_a_merge(self) -> None:
        scene = self.asked_again()
        (notice,) = scene.told(NoticeKind.REFUSED)
        assert notice.invocation_id == NAME
        assert "another payload" in notice.message
        assert scene.server.posts == [NAME, "call-2"], "another id with the same payload is another call"

    def test_s6_a_digest_of_the_id_alone_would_merge_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("reattach.fsm.thread.digest_of", lambda request: request.invocation_id.encode())
        assert self.asked_again().told(NoticeKind.REFUSED) == []

    @staticmethod
    def asked_again() -> Scene:
        """An id comes again with another payload, and a payload with another id."""
        scene = Scene(MARKER_LIST)
        scene.ask(message=b'"one"', thread_id="talk")
        scene.pass_by(200)
        scene.ask(message=b'"two"', thread_id="talk")
        scene.ask("call-2", message=b'"one"', thread_id="talk")
        scene.ended(NAME, "call-2")
        return scene


class TestS6Generations:
    """A failed run is never given out as the result of its retry, although the key is deduplicated."""

    def test_s6_a_retry_has_a_token_of_its_own(self) -> None:
        scene = self.retried()
        outcome = scene.ledger.committed[NAME]
        assert (outcome.status, outcome.generation) == (Status.COMPLETED, 2)
        assert dict(scene.ledger.accepted) == {NAME: 1, f"{NAME}#2": 1}

    def test_s6_one_token_for_both_would_give_the_old_failure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("reattach.runtime.simulation.remotes.marker_of", lambda name, _: name)
        scene = self.retried()
        assert scene.ledger.committed[NAME].status is Status.FAILED
        assert dict(scene.ledger.accepted) == {NAME: 1}

    @staticmethod
    def retried() -> Scene:
        """The first run fails, in a way that may be tried again."""
        scene = Scene(DEDUPLICATING, Faults(fail=1))
        key = scene.ask()
        scene.until(lambda: (record := scene.record(key)) is not None and record.generation == 2)
        scene.world.mishaps.calm()
        scene.ended()
        return scene


class TestS8:
    """apify-client-python #990, dataxid-python #181: the POST was sent again below the engine."""

    def test_s8_accepted_and_then_dropped_is_one_post(self) -> None:
        scene = self.dropped()
        assert scene.server.posts == [NAME]
        assert scene.ledger.committed[NAME].status is Status.COMPLETED
        assert scene.ledger.committed[NAME].attempts == 1

    def test_s8_a_post_that_is_sent_again_runs_twice(self) -> None:
        with MUTANTS["unresolved-is-not-sent"].apply(), pytest.raises(Broken, match="accepted twice"):
            self.dropped()

    @staticmethod
    def dropped() -> Scene:
        scene = Scene(MARKER_LIST)
        scene.server.drops = 1
        scene.ask()
        scene.ended()
        return scene


class TestS13:
    """dbos-transact-py #544, dbos-transact-java #491: one id started twice ran twice, concurrently."""

    def test_s13_one_owner_at_a_time_and_one_run(self) -> None:
        scene = self.started_twice()
        assert scene.server.posts == [NAME]
        assert scene.ledger.committed[NAME].status is Status.COMPLETED

    def test_s13_an_owner_that_does_not_wait_for_the_other_starts_it_again(self) -> None:
        with MUTANTS["no-quiet-time"].apply(), pytest.raises(Broken, match="accepted twice"):
            self.started_twice()

    @staticmethod
    def started_twice() -> Scene:
        """Its request comes twice, and two hosts have it at once; every answer comes twice, too."""
        scene = Scene(MARKER_LIST, Faults(duplicate=1))
        scene.pass_by(3_000)
        scene.ask()
        scene.ask(requested_at_ms=scene.clock.now_ms)
        scene.pass_by(1)
        scene.crash(NOTHING, down_ms=2, zombie_ms=900)
        scene.ended()
        return scene


class TestS17:
    """apache/airflow #39791, #36090, #65590: a restart cancelled the run; a cancel left it running."""

    def test_s17_restart_never_cancels(self) -> None:
        scene = self.restarted()
        assert scene.server.cancels == []
        assert (scene.server.posts, scene.ledger.committed[NAME].status) == ([NAME], Status.COMPLETED)

    def test_s17_a_host_that_cleans_up_behind_itself_would(self) -> None:
        with reline(RUNNING, "restored", line(Leaf.RU_CANCELLING)):
            assert self.restarted().server.cancels != []

    @staticmethod
    def restarted() -> Scene:
        scene = Scene(STATUS_ONLY)
        key = scene.ask()
        scene.until(lambda: scene.leaf(key) in RUNNING)
        for _ in range(4):
            scene.checkpoint()
            scene.crash(down_ms=20)
            scene.pass_by(50)
        scene.ended()
        return scene

    def test_s17_cancel_is_durable_and_retried(self) -> None:
        scene = self.cancelled()
        assert len(scene.server.cancels) >= 3, "two were lost, one of them with its host"
        failure = scene.ledger.committed[NAME].failure
        assert failure is not None
        assert (failure.code, failure.remote) == (FailureCode.CANCELLED, RemoteFate.CANCELLED)
        assert scene.server.posts == [NAME]

    def test_s17_a_cancel_that_its_host_alone_remembers_leaves_it_running(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        forget_at_a_restart(monkeypatch, cancelled=False)
        scene = self.cancelled()
        assert len(scene.server.cancels) == 1
        assert NAME not in scene.ledger.committed

    @staticmethod
    def cancelled() -> Scene:
        """A person cancels a run that does not end. Two cancels are lost, the first of them with its host."""
        scene = Scene(MARKER_LIST, Faults(stuck=1))
        scene.server.deaf = 2
        key = scene.ask()
        scene.until(lambda: scene.leaf(key) in RUNNING)
        scene.order(key, CancelOrdered(NAME, 1))
        scene.until(lambda: scene.server.cancels)
        scene.checkpoint()
        scene.crash()
        scene.pass_by(60_000)
        return scene


class TestS18:
    """a2aproject/A2A #928, #1987: the server makes the id, and it is lost before it is stored."""

    def test_s18_ambiguous_is_parked_not_retried(self) -> None:
        scene, key = self.lost_handle()
        assert scene.server.posts == [NAME]
        assert scene.leaf(key) is Leaf.SU_PARKED
        assert [notice.invocation_id for notice in scene.told(NoticeKind.PARKED)] == [NAME]
        assert NAME not in scene.ledger.committed

    def test_s18_a_retry_would_run_it_twice(self) -> None:
        with MUTANTS["restored-intent-believed-unsent"].apply(), pytest.raises(Broken, match="accepted twice"):
            self.lost_handle()

    def test_s18_it_is_declared_by_the_adapter_and_demands_write_ahead(self) -> None:
        terms = Scene(HANDLE_ONLY).server.terms
        assert terms.capabilities.absence is Absence.NEVER
        with pytest.raises(ConfigError, match="submit_after"):
            Terms(terms.capabilities, replace(terms.policy, submit_after=SubmitAfter.PROBE))

    @staticmethod
    def lost_handle() -> tuple[Scene, Key]:
        """The host dies when the server has accepted the POST, before it hears the run's name."""
        scene = Scene(HANDLE_ONLY)
        key = scene.ask()
        scene.until(lambda: scene.server.posts)
        scene.crash()
        scene.pass_by(60_000)
        return scene, key


class TestS19:
    """apache/flink-agents #1105: the attempts were counted in a variable, so every restart refilled the budget."""

    def test_s19_attempts_are_counted_over_restarts(self) -> None:
        scene = self.refused()
        outcome = scene.ledger.committed[NAME]
        most = scene.server.terms.policy.submit_attempts_max
        assert len(scene.server.posts) == outcome.attempts == most
        assert outcome.failure is not None
        assert outcome.failure.code is FailureCode.REJECTED

    def test_s19_a_counter_in_the_host_would_never_be_full(self, monkeypatch: pytest.MonkeyPatch) -> None:
        forget_at_a_restart(monkeypatch, attempts=0)
        scene = self.refused()
        assert len(scene.server.posts) > scene.server.terms.policy.submit_attempts_max
        assert NAME not in scene.ledger.committed

    @staticmethod
    def refused() -> Scene:
        """The server is always busy, and the host restarts after every third POST."""
        scene = Scene(STATUS_ONLY, Faults(refuse=1))
        scene.ask()
        posts = scene.server.posts
        while NAME not in scene.ledger.committed and len(posts) < 30:
            seen = len(posts)
            scene.until(lambda seen=seen: NAME in scene.ledger.committed or len(posts) >= seen + 3)  # type: ignore[misc]
            scene.pass_by(30)
            scene.checkpoint()
            scene.crash()
        return scene

    def test_s19_a_deadline_stays_where_it_is(self) -> None:
        scene, deadline_ms = self.hurried()
        outcome = scene.ledger.committed[NAME]
        assert outcome.failure is not None
        assert outcome.failure.code is FailureCode.DEADLINE_EXCEEDED
        assert deadline_ms <= outcome.finished_at_ms < deadline_ms + 5_000

    def test_s19_a_deadline_counted_from_the_restart_would_move(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Draft, "deadline_ms", property(lambda d: d.env.opened_ms + 20_000))
        scene, _ = self.hurried()
        assert NAME not in scene.ledger.committed

    @staticmethod
    def hurried() -> tuple[Scene, int]:
        """A run that never ends, and a host that restarts every eight seconds."""
        scene = Scene(STATUS_ONLY, Faults(stuck=1))
        deadline_ms = scene.clock.now_ms + 20_000
        scene.ask(deadline_ms=deadline_ms)
        for _ in range(4):
            scene.pass_by(8_000)
            scene.crash()
        return scene, deadline_ms


class TestS22:
    """apache/flink #26779: the time limit and the retry raced, and there were extra attempts."""

    @pytest.mark.parametrize("seed", range(5))
    def test_s22_a_late_answer_is_not_a_second_attempt(self, seed: int) -> None:
        scene = self.late_answers(seed)
        assert sorted(scene.server.posts) == sorted(CALLS)
        assert all(scene.ledger.committed[name].attempts == 1 for name in CALLS)

    def test_s22_a_timeout_before_the_posts_own_limit_would_be_one(self) -> None:
        whole = orders.submit

        def hasty(d: Draft) -> None:
            whole(d)
            d.wake_at_ms = d.env.now_ms + 50

        with swap(whole, hasty), MUTANTS["send-limit-forgotten"].apply(), pytest.raises(Broken, match="twice"):
            self.late_answers(0)

    @staticmethod
    def late_answers(seed: int) -> Scene:
        """Every message takes up to its whole time limit."""
        scene = Scene(MARKER_LIST, Faults(delay=1), seed)
        for name in CALLS:
            scene.ask(name)
        scene.ended(*CALLS)
        return scene


def test_every_test_of_the_page_is_there() -> None:
    page = (ROOT / "docs" / "scenarios.md").read_text()
    file, tests = "", 0
    for token in re.findall(r"`(tests/\S+\.py\S*|test_\S+|Test\S+)`", page):
        path, _, names = token.rpartition(".py")
        file = f"{path}.py" if path else file
        text = (ROOT / file).read_text()
        for name in filter(None, names.split("::")):
            tests += 1
            assert re.search(rf"^ *(?:class|def) {name}\b", text, re.MULTILINE), f"{file}: no {name}"
    assert tests > 20
