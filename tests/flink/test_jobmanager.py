"""What the JobManager's REST tells, and what is said when it does not: without a Flink."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

import pytest

from reattach.adapters import http
from reattach.models.errors import ConfigError
from reattach.runtime.flink import jobmanager
from reattach.runtime.flink.jobmanager import FlinkJobManager, Task
from reattach.runtime.holds import Checkpoints

T = TypeVar("T")
TASK = Task("job", "vertex", 1, 2)
MINE = {"subtask": 1, "attempt": 2, "status": "RUNNING", "start-time": 77, "taskmanager-id": "tm-1"}
OTHER = {**MINE, "subtask": 0, "attempt": 9}


def answers(*subtasks: Any, checkpoints: Any = None, **settings: str) -> dict[str, Any]:
    return {
        "/jobmanager/config": [{"key": key.replace("__", "-").replace("_", "."), "value": value}
                               for key, value in settings.items()],
        "/jobs/job/checkpoints/config": {"interval": 1000},
        "/jobs/job/checkpoints": checkpoints,
        "/jobs/job/vertices/vertex": {"subtasks": list(subtasks)},
    }  # fmt: skip


@contextmanager
def rest(told: Mapping[str, Any]) -> Iterator[str]:
    """A server that answers these paths; None is a 404."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            value = told.get(self.path)
            body = json.dumps(value).encode()
            self.send_response(404 if value is None else 200)
            self.send_header("Content-Type", "application/json; charset=UTF-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ask(url: str, work: Callable[[FlinkJobManager, Any], Awaitable[T]]) -> T:
    async def main() -> T:
        async with http.open_client() as client:
            return await work(FlinkJobManager(url, TASK), client)

    return asyncio.run(main())


async def opened(manager: FlinkJobManager, client: Any) -> FlinkJobManager:
    await manager.open(client)
    return manager


@pytest.mark.parametrize(
    ("settings", "stale_s"),
    [
        ({}, 3.0),
        ({"web_refresh__interval": "500"}, 0.5),
        ({"web_refresh__interval": "2 s"}, 2.0),
        ({"web_refresh__interval": "PT0.25S"}, 0.25),
        ({"web_refresh__interval": "PT1M2S"}, 62.0),
        ({"web_refresh__interval": "100ms", "rest_cache_checkpoint__statistics_timeout": "1min"}, 60.0),
        ({"web_refresh__interval": "3000", "rest_cache_checkpoint__statistics_timeout": "10"}, 3.0),
    ],
)
def test_how_old_an_answer_may_be_stands_in_its_configuration(settings: dict[str, str], stale_s: float) -> None:
    with rest(answers(OTHER, MINE, **settings)) as url:
        assert ask(url, opened).stale_s == stale_s + jobmanager.MARGIN_S


def test_a_span_that_cannot_be_read_is_not_guessed() -> None:
    with (
        rest(answers(MINE, web_refresh__interval="1 fortnight")) as url,
        pytest.raises(ConfigError, match="web.refresh-interval = '1 fortnight' cannot be read"),
    ):
        ask(url, opened)


def test_what_is_wrong_at_the_start_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobmanager, "APPEAR_S", 0.0)
    with rest({}) as url, pytest.raises(ConfigError, match="no answer from Flink's REST at .*; set rest.address"):
        ask(url, opened)
    with (
        rest({**answers(MINE), "/jobs/job/checkpoints/config": None}) as url,
        pytest.raises(ConfigError, match="the job has no checkpoints; set execution.checkpointing.interval"),
    ):
        ask(url, opened)
    quick = {"web_refresh__interval": "1"}
    for shown in ([], [OTHER], [{**MINE, "attempt": 1}], [{**MINE, "status": "SCHEDULED"}]):
        with rest(answers(*shown, **quick)) as url, pytest.raises(ConfigError, match="does not show this task"):
            ask(url, opened)


def test_nobody_there_is_said_as_well() -> None:
    with rest({}) as url:
        gone = url
    with pytest.raises(ConfigError, match="no answer from Flink's REST"):
        ask(gone, opened)


def entry(number: int, status: str = "COMPLETED", savepoint: bool = False) -> dict[str, Any]:
    return {"id": number, "status": status, "is_savepoint": savepoint}


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ({"history": [], "latest": {"completed": None}}, Checkpoints(0, 0)),
        ({"history": [entry(5, "IN_PROGRESS"), entry(4)], "latest": {"completed": entry(4)}}, Checkpoints(5, 4)),
        ({"history": [entry(6, savepoint=True), entry(5, "FAILED"), entry(4)], "latest": {}}, Checkpoints(6, 4)),
        ({"history": [], "latest": {"completed": entry(9), "restored": {"id": 8}}}, Checkpoints(9, 9)),
        ({"history": {}, "latest": {}}, None),
        ({"latest": {}}, None),
        ("x", None),
        (None, None),
    ],
)  # fmt: skip
def test_the_numbers_of_checkpoints(told: Any, found: Checkpoints | None) -> None:
    with rest(answers(MINE, checkpoints=told)) as url:
        assert ask(url, lambda manager, client: manager.checkpoints(client)) == found


@pytest.mark.parametrize(
    ("later", "mine"),
    [
        (MINE, True),
        ({**MINE, "attempt": 3}, False),
        ({**MINE, "status": "CANCELING"}, False),
        # A JobManager that took over counts attempts anew.
        ({**MINE, "start-time": 99}, False),
        ({**MINE, "taskmanager-id": "tm-2"}, False),
        (OTHER, None),
        ({}, None),
    ],
)
def test_an_attempt_is_ours_while_nothing_about_it_has_changed(later: Any, mine: bool | None) -> None:
    told = answers(MINE, web_refresh__interval="1")

    async def work(manager: FlinkJobManager, client: Any) -> bool | None:
        await manager.open(client)
        told["/jobs/job/vertices/vertex"] = {"subtasks": [later]}
        return await manager.mine(client)

    with rest(told) as url:
        assert ask(url, work) is mine
