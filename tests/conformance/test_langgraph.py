"""The conformance kit against `langgraph` and LangGraph's own development server."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reattach.runtime.testing.proxy_faults import Exchange
from reattach.testing import AdapterConformance, Target
from tests.conformance import effects
from tests.servers.running import langgraph

pytestmark = pytest.mark.slow


def runs(exchange: Exchange) -> bool:
    return exchange.method == "POST" and exchange.path.endswith("/runs")


@contextmanager
def graph_server(folder: Path, **options: Any) -> Iterator[Target]:
    with langgraph(folder / "server") as server:
        given = {"assistant": "agent", "result": "messages.-1.content", **options}
        yield effects.target(server, "langgraph", options=given, submits=runs, learns_from="head")


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
            yield target
