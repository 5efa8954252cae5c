"""What is compared: each a command that takes requests from a folder and leaves outcomes in another."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Work:
    """One measured run.

    Args:
        folder: of `requests`, `outcomes` and everything else of this run.
        url: of the agent server.
        calls: how many.
        concurrency: requests in flight at most.
        run_ms: how long the agent takes for each.
    """

    folder: Path
    url: str
    calls: int
    concurrency: int
    run_ms: int

    @property
    def config(self) -> Path:
        return self.folder / "job.toml"


@dataclass(frozen=True, slots=True)
class System:
    """What people read, and the command for a run."""

    name: str
    command: Callable[[Work], list[str]]


POLL_LATER_MS: Final = 10


def _config(work: Work, **policy: Any) -> None:
    """Write the job's file: the demo server shows a POST at once and answers within a second."""
    settings = {
        "retention_ms": 86_400_000, "overlap_ms": 0, "admission_ms": 0,
        "submit_validity_ms": 500, "submit_timeout_ms": 2_000, **policy,
    }  # fmt: skip
    lines = [
        "[job]", 'requests = "requests"', 'outcomes = "outcomes"', 'checkpoints = "checkpoints"',
        f"concurrency_max = {work.concurrency}",
        "[agents.bench]", 'protocol = "thread"', f'url = "{work.url}"', "[agents.bench.policy]",
        *(f"{name} = {str(value).lower()}" for name, value in settings.items()),
    ]  # fmt: skip
    work.config.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _polled(work: Work) -> list[str]:
    # A little later than the run takes, so that the first poll finds it done.
    poll_ms = work.run_ms + POLL_LATER_MS
    _config(work, watch=False, poll_ms=poll_ms, poll_max_ms=poll_ms, watch_silence_ms=60_000)
    return [sys.executable, "-m", "reattach", "run", str(work.config)]


def _streamed(work: Work) -> list[str]:
    _config(work)
    return [sys.executable, "-m", "reattach", "run", str(work.config)]


def _naive(work: Work) -> list[str]:
    _config(work)
    return [sys.executable, "-m", "reattach.runtime.demo.naive", str(work.config)]


def _floor(work: Work) -> list[str]:
    numbers = [str(work.concurrency), str(work.run_ms)]
    return [sys.executable, "-m", "reattach.runtime.bench.floor", str(work.folder), work.url, *numbers]


SYSTEMS: Final[Mapping[str, System]] = {
    "polling": System("reattach, polling", _polled),
    "streaming": System("reattach, streaming", _streamed),
    "floor": System("asyncio + aiohttp (the floor)", _floor),
    "naive": System("PyFlink AsyncFunction", _naive),
}
