"""docs/see.md: its commands run as they stand, and what it says of keys, marks and exit codes is the case."""

import re
import shlex
from pathlib import Path

import pytest

from reattach.runtime.cli.main import main
from reattach.runtime.replay.reading import read
from reattach.runtime.view import words
from reattach.runtime.view.account import account_of
from tests.packaging.layers import ROOT
from tests.view import seeing

PAGE = (ROOT / "docs" / "see.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"<!-- explain:begin.*?<!-- explain:end -->", re.DOTALL)
# What needs Flink is run by tests/e2e/test_inspect.py, what goes on until it is stopped by tests/cli/test_watch.py.
COMMANDS = re.findall(
    r"^    (reattach (?!inspect|watch (?!.*--once$|.*--once --json)|watch --rest).+)$",
    EXAMPLE.sub("", PAGE),
    re.MULTILINE,
)
# What `control` needs to know of the job, since the example's lines are run as well.
JOB = """
[job]
requests = "requests"
outcomes = "outcomes"
checkpoints = "checkpoints"
control = "control"
[agents.writer]
protocol = "thread"
url = "http://127.0.0.1:9"
policy.retention_ms = 604_800_000
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the page's commands find what they name."""
    monkeypatch.chdir(tmp_path)
    return seeing.folder_of(tmp_path, JOB)


def test_there_are_commands() -> None:
    assert {shlex.split(command)[1] for command in COMMANDS} == {"timeline", "explain", "watch"}
    assert len(COMMANDS) >= 8


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_runs(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(command)[1:]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert ("order-18" if "--thread" in command else "order-17") in out
    if "--html" in command:
        assert (folder / "timeline.html").stat().st_size > 10_000


@pytest.mark.parametrize("command", re.findall(r"^ +(reattach control .+)$", EXAMPLE.findall(PAGE)[0], re.MULTILINE))
def test_each_command_of_the_example_is_taken(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(command)[1:]) == 0
    assert '"invocation_id": "order-17"' in capsys.readouterr().out


def test_every_section_is_told_of(folder: Path) -> None:
    account = account_of((*seeing.KEY, seeing.NAME), read([*Path("journal").glob("*")]), now_ms=0, config="job.toml")
    titles = [line.plain for line in words.lines(account, 0) if line.plain and not line.plain.startswith(" ")][1:]
    assert titles == re.findall(r"^\| (What [^|]+?) \|", PAGE, re.MULTILINE)


def test_every_key_of_the_page_is_told_of() -> None:
    script = (ROOT / "runtime" / "view" / "page_people.js").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| keys \| (.*) \|$", PAGE, re.MULTILINE)
    for key in re.findall(r'event\.key === "(.)"', script):
        assert key in row.replace("−", "-") or key in " =", key
    for name in ("Enter", "Escape"):
        assert f'"{name}"' in script and name in row
