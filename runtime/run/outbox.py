"""The outcomes folder: what has been committed. Flink's sink shows a file only when it is final."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from reattach.runtime.run.inbox import Call, visible_files


class Outbox:
    """Reads an outcomes folder again and again; each committed file once.

    `by_status` and `failures` count calls, not lines: restoring an older checkpoint may make the
    job write an outcome again, equal to the first one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: set[Path] = set()
        self._done: dict[Call, tuple[int, bool]] = {}
        self._missing: dict[Call, int] = {}
        self.lines = 0
        self.by_status: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()

    def scan(self) -> int:
        """Read the files that are new; returns how many outcomes they hold."""
        before = self.lines
        for path in visible_files(self._folder):
            if path in self._read:
                continue
            self._read.add(path)
            for line in path.read_bytes().splitlines():
                if line.strip():
                    self._take(json.loads(line))
        return self.lines - before

    @property
    def calls(self) -> int:
        return self.by_status.total()

    @property
    def missing(self) -> int:
        """How many calls are expected and have no outcome yet."""
        return len(self._missing)

    def expect(self, calls: Mapping[Call, int]) -> None:
        """Add calls that were asked for, by the highest generation that was."""
        for call, generation in calls.items():
            if not self._answers(call, generation):
                self._missing[call] = max(generation, self._missing.get(call, 1))

    def _answers(self, call: Call, generation: int) -> bool:
        done, completed = self._done.get(call, (0, False))
        # A later generation is asked for to try a failed call again; a completed one stays so.
        return done > 0 and (done >= generation or completed)

    def _take(self, outcome: Mapping[str, object]) -> None:
        self.lines += 1
        agent, name, thread = str(outcome["agent"]), str(outcome["invocation_id"]), str(outcome["thread_id"])
        generation = outcome["generation"]
        assert isinstance(generation, int)
        if self._done.get((agent, name, thread), (0, False))[0] >= generation:
            return
        # A request may leave its thread open, an outcome names the one that was used.
        for call in ((agent, name, thread), (agent, name, "")):
            self._done[call] = max((generation, outcome["status"] == "COMPLETED"), self._done.get(call, (0, False)))
            if call in self._missing and self._answers(call, self._missing[call]):
                del self._missing[call]
        self.by_status[str(outcome["status"])] += 1
        failure = outcome.get("failure")
        if isinstance(failure, dict):
            self.failures[str(failure.get("code"))] += 1
