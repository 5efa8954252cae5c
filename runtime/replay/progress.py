"""A bar on the terminal while a long journal is replayed."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

DELAY_S: Final = 0.5
STEP: Final = 500


class Progress:
    """Shows a bar on standard error if that is a terminal and the work takes longer than a moment."""

    def __init__(self, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %")
        self._bars = Bars(
            *columns,
            TimeRemainingColumn(),
            console=console,
            transient=True,
            # What goes into a file must not be drawn above the bar instead.
            redirect_stdout=sys.stdout.isatty(),
            disable=not console.is_terminal,
        )
        self._started_s = time.monotonic()
        self._shown = False

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._bars.stop()

    def reading(self, files: Sequence[Path]) -> Callable[[int], None]:
        """Return what is to be told of bytes that have been read."""
        size = 0
        for file in files:
            with suppress(OSError):
                size += file.stat().st_size
        return self._task("reading", size, 1_000_000)

    def replaying(self, entries: int) -> Callable[[int], None]:
        """Return what is to be told of entries that have been replayed."""
        return self._task("replaying", entries, STEP)

    def supposing(self, crashes: int) -> Callable[[int], None]:
        """Return what is to be told of crashes that have been tried."""
        return self._task("crashing", crashes, 1)

    def _task(self, name: str, total: int, step: int) -> Callable[[int], None]:
        task = self._bars.add_task(name, total=total, start=True)
        waiting = 0

        def advance(count: int) -> None:
            nonlocal waiting
            waiting += count
            if waiting >= step:
                self._show()
                self._bars.advance(task, waiting)
                waiting = 0

        return advance

    def _show(self) -> None:
        if not self._shown and time.monotonic() - self._started_s >= DELAY_S:
            self._shown = True
            self._bars.start()
