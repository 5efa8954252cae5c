"""A user's own agent: so many calls through the very job that `reattach run` makes of his file.

What a remote does, only its own server could count: so there is no added latency here and no count of
duplicates, but how long calls took, by the outcomes' own stamps. The calls are real ones, in folders of their own.
"""

import json
import statistics
import time
import tomllib
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reattach.models.errors import ConfigError
from reattach.runtime.bench.systems import assigned, reattach_run
from reattach.runtime.bench.trial import LOOK_S, BenchError, outcomes_in
from reattach.runtime.config import OPTIONAL, load_config
from reattach.runtime.processes import Scale, in_session, last_line

OWN_CALLS: Final = 20
_FOLDERS: Final = ("requests", "outcomes", "checkpoints")


@dataclass(frozen=True, slots=True)
class Own:
    """What the calls came to.

    Args:
        calls_per_second: from the first call's first step to the last outcome.
        cpu_s_per_1000: of all the job's processes, their start included, for 1,000 calls.
        call_p50_ms, call_p99_ms: from a call's first step to its outcome.
        requests_per_call: probes and submits; streams and reads of results are not counted.
        failed: calls whose outcome is FAILED.
    """

    system: str
    calls: int
    concurrency: int
    calls_per_second: float
    cpu_s_per_1000: float
    pss_mb: float
    call_p50_ms: float
    call_p99_ms: float
    requests_per_call: float
    failed: int

    def as_json(self) -> dict[str, Any]:
        """The names of `reattach bench --json`, with null for what cannot be known here."""
        unknown = ("run_ms", "latency_p50_ms", "latency_p99_ms", "duplicates_after_kill", "lost_after_kill")
        own = {name: getattr(self, name) for name in self.__slots__}
        rounded = {name: round(value, 2) if isinstance(value, float) else value for name, value in own.items()}
        return {**rounded, **dict.fromkeys(unknown)}


def measure(config: Path, agent: str, message: str, calls: int, folder: Path) -> Own:
    """Make so many calls of an agent, each with the same message.

    Args:
        config: as for `reattach run`; its folders are left alone.
        message: JSON.
        folder: a new one, for all files.

    Raises:
        ConfigError: the file, the agent or the message is not right.
        BenchError: the job did not come to its end.
    """
    known = load_config(config)
    if agent not in known.agents:
        raise ConfigError(f"--agent {agent}: {config} has no such agent; known: {', '.join(known.agents)}")
    try:
        value = json.loads(message)
    except ValueError as error:
        raise ConfigError(f"--message: not JSON ({error}); a text is written '\"hello\"'") from None
    copy = _copy(config, folder)
    _ask(folder / "requests", agent, value, calls)
    with in_session(reattach_run(copy), folder / "own.out") as process:
        scale = Scale(process.pid)
        while process.poll() is None:
            scale.look()
            time.sleep(LOOK_S)
    if process.returncode != 0:
        raise BenchError(f"the job did not come to its end: {last_line(folder / 'own.out')}")
    return _told(agent, folder / "outcomes", calls, known.job.concurrency_max, scale)


def _copy(config: Path, folder: Path) -> Path:
    """The same job over folders of its own."""
    tables = tomllib.loads(config.read_text(encoding="utf-8"))
    job = {name: value for name, value in tables["job"].items() if name not in (*OPTIONAL, "rejects", "logs")}
    job |= {**{name: name for name in _FOLDERS}, "idle_stop": True}
    lines = ["[job]", *assigned(job)]
    for name, table in tables["agents"].items():
        lines += [f"[agents.{json.dumps(name)}]", *assigned(table)]
    (folder / "requests").mkdir(parents=True)
    copy = folder / "job.toml"
    copy.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return copy


def _ask(requests: Path, agent: str, message: Any, calls: int) -> None:
    # The remote remembers the ids of other runs.
    run, now_ms = uuid.uuid4().hex[:8], time.time_ns() // 1_000_000
    rows = [
        {"invocation_id": f"bench-{run}-{number}", "agent": agent, "message": message, "requested_at_ms": now_ms}
        for number in range(calls)
    ]
    (requests / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _told(agent: str, outcomes: Path, calls: int, concurrency: int, scale: Scale) -> Own:
    rows = outcomes_in(outcomes)
    took = sorted(sum(row["spent_ms"].values()) for row in rows)
    began_ms = min(row["finished_at_ms"] - sum(row["spent_ms"].values()) for row in rows)
    span_ms = max(row["finished_at_ms"] for row in rows) - began_ms
    return Own(
        f"reattach, {agent}", calls, concurrency,
        calls_per_second=calls * 1000 / max(1, span_ms),
        cpu_s_per_1000=scale.used_s * 1000 / calls,
        pss_mb=scale.most_mb,
        call_p50_ms=statistics.median(took),
        call_p99_ms=took[int(len(took) * 0.99)],
        requests_per_call=sum(row["attempts"] + row["probes"] for row in rows) / calls,
        failed=sum(row["status"] == "FAILED" for row in rows),
    )  # fmt: skip
