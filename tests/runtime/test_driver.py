"""The driver: bytes in, bytes out, and everything a host must do in its right place."""

from dataclasses import replace

import pytest

from reattach.fsm.step import begin, step
from reattach.models.answers import Absent, Accepted, Phase, Present, Progress
from reattach.models.codec import decode_thread
from reattach.models.effects import Probe, Submit, Watch
from reattach.models.errors import Corrupt
from reattach.models.events import (
    Ident,
    ProbeAnswered,
    Progressed,
    Requested,
    Restored,
    SubmitAnswered,
    ThreadEvent,
    TimeReached,
)
from reattach.models.invocation import Invocation
from reattach.models.journal import redact_event, redact_record
from reattach.models.lifecycle import Leaf
from reattach.models.terms import terms_of
from reattach.runtime.driver import RECENT_BYTES_MAX, RECENT_MAX, Applied, Driver, state_digest
from tests.fsm.making import OPENED, QUIET, env, request, terms

KEY = ("agent", "t")


class Thread:
    def __init__(self, **settings: bool) -> None:
        self.driver = Driver({"agent": terms()}, incarnation="life-1", opened_ms=OPENED, **settings)
        self.stored: bytes | None = None

    def on(self, event: ThreadEvent, now: int = QUIET) -> Applied:
        applied = self.driver.apply(KEY, self.stored, event, now)
        assert applied.changed == (applied.stored != self.stored)
        self.stored = applied.stored
        return applied

    @property
    def active(self) -> Invocation:
        assert self.stored is not None
        active = decode_thread(self.stored).active
        assert active is not None
        return active

    @property
    def ident(self) -> Ident:
        return Ident("life-1", self.active.id, 1, self.active.epoch)


def a_whole_call(thread: Thread) -> list[Applied]:
    steps = [thread.on(Requested(request(thread_id="t")))]
    steps.append(thread.on(ProbeAnswered(thread.ident, Absent(""))))
    steps.append(thread.on(SubmitAnswered(thread.ident, Accepted("run-1"))))
    steps.append(thread.on(Progressed(thread.ident, (Progress(b'{"n":1}'),))))
    steps.append(thread.on(Requested(request(thread_id="t"))))
    return steps


def test_each_thing_comes_out_in_its_place() -> None:
    thread = Thread()
    asked, sent, watched, reported, repeated = a_whole_call(thread)
    assert [type(effect) for effect, _ in asked.orders] == [Probe]
    assert [type(effect) for effect, _ in sent.orders] == [Submit]
    assert [type(effect) for effect, _ in watched.orders] == [Watch]
    assert len(reported.reports) == 1
    assert repeated.counts == ("duplicate_request",)
    assert repeated.journal == ()


def test_the_record_that_an_order_was_given_for_comes_with_it() -> None:
    thread = Thread()
    ((effect, invocation),) = thread.on(Requested(request(thread_id="t"))).orders
    assert effect.ident == thread.ident
    assert invocation == thread.active


def test_there_is_always_a_wake_up_while_anything_is_open() -> None:
    thread = Thread()
    for applied in a_whole_call(thread):
        assert applied.wake_at_ms > 0


def test_entries_replay_to_the_same_record() -> None:
    """Folding the journal's facts through `step` comes to the state that each entry names."""
    thread = Thread()
    entries = [entry for applied in a_whole_call(thread) for entry in applied.journal]
    assert [entry.seq for entry in entries] == list(range(len(entries)))
    record: Invocation | None = None
    for entry in entries:
        if isinstance(entry.event, Requested):
            record = begin(entry.event.request, env(entry.at_ms))
        else:
            assert record is not None
            record = step(record, entry.event, env(entry.at_ms)).invocation
        assert state_digest(record) == entry.state
        assert record.leaf is entry.after


def test_no_payload_enters_the_journal() -> None:
    thread = Thread()
    for applied in a_whole_call(thread):
        for entry in applied.journal:
            assert b"hello" not in repr(entry).encode()
            assert entry.event == redact_event(entry.event)


def test_the_journal_can_be_left_out() -> None:
    assert all(applied.journal == () for applied in a_whole_call(Thread(journal=False)))


def test_foreign_bytes_are_the_codecs_own_error() -> None:
    thread = Thread()
    thread.stored = b"\x00nonsense"
    with pytest.raises(Corrupt):
        thread.on(Requested(request(thread_id="t")))


def test_it_knows_its_agents() -> None:
    thread = Thread()
    assert thread.driver.knows("agent")
    assert not thread.driver.knows("stranger")


def test_the_first_entry_of_each_life_carries_what_it_started_from() -> None:
    thread = Thread()
    entries = [entry for applied in a_whole_call(thread) for entry in applied.journal]
    assert [entry.basis is not None for entry in entries] == [True] + [False] * (len(entries) - 1)
    before = thread.active
    thread.driver = Driver({"agent": terms()}, incarnation="life-2", opened_ms=QUIET + 1)
    (taken,) = thread.on(Restored(), QUIET + 2).journal
    assert taken.basis is not None
    assert taken.basis.record == redact_record(before)
    assert terms_of(taken.basis.terms) == terms()
    (later,) = thread.on(TimeReached(), QUIET + 1_000_000).journal
    assert later.basis is None


def test_a_call_that_drains_says_until_when() -> None:
    thread = Thread()
    a_whole_call(thread)
    thread.on(TimeReached(), OPENED + 3_600_000)
    ended = thread.on(ProbeAnswered(thread.ident, Present(Phase.RUNNING)), OPENED + 3_600_000).journal
    assert ended[-1].after is Leaf.FAILED and ended[-1].before is Leaf.FAILED
    thread.driver = Driver({"agent": terms()}, incarnation="life-2", opened_ms=OPENED + 3_600_001)
    (taken,) = thread.on(Restored(), OPENED + 3_600_002).journal
    assert taken.basis is not None
    assert taken.basis.until_ms == OPENED + 3_600_000 + terms().policy.drain_max_ms


def test_the_stored_bytes_are_the_truth_whatever_was_seen_last() -> None:
    """What a driver remembers of a thread saves work; a host that was taken back must not notice it."""
    thread = Thread()
    thread.on(Requested(request(thread_id="t")))
    before, ident = thread.stored, thread.ident
    thread.on(ProbeAnswered(ident, Absent("")))
    sent = thread.stored
    thread.stored = before
    assert thread.on(ProbeAnswered(ident, Absent(""))).stored == sent
    thread.stored = b"\x00nonsense"
    with pytest.raises(Corrupt):
        thread.on(TimeReached())


def test_what_is_remembered_is_bounded() -> None:
    driver = Driver({"agent": terms()}, incarnation="life-1", opened_ms=OPENED)
    for number in range(RECENT_MAX + 10):
        driver.apply(("agent", f"t{number}"), None, Requested(request(thread_id=f"t{number}")), QUIET)
    assert len(driver._recent) <= RECENT_MAX
    large = replace(request(thread_id="t"), message=b'"' + b"x" * RECENT_BYTES_MAX + b'"')
    driver.apply(KEY, None, Requested(large), QUIET)
    assert KEY not in driver._recent
