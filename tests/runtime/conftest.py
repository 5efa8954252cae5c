"""Executors over an adapter that does what its script says, and over remotes that do what they are told."""

from collections.abc import Iterator
from typing import Any

import pytest

from reattach.adapters import registry
from reattach.adapters.contract import AgentConfig
from reattach.runtime.executor import Executor
from tests.runtime.scripted import Script, ScriptedAdapter, config
from tests.runtime.wired import Net


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let configurations name the scripted adapter."""
    monkeypatch.setitem(registry._BUILT_IN, "scripted", ScriptedAdapter)


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def make(scripted: None, script: Script) -> Iterator[Any]:
    """Build executors that are closed at the end."""
    made: list[Executor] = []

    def build(*, policy: dict[str, Any] | None = None, **settings: Any) -> Executor:
        made.append(Executor({"agent": config(script, **(policy or {}))}, **settings))
        return made[-1]

    yield build
    script.gate.set()
    for executor in made:
        executor.close()


@pytest.fixture
def net(monkeypatch: pytest.MonkeyPatch) -> Net:
    net = Net()
    monkeypatch.setattr("reattach.runtime.executor.open_client", net.open_client)
    return net


@pytest.fixture
def wire(net: Net) -> Iterator[Any]:
    """Build executors whose agents' remotes are in `net`; they are closed at the end."""
    made: list[Executor] = []

    def build(*agents: AgentConfig, **settings: Any) -> Executor:
        made.append(Executor({each.name: each for each in agents}, **settings))
        return made[-1]

    yield build
    for executor in made:
        executor.close()
