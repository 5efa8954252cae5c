"""A policy that cannot be kept is refused, and the message names the key."""

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given

from reattach.models.codec import encode_thread
from reattach.models.errors import ConfigError
from reattach.models.policy import (
    DAY_MS,
    Absence,
    Capabilities,
    Deduplication,
    Policy,
    SubmitAfter,
    Terms,
)
from reattach.models.request import Request
from reattach.models.thread import Queued, ThreadState
from reattach.runtime.testing import strategies as made

ABLE = Capabilities(admission_ms=100, retention_ms=7 * DAY_MS)
NUMBERS = [field.name for field in fields(Policy) if type(field.default) is int]
OPTIONAL = ["admission_ms", "retention_ms"]
MAY_BE_ZERO = ["overlap_ms", "skew_max_ms", "admission_ms", "recovery_spread_ms", "slack_ms"]


def test_the_defaults_can_be_kept() -> None:
    assert Terms(ABLE, Policy()).policy == Policy()


@given(made.terms())
def test_terms_of_the_strategies_can_be_kept(terms: Terms) -> None:
    assert terms.settle_ms >= terms.admission_ms >= 0
    assert 0 < terms.memory_ms <= terms.policy.tombstone_ttl_ms


@pytest.mark.parametrize("name", NUMBERS + OPTIONAL)
@pytest.mark.parametrize("value", [-1, 3651 * DAY_MS])
def test_numbers_out_of_range(name: str, value: int) -> None:
    changes: dict[str, Any] = {name: value}
    policy = replace(Policy(), **changes)
    with pytest.raises(ConfigError, match=f"^{name} = {value}: must lie between "):
        Terms(ABLE, policy)


@pytest.mark.parametrize("name", NUMBERS + OPTIONAL)
def test_zero(name: str) -> None:
    changes: dict[str, Any] = {name: 0}
    policy = replace(Policy(), **changes)
    if name in MAY_BE_ZERO:
        assert Terms(ABLE, policy).policy is policy
    else:
        with pytest.raises(ConfigError, match=f"^{name} = 0: must lie between 1 and "):
            Terms(ABLE, policy)


@pytest.mark.parametrize(
    ("capabilities", "changes", "key"),
    [
        (Capabilities(deduplication=Deduplication.KEY, retention_ms=1), {}, "key_lifetime_ms"),
        (Capabilities(), {}, "retention_ms"),
        (Capabilities(absence=Absence.NEVER, retention_ms=1), {"submit_after": SubmitAfter.PROBE}, "submit_after"),
        (ABLE, {"watch_silence_ms": 999}, "watch_silence_ms"),
        (ABLE, {"queue_max": 200, "message_bytes_max": 1024 * 1024}, "queue_max"),
        (ABLE, {"queue_max": 50_001, "message_bytes_max": 1}, "queue_max"),
    ],
)
def test_promises_that_the_remote_cannot_keep(capabilities: Capabilities, changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=f"^{key}: "):
        Terms(capabilities, replace(Policy(), **changes))


def test_a_thread_has_room_for_so_many_tombstones() -> None:
    with pytest.raises(ConfigError, match="^tombstones_max = 50001: at most 50000"):
        Terms(ABLE, Policy(tombstones_max=50_001))


def test_a_full_queue_can_be_stored() -> None:
    """The largest queue that is allowed encodes: a job must not fail for what it accepted."""
    policy = Policy(queue_max=170, retention_ms=1)
    message = b'"' + b"x" * (policy.message_bytes_max - 2) + b'"'
    Terms(ABLE, policy)
    queue = tuple(Queued(Request(f"c{n}", "a", message, 1)) for n in range(policy.queue_max))
    assert len(encode_thread(ThreadState(queue=queue))) > 40 * 1024 * 1024


def test_what_makes_the_same_remotes_acceptable() -> None:
    key = Capabilities(deduplication=Deduplication.KEY, retention_ms=1, key_lifetime_ms=5)
    Terms(key, Policy())
    Terms(Capabilities(), Policy(retention_ms=1))
    never = Capabilities(absence=Absence.NEVER, retention_ms=1)
    ahead = Policy(submit_after=SubmitAfter.CHECKPOINT)
    assert Terms(never, Policy()).writes_ahead and Terms(never, ahead).writes_ahead
    assert not Terms(ABLE, Policy()).writes_ahead and Terms(ABLE, ahead).writes_ahead
    Terms(replace(never, deduplication=Deduplication.KEY, key_lifetime_ms=5), Policy())
    Terms(ABLE, Policy(watch_silence_ms=1000, poll_ms=1000))


def test_settle_covers_validity_timeout_and_admission() -> None:
    policy = Policy(submit_validity_ms=1, submit_timeout_ms=10)
    assert Terms(ABLE, policy).settle_ms == 111
    assert Terms(ABLE, replace(policy, admission_ms=1000)).settle_ms == 1011
    assert Terms(ABLE, replace(policy, admission_ms=0)).settle_ms == 11


@pytest.mark.parametrize(
    ("retention", "own", "key", "tombstones", "memory"),
    [(9, None, None, 20, 9), (None, 8, None, 20, 8), (9, 7, None, 20, 7), (9, 9, 6, 20, 6), (9, 9, 9, 5, 5)],
)
def test_memory_is_the_shortest_of_all(
    retention: int | None, own: int | None, key: int | None, tombstones: int, memory: int
) -> None:
    capabilities = Capabilities(retention_ms=retention, key_lifetime_ms=key)
    assert Terms(capabilities, Policy(retention_ms=own, tombstone_ttl_ms=tombstones)).memory_ms == memory
