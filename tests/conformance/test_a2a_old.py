"""The conformance kit against `a2a` with A2A 0.3: the SDK's server of 0.3, and that of 1.x, which speaks it too."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reattach.testing import AdapterConformance, Target
from tests.conformance import effects
from tests.conformance.test_a2a import FAILS, sends
from tests.servers.running import a2a, a2a_old

pytestmark = pytest.mark.slow


class TestOldServer(AdapterConformance):
    @classmethod
    @contextmanager
    def serve(cls, folder: Path) -> Iterator[Target]:
        with a2a_old(folder / "server") as server:
            options = {"endpoint": "{url}/", "version": "0.3"}
            yield effects.target(server, "a2a", failing=FAILS, options=options, submits=sends)


class TestNewServer(AdapterConformance):
    @classmethod
    @contextmanager
    def serve(cls, folder: Path) -> Iterator[Target]:
        with a2a(folder / "server") as server:
            options = {"endpoint": "{url}/rpc", "version": "0.3"}
            yield effects.target(server, "a2a", failing=FAILS, options=options, submits=sends)
