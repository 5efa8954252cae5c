"""What people write: one asynchronous callable that sends the message and waits for the answer.

The counterpart of the demonstration, with everything else equal: the same source, sink, checkpoints,
restarts and thread ids. It is the textbook use of PyFlink's asynchronous I/O, and it is not careless:
the thread's id is fixed by the input, so a second POST while the first run is going on does no harm,
and outcomes are committed exactly once. But after a crash the only move it has is to run the callable
again, and a run that has ended meanwhile is then started a second time. Its HTTP client is the engine's
own, so that the two differ in nothing else.
"""

import asyncio
import json
import time
from pathlib import Path
from typing import Any, Final

import httpx
from pyflink.common import Configuration, JobClient, Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, RuntimeContext, StreamExecutionEnvironment

from reattach.adapters.contract import AgentConfig
from reattach.adapters.http import open_client
from reattach.models.identity import marker_of, thread_id_of
from reattach.models.lifecycle import Status
from reattach.models.outcomes import Outcome
from reattach.models.request import Request, parse_request
from reattach.runtime.config import RunConfig
from reattach.runtime.flink.job import commit, flink_settings, request_lines
from reattach.runtime.records import outcome_json

POLL_S: Final = 0.2
CALL_LIMIT_S: Final = 300


class Call(AsyncFunction):
    """POST, then ask until it is done."""

    def __init__(self, agents: dict[str, AgentConfig], capacity: int) -> None:
        self._agents = agents
        self._capacity = capacity

    def open(self, runtime_context: RuntimeContext) -> None:
        self._client: httpx.AsyncClient | None = None

    async def async_invoke(self, value: bytes) -> list[str]:
        request = parse_request(value, message_bytes_max=1024 * 1024)
        if self._client is None:
            self._client = open_client(connections_max=self._capacity)
        thread = thread_id_of(request, 1)
        url = f"{self._agents[request.agent].url}/api/agents/{request.agent}/threads/{thread}"
        message = {"message": json.loads(request.message), "message_id": marker_of(request.invocation_id, 1)}
        (await self._client.post(f"{url}/messages", json=message)).raise_for_status()
        while True:
            await asyncio.sleep(POLL_S)
            answer = (await self._client.get(url)).raise_for_status().json()
            if answer["status"] in ("completed", "failed"):
                break
        return [_outcome_json(request, thread, json.dumps(answer.get("result")).encode())]


def _outcome_json(request: Request, thread: str, result: bytes) -> str:
    outcome = Outcome(
        request.invocation_id, request.agent, thread, 1, Status.COMPLETED, result, None, "", 1, 0, (0, 0, 0),
        time.time_ns() // 1_000_000,
    )  # fmt: skip
    return outcome_json(outcome)


def submit(config: RunConfig, *, resume_from: Path | None, rest_port: int, lineage: bool) -> JobClient:  # noqa: ARG001
    """Build the job and start it; see `reattach.runtime.flink.job.submit`. What came before means nothing to it."""
    settings: dict[str, Any] = flink_settings(config, resume_from=resume_from, rest_port=rest_port)
    # Flink refuses asynchronous functions in thread mode.
    settings["python.execution-mode"] = "process"
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    answers = AsyncDataStream.unordered_wait(
        request_lines(environment, config.job),
        Call(dict(config.agents), config.job.concurrency_max),
        Time.seconds(CALL_LIMIT_S),
        config.job.concurrency_max,
        Types.STRING(),
    )
    commit(answers.uid("calls"), config.job.outcomes, "outcomes", ".jsonl")
    return environment.execute_async(config.job.name)
