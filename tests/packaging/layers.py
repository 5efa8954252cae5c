"""The source tree as the packaging tests see it: layers, packages and what each file imports."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("adapters", "fsm", "models", "runtime")
# Of other systems, and run in their environments: no part of the package.
PROGRAMS = ROOT / "runtime" / "bench" / "peers" / "programs"


def sources(layer: str) -> list[Path]:
    found = sorted(path for path in (ROOT / layer).rglob("*.py") if path.parent != PROGRAMS)
    assert found, f"no source in {layer}"
    return found


def packages() -> dict[str, str]:
    """Import name to folder, for every folder with an `__init__.py`."""
    found = {"reattach": "reattach"}
    for layer in LAYERS:
        for init in (ROOT / layer).rglob("__init__.py"):
            folder = init.parent.relative_to(ROOT).as_posix()
            found["reattach." + folder.replace("/", ".")] = folder
    return found


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every module that a file imports, wherever the statement stands, with its line."""
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield node.lineno, "." * node.level + (node.module or "")
                continue
            assert node.module is not None
            yield node.lineno, node.module
            for name in node.names:
                yield node.lineno, f"{node.module}.{name.name}"
