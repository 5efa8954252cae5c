"""What a run shows: one live line on a terminal, plain lines where there is none."""

import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from reattach.runtime.run.runner import Snapshot

PLAIN_S: Final = 5.0
RATE_SPAN_S: Final = 10.0


class Rate:
    """Outcomes per second over the last ten seconds."""

    def __init__(self) -> None:
        self._marks: list[tuple[float, int]] = []

    def of(self, count: int) -> float:
        now = time.monotonic()
        self._marks.append((now, count))
        while len(self._marks) > 2 and now - self._marks[0][0] > RATE_SPAN_S:
            self._marks.pop(0)
        since, before = self._marks[0]
        span = now - since
        return (count - before) / span if span > 0 else 0.0


class LiveScreen:
    """A progress bar with the calls by status, redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=4, transient=True)
        self._rate = Rate()

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def say(self, line: str) -> None:
        self._live.console.print(line, markup=False, highlight=False)

    def update(self, snapshot: Snapshot) -> None:
        done = snapshot.wanted - snapshot.missing
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            Text(snapshot.phase, style="bold"),
            ProgressBar(total=max(1, snapshot.wanted), completed=done, width=30),
            Text(f"{done}/{snapshot.wanted}"),
            Text(f"{self._rate.of(done):.1f}/s", style="dim"),
        )
        lines: list[RenderableType] = [bar, Text(statuses(snapshot), style="dim")]
        if snapshot.failure and snapshot.phase != "running":
            lines.append(Text(f"last failure: {snapshot.failure}", style="yellow"))
        self._live.update(Group(*lines))


class PlainScreen:
    """A line when something has changed, at most one every five seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rate = Rate()
        self._said_s = 0.0
        self._last: Snapshot | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def update(self, snapshot: Snapshot) -> None:
        done = snapshot.wanted - snapshot.missing
        rate = self._rate.of(done)
        fresh = self._last is None or snapshot.phase != self._last.phase or snapshot.failure != self._last.failure
        if snapshot == self._last or (not fresh and time.monotonic() - self._said_s < PLAIN_S):
            return
        self._last, self._said_s = snapshot, time.monotonic()
        failure = f"; last failure: {snapshot.failure}" if snapshot.failure and snapshot.phase != "running" else ""
        self.say(f"{snapshot.phase}: {done}/{snapshot.wanted} done, {rate:.1f}/s; {statuses(snapshot)}{failure}")


def statuses(snapshot: Snapshot) -> str:
    """All calls by status, in the order of the lifecycle."""
    counts = {**snapshot.live, **snapshot.by_status}
    parts = [f"{name} {counts[name]}" for name in counts if counts[name]]
    if snapshot.rejected:
        parts.append(f"rejected lines {snapshot.rejected}")
    parts.append(f"checkpoints {snapshot.checkpoints}")
    return " · ".join(parts)


def screen_for(console: Console) -> LiveScreen | PlainScreen:
    return LiveScreen(console) if console.is_terminal else PlainScreen(console)
