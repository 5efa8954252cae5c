"""docs/testing.md: its examples run as they stand, and it names every rule, property and profile."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from reattach.runtime.testing.profiles import PROFILES
from reattach.testing import RemoteMachine
from tests.agent.serving import serving
from tests.packaging.layers import ROOT, sources

PAGE = (ROOT / "docs" / "testing.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def run(folder: Path, block: str, **environment: str) -> str:
    (folder / "test_example.py").write_text(block)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    result = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def example(name: str) -> str:
    (block,) = re.findall(rf"<!-- example: {name} -->\n```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert isinstance(block, str)
    return block


def test_the_model_example_runs_as_it_stands(tmp_path: Path) -> None:
    assert "1 passed" in run(tmp_path, example("model"), REATTACH_PROFILE="ci")


@pytest.mark.slow
def test_the_live_example_runs_as_it_stands(tmp_path: Path) -> None:
    log = tmp_path / "agent.log"
    folder = tmp_path / "tests"
    folder.mkdir()
    with serving(log, "--latency", "50ms") as served:
        assert "1 passed" in run(folder, example("live"), AGENT_URL=served.url, AGENT_LOG=str(log))
    assert b'"turn"' in log.read_bytes()


def test_the_example_of_strategies_runs_as_it_stands(tmp_path: Path) -> None:
    (block,) = [block for block in BLOCKS if "strategies" in block]
    assert "1 passed" in run(tmp_path, block)


def test_every_rule_is_explained() -> None:
    rules = {rule.function.__name__ for rule in RemoteMachine.setup_state().rules}
    assert len(rules) > 20
    assert {name for name in rules if f"`{name}`" not in PAGE} == set()


def test_every_property_is_explained_and_exists() -> None:
    text = "".join(path.read_text() for path in sources("runtime") if path.parent.name == "testing")
    raised = set(re.findall(r'(?:Wrong|broken)\(\s*"([a-z-]+(?: [a-z-]+)?)"', text))
    raised |= set(re.findall(r'_seen\.append\(\("([a-z ]+)"', text))
    table = PAGE.partition("## What must hold")[2].partition("Which rule")[0]
    named = set(re.findall(r"`([a-z-]+(?: [a-z-]+)?)`", table))
    assert raised == named
    assert len(named) >= 10


def test_every_profile_is_described_as_it_is() -> None:
    for name, profile in PROFILES.items():
        row = f"| `{name}` | {profile.max_examples:,} | {profile.stateful_step_count} |"
        assert row in PAGE
