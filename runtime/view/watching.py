"""What a running job looks like at one moment: from its journal, which is followed, or from Flink's REST interface.

A journal names the calls, and ends at the latest completed checkpoint. Flink counts calls by their state, as of a
second ago, and names none.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol

from reattach.models.codec import decode_entry
from reattach.models.errors import ConfigError
from reattach.models.lifecycle import Leaf
from reattach.models.terms import terms_of
from reattach.runtime.replay.reading import TRUNCATED, Call, Damage, Held, Journal, files_of, read
from reattach.runtime.run.rest import Rest
from reattach.runtime.run.screen import Rate
from reattach.runtime.view.account import account_of
from reattach.runtime.view.lanes import cause_of, latest_record, since_of, steps_of
from reattach.runtime.view.options import Option

OLDEST_MAX: Final = 8
PEOPLE_MAX: Final = 20
RATE_MS: Final = 60_000
PEOPLE: Final = frozenset({Leaf.SU_PARKED, Leaf.RU_AWAITING_INPUT})
# The same few texts come again and again.
_terms: Final = lru_cache(maxsize=256)(terms_of)
ENDED: Final = frozenset({"FINISHED", "CANCELED", "FAILED"})


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that goes on.

    Args:
        options: orders that it would obey, for calls that wait for people; `wait` is none of them.
    """

    agent: str
    thread_id: str
    invocation_id: str
    leaf: Leaf
    since_ms: int
    cause: str
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """What there is to show.

    Args:
        at_ms: the reader's time.
        until_ms: what is known ends here.
        counts: calls by leaf; of Flink's, those that have ended since the host last started.
        per_s: outcomes, None while that cannot be told.
        oldest: calls that go on, the longest in their state first, of so many as are shown.
        people: calls that wait for people, in the same order; `people_more` are not shown.
        state: Flink's word for the job; "" from a journal.
        notes: what could not be read, or did not answer.
    """

    at_ms: int
    until_ms: int
    counts: dict[Leaf, int]
    per_s: float | None = None
    oldest: tuple[Waiting, ...] = ()
    people: tuple[Waiting, ...] = ()
    people_more: int = 0
    state: str = ""
    notes: tuple[str, ...] = ()


class Source(Protocol):
    """Where a look comes from."""

    def look(self) -> Look: ...


@dataclass(slots=True)
class _Known:
    """One call: all its entries while it goes on, the latest one after that."""

    held: list[Held]
    leaf: Leaf
    since_ms: int
    cause: str = ""


@dataclass(slots=True)
class Follower:
    """Follows journals: reads what is new in them, and keeps what goes on.

    Args:
        paths: files, and folders of `*.journal` files.
        config: the job's file, for the commands.
        clock: the reader's time, in milliseconds.
    """

    paths: Sequence[Path]
    config: str
    clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    _seen: dict[Path, tuple[int, int]] = field(default_factory=dict)
    _damages: dict[Path, list[Damage]] = field(default_factory=dict)
    _calls: dict[Call, _Known] = field(default_factory=dict)
    _first_ms: int = 0
    _until_ms: int = 0

    def look(self) -> Look:
        """Read what has been written since the last look.

        Raises:
            ConfigError: nothing that could be read is an entry, and something is none.
        """
        files, empty = files_of(self.paths)
        for file in files:
            self._read(file)
        damages = [one for file in files for one in self._damages.get(file, ())]
        if not self._until_ms and (bad := [one for one in damages if one.message != TRUNCATED]):
            raise ConfigError(f"{bad[0]}; name what a job with `journal` in its [job] table has written")
        notes = [str(one) for one in (*empty, *damages) if one.message != TRUNCATED]
        if not self._until_ms:
            notes = ["no entry yet: a job writes its journal with its completed checkpoints"]
        going = sorted(
            ((known.since_ms, call) for call, known in self._calls.items() if not known.leaf.terminal),
        )
        people = [call for _, call in going if self._calls[call].leaf in PEOPLE]
        now_ms = self.clock()
        return Look(
            now_ms, self._until_ms,
            counts=dict(Counter(known.leaf for known in self._calls.values())),
            per_s=self._per_s(),
            oldest=tuple(self._waiting(call) for _, call in going[:OLDEST_MAX]),
            people=tuple(self._asking(call, now_ms) for call in people[:PEOPLE_MAX]),
            people_more=max(0, len(people) - PEOPLE_MAX),
            notes=tuple(notes),
        )  # fmt: skip

    def _read(self, file: Path) -> None:
        try:
            found = file.stat()
        except OSError:
            return
        signature = found.st_size, found.st_mtime_ns
        if self._seen.get(file) == signature:
            return
        self._seen[file] = signature
        part = read([file])
        self._damages[file] = part.damages
        self._until_ms = max(self._until_ms, part.latest_ms)
        for call, held in part.calls.items():
            self._add(call, held)

    def _add(self, call: Call, new: Sequence[Held]) -> None:
        old = self._calls[call].held if call in self._calls else []
        # A file that has grown brings what it had before, too.
        held = sorted({one.data: one for one in (*old, *new)}.values(), key=lambda one: one.order)
        entries = [decode_entry(one.data) for one in held]
        first_ms = min(entry.at_ms for entry in entries)
        self._first_ms = min(self._first_ms or first_ms, first_ms)
        leaf = entries[-1].after
        since_ms = since_of(steps_of(entries, (one.state for one in held)))
        cause = "" if leaf.terminal else cause_of(latest_record(entries, _terms))
        self._calls[call] = _Known(held[-1:] if leaf.terminal else held, leaf, since_ms, cause)

    def _per_s(self) -> float | None:
        """Outcomes over the journal's last minute, which is not the reader's."""
        whole_ms = min(RATE_MS, self._until_ms - self._first_ms)
        if whole_ms <= 0:
            return None
        from_ms = self._until_ms - whole_ms
        ended = sum(known.leaf.terminal and known.since_ms >= from_ms for known in self._calls.values())
        return ended * 1_000 / whole_ms

    def _waiting(self, call: Call, options: tuple[Option, ...] = ()) -> Waiting:
        known = self._calls[call]
        return Waiting(*call, known.leaf, known.since_ms, known.cause, options)

    def _asking(self, call: Call, now_ms: int) -> Waiting:
        alone = Journal(calls={call: self._calls[call].held}, latest_ms=self._until_ms)
        return self._waiting(call, account_of(call, alone, now_ms=now_ms, config=self.config).options)


class Asker:
    """Asks Flink's REST interface about one job.

    Args:
        clock: as for `Follower`.
    """

    def __init__(self, rest: Rest, clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._rest, self._clock = rest, clock
        self._rate = Rate()
        self._looks = 0
        self._last = Look(0, 0, {})

    def look(self) -> Look:
        """Ask; where nobody answers, what was known before stays, with a note."""
        now_ms = self._clock()
        health = self._rest.health()
        if not health.state:
            note = "Flink's REST interface does not answer"
            last = self._last
            return Look(now_ms, last.until_ms, last.counts, state=last.state, notes=(note,))
        live, ended = self._rest.live_by_leaf(), self._rest.outcomes()
        counts = {**live, **ended}
        notes = [f"last failure: {health.failure}"] if health.failure and not health.running else []
        if not live and health.running:
            notes.append("the job shows no counts of reattach's (yet): see docs/metrics.md")
        if live.get(Leaf.SU_PARKED) or live.get(Leaf.RU_AWAITING_INPUT):
            notes.append(
                "calls wait for people: reattach watch JOURNAL shows which, and the orders that they would obey"
            )
        self._looks += 1
        rate = self._rate.of(sum(ended.values()))
        per_s = max(0.0, rate) if self._looks > 1 else None
        self._last = Look(now_ms, now_ms, counts, per_s, state=health.state, notes=tuple(notes))
        return self._last
