"""The virtual clock, and the one queue of everything that is going to happen."""

import heapq
from collections.abc import Callable
from typing import Any


class Clock:
    """Time passes only by what happens next.

    What is due at the same instant happens in the order in which it was asked for, so a seed fixes
    the whole history.
    """

    def __init__(self, start_ms: int) -> None:
        self.now_ms = start_ms
        self._queue: list[tuple[int, int, Callable[..., object], tuple[Any, ...]]] = []
        self._asked = 0

    def at(self, when_ms: int, act: Callable[..., object], *arguments: Any) -> None:
        """Let something happen then, or now if that has passed."""
        self._asked += 1
        heapq.heappush(self._queue, (max(when_ms, self.now_ms), self._asked, act, arguments))

    def step(self) -> bool:
        """Let the next thing happen; False when nothing is to come."""
        if not self._queue:
            return False
        self.now_ms, _, act, arguments = heapq.heappop(self._queue)
        act(*arguments)
        return True

    def until(self, at_ms: int) -> None:
        """Let everything happen that happens before then; the clock may stop at something a little later."""
        while self.now_ms < at_ms and self.step():
            pass
