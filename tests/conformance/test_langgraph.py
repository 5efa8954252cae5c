"""The conformance kit against `langgraph` and LangGraph's own development server."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reattach.runtime.proxy.faults import Exchange, Match
from reattach.testing import AdapterConformance, Target
from tests.conformance import effects
from tests.servers.running import langgraph

pytestmark = pytest.mark.slow


def starts() -> Match:
    """A POST that starts a run: one to a thread that was made before, since the server refuses any other."""
    made: set[str] = set()

    def match(exchange: Exchange) -> bool:
        if exchange.method != "POST":
            return False
        if exchange.path.endswith("/threads"):
            made.add(json.loads(exchange.body)["thread_id"])
        return exchange.path.endswith("/runs") and exchange.path.split("/")[-2] in made

    return match


@contextmanager
def graph_server(folder: Path, **options: Any) -> Iterator[Target]:
    with langgraph(folder / "server") as server:
        given = {"assistant": "agent", "result": "messages.-1.content", **options}
        yield effects.target(server, "langgraph", options=given, submits=starts(), learns_from="head")


class TestOneCallPerThread(AdapterConformance):
    @classmethod
    @contextmanager
    def serve(cls, folder: Path) -> Iterator[Target]:
        with graph_server(folder) as target:
            yield target


class TestSeveralCallsPerThread(AdapterConformance):
    @classmethod
    @contextmanager
    def serve(cls, folder: Path) -> Iterator[Target]:
        with graph_server(folder, threads="shared") as target:
            # The first call on a thread finds that it is to be made: a POST that is refused, and one that makes it.
            yield replace(target, requests=7)
