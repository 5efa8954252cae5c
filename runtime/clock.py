"""A host's clock: epoch milliseconds that neither run backwards nor stand still."""

import time
from collections.abc import Callable


class SteadyClock:
    """Follows the wall clock; when that is set back, goes on at the pace of the monotonic one.

    A clock that only refused to run backwards would stand still for as long as the wall clock was
    set back, and every limit of a call with it.

    Guarantee: never smaller than before (tests/runtime/test_clock.py).
    """

    def __init__(
        self, wall_ns: Callable[[], int] = time.time_ns, monotonic_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._wall = self._last = wall_ns()
        self._tick = monotonic_ns()

    def now_ms(self) -> int:
        """This clock's time."""
        wall, tick = self._wall_ns(), self._monotonic_ns()
        steady = self._last + max(0, tick - self._tick)
        self._last = wall if wall >= self._last else steady
        self._wall, self._tick = wall, tick
        return self._last // 1_000_000

    def wall_ms(self, at_ms: int) -> int:
        """When the wall clock will show that this clock has reached `at_ms`, as far as known by the last `now_ms`."""
        return at_ms - (self._last - self._wall) // 1_000_000
