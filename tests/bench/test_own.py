"""An agent of a user's own, measured through the job that his file makes."""

import json
from pathlib import Path

import pytest

from reattach.runtime.agent.process import serving
from reattach.runtime.bench.own import measure
from reattach.runtime.bench.trial import BenchError
from reattach.runtime.cli.main import main


def config_of(folder: Path, url: str) -> Path:
    """A user's file, with outputs that are not to be touched."""
    settings = {"retention_ms": 86_400_000, "overlap_ms": 0, "admission_ms": 0, "submit_timeout_ms": 1_000}
    lines = ["[job]", *(f'{name} = "mine/{name}"' for name in ("requests", "outcomes", "checkpoints", "journal"))]
    lines += ["[agents.echo]", 'protocol = "thread"', f'url = "{url}"', "[agents.echo.policy]"]
    lines += [f"{name} = {value}" for name, value in settings.items()]
    (folder / "mine" / "requests").mkdir(parents=True)
    (folder / "job.toml").write_text("\n".join(lines) + "\n")
    return folder / "job.toml"


@pytest.mark.flink
def test_its_calls_are_made_and_told_in_folders_of_their_own(tmp_path: Path) -> None:
    file, log = tmp_path / "f.json", tmp_path / "agent.jsonl"
    with serving(log, "100ms") as url:
        own = ["--own", str(config_of(tmp_path, url)), "--agent", "echo", "--message", '{"a": 1}', "--calls", "3"]
        assert main(["bench", *own, "--json", str(file)]) == 0
    (row,) = json.loads(file.read_text())
    assert (row["system"], row["calls"], row["failed"], row["duplicates_after_kill"]) == ("reattach, echo", 3, 0, None)
    assert row["requests_per_call"] >= 2 and row["call_p99_ms"] >= row["call_p50_ms"] >= 100
    assert row["calls_per_second"] > 0 and row["cpu_s_per_1000"] > 0 and row["pss_mb"] > 0
    assert sum('"kind":"turn"' in line for line in log.read_text().splitlines()) == 3
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["requests"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--agent", "echo"], "--own: needs --agent and --message"),
        (["--agent", "other", "--message", "1"], "--agent other: {config} has no such agent; known: echo"),
        (["--agent", "echo", "--message", "hello"], "--message: not JSON"),
    ],
)
def test_what_is_not_right_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    config = config_of(tmp_path, "http://127.0.0.1:9")
    assert main(["bench", "--own", str(config), *options]) == 2
    assert said.format(config=config) in capsys.readouterr().err


def test_a_job_that_breaks_is_told_with_its_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reattach.runtime.bench.own.reattach_run", lambda _: ["sh", "-c", "echo no disk; exit 1"])
    with pytest.raises(BenchError, match="the job did not come to its end: no disk"):
        measure(config_of(tmp_path, "http://127.0.0.1:9"), "echo", "1", 1, tmp_path / "own")
