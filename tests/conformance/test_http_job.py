"""The conformance kit against `http_job` and the server of its example: looked up by a list, and with a key."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from reattach.runtime.config import load_config
from reattach.testing import CONFORMANCE_POLICY, AdapterConformance, Target, count_lines
from tests.e2e.harness import Process, until

EXAMPLE = Path(__file__).parents[2] / "examples" / "http_job"
# The log names a job by its reference, and the kit asks for it by the call's id.
BY_ID: dict[str, Any] = {"body": {"ref": "{marker}", "input": "{message}"}}


def message(call_id: str, kind: str) -> Any:
    return {"call": call_id} if kind in ("quick", "slow") else None


@contextmanager
def job_service(folder: Path, agent: str, **options: Any) -> Iterator[Target]:
    log = folder / "server.jsonl"
    command = [sys.executable, str(EXAMPLE / "server.py"), "--port", "0", "--log", str(log), "--seconds", "0.5"]
    server = Process(command, folder / "server.out")
    try:
        url = until(lambda: server.text().partition("listening on ")[2].strip(), "the server").split()[0]
        yield Target(
            protocol="http_job",
            url=url,
            options={**load_config(EXAMPLE / "job.toml").agents[agent].options, **BY_ID, **options},
            executions=lambda call_id: count_lines(log, f'"started": "{call_id}"'),
            message=message,
            owns=lambda result, call_id: json.loads(result)["echo"] == {"call": call_id},
            policy=replace(CONFORMANCE_POLICY, admission_ms=500),
            learns_from="head",
            believes_2xx=True,
            # Each stream counts for itself, from the event that it is to follow.
            cursor_exact=False,
        )
    finally:
        server.kill()


class TestWithKey(AdapterConformance):
    @classmethod
    @contextmanager
    def serve(cls, folder: Path) -> Iterator[Target]:
        with job_service(folder, "keyed") as target:
            yield target


class TestByList(AdapterConformance):
    @classmethod
    @contextmanager
    def serve(cls, folder: Path) -> Iterator[Target]:
        with job_service(folder, "listed", list="/jobs?ref={marker}") as target:
            yield target


class TestByHandleAlone(AdapterConformance):
    """Neither keys nor a list: what nobody can tell is never claimed."""

    @classmethod
    @contextmanager
    def serve(cls, folder: Path) -> Iterator[Target]:
        with job_service(folder, "keyed") as target:
            options = {name: value for name, value in target.options.items() if name != "idempotency"}
            yield replace(target, options=options)
