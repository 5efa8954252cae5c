"""The rate and the breaker, on a clock of their own."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach.adapters.contract import Limits
from reattach.models.errors import ConfigError
from reattach.runtime.config import load_config
from reattach.runtime.limits import BURST_S, Breaker, Bucket, Kind


class TestBucket:
    def test_none_waits_for_nothing(self) -> None:
        bucket = Bucket(0)
        for _ in range(1_000):
            assert bucket.wait_s(0.0) == 0.0
            bucket.take()

    @given(st.integers(1, 1_000), st.lists(st.floats(0, 3), max_size=60))
    def test_in_no_span_more_than_its_rate_and_a_tenth_of_a_second(self, rate: int, steps: list[float]) -> None:
        bucket, now, taken = Bucket(rate), 100.0, []
        for step in steps:
            now += step
            while not bucket.wait_s(now):
                bucket.take()
                taken.append(now)
        most = max(1.0, rate * BURST_S)
        for first, begun in enumerate(taken):
            for last in range(first, len(taken), 7):
                assert last - first + 1 <= most + (taken[last] - begun) * rate + 1e-6

    @given(st.integers(1, 10_000), st.integers(1, 50))
    def test_the_wait_that_it_names_is_enough_and_not_too_long(self, rate: int, rounds: int) -> None:
        bucket, now = Bucket(rate), 7.0
        while not bucket.wait_s(now):
            bucket.take()
        for _ in range(rounds):
            wait = bucket.wait_s(now)
            assert 0 < wait <= 1 / rate + 1e-9
            now += wait
            assert bucket.wait_s(now) == 0.0
            bucket.take()

    def test_what_an_order_asks_for_beyond_its_first_request_is_paid_later(self) -> None:
        bucket = Bucket(10)
        assert bucket.wait_s(0.0) == 0.0
        for _ in range(5):
            bucket.take()
        assert bucket.wait_s(0.0) == pytest.approx(0.5)

    def test_a_clock_that_stands_or_jumps_back_gives_nothing(self) -> None:
        bucket = Bucket(1)
        bucket.wait_s(50.0)
        bucket.take()
        assert bucket.wait_s(50.0) == pytest.approx(1.0)
        assert bucket.wait_s(20.0) == pytest.approx(1.0)


class TestBreaker:
    @staticmethod
    def opened(failures: int = 3, open_s: float = 5.0) -> Breaker:
        breaker = Breaker(failures, open_s)
        for _ in range(failures):
            breaker.end(0, True, 100.0)
        assert not breaker.closed
        return breaker

    def test_it_opens_after_so_many_failures_in_a_row(self) -> None:
        breaker = Breaker(3, 5.0)
        for failed in (True, True, None, False, True, True):
            breaker.end(breaker.begin(), failed, 0.0)
            assert breaker.closed
        breaker.end(breaker.begin(), True, 0.0)
        assert not breaker.closed

    def test_zero_failures_switch_it_off(self) -> None:
        breaker = Breaker(0, 5.0)
        for _ in range(1_000):
            breaker.end(breaker.begin(), True, 0.0)
        assert breaker.closed and breaker.admits(Kind.SEND, 0.0)

    def test_while_open_nothing_goes_then_reads_then_sends_and_never_streams(self) -> None:
        breaker = self.opened()
        admitted = {
            now: [kind for kind in Kind if breaker.admits(kind, now)] for now in (100.0, 104.9, 105.0, 109.9, 110.0)
        }
        assert admitted == {
            100.0: [],
            104.9: [],
            105.0: [Kind.READ],
            109.9: [Kind.READ],
            110.0: [Kind.READ, Kind.SEND],
        }

    def test_one_trial_at_a_time(self) -> None:
        breaker = self.opened()
        trial = breaker.begin()
        assert trial
        assert not any(breaker.admits(kind, 1_000.0) for kind in Kind)
        breaker.end(trial, True, 200.0)
        assert not breaker.admits(Kind.READ, 204.9)
        assert breaker.admits(Kind.READ, 205.0)

    def test_a_trial_that_says_nothing_lets_the_next_one_try_at_once(self) -> None:
        breaker = self.opened()
        breaker.end(breaker.begin(), None, 106.0)
        assert breaker.admits(Kind.READ, 106.0)

    def test_whatever_gets_through_closes_it(self) -> None:
        breaker = self.opened()
        breaker.end(0, False, 101.0)
        assert breaker.closed and all(breaker.admits(kind, 101.0) for kind in Kind)
        for _ in range(2):
            breaker.end(0, True, 102.0)
        assert breaker.closed, "the count began anew"

    def test_failures_of_those_that_were_under_way_when_it_opened_prolong_nothing(self) -> None:
        breaker = self.opened()
        breaker.end(0, True, 104.0)
        assert breaker.admits(Kind.READ, 105.0)
        trial = breaker.begin()
        breaker.end(0, True, 106.0)
        assert not breaker.admits(Kind.READ, 106.0), "the trial is still out"
        breaker.end(trial, False, 107.0)
        assert breaker.closed

    def test_a_trial_of_an_earlier_opening_does_not_end_the_one_that_is_out(self) -> None:
        breaker = self.opened()
        old = breaker.begin()
        breaker.end(0, False, 106.0)
        for _ in range(3):
            breaker.end(0, True, 107.0)
        breaker.begin()
        breaker.end(old, True, 150.0)
        assert not breaker.admits(Kind.READ, 1_000.0)

    @given(st.lists(st.tuples(st.sampled_from(list(Kind)), st.sampled_from([True, False, None]), st.floats(0, 4))))
    def test_it_is_never_stuck(self, steps: list[tuple[Kind, bool | None, float]]) -> None:
        """Whatever has happened, once all that was begun has ended, a read and a send may try in time."""
        breaker, now = Breaker(2, 3.0), 0.0
        for kind, failed, step in steps:
            now += step
            if breaker.admits(kind, now):
                breaker.end(breaker.begin(), failed, now)
        assert breaker.admits(Kind.READ, now + 3.0)
        assert breaker.admits(Kind.SEND, now + 6.0)


class TestSettings:
    def test_by_itself_an_agent_has_no_limit_but_a_breaker(self) -> None:
        assert Limits() == Limits(
            concurrency_max=0, streams_max=0, requests_per_second=0, breaker_failures=10, breaker_open_ms=5_000
        )

    @pytest.mark.parametrize("name", Limits.__slots__)
    @pytest.mark.parametrize("value", [-1, True, 1.5, "1", 10**10, None])
    def test_nonsense_is_refused_by_name(self, name: str, value: Any) -> None:
        with pytest.raises(ConfigError, match=f"^{name} = .*must be a whole number from"):
            Limits(**{name: value})

    def test_a_breaker_has_to_be_open_for_a_time(self) -> None:
        with pytest.raises(ConfigError, match="breaker_open_ms = 0"):
            Limits(breaker_open_ms=0)

    @staticmethod
    def read(folder: Path, table: str) -> Limits:
        path = folder / "job.toml"
        path.write_text(
            '[job]\nrequests = "in"\noutcomes = "out"\ncheckpoints = "chk"\n'
            '[agents.one]\nprotocol = "thread"\nurl = "http://127.0.0.1:9"\npolicy.retention_ms = 86400000\n' + table
        )
        return load_config(path).agents["one"].limits

    def test_they_are_read_from_the_file(self, tmp_path: Path) -> None:
        assert self.read(tmp_path, "") == Limits()
        table = "[agents.one.limits]\nconcurrency_max = 8\nrequests_per_second = 20\nbreaker_failures = 0\n"
        assert self.read(tmp_path, table) == Limits(concurrency_max=8, requests_per_second=20, breaker_failures=0)

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            (
                "limits.concurency_max = 1",
                "agents.one.limits.concurency_max: no such key; did you mean concurrency_max",
            ),
            ("limits.streams_max = -1", "agents.one.limits.streams_max = -1: must be a whole number from 0 to"),
            ("limits.requests_per_second = 0.5", "agents.one.limits.requests_per_second = 0.5: must be a whole number"),
            ("limits.breaker_open_ms = 0", "agents.one.limits.breaker_open_ms = 0: must be a whole number from 1 to"),
            ("limits = 7", "agents.one.limits = 7: must be a table"),
        ],
    )
    def test_a_wrong_one_is_named_as_it_stands_in_the_file(self, tmp_path: Path, table: str, message: str) -> None:
        with pytest.raises(ConfigError) as error:
            self.read(tmp_path, table)
        assert message in str(error.value)
