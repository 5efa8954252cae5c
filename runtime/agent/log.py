"""The agent server's log: written as things happen, replayed after a restart, counted by tests.

One JSON object per line, written by one `write` to a descriptor opened for appending: a record that
was written survives the death of the process. Only the last line can be torn.
"""

import json
import os
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

Record = dict[str, Any]

_ENCODE: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


class Log:
    """An append-only file of records.

    Args:
        path: created when missing; what is there stays.
        sync: also force every record to the disk, to survive the death of the machine.
    """

    def __init__(self, path: Path, *, sync: bool = False) -> None:
        self._fd = os.open(path, os.O_APPEND | os.O_CREAT | os.O_RDWR, 0o644)
        self._sync = sync
        size = os.fstat(self._fd).st_size
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            # The process died within its last write: that record never happened, the next starts a line.
            os.write(self._fd, b"\n")

    def write(self, kind: str, **fields: Any) -> None:
        """Append one record, stamped with the time."""
        line = _ENCODE({"kind": kind, "at_ms": wall_ms(), **fields}) + "\n"
        os.write(self._fd, line.encode("utf-8", "backslashreplace"))
        if self._sync:
            os.fsync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


def read_log(path: Path) -> Iterator[Record]:
    """Yield the records of a log, also of one that is being written; torn lines are skipped."""
    with path.open("rb") as file:
        for line in file:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and "kind" in record and "at_ms" in record:
                yield record


@dataclass(slots=True)
class Call:
    """What the server saw of one message id."""

    posts: int = 0
    posted_ms: list[int] = field(default_factory=list)
    turns: int = 0
    started_ms: int = 0
    ended_ms: int = 0
    thread: str = ""


@dataclass(frozen=True, slots=True)
class LogSummary:
    """The server's view of a job.

    Args:
        calls: different message ids that were POSTed.
        posts: POSTs that arrived, whatever became of them.
        turns: runs that were started.
        duplicates: turns beyond the first of a message id.
        lost: expected ids for which no run was started.
        unfinished: runs that were started and have not ended.
        reads: status requests; streams: streams opened.
        by_id: the details, by message id.
    """

    calls: int
    posts: int
    turns: int
    duplicates: int
    lost: int
    unfinished: int
    reads: int
    streams: int
    by_id: dict[str, Call]
    _seen: tuple[tuple[str, int, str], ...] = ()

    @classmethod
    def of(cls, records: Iterable[Record], expected: Collection[str] = ()) -> "LogSummary":
        """Count records.

        Args:
            expected: the message ids that should have been accepted.
        """
        by_id: dict[str, Call] = {}
        open_turns: dict[tuple[str, str, int], Call] = {}
        seen: list[tuple[str, int, str]] = []
        posts = turns = streams = unfinished = 0
        for record in records:
            kind = record["kind"]
            if kind == "post":
                posts += 1
                call = by_id.setdefault(record["id"], Call(thread=record["thread"]))
                call.posts += 1
                call.posted_ms.append(record["at_ms"])
            elif kind == "turn":
                turns += 1
                unfinished += 1
                call = by_id.setdefault(record["id"], Call(thread=record["thread"]))
                call.turns += 1
                call.started_ms = call.started_ms or record["at_ms"]
                open_turns[record["agent"], record["thread"], record["turn"]] = call
            elif kind == "end":
                ended = open_turns.pop((record["agent"], record["thread"], record["turn"]), None)
                if ended is not None:
                    unfinished -= 1
                    ended.ended_ms = record["at_ms"]
            elif kind == "read":
                seen.append((record["thread"], record["at_ms"], record["status"]))
            elif kind == "stream":
                streams += 1
        duplicates = sum(max(0, call.turns - 1) for call in by_id.values())
        lost = sum(1 for one in set(expected) if one not in by_id or not by_id[one].turns)
        calls = sum(1 for call in by_id.values() if call.posts)
        return cls(calls, posts, turns, duplicates, lost, unfinished, len(seen), streams, by_id, tuple(seen))

    @classmethod
    def of_file(cls, path: Path, expected: Collection[str] = ()) -> "LogSummary":
        return cls.of(read_log(path), expected) if path.exists() else cls.of((), expected)

    def reattached(self, crash_ms: int) -> int:
        """Count the runs that were going on at a crash, were asked about after it, and were not sent again."""
        asked = {thread for thread, at_ms, _ in self._seen if at_ms >= crash_ms}
        return sum(1 for call in self._at(crash_ms) if call.thread in asked and not self._sent_after(call, crash_ms))

    def read_after_crash(self, crash_ms: int) -> int:
        """Count the runs that were started before a crash and whose result was read only after it."""
        before = {thread for thread, at_ms, status in self._seen if at_ms < crash_ms and status == "completed"}
        after = {thread for thread, at_ms, status in self._seen if at_ms >= crash_ms and status == "completed"}
        return sum(
            1
            for call in self.by_id.values()
            if 0 < call.started_ms < crash_ms and call.thread in after and call.thread not in before
        )

    def _at(self, at_ms: int) -> Iterator[Call]:
        for call in self.by_id.values():
            if 0 < call.started_ms < at_ms and not 0 < call.ended_ms < at_ms:
                yield call

    @staticmethod
    def _sent_after(call: Call, at_ms: int) -> bool:
        return any(posted_ms >= at_ms for posted_ms in call.posted_ms)
