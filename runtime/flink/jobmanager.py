"""What Flink's JobManager tells a task over REST: the job's checkpoints, and which attempt is the current one.

Answers come from two caches, of the checkpoints' statistics and of the job's graph. How old they may be stands
in the JobManager's own configuration, which is read when a task opens; then it is also seen whether there
are checkpoints at all.
"""

import asyncio
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

from reattach.adapters import http
from reattach.adapters.body import read_value
from reattach.models.answers import Unknown
from reattach.models.errors import ConfigError
from reattach.runtime.holds import Checkpoints

ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
REQUEST_S: Final = 10.0
APPEAR_S: Final = 10.0
# Flink's own default of `web.refresh-interval`, which the other cache takes over.
STALE_MS: Final = 3_000
# The answer is computed by another thread of the JobManager, which may be late by itself.
MARGIN_S: Final = 0.1
_UNITS_MS: Final = {"": 1, "ms": 1, "s": 1_000, "min": 60_000, "m": 60_000, "h": 3_600_000}
_ALIVE: Final = ("INITIALIZING", "RUNNING")
_WISH: Final = "submit_after = 'checkpoint'"
_REST: Final = "set rest.address and rest.port, or give Host(rest_url=...)"


@dataclass(frozen=True, slots=True)
class Task:
    """Which task asks: as `KeyedBackend.task` gives it."""

    job_id: str
    vertex_id: str
    subtask: int
    attempt: int


class FlinkJobManager:
    """One job's JobManager, for one task.

    Args:
        url: base of its REST interface.
    """

    def __init__(self, url: str, task: Task) -> None:
        self._job = f"{url.rstrip('/')}/jobs/{task.job_id}"
        self._base = url.rstrip("/")
        self._task = task
        self._mine: tuple[Any, ...] | None = None
        self.stale_s = STALE_MS / 1_000 + MARGIN_S

    async def open(self, client: httpx.AsyncClient) -> None:
        settings = await self._get(client, f"{self._base}/jobmanager/config")
        if not isinstance(settings, list):
            raise ConfigError(f"{_WISH}: no answer from Flink's REST at {self._base}; {_REST}")
        told = {one["key"]: one.get("value") for one in settings if isinstance(one, dict) and "key" in one}
        self.stale_s = _stale_ms(told) / 1_000 + MARGIN_S
        if not isinstance(await self._get(client, f"{self._job}/checkpoints/config"), dict):
            raise ConfigError(f"{_WISH}: the job has no checkpoints; set execution.checkpointing.interval")
        # The graph in the cache may be that of before this attempt.
        until = time.monotonic() + self.stale_s + APPEAR_S
        while not (standing := await self._standing(client)):
            if time.monotonic() > until:
                raise ConfigError(
                    f"{_WISH}: Flink's REST at {self._base} does not show this task; the keyed function must be the "
                    "first of its chain"
                )
            await asyncio.sleep(APPEAR_S / 50)
        self._mine = standing

    async def checkpoints(self, client: httpx.AsyncClient) -> Checkpoints | None:
        value = await self._get(client, f"{self._job}/checkpoints")
        history = value.get("history") if isinstance(value, dict) else None
        latest = value.get("latest") if isinstance(value, dict) else None
        if not isinstance(history, list) or not isinstance(latest, dict):
            return None
        newest = completed = 0
        for one in [*history, *latest.values()]:
            number = one.get("id") if isinstance(one, dict) else None
            if isinstance(number, int):
                newest = max(newest, number)
                if one.get("status") == "COMPLETED" and one.get("is_savepoint") is False:
                    completed = max(completed, number)
        return Checkpoints(newest, completed)

    async def mine(self, client: httpx.AsyncClient) -> bool | None:
        standing = await self._standing(client)
        return None if standing is None else standing == self._mine

    async def _standing(self, client: httpx.AsyncClient) -> tuple[Any, ...] | None:
        """What tells this attempt from every other one; () when another is the current one, None without an answer."""
        value = await self._get(client, f"{self._job}/vertices/{self._task.vertex_id}")
        subtasks = value.get("subtasks") if isinstance(value, dict) else None
        for one in subtasks if isinstance(subtasks, list) else ():
            if isinstance(one, dict) and one.get("subtask") == self._task.subtask:
                if one.get("attempt") != self._task.attempt or one.get("status") not in _ALIVE:
                    return ()
                # A JobManager that took over from another counts attempts anew.
                return one.get("attempt"), one.get("start-time"), one.get("taskmanager-id")
        return None

    async def _get(self, client: httpx.AsyncClient, url: str) -> Any:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        try:
            async with asyncio.timeout(REQUEST_S):
                answer = await http.read(client, url, headers, ANSWER_BYTES_MAX)
        except TimeoutError:
            return None
        if not isinstance(answer, http.Reply) or answer.status != 200:
            return None
        value = read_value(answer)
        return None if isinstance(value, Unknown) else value


def _stale_ms(settings: Mapping[str, Any]) -> int:
    """How old the older one of the two caches may get."""
    graph = _span_ms("web.refresh-interval", settings.get("web.refresh-interval", STALE_MS))
    name = "rest.cache.checkpoint-statistics.timeout"
    return max(graph, _span_ms(name, settings[name]) if name in settings else 0)


def _span_ms(name: str, value: Any) -> int:
    """Read a span of time as Flink writes it: `500`, `3 s`, `PT0.5S`.

    Raises:
        ConfigError: it is none that is known here.
    """
    text = str(value).strip()
    plain = re.fullmatch(r"([0-9]{1,12})\s*([a-z]*)", text)
    if plain and plain[2] in _UNITS_MS:
        return int(plain[1]) * _UNITS_MS[plain[2]]
    iso = re.fullmatch(r"PT(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9}(?:\.[0-9]{1,9})?)S)?", text)
    if iso is None or not any(iso.groups()):
        raise ConfigError(f"{_WISH}: Flink's {name} = {text[:40]!a} cannot be read here; write it in ms")
    hours, minutes, seconds = (float(part or 0) for part in iso.groups())
    return math.ceil((hours * 3_600 + minutes * 60 + seconds) * 1_000)
