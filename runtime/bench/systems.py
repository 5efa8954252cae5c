"""What is compared: each a command that takes requests from a folder and leaves outcomes in another."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
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
    """What people read, and the command for a run.

    Args:
        rules: how the agent server behaves: see `reattach.runtime.agent.faults.Rules`.
    """

    name: str
    command: Callable[[Work], list[str]]
    rules: Mapping[str, Any] = field(default_factory=dict)


POLL_LATER_MS: Final = 10
# The demo server shows a POST at once and answers within a second.
_POLICY: Final = {
    "retention_ms": 86_400_000,
    "overlap_ms": 0,
    "admission_ms": 0,
    "submit_validity_ms": 500,
    "submit_timeout_ms": 2_000,
}
_THREAD: Final = "/api/agents/bench/threads/{thread}"
_BY_KEY: Final = {
    "submit": f"{_THREAD}/messages",
    "status": _THREAD,
    "paths": {"handle": "thread_id", "error": "error"},
    "status_map": {"running": "running", "completed": "completed", "failed": "failed", "not_started": "absent"},
    "idempotency": {"header": "", "lifetime_ms": 86_400_000},
}


def _config(
    work: Work,
    *,
    protocol: str = "thread",
    options: Mapping[str, Any] | None = None,
    job: Mapping[str, Any] | None = None,
    **policy: Any,
) -> None:
    """Write the job's file."""
    folders = {name: name for name in ("requests", "outcomes", "checkpoints")}
    agent = {"protocol": protocol, "url": work.url, "options": options or {}, "policy": {**_POLICY, **policy}}
    job_table = {**folders, "concurrency_max": work.concurrency, **(job or {})}
    lines = ["[job]", *assigned(job_table), "[agents.bench]", *assigned(agent)]
    work.config.write_text("\n".join(lines) + "\n", encoding="utf-8")


def assigned(table: Mapping[str, Any]) -> list[str]:
    """Lines of TOML; a table within it is written in one line."""
    return [f"{json.dumps(name)} = {_toml(value)}" for name, value in table.items()]


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(assigned(value)) + " }" if value else "{}"
    return json.dumps(value, ensure_ascii=False)


def _run(work: Work, **settings: Any) -> list[str]:
    _config(work, **settings)
    return reattach_run(work.config)


def reattach_run(config: Path) -> list[str]:
    return [sys.executable, "-m", "reattach", "run", str(config)]


def polling(job: Mapping[str, Any] | None = None, **policy: Any) -> System:
    """This engine, asking for the status when a run should be over.

    Args:
        job: what differs in the job's table.
        policy: what differs in the agent's policy.
    """
    return System("reattach, polling", lambda work: _run(work, job=job, **{**_polls(work), **policy}))


def streaming(**policy: Any) -> System:
    """This engine, following each run's stream."""
    return System("reattach, streaming", lambda work: _run(work, **policy))


def _polls(work: Work) -> Mapping[str, Any]:
    # A little later than the run takes, so that the first poll finds it done.
    poll_ms = work.run_ms + POLL_LATER_MS
    return {"watch": False, "poll_ms": poll_ms, "poll_max_ms": poll_ms, "watch_silence_ms": 60_000}


def _keyed(work: Work) -> list[str]:
    return _run(work, protocol="http_job", options=_BY_KEY, **_polls(work))


def _naive(work: Work) -> list[str]:
    _config(work)
    return [sys.executable, "-m", "reattach.runtime.demo.naive", str(work.config)]


def _floor(client: str, work: Work) -> list[str]:
    numbers = [str(work.concurrency), str(work.run_ms)]
    return [sys.executable, "-m", "reattach.runtime.bench.floor", client, str(work.folder), work.url, *numbers]


SYSTEMS: Final[Mapping[str, System]] = {
    "polling": polling(),
    "keyed": System("reattach, deduplication", _keyed, {"knows_again": True}),
    "streaming": streaming(),
    "floor": System("asyncio + aiohttp (the floor)", partial(_floor, "aiohttp")),
    "same-client": System("asyncio + reattach's client", partial(_floor, "reattach")),
    "naive": System("PyFlink AsyncFunction", _naive),
}
