"""`make servers`: everything pinned, made once, and one line when the package index is out of reach."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.layers import ROOT

PINS = sorted((ROOT / "tests" / "servers").glob("*.txt"))


def make(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # The runner may be a make itself, whose flags are no business of this one.
    inherited = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    return subprocess.run(
        ["make", "--no-print-directory", f"VENV={Path(sys.executable).parents[1]}", *arguments],
        cwd=ROOT, env={**inherited, **environment}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("path", PINS, ids=lambda path: path.stem)
def test_every_package_of_a_server_is_pinned(path: Path) -> None:
    head, *lines = path.read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    for name, version in re.findall(r"([\w-]+)\[[\w-]+\]==(\d+(?:\.\d+)*)", head):
        assert f"{name}=={version}" in lines
    assert len({line.partition("==")[0].lower().replace("_", "-") for line in lines}) == len(lines)


def test_there_is_an_environment_for_each_file_of_pins() -> None:
    (names,) = re.findall(r"^SERVER_STAMPS := .*installed,(.*)\)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert sorted(names.split()) == [path.stem for path in PINS]


def test_what_is_made_is_not_made_again() -> None:
    made = make("servers", "--dry-run")
    assert made.returncode == 0, made.stderr
    assert "venv" not in made.stdout


def test_an_index_out_of_reach_is_told_in_one_line(tmp_path: Path) -> None:
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:1/", "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}
    plain = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1", "PIP_RETRIES": "0"}
    target = tmp_path / "a2a" / ".reattach-installed"
    failed = make(f"SERVERS={tmp_path}", str(target), **nowhere, **plain)
    assert failed.returncode == 2
    told = [line for line in failed.stderr.splitlines() if "***" not in line]
    assert len(told) == 1
    assert re.match(r"make: tests/servers/a2a\.txt cannot be installed .*index.*: ERROR: .*", told[0])
    assert not target.exists()
