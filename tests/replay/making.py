"""Journals for tests: made by the shipped driver, written as a job writes them, and faults of today's step."""

import base64
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from reattach.fsm.table import TABLE
from reattach.models.answers import Absent, Accepted, Phase, Present
from reattach.models.codec import decode_thread, encode_entry
from reattach.models.events import Ident, ProbeAnswered, Requested, Restored, SubmitAnswered, ThreadEvent
from reattach.models.invocation import Invocation
from reattach.models.journal import JournalEntry
from reattach.models.policy import Terms
from reattach.runtime.driver import Driver
from reattach.runtime.replay.reading import read
from reattach.runtime.replay.report import Report, Row, replay
from tests.fsm.making import OPENED, QUIET, request, terms

KEY = ("agent", "t")


class Host:
    """One thread's storage, the life that owns it, and the journal of all its lives."""

    def __init__(self, of: Terms | None = None) -> None:
        self.terms = of or terms()
        self.now_ms = OPENED
        self.stored: bytes | None = None
        self.entries: list[JournalEntry] = []
        self._lives = 0
        self.open(None)

    def open(self, stored: bytes | None) -> None:
        """Begin another life from stored bytes."""
        self._lives += 1
        self.now_ms += 1
        self.stored = stored
        self.driver = Driver({"agent": self.terms}, incarnation=f"life-{self._lives}", opened_ms=self.now_ms)

    def on(self, event: ThreadEvent, now_ms: int | None = None) -> None:
        self.now_ms = max(self.now_ms, now_ms or 0)
        applied = self.driver.apply(KEY, self.stored, event, self.now_ms)
        self.stored = applied.stored
        self.entries += applied.journal

    def ask(self, name: str = "call-1", **more: int) -> None:
        self.on(Requested(request(name, thread_id="t", **more)), self.now_ms)

    @property
    def holder(self) -> Invocation | None:
        """The record that the thread is busy with or waits for."""
        state = None if self.stored is None else decode_thread(self.stored)
        if state is None:
            return None
        return state.active or (None if state.drain is None else state.drain.invocation)

    @property
    def ident(self) -> Ident:
        holder = self.holder
        assert holder is not None
        return Ident(self.driver.incarnation, holder.id, holder.generation, holder.epoch)

    def submit(self) -> None:
        """Ask for a call, and bring it to running."""
        self.now_ms = max(self.now_ms, self.driver.opened_ms + QUIET - OPENED)
        self.ask()
        self.on(ProbeAnswered(self.ident, Absent("")))
        self.on(SubmitAnswered(self.ident, Accepted("run-1")))

    def probe(self, phase: Phase, result: bytes | None = None) -> None:
        self.on(ProbeAnswered(self.ident, Present(phase, result=result)))


def killed(*, completed: bool = True) -> Host:
    """Running, taken over, completed; then restored from the older checkpoint, and completed again."""
    host = Host()
    host.submit()
    checkpoint = host.stored
    host.open(checkpoint)
    host.on(Restored())
    host.probe(Phase.COMPLETED, b'"done"')
    host.open(checkpoint)
    host.on(Restored())
    if completed:
        host.probe(Phase.COMPLETED, b'"done"')
    return host


def lines_of(entries: Iterable[JournalEntry]) -> bytes:
    return b"".join(base64.b64encode(encode_entry(entry)) + b"\n" for entry in entries)


def replayed(folder: Path, entries: Iterable[JournalEntry], *, until: int = 0) -> tuple[Report, list[Row]]:
    """Write entries to a file and replay it."""
    file = folder / "part-0.journal"
    file.write_bytes(lines_of(entries))
    rows: list[Row] = []
    return replay(read([file]), until=until, on_row=rows.append), rows


def break_guard(monkeypatch: pytest.MonkeyPatch, name: str, answer: bool) -> None:
    """Let one guard of the shipped table always say the same."""
    for leaf, events in TABLE.items():
        broken = {
            event: tuple(
                replace(
                    line,
                    checks=tuple(
                        ((lambda _: answer) if guard == name else check, wanted)
                        for (guard, _), (check, wanted) in zip(line.guards, line.checks, strict=True)
                    ),
                )
                for line in lines
            )
            for event, lines in events.items()
        }
        monkeypatch.setitem(TABLE, leaf, broken)
