"""The conformance kit against `openai_responses` and the stand-in for its API, streamed and polled."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from reattach.models.policy import SubmitAfter
from reattach.testing import CONFORMANCE_POLICY, AdapterConformance, Target, count_lines
from tests.e2e.harness import Process, until

WORDS = {"quick": "", "slow": " @1200ms", "failing": " @fail"}


def message(call_id: str, kind: str) -> Any:
    return call_id + WORDS[kind] if kind in WORDS else None


@contextmanager
def service(folder: Path, **options: Any) -> Iterator[Target]:
    log = folder / "service.jsonl"
    command = [sys.executable, "-m", "tests.servers.openai_fake", "--port", "0", "--log", str(log)]
    server = Process(command, folder / "service.out", cwd=Path(__file__).parents[2])
    try:
        url = until(lambda: server.text().partition("listening on ")[2].strip(), "the service").split()[0]
        yield Target(
            protocol="openai_responses",
            url=url,
            options={"model": "m-1", **options},
            executions=lambda call_id: count_lines(log, '"accepted"', f'"{call_id}"'),
            message=message,
            owns=lambda result, call_id: call_id.encode() in result,
            policy=replace(CONFORMANCE_POLICY, submit_after=SubmitAfter.CHECKPOINT),
            learns_from="body" if options.get("stream") is False else "first_event",
        )
    finally:
        server.kill()


class TestStreamed(AdapterConformance):
    @classmethod
    @contextmanager
    def serve(cls, folder: Path) -> Iterator[Target]:
        with service(folder) as target:
            yield target


class TestPolled(AdapterConformance):
    @classmethod
    @contextmanager
    def serve(cls, folder: Path) -> Iterator[Target]:
        with service(folder, stream=False) as target:
            yield target
