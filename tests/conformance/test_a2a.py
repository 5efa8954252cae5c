"""The conformance kit against `a2a` and the A2A SDK's server of 1.x: by JSON-RPC and by REST."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reattach.runtime.proxy.faults import Exchange
from reattach.testing import AdapterConformance, Target
from tests.conformance import effects
from tests.servers.running import a2a

pytestmark = pytest.mark.slow
# An agent that raises says nothing more of its task by the SDK of 0.3, and one that says so has failed by both.
FAILS = " !failed"


def sends(exchange: Exchange) -> bool:
    """By REST its path says what a request is, by JSON-RPC its body."""
    by_rpc = b'"SendMessage"' in exchange.body or b'"message/send"' in exchange.body
    return exchange.method == "POST" and (exchange.path.endswith("message:send") or by_rpc)


class TestByJsonRpc(AdapterConformance):
    @classmethod
    @contextmanager
    def serve(cls, folder: Path) -> Iterator[Target]:
        with a2a(folder / "server") as server:
            options = {"endpoint": "{url}/rpc", "binding": "jsonrpc"}
            yield effects.target(server, "a2a", failing=FAILS, options=options, submits=sends)


class TestByRest(AdapterConformance):
    @classmethod
    @contextmanager
    def serve(cls, folder: Path) -> Iterator[Target]:
        with a2a(folder / "server") as server:
            options = {"endpoint": "{url}/rest", "binding": "rest"}
            yield effects.target(server, "a2a", failing=FAILS, options=options, submits=sends)
