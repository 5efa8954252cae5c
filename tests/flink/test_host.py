"""The host on a stand-in for Flink: what it stores, when it sends, whom it wakes."""

import gc
import json
import random
import sys
import time
from collections import Counter
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reattach.adapters import registry
from reattach.models import answers as a
from reattach.models.codec import decode_entry, decode_thread
from reattach.models.errors import ConfigError
from reattach.models.request import Request
from reattach.runtime.clock import SteadyClock
from reattach.runtime.flink import host as host_module
from reattach.runtime.flink.function import UNREADABLE, ReattachFunction, request_key_of
from reattach.runtime.flink.host import JOURNAL, NOTICES, REJECTS, Host, LoopEnded, StoodStill
from reattach.runtime.flink.keys import key_of
from reattach.runtime.pulse import Pulse
from tests.flink.stage import QUICK, Stage
from tests.runtime.scripted import Script, ScriptedAdapter, config


class Remote(Script):
    """A remote agent with its own memory, behind the scripted adapter."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: Counter[str] = Counter()
        self.asked_to_post: list[str] = []
        self.done: set[str] = set()
        self.finish_by_itself = True

    async def play(self, kind: str, inv: Any, usual: Any) -> Any:
        if kind == "submit":
            self.asked_to_post.append(inv.id)
        answer = await super().play(kind, inv, usual)
        if kind in self.replies:
            return answer
        if kind == "submit":
            self.turns[inv.id] += 1
            return a.Accepted()
        if kind == "probe" and self.turns[inv.id]:
            finished = inv.id in self.done or self.finish_by_itself
            return a.Present(a.Phase.COMPLETED, result=b'"ok"') if finished else a.Present(a.Phase.RUNNING)
        return answer


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._BUILT_IN, "scripted", ScriptedAdapter)


@pytest.fixture
def remote() -> Remote:
    return Remote()


def line(name: str, **more: Any) -> str:
    now = int(time.time() * 1000)
    row = {"invocation_id": name, "agent": "agent", "message": name, "requested_at_ms": now, **more}
    return json.dumps(row)


def key(name: str) -> str:
    return request_key_of(line(name))


def outcomes(stage: Stage) -> list[dict[str, Any]]:
    return [json.loads(one) for one in stage.outputs if isinstance(one, str)]


def side(stage: Stage, tag: Any) -> list[Any]:
    return [one[1] for one in stage.outputs if isinstance(one, tuple) and one[0] is tag]


class TestOneLife:
    def test_a_request_becomes_one_post_and_one_outcome(self, make: Any, remote: Remote) -> None:
        stage = Stage(make())
        stage.send(key("a"), line("a"))
        stage.run(lambda: bool(outcomes(stage)), "the outcome")
        (outcome,) = outcomes(stage)
        assert (outcome["status"], outcome["result"], outcome["attempts"]) == ("COMPLETED", "ok", 1)
        assert remote.turns == {"a": 1}
        entries = [decode_entry(one) for one in side(stage, JOURNAL)]
        assert [entry.seq for entry in entries] == sorted(entry.seq for entry in entries)
        assert entries[-1].after.terminal

    def test_everything_is_stored_and_timed_before_it_is_ordered(
        self, make: Any, remote: Remote, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stage = Stage(make())
        order = stage.host._executor.order

        def noted(*given: Any) -> None:
            stage.steps.append(type(given[1]).__name__)
            order(*given)

        monkeypatch.setattr(stage.host._executor, "order", noted)
        stage.send(key("a"), line("a"))
        stage.run(lambda: bool(outcomes(stage)), "the outcome")
        for number, name in enumerate(stage.steps):
            if name not in ("store", "timer"):
                before = [step for step in stage.steps[:number] if step != "timer"]
                assert before[-1] == "store", f"{name} without its record"
        assert "Submit" in stage.steps

    def test_the_pump_rests_when_nothing_is_in_flight(self, make: Any, remote: Remote) -> None:
        remote.finish_by_itself = False
        stage = Stage(make(poll_ms=60_000, poll_max_ms=60_000, watch_silence_ms=60_000))
        assert not stage.pumping
        stage.send(key("a"), line("a"))
        assert stage.pumping
        stage.run(lambda: remote.turns["a"] == 1 and not stage.pumping, "rest")
        assert decode_thread(stage.state[key("a")]).active is not None

    def test_it_slows_down_while_nothing_comes(self, make: Any, remote: Remote) -> None:
        remote.gate.clear()
        stage = Stage(make(probe_timeout_ms=60_000))
        stage.send(key("a"), line("a"))
        began, pumps = time.monotonic(), 0
        stage.run(lambda: time.monotonic() > began + 0.4, "0.4 s")
        pumps = stage.pumps
        stage.run(lambda: time.monotonic() > began + 0.8, "0.8 s")
        assert stage.pumps - pumps <= 21

    def test_timers_that_are_not_due_cost_no_step(self, make: Any, remote: Remote) -> None:
        remote.gate.clear()
        stage = Stage(make(probe_timeout_ms=60_000))
        stage.send(key("a"), line("a"))
        stage.steps.clear()
        stage.fire_one(key("a"), 1)
        assert "store" not in stage.steps

    def test_a_clock_that_is_set_back_stops_nothing(
        self, make: Any, remote: Remote, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Flink's timers follow the wall clock, and so does the pump; the call's own time goes on."""
        real = time.time_ns
        behind = 0
        monkeypatch.setattr(host_module, "SteadyClock", lambda: SteadyClock(lambda: real() - behind))
        monkeypatch.setattr(time, "time_ns", lambda: real() - behind)
        host = make()
        stage = Stage(host, now_ms=lambda: (real() - behind) // 1_000_000)
        behind = 3_600 * 10**9
        stage.send(key("a"), line("a"))
        stage.run(lambda: bool(outcomes(stage)), "the outcome")
        assert remote.turns == {"a": 1}
        (entry,) = {decode_entry(one).opened_ms for one in side(stage, JOURNAL)}
        assert decode_entry(side(stage, JOURNAL)[-1]).at_ms >= entry


class TestInput:
    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            ("{", "not JSON"),
            (b"\xff\xfe", "not JSON"),
            ("[]", "not a JSON object"),
            ('{"invocation_id":"a","agent":"agent","message":1}', "requested_at_ms: required"),
            (line("a", turn=0), "turn"),
            (line("a", agent="other"), "no agent named 'other' is configured (known: agent)"),
            (line("a", message="x" * 300_000), "the limit is"),
            (None, "NoneType"),
            ({"invocation_id": "a"}, "dict"),
            (7, "int"),
        ],
        # A line holds the time at which it was made.
        ids=["cut", "no-utf8", "list", "no-time", "turn-0", "other-agent", "too-long", "nothing", "dict", "number"],
    )
    def test_what_cannot_be_taken_is_rejected_with_its_reason(self, make: Any, value: Any, reason: str) -> None:
        stage = Stage(make())
        stage.send(request_key_of(value), value)
        (rejected,) = side(stage, REJECTS)
        assert reason in json.loads(rejected)["reason"]
        assert not stage.state

    @settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    @given(value=st.binary(max_size=200) | st.text(max_size=200) | st.none() | st.integers())
    def test_no_input_raises(self, make: Any, value: Any) -> None:
        stage = getattr(make, "stage", None) or Stage(make())
        make.stage = stage
        given_key = request_key_of(value)
        assert given_key == UNREADABLE
        stage.send(given_key, value)
        json.loads(side(stage, REJECTS)[-1])

    def test_a_request_that_is_parsed_already_is_taken(self, make: Any, remote: Remote) -> None:
        stage = Stage(make())
        request = Request("a", "agent", b'"x"', int(time.time() * 1000))
        stage.send(request_key_of(request), request)
        stage.run(lambda: bool(outcomes(stage)), "the outcome")
        assert remote.turns == {"a": 1}

    def test_a_stream_with_other_keys_is_refused(self, make: Any) -> None:
        stage = Stage(make())
        with pytest.raises(ConfigError, match="key_by"):
            stage.send("a", line("a"))

    def test_an_id_that_comes_again_is_absorbed_and_another_payload_refused(self, make: Any, remote: Remote) -> None:
        stage = Stage(make())
        first = line("a")
        for value in (first, first, json.dumps({**json.loads(first), "message": "other"})):
            stage.send(key("a"), value)
        stage.run(lambda: bool(outcomes(stage)), "the outcome")
        stage.send(key("a"), first)
        assert len(outcomes(stage)) == 1
        assert remote.turns == {"a": 1}
        assert "another payload" in json.loads(side(stage, NOTICES)[0])["message"]


class TestTwoLives:
    def begun(self, make: Any, remote: Remote, **policy: Any) -> Stage:
        remote.finish_by_itself = False
        stage = Stage(make(**policy))
        stage.send(key("a"), line("a"))
        stage.run(lambda: remote.turns["a"] == 1, "the POST")
        return stage

    def test_every_restored_key_is_taken_over_though_no_element_and_no_timer_comes(
        self, make: Any, remote: Remote
    ) -> None:
        state, _ = self.begun(make, remote).snapshot()
        remote.done.add("a")
        stage = Stage(make(), (state, set()))
        assert stage.pumping
        stage.run(lambda: bool(outcomes(stage)), "the outcome")
        assert remote.turns == {"a": 1}

    def test_without_restored_keys_nothing_is_set_going(self, make: Any) -> None:
        assert not Stage(make()).timers_set

    def test_its_own_timer_does_not_take_its_slot(self, make: Any, remote: Remote) -> None:
        snapshot = self.begun(make, remote, recovery_spread_ms=600_000).snapshot()
        asked = len(remote.asked)
        stage = Stage(make(recovery_spread_ms=600_000), snapshot)
        steps = len(stage.steps)
        stage.fire_one(key("a"), int(time.time() * 1000) + 60_000)
        assert "store" not in stage.steps[steps:]
        assert len(remote.asked) == asked
        assert stage.pumping, "so it is not lost either"

    def test_a_request_that_comes_again_before_its_slot_takes_the_call_over(self, make: Any, remote: Remote) -> None:
        slow = {"poll_ms": 60_000, "poll_max_ms": 60_000, "watch_silence_ms": 60_000}
        old = self.begun(make, remote, **slow)
        old.run(lambda: not old.pumping, "the next poll to be far away")
        remote.done.add("a")
        stage = Stage(make(recovery_spread_ms=600_000, **slow), old.snapshot())
        stage.send(key("a"), line("a"))
        stage.run(lambda: bool(outcomes(stage)), "the outcome")
        assert remote.turns == {"a": 1}

    def test_a_thousand_keys_are_taken_over_within_the_spread_and_not_at_once(self, make: Any, remote: Remote) -> None:
        remote.finish_by_itself = False
        old = Stage(make(poll_ms=60_000, poll_max_ms=60_000, watch_silence_ms=60_000))
        for number in range(1_000):
            old.send(key(f"c{number}"), line(f"c{number}"))
        old.run(lambda: sum(remote.turns.values()) == 1_000, "all POSTs")
        snapshot = old.snapshot()
        remote.finish_by_itself = True
        stage = Stage(make(recovery_spread_ms=1_000), snapshot)
        slots = sorted(at for at, _ in stage.host._recoveries)
        assert 500 < slots[-1] - slots[0] <= 1_000
        assert Counter(slots).most_common(1)[0][1] < 20
        stage.run(lambda: len(outcomes(stage)) == 1_000, "all outcomes", 60)
        assert set(remote.turns.values()) == {1}

    def test_a_restored_agent_that_is_gone_is_named(self, make: Any, remote: Remote) -> None:
        snapshot = self.begun(make, remote).snapshot()
        other = Host({"other": config(remote, **QUICK)})
        with pytest.raises(ConfigError, match="agents.agent: the restored state holds calls"):
            Stage(other, snapshot)
        other.close()

    def test_a_timer_of_a_thread_that_is_no_more_does_nothing(self, make: Any) -> None:
        stage = Stage(make(), ({}, {(1, key("a")), (2, "reattach pump 7")}))
        assert stage.fire() == []
        assert not stage.pumping

    @pytest.mark.parametrize("seed", range(6))
    def test_killed_at_any_moment_and_restored_from_any_snapshot(self, make: Any, remote: Remote, seed: int) -> None:
        """Three lives, each from some earlier snapshot: one POST per call that the remote took, one result."""
        dice = random.Random(seed)
        snapshots: list[Any] = [None]
        lines = {f"c{number}": line(f"c{number}") for number in range(20)}
        for life in range(4):
            stage = Stage(make(), dice.choice(snapshots[-3:]))
            for name, text in lines.items():
                stage.send(key(name), text)
                stage.fire()
                if dice.random() < 0.1:
                    snapshots.append(stage.snapshot())
            pause = time.monotonic() + dice.random() * 0.6
            stage.run(lambda: time.monotonic() > pause, "a while")  # noqa: B023
            snapshots.append(stage.snapshot())
            if life < 3:
                stage.host.close()
        stage.run(lambda: len(decided(stage)) == 20, "every call decided")
        assert set(remote.turns.values()) == {1}


def decided(stage: Stage) -> set[str]:
    return {stone.invocation_id for stored in stage.state.values() for stone in decode_thread(stored).tombstones}


class TestTheHostItself:
    def test_it_survives_cloudpickle_with_nothing_but_settings(self, remote: Remote) -> None:
        agents = {"agent": config(Script(), **QUICK)}
        agents["agent"].options["script"] = None  # type: ignore[index]
        function = cloudpickle.loads(cloudpickle.dumps(ReattachFunction(agents, concurrency_max=7)))
        assert function._host._agents == agents

    def test_a_host_that_stood_still_starts_anew(self, remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
        stage = Stage(Host({"agent": config(remote, **{**QUICK, "overlap_ms": 60_000})}))
        stage.send(key("a"), line("a"))
        later = time.monotonic() + 31, time.time() + 31
        monkeypatch.setattr(Pulse, "_now", staticmethod(lambda: later))
        with pytest.raises(StoodStill, match="it starts anew"):
            stage.fire(2**60)
        with pytest.raises(StoodStill):
            stage.send(key("b"), line("b"))
        stage.host.close()

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    def test_a_host_whose_loop_has_ended_starts_anew(self, make: Any, remote: Remote) -> None:
        """Nobody would send or hear anything any more."""
        remote.gate.clear()
        stage = Stage(make())
        stage.send(key("a"), line("a"))
        stage.host._executor._loop.call_soon_threadsafe(sys.exit)
        with pytest.raises(LoopEnded, match="starts anew"):
            stage.run(lambda: False, "the end of the loop")
        remote.gate.set()
        again = Stage(make(), stage.snapshot())
        again.run(lambda: bool(outcomes(again)), "the outcome")
        assert remote.turns == {"a": 1}

    def test_restored_calls_wait_for_room(self, make: Any, remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
        """However many they are, no more of them are asked about than may wait."""
        monkeypatch.setattr(host_module, "RECOVERIES_PER_PUMP", 1)
        remote.finish_by_itself = False
        first = Stage(make())
        for number in range(20):
            first.send(key(f"c{number}"), line(f"c{number}"))
        first.run(lambda: sum(remote.turns.values()) == 20, "all running")
        remote.gate.clear()
        patient = config(remote, **{**QUICK, "probe_timeout_ms": 60_000})
        host = Host({"agent": patient}, concurrency_max=1, backlog_max=5)
        second = Stage(host, first.snapshot())
        second.run(lambda: not host._executor.room, "a backlog")
        pumps = second.pumps
        second.run(lambda: second.pumps > pumps + 20, "more pumps")
        assert len(host._foreign) == 20 - 1 - 5
        remote.gate.set()
        second.run(lambda: not host._foreign, "all taken over")
        host.close()

    def test_a_host_that_is_dropped_ends_its_loop(self, make: Any, remote: Remote) -> None:
        """A cancelled job closes nothing: Python only loses sight of it."""
        remote.gate.clear()
        host = Host({"agent": config(remote, **QUICK)})
        stage = Stage(host)
        stage.send(key("a"), line("a"))
        executor = host._executor
        del host, stage
        gc.collect()
        executor._thread.join(10)
        assert executor.ended

    def test_far_timers_are_not_remembered(self, make: Any, remote: Remote) -> None:
        """A finished call leaves a tombstone for a day, and no memory in Python."""
        stage = Stage(make())
        for number in range(50):
            stage.send(key(f"c{number}"), line(f"c{number}"))
        stage.run(lambda: len(outcomes(stage)) == 50, "all outcomes")
        stage.fire(until_ms=int(time.time() * 1000) + 60_000)
        assert len(stage.state) == 50
        assert not stage.host._timers and not stage.host._foreign

    def test_keys_are_plain_and_unambiguous(self) -> None:
        pairs = [("a", "b"), ('a","', "b"), ("a", '","b'), ("", ""), ("a,b", ""), ("😀", "é")]
        assert len({key_of(*pair) for pair in pairs}) == len(pairs)
