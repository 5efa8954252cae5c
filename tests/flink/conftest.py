"""Hosts over the scripted adapter, closed at the end."""

from collections.abc import Iterator
from typing import Any

import pytest

from reattach.runtime.flink.host import Host
from tests.flink.stage import QUICK
from tests.runtime.scripted import Script, config


@pytest.fixture
def make(remote: Script) -> Iterator[Any]:
    made: list[Host] = []

    def build(**policy: Any) -> Host:
        made.append(Host({"agent": config(remote, **{**QUICK, **policy})}))
        return made[-1]

    yield build
    remote.gate.set()
    for host in made:
        if hasattr(host, "_executor"):
            host.close()
