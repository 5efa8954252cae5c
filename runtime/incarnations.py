"""Whose loop is alive in this interpreter: a new incarnation ends the old one's before it begins.

A restarted task may find itself in the same process as its predecessor, whose loop nobody closed
and which would go on sending. The registry knows each by its place in the job.
"""

import threading
from collections.abc import Callable

from reattach.runtime.executor import Executor

Place = tuple[str, str, int]

_open: dict[Place, Executor] = {}
_lock = threading.Lock()


def take_over(place: Place, make: Callable[[], Executor]) -> Executor:
    """End whoever holds the place, then make the new holder.

    Args:
        place: job id, operator id, index of the subtask.

    Raises:
        StillSending: the old holder does not end; it keeps the place, and nothing was made.
    """
    with _lock:
        old = _open.get(place)
        if old is not None:
            old.close()
        # Those of jobs that were cancelled end by themselves (`Executor.abandon`).
        for other in [one for one, executor in _open.items() if executor.ended]:
            del _open[other]
        new = make()
        _open[place] = new
        return new


def release(place: Place, executor: Executor) -> None:
    """Close an executor, and forget it if it still holds the place."""
    executor.close()
    with _lock:
        if _open.get(place) is executor:
            del _open[place]
