"""The executor against other people's code and bad timing: no answer is lost, no slot, no limit."""

import asyncio
import gc
import threading
import time
import tracemalloc
from collections import OrderedDict, deque
from typing import Any

import pytest

from reattach.models import answers as a
from reattach.models import effects as f
from reattach.models import events as e
from reattach.models.outcomes import Failure, FailureCode, RemoteFate
from reattach.runtime import executor as executor_module
from reattach.runtime import incarnations
from reattach.runtime.executor import StillSending
from reattach.runtime.queues import Order
from tests.runtime.scripted import Script, ScriptedAdapter, call, facts, ident, until

LATER = 2**52
pytestmark = pytest.mark.usefixtures("scripted")


KINDS: list[tuple[str, Any, Any]] = [
    ("probe", lambda i: f.Probe(i), e.ProbeAnswered),
    ("submit", lambda i: f.Submit(i, LATER), e.SubmitAnswered),
    ("fetch", lambda i: f.Fetch(i), e.FetchAnswered),
    ("fence", lambda i: f.Fence(i), e.FenceAnswered),
    ("cancel", lambda i: f.Cancel(i), e.CancelAnswered),
    ("respond", lambda i: f.Respond(i, LATER), e.RespondAnswered),
]


class TestWhatAnAdapterMayDo:
    @pytest.mark.parametrize(
        "reply",
        [None, "yes", a.Fenced, a.Gone(), a.Absent(after=7), a.Accepted(handle=None), a.Unknown(cause=b"x"), object()],  # type: ignore[arg-type]
        ids=lambda value: type(value).__name__,
    )
    @pytest.mark.parametrize(("kind", "effect", "answer"), KINDS, ids=[kind for kind, *_ in KINDS])
    def test_what_is_no_answer_is_told_as_doubt(
        self, make: Any, script: Script, kind: str, effect: Any, answer: Any, reply: Any
    ) -> None:
        if isinstance(reply, a.Gone) and kind == "fetch":
            return
        script.replies[kind] = reply
        executor, inv = make(), call("a")
        executor.order("k", effect(ident(inv)), inv)
        ((_, fact),) = facts(executor, 1)
        assert isinstance(fact, answer)
        assert isinstance(fact.answer, a.Unresolved if kind in ("submit", "respond") else a.Unknown)
        assert "adapter" in fact.answer.cause

    @pytest.mark.parametrize(
        "error",
        [asyncio.CancelledError("secret"), SystemExit("secret"), KeyboardInterrupt()],
        ids=lambda error: type(error).__name__,
    )
    @pytest.mark.parametrize(("kind", "effect", "answer"), KINDS, ids=[kind for kind, *_ in KINDS])
    def test_no_exception_ends_the_loop_or_loses_the_answer(
        self, make: Any, script: Script, kind: str, effect: Any, answer: Any, error: BaseException
    ) -> None:
        script.replies[kind] = error
        executor, inv = make(concurrency_max=1), call("a")
        executor.order("k", effect(ident(inv)), inv)
        ((_, fact),) = facts(executor, 1)
        assert isinstance(fact, answer)
        assert type(error).__name__ in fact.answer.cause and "secret" not in fact.answer.cause
        script.replies.clear()
        executor.order("k", f.Probe(ident(inv, 2)), inv)
        facts(executor, 1)

    def test_an_adapter_without_the_method_is_one_that_breaks(self, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(ScriptedAdapter, "fence")
        monkeypatch.setattr(ScriptedAdapter, "probe", lambda self, inv: a.Absent())
        executor, inv = make(), call("a")
        executor.order("k", f.Fence(ident(inv)), inv)
        executor.order("l", f.Probe(ident(inv)), inv)
        causes = {key: fact.answer.cause for key, fact in facts(executor, 2)}
        assert "AttributeError" in causes["k"]
        assert "TypeError" in causes["l"]

    def test_a_handle_that_is_none_is_not_told(self, make: Any, script: Script) -> None:
        script.replies["learn"] = 17
        executor, inv = make(), call("a")
        executor.order("k", f.Submit(ident(inv), LATER), inv)
        ((_, fact),) = facts(executor, 1)
        assert isinstance(fact.answer, a.Accepted)

    @pytest.mark.parametrize(
        "item",
        [None, "text", a.Progress("text"), a.Progress(b"1", cursor=7)],  # type: ignore[arg-type]
        ids=["nothing", "text", "text-in-progress", "number-as-cursor"],
    )
    def test_a_stream_of_nonsense_ends_like_any_other(
        self, make: Any, monkeypatch: pytest.MonkeyPatch, item: Any
    ) -> None:
        async def watch(self: Any, inv: Any, cursor: str) -> Any:
            yield item

        monkeypatch.setattr(ScriptedAdapter, "watch", watch)
        executor, inv = make(), call("a")
        executor.order("k", f.Watch(ident(inv), ""), inv)
        ((_, fact),) = facts(executor, 1)
        assert isinstance(fact, e.WatchEnded)

    def test_a_refusal_keeps_its_reason(self, make: Any, script: Script) -> None:
        refused = a.Refused(Failure(FailureCode.REJECTED, "no", RemoteFate.NONE), 10)
        script.replies["submit"] = refused
        executor, inv = make(), call("a")
        executor.order("k", f.Submit(ident(inv), LATER), inv)
        ((_, fact),) = facts(executor, 1)
        assert fact.answer == refused


class TestBadTiming:
    def test_a_read_that_is_replaced_before_its_first_step_gives_its_slot_back(self, make: Any, script: Script) -> None:
        """Its coroutine never begins, so nothing in it can."""
        executor, inv = make(concurrency_max=1), call("a")
        ready, done = threading.Event(), threading.Event()

        def both() -> None:
            for epoch in (1, 2):
                executor._inbox.append(Order("k", f.Probe(ident(inv, epoch)), inv, 0.0))
                executor._accept()
            ready.set()
            done.wait(10)

        executor._loop.call_soon_threadsafe(both)
        ready.wait(10)
        done.set()
        ((_, fact),) = facts(executor, 1)
        assert fact.ident.epoch == 2
        until(lambda: not executor.busy, "rest")
        assert executor.in_flight == 0
        executor.order("l", f.Probe(ident(inv, 3)), inv)
        facts(executor, 1)

    @pytest.mark.parametrize(("kind", "effect", "answer"), KINDS, ids=[kind for kind, *_ in KINDS])
    def test_it_is_busy_as_long_as_an_answer_is_owed(self, make: Any, kind: str, effect: Any, answer: Any) -> None:
        """The host stops looking when it is not, so an order must never be in no place at all."""
        executor, inv = make(), call("a")
        seen: list[bool] = []

        class Queue(deque[Any]):
            def append(self, value: Any) -> None:
                seen.append(self is executor._inbox or executor.busy)
                super().append(value)

            def popleft(self) -> Any:
                value = super().popleft()
                seen.append(self is executor._events or executor.busy)
                return value

        class Table(OrderedDict[str, Any]):
            def __setitem__(self, key: str, value: Any) -> None:
                seen.append(executor.busy)
                super().__setitem__(key, value)

            def __delitem__(self, key: str) -> None:
                super().__delitem__(key)
                seen.append(executor.busy)

        lane = executor._dispatch.round.lanes["agent"]
        executor._inbox, lane.sends, executor._events = Queue(), Queue(), Queue()
        lane.reads = Table()
        executor.order("k", effect(ident(inv)), inv)
        facts(executor, 1)
        assert len(seen) >= 5 and all(seen)
        until(lambda: not executor.busy, "rest")

    def test_an_order_dated_ahead_leaves_no_later_than_its_validity(self, make: Any, script: Script) -> None:
        """A host whose wall clock was set back writes `not_after_ms` into the future."""
        script.gate.clear()
        executor = make(concurrency_max=1, policy={"submit_validity_ms": 40, "submit_timeout_ms": 60_000})
        first, second = call("a"), call("b")
        executor.order("a", f.Submit(ident(first), LATER), first)
        until(lambda: len(script.asked) == 1, "the first send")
        executor.order("b", f.Submit(ident(second), int(time.time() * 1000) + 3_600_000), second)
        ordered = time.monotonic()
        until(lambda: time.monotonic() > ordered + 0.05, "its validity to pass")
        script.gate.set()
        answers = {key: fact.answer for key, fact in facts(executor, 2)}
        assert isinstance(answers["b"], a.NotSent)
        assert script.asked == [("submit", "a")]

    def test_progress_that_nobody_takes_is_dropped_and_nothing_else(
        self, make: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def watch(self: Any, inv: Any, cursor: str) -> Any:
            for _ in range(40):
                yield a.Progress(b"x" * 1_000_000)

        monkeypatch.setattr(ScriptedAdapter, "watch", watch)
        monkeypatch.setattr(executor_module, "PROGRESS_BYTES_MAX", 5_000_000)
        executor, inv = make(), call("a")

        def watched(epoch: int) -> int:
            executor.order("k", f.Watch(ident(inv, epoch), ""), inv)
            until(lambda: not executor._dispatch.tasks and executor.pending > 0, "the end of the stream")
            got = [fact for _, fact, _ in executor.drain(1_000)]
            assert isinstance(got[-1], e.WatchEnded)
            return sum(len(item.data) for fact in got if isinstance(fact, e.Progressed) for item in fact.items)

        assert 1_000_000 < watched(1) <= 5_000_000
        assert 1_000_000 < watched(2) <= 5_000_000, "room again once it was taken"


class TestMemory:
    def test_ten_thousand_orders_at_a_time_leave_it_flat(self, make: Any, script: Script) -> None:
        executor, inv = make(), call("a")

        def round_of_orders(number: int) -> int:
            for at in range(10_000):
                effect = f.Submit(ident(inv), LATER) if at % 2 else f.Probe(ident(inv))
                executor.order(f"round {number} key {at}", effect, inv)
            until(lambda: executor.pending == 10_000, "ten thousand answers")
            executor.drain(10_000)
            until(lambda: not executor.busy, "rest")
            script.asked.clear()
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            round_of_orders(0)
            before = round_of_orders(1)
            assert round_of_orders(2) - before < 100_000
        finally:
            tracemalloc.stop()


class TestAnEndThatIsResisted:
    def test_an_adapter_that_swallows_its_cancellation_ends_with_the_loop(
        self, make: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(executor_module, "GIVE_UP_S", 0.1)
        alive: list[float] = []

        async def submit(self: Any, inv: Any, learn: Any) -> Any:
            while True:
                try:
                    alive.append(time.monotonic())
                    await asyncio.sleep(0.001)
                except asyncio.CancelledError:
                    continue

        monkeypatch.setattr(ScriptedAdapter, "submit", submit)
        executor, inv = make(), call("a")
        executor.order("k", f.Submit(ident(inv), LATER), inv)
        until(lambda: bool(alive), "the send")
        executor.close()
        ended = time.monotonic()
        until(lambda: time.monotonic() > ended + 0.05, "time for one more step")
        assert alive[-1] <= ended

    def test_no_successor_opens_while_a_loop_that_is_blocked_could_still_send(
        self, make: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(executor_module, "CLOSE_TIMEOUT_S", 0.1)
        blocked, release = threading.Event(), threading.Event()

        async def probe(self: Any, inv: Any) -> Any:
            blocked.set()
            release.wait(20)

        monkeypatch.setattr(ScriptedAdapter, "probe", probe)
        place = ("job", "blocked", 0)
        old = incarnations.take_over(place, make)
        inv = call("a")
        old.order("k", f.Probe(ident(inv)), inv)
        assert blocked.wait(10)
        for _ in range(2):
            with pytest.raises(StillSending, match="an adapter blocks it"):
                incarnations.take_over(place, lambda: pytest.fail("opened"))
        release.set()
        monkeypatch.setattr(executor_module, "CLOSE_TIMEOUT_S", 10.0)
        new = incarnations.take_over(place, make)
        assert not old._thread.is_alive()
        incarnations.release(place, new)
