"""The conformance kit against the shipped `thread` adapter and the demo server: one call per thread, and several."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from reattach.runtime.agent.log import read_log
from reattach.testing import CONFORMANCE_POLICY, AdapterConformance, Target
from tests.agent.serving import serving

RUN = ("--latency", "300ms", "--progress-ms", "50")
FAILS = {"fail_run": 1.0, "match": "failing", "times": 0}


def message(call_id: str, kind: str) -> Any:
    """The server knows a call to fail by its id, and its runs all take as long as a slow one."""
    return None if kind == "asking" else {"call": call_id}


@contextmanager
def thread_server(folder: Path, **options: Any) -> Iterator[Target]:
    log = folder / "agent.log"

    def executions(call_id: str) -> int:
        return sum(record["kind"] == "turn" and record["id"] == call_id for record in read_log(log))

    with serving(log, *RUN, "--rules", json.dumps(FAILS)) as server:
        yield Target(
            protocol="thread",
            url=server.url,
            options=options,
            executions=executions,
            message=message,
            owns=lambda result, call_id: json.loads(result)["echo"] == {"call": call_id},
            believes_2xx=True,
            # It shows at once what it has read.
            policy=replace(CONFORMANCE_POLICY, admission_ms=500),
        )


class TestOneCallPerThread(AdapterConformance):
    @classmethod
    @contextmanager
    def serve(cls, folder: Path) -> Iterator[Target]:
        with thread_server(folder) as target:
            yield target


class TestSeveralCallsPerThread(AdapterConformance):
    @classmethod
    @contextmanager
    def serve(cls, folder: Path) -> Iterator[Target]:
        with thread_server(folder, marker="message_ids") as target:
            yield target


class TestOverHttpx(AdapterConformance):
    """Without the extra `fast` requests go over httpx's own pool."""

    @classmethod
    @contextmanager
    def serve(cls, folder: Path) -> Iterator[Target]:
        with thread_server(folder) as target:
            yield replace(target, carrier="httpx")
