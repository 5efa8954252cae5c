"""Notices that this process stood still for so long that another may have taken its place.

A TaskManager that is frozen, swapped out or suspended does not know it when it goes on. Its successor has opened
meanwhile, and believes an absence once `overlap_ms` have passed since; whatever the old one sends later breaks that. So
an incarnation that has missed its own beats for half of that time sends nothing any more, and its task starts anew.

What had been written to a socket before leaves by itself, at once; a request whose connection was being made at that
moment is cut by its time limit, if that is first.
"""

import time
from typing import Final

# Below it a busy machine could not be told from a frozen one.
LEAST_S: Final = 1.0
BEATS: Final = 4


class Pulse:
    """Of one incarnation.

    Args:
        overlap_ms: the smallest of its agents', 0 for none: one process is the whole job.
    """

    def __init__(self, overlap_ms: int) -> None:
        self.limit_s = max(overlap_ms / 2_000, LEAST_S) if overlap_ms else 0.0
        self._last = self._now()
        self._slept = False

    @property
    def every_s(self) -> float:
        """Seconds between two beats; 0 for none."""
        return self.limit_s / BEATS

    def beat(self) -> None:
        self._slept = not self.awake
        self._last = self._now()

    @property
    def awake(self) -> bool:
        """No two beats were further apart than allowed, and the last one is not too long ago. Thread-safe."""
        if not self.limit_s:
            return True
        # A suspended machine may stop one clock, and people set the other.
        since = max(now - last for now, last in zip(self._now(), self._last, strict=True))
        return not self._slept and since <= self.limit_s

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.monotonic(), time.time()
