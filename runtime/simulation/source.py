"""The input of a simulated job: a log that keeps everything and can be read again from any place."""

from collections.abc import Callable
from typing import NamedTuple

from reattach.models.events import ThreadEvent
from reattach.runtime.driver import Key


class Line(NamedTuple):
    """One record of the input.

    Args:
        at_ms: nobody can read it before.
    """

    at_ms: int
    key: Key
    event: ThreadEvent


class Source:
    """Requests, and the orders of people that come in while the job runs."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.on_line: Callable[[], None] = lambda: None

    def append(self, line: Line) -> None:
        """Add a record at the end; it is never earlier than the one before."""
        if self.lines and line.at_ms < self.lines[-1].at_ms:
            line = line._replace(at_ms=self.lines[-1].at_ms)
        self.lines.append(line)
        self.on_line()
