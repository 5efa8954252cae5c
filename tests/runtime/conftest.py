"""Executors over an adapter that does what its script says."""

from collections.abc import Iterator
from typing import Any

import pytest

from reattach.adapters import registry
from reattach.runtime.executor import Executor
from tests.runtime.scripted import Script, ScriptedAdapter, config


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
