"""What people are told about the host itself, and about no call in particular: lines of the notices output."""

from collections.abc import Iterator
from typing import Final

from reattach.runtime import records
from reattach.runtime.executor import Executor

# So long without an answer from the JobManager, and again after each further time.
UNHEARD_S: Final = 30.0


class Alarms:
    """Of one incarnation."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._warn_at_s = UNHEARD_S
        self._down: set[str] = set()

    def raised(self) -> Iterator[str]:
        """What has come up since the last call."""
        yield from self._unheard()
        yield from self._breakers()

    def _unheard(self) -> Iterator[str]:
        """Calls are held, and nobody says which checkpoints have completed."""
        unheard_s = self._executor.unheard_s
        if unheard_s >= self._warn_at_s:
            self._warn_at_s = unheard_s + UNHEARD_S
            yield records.unheard_json(int(unheard_s))
        elif unheard_s < UNHEARD_S:
            self._warn_at_s = UNHEARD_S

    def _breakers(self) -> Iterator[str]:
        """Each one that has opened or closed."""
        down = self._executor.down
        for agent in sorted(down.keys() - self._down):
            yield records.down_json(agent, down[agent])
        for agent in sorted(self._down - down.keys()):
            yield records.up_json(agent)
        self._down = set(down)
