"""Every command and every block of code of README.md and docs/ is run: here, or by a test that is named here.

What takes minutes runs here with smaller figures, what reaches outside (make, pip) is held against what it names.
"""

import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from reattach.runtime.cli.main import main
from reattach.runtime.config import load_config
from tests.packaging.layers import ROOT
from tests.packaging.pages import PLAIN, Block, blocks_of, documents
from tests.packaging.test_servers import make
from tests.view import seeing

# Pages whose blocks are run, as they stand, by tests of their own.
BY_PAGE = {
    "docs/adapter.md": "tests/examples/test_adapter_page.py::test_a_call_of_the_page_s_adapter_survives_a_crash",
    "docs/conformance.md": "tests/testing/test_conformance_docs.py::test_the_example_runs_as_it_stands",
    "docs/protocols.md": "tests/cli/test_adapters.py::test_the_examples_of_the_page_can_be_read",
    "docs/quickstart.md": "tests/e2e/test_quickstart.py::test_the_page_works_from_its_beginning_to_its_end",
    "docs/see.md": "tests/view/test_see.py::test_each_command_runs",
    "docs/testing.md": "tests/testing/test_docs.py::test_the_model_example_runs_as_it_stands",
}
# Others, by how they begin.
BY_BLOCK = {
    "import json\nimport sys": "tests/e2e/test_embedding_page.py::test_the_program_of_the_page_asks_each_call_once",
    ". /path/to/env.sh": "tests/cluster/test_workers.py::test_another_taskmanager_takes_over_from_one_that_is_killed",
    '"$FLINK_HOME/bin/flink" run': "tests/cluster/test_manager.py::"
    "test_stopped_with_a_savepoint_and_started_with_another_parallelism",
    "python deploy/kafka/job.py": "tests/kafka/test_kafka.py::test_the_job_is_killed_in_the_middle",
    "flink run -d -py deploy/kafka/job.py": "tests/kafka/test_kafka.py::test_a_taskmanager_is_killed_in_the_middle",
    "reattach run job.toml": BY_PAGE["docs/quickstart.md"],
    "models/ ": "tests/packaging/test_layers.py::test_imports_run_one_way",
}
# Commands of minutes, with what makes them short.
SMALLER = {
    "explore": ["--remote", "handle-only", "--crashes", "1", "--checkpoints", "1", "--losses", "0"],
    "mutants": ["no-probe"],
}
CALLS = "20"
JOB = """
[job]
requests = "requests"
outcomes = "outcomes"
checkpoints = "checkpoints"
control = "control"
"""
AGENT = """
[agents.writer]
protocol = "thread"
url = "http://127.0.0.1:9"
[agents.writer.policy]
retention_ms = 604_800_000
"""

ALL = [block for page in documents() for block in blocks_of(page)]


def elsewhere(block: Block) -> str:
    """The test that runs a block, "" for one that is run here."""
    if block.path in BY_PAGE:
        return BY_PAGE[block.path]
    return next((test for start, test in BY_BLOCK.items() if block.text.lstrip().startswith(start)), "")


HERE = [block for block in ALL if not elsewhere(block)]


def of(*kinds: str) -> list[Block]:
    return [block for block in HERE if block.language in kinds]


def typed(program: str) -> list[Block]:
    return [block for block in of(PLAIN) if block.text.split()[0] == program]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the commands find what they name."""
    monkeypatch.chdir(tmp_path)
    return seeing.folder_of(tmp_path, JOB + AGENT)


def test_each_block_is_run_in_one_of_these_ways() -> None:
    known = {*of("toml", "python"), *typed("reattach"), *typed("make"), *typed("pip")}
    assert [block.name for block in HERE if block not in known] == []
    assert len(HERE) > 30


@pytest.mark.parametrize("test", sorted({elsewhere(block) for block in ALL} - {""}))
def test_what_runs_the_others_exists(test: str) -> None:
    path, name = test.split("::")
    assert re.search(rf"def {name}\b", (ROOT / path).read_text()), test


@pytest.mark.parametrize("start", BY_BLOCK)
def test_no_entry_is_left_over(start: str) -> None:
    assert any(block.text.lstrip().startswith(start) for block in ALL)


@pytest.mark.parametrize("text", sorted({block.text for block in typed("reattach")}))
def test_a_command_of_ours_runs(text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in text.split(" && "):
        words = shlex.split(command)[1:]
        if "--calls" in words:
            words[words.index("--calls") + 1] = CALLS
        code = main([*words, *SMALLER.get(words[0], [])])
        assert code == 0, capsys.readouterr().err


def test_what_is_to_be_made_can_be_made() -> None:
    targets = sorted({block.text.split()[1] for block in typed("make")})
    assert len(targets) >= 8
    made = make("--dry-run", *targets)
    assert made.returncode == 0, made.stderr
    for block in typed("make"):
        for path in re.findall(r"tests/[\w/.]+", block.text):
            assert (ROOT / path).exists(), block.name


@pytest.mark.parametrize("text", sorted({block.text for block in typed("pip")}))
def test_what_is_to_be_installed_is_offered(text: str) -> None:
    found = re.fullmatch(r"pip install 'reattach\[([\w,]+)\]'", text)
    assert found
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(found[1].split(",")) <= project["optional-dependencies"].keys()


@pytest.mark.parametrize("block", of("toml"), ids=lambda block: block.name)
def test_a_configuration_is_taken(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in re.findall(r'^token_env = "(\w+)"', block.text, re.MULTILINE):
        monkeypatch.setenv(name, "a-token")
    whole = block.text if "[agents.writer]" in block.text else AGENT + block.text.removeprefix(AGENT.split("\n")[4])
    (tmp_path / "job.toml").write_text(JOB + whole)
    assert "writer" in load_config(tmp_path / "job.toml").terms


@pytest.mark.parametrize("block", of("python"), ids=lambda block: block.name)
def test_a_function_can_be_called(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    """With streams that take everything: imports, names and what is made of ours are real."""
    monkeypatch.setenv("WRITER_TOKEN", "a-token")
    monkeypatch.setattr("pyflink.table.StreamTableEnvironment.create", MagicMock())
    monkeypatch.setattr("reattach.runtime.flink.table.outcome_rows", MagicMock())
    names: dict[str, object] = {}
    exec(compile(block.text, block.name, "exec"), names)
    (function,) = [one for name, one in names.items() if f"def {name}(" in block.text]
    streams = [MagicMock() for _ in range(function.__code__.co_argcount)]  # type: ignore[attr-defined]
    if "agents" in function.__code__.co_varnames[: len(streams)]:  # type: ignore[attr-defined]
        streams[-1] = {}  # type: ignore[call-overload]
    assert function(*streams) is not None  # type: ignore[operator]


def test_shell_blocks_are_shell() -> None:
    blocks = [block for block in ALL if block.language == "sh"]
    assert blocks
    for block in blocks:
        # What the reader has to put in stands in angle brackets, as everywhere.
        text = re.sub(r"<[\w ]+>", "x", block.text)
        checked = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
        assert checked.returncode == 0, f"{block.name}: {checked.stderr}"


def test_what_builds_the_site_is_pinned() -> None:
    lines = (ROOT / "tests" / "packaging" / "site.txt").read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    assert {"mkdocs", "mkdocs-material", "mkdocstrings-python"} <= {line.partition("==")[0] for line in lines}
