"""The wheel holds everything, and works where neither the source tree nor Flink is."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from reattach.adapters.registry import built_in
from tests.packaging.layers import LAYERS, ROOT, packages

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_package_list_is_what_the_folders_hold() -> None:
    assert PROJECT["tool"]["setuptools"]["packages"] == sorted(packages())


def test_the_links_for_type_checkers_lead_to_the_folders() -> None:
    mapping = PROJECT["tool"]["setuptools"]["package-dir"]
    for name, folder in mapping.items():
        if name != "reattach":
            link = ROOT / "reattach" / folder
            assert link.is_symlink()
            assert os.readlink(link) == f"../{folder}"
            assert name == f"reattach.{folder}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the source, so that no build folder of ours gets into it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in (*LAYERS, "reattach"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (built,) = folder.glob("*.whl")
    return built


def test_it_holds_every_module_and_nothing_else(wheel: Path) -> None:
    expected = {"reattach/py.typed"}
    for name, folder in packages().items():
        found = [path for path in (ROOT / folder).iterdir() if path.suffix in (".py", ".css", ".html", ".js")]
        expected |= {f"{name.replace('.', '/')}/{path.name}" for path in found}
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == expected


def test_its_metadata_names_what_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith("/METADATA")]
        metadata = archive.read(name).decode()
        (entry,) = [one for one in archive.namelist() if one.endswith("/entry_points.txt")]
        entries = archive.read(entry).decode()
        assert any(one.endswith("/licenses/LICENSE") for one in archive.namelist())
    assert "Requires-Python: <3.13,>=3.11" in metadata
    plain = re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*$", metadata, re.MULTILINE)
    assert sorted(plain) == ["httpx", "httpx-sse", "msgpack", "python-statemachine", "rich", "typer"]
    adapters = entries.partition("[reattach.adapters]\n")[2]
    assert sorted(re.findall(r"^(\w+) = ", adapters, re.MULTILINE)) == list(built_in())
    assert "reattach = reattach.runtime.cli.main:entry" in entries


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel and its plain dependencies: no extras, no network."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    (site,) = (folder / "lib").glob("python*/site-packages")
    for name in _closure("reattach", set()) - {"reattach"}:
        for file in importlib.metadata.files(name) or []:
            top = file.parts[0]
            if top != ".." and not (site / top).exists():
                (site / top).symlink_to(Path(str(file.locate())).parents[len(file.parts) - 1] / top)
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "--no-deps", "--quiet"]
    subprocess.run([*command, str(wheel)], check=True, capture_output=True, timeout=120)
    return folder


def _closure(name: str, seen: set[str]) -> set[str]:
    """The distributions that one needs, itself included, without extras."""
    from packaging.requirements import Requirement

    if name in seen:
        return seen
    seen.add(name)
    for text in importlib.metadata.requires(name) or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            _closure(requirement.name, seen)
    return seen


def _run(fresh: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [fresh / "bin" / command[0], *command[1:]],
        cwd=fresh, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_it_works_without_flink(fresh: Path) -> None:
    assert _run(fresh, "python", "-c", "import pyflink").returncode != 0
    assert _run(fresh, "reattach", "--version").stdout == f"reattach {importlib.metadata.version('reattach')}\n"
    assert "run" in _run(fresh, "reattach", "--help").stdout
    assert _run(fresh, "python", "-m", "reattach", "diagram").stdout.startswith("stateDiagram-v2")


def test_every_module_outside_the_flink_host_imports_without_extras(fresh: Path) -> None:
    needs_extras = (
        "reattach.runtime.flink",
        "reattach.runtime.agent.server",
        "reattach.adapters.carrier",
        "reattach.adapters.connection",
        "reattach.runtime.conformance",
        "reattach.runtime.proxy",
        "reattach.runtime.testing",
        "reattach.testing",
    )
    names = []
    for name, folder in packages().items():
        for path in sorted((ROOT / folder).glob("*.py")):
            module = name if path.stem == "__init__" else f"{name}.{path.stem}"
            if not module.startswith(needs_extras) and path.stem != "__main__":
                names.append(module)
    result = _run(
        fresh, "python", "-c", "import importlib\n" + "\n".join(f"importlib.import_module({n!r})" for n in names)
    )
    assert result.returncode == 0, result.stderr


def test_what_needs_an_extra_says_so_in_one_line(fresh: Path, tmp_path: Path) -> None:
    (tmp_path / "requests").mkdir()
    (tmp_path / "requests" / "a.jsonl").write_text(
        '{"invocation_id": "a", "agent": "x", "message": 1, "requested_at_ms": 1}\n'
    )
    config = tmp_path / "job.toml"
    config.write_text(
        '[job]\nrequests = "requests"\noutcomes = "outcomes"\ncheckpoints = "checkpoints"\n'
        '[agents.x]\nprotocol = "thread"\nurl = "http://127.0.0.1:1"\npolicy.retention_ms = 1000\n'
    )
    run = _run(fresh, "reattach", "run", str(config))
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "pip install 'reattach[flink]'" in run.stderr
    agent = _run(fresh, "reattach", "agent", "--log", str(tmp_path / "log"))
    assert (agent.returncode, agent.stderr.count("\n")) == (2, 1)
    assert "pip install 'reattach[agent]'" in agent.stderr
