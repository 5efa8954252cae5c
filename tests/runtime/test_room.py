"""Backpressure: who brings new calls waits while as many orders wait as may."""

import threading
import time
from typing import Any

import pytest

from reattach.models import effects as f
from reattach.runtime import executor as module
from reattach.runtime.executor import Executor
from tests.runtime.scripted import Script, call, ident, until


def fill(executor: Executor, script: Script, count: int) -> None:
    """One order under way, and so many more than its slot takes."""
    script.gate.clear()
    for number in range(count + 1):
        inv = call(f"call-{number}")
        executor.order(inv.id, f.Probe(ident(inv)), inv)
    until(lambda: executor.in_flight == 1 and executor.backlog == count, "one under way, the others waiting")


def brought(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> threading.Thread:
    """Somebody who wants to bring a call, and was seen to wait."""
    looked = threading.Event()
    sleep = time.sleep

    def look(seconds: float) -> None:
        looked.set()
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", look)
    thread = threading.Thread(target=executor.wait_for_room)
    thread.start()
    assert looked.wait(20)
    return thread


def test_there_is_room_below_the_limit(make: Any, script: Script) -> None:
    executor = make(concurrency_max=1, backlog_max=3)
    fill(executor, script, 2)
    assert executor.room
    executor.wait_for_room()


def test_who_has_to_wait_goes_on_when_one_has_begun(make: Any, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROOM_S", 3_600.0)
    executor = make(concurrency_max=1, backlog_max=2)
    fill(executor, script, 2)
    thread = brought(executor, monkeypatch)
    script.gate.set()
    thread.join(20)
    assert not thread.is_alive()


def test_nobody_waits_for_ever(make: Any, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints and timers of the task wait as well."""
    monkeypatch.setattr(module, "ROOM_S", 0.01)
    executor = make(concurrency_max=1, backlog_max=2)
    fill(executor, script, 2)
    executor.wait_for_room()
    assert not executor.room


def test_nobody_waits_for_one_that_ends(make: Any, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROOM_S", 3_600.0)
    executor = make(concurrency_max=1, backlog_max=2)
    fill(executor, script, 2)
    thread = brought(executor, monkeypatch)
    executor.abandon()
    thread.join(20)
    assert not thread.is_alive()
