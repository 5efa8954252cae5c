"""`reattach inspect` on what jobs have left: nothing is sent, and what is read stays as it is."""

import hashlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from reattach.runtime.agent.log import read_log
from tests.cluster.savepoint import EACH, ROOT
from tests.e2e.harness import world
from tests.packaging.layers import ROOT as PROJECT

pytestmark = [pytest.mark.flink, pytest.mark.slow]
PAGE = (PROJECT / "docs" / "see.md").read_text(encoding="utf-8")
OF_A_RUN, OF_A_SAVEPOINT = re.findall(r"^    (reattach inspect .+)$", PAGE, re.MULTILINE)
SAVEPOINT: Final = ROOT / "0.1.0" / "savepoint"


def inspect(command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "reattach", *shlex.split(command)[1:]],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def digest(folder: Path) -> dict[str, str]:
    """Every file below a folder, with what is in it and when it was changed."""
    return {
        str(path.relative_to(folder)): f"{path.stat().st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_checkpoint_of_a_killed_run(tmp_path: Path) -> None:
    """The page's command, in the folder of a job that was killed and whose runs go on; RocksDB's, which name files."""
    with world(tmp_path / "w", latency="300s", job={"parallelism": 2, "state_backend": "rocksdb"}) as made:
        made.ask(4)
        made.start()
        made.until(lambda: made.kinds()["stream"] >= 4, "streams of all runs")
        seen = set(made.completed())
        made.until(lambda: len(set(made.completed()) - seen) >= 2, "a checkpoint that holds them")
        made.kill()
        before, sent = digest(made.checkpoints), len(list(read_log(made.log)))
        done = inspect(OF_A_RUN, made.folder)
        assert (done.returncode, done.stderr) == (0, "")
        first, second, third = done.stdout.splitlines()[:3]
        assert re.fullmatch(rf"checkpoint \d+, {re.escape(str(made.completed()[-1]))}", first)
        assert second == "4 calls on 4 threads: RUNNING 4"
        assert third.split()[:2] == ["running.watching", "4,"]
        assert {line.split()[0] for line in done.stdout.splitlines() if "call-" in line} == set(made.expected)
        assert digest(made.checkpoints) == before
        assert len(list(read_log(made.log))) == sent, "somebody spoke to the server"


def test_the_savepoint_of_a_cluster(tmp_path: Path) -> None:
    """By the page's command, from another folder than it was written to, and with another parallelism."""
    folder = tmp_path / shlex.split(OF_A_SAVEPOINT)[2]
    shutil.copytree(SAVEPOINT, folder)
    before = digest(folder)
    done = inspect(OF_A_SAVEPOINT, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert (told["folder"], told["savepoint"], told["parallelism"]) == (str(folder), True, 2)
    assert told["counts"] == {"submitted.sending": EACH}
    assert {call["invocation_id"] for call in told["calls"]} == {f"sent-{number}" for number in range(EACH)}
    assert {(call["posts"], call["status"]) for call in told["calls"]} == {(1, "SUBMITTED")}
    assert digest(folder) == before


@pytest.mark.parametrize(
    ("metadata", "arguments", "says"),
    [
        (b"hello", "", r"\S+/_metadata: Flink cannot read it: .+; it is damaged, or no checkpoint of Flink's"),
        (None, "--uid mine", r"\S+: is of another job: it has no operator with the uid 'mine' \(but .*calls, .*"),
        (None, "--uid outcomes", r"\S+: is of another job: its operator 'outcomes' holds no state of reattach's .*"),
    ],
)
def test_what_is_none_of_ours_gets_one_line(tmp_path: Path, metadata: bytes | None, arguments: str, says: str) -> None:
    shutil.copytree(SAVEPOINT, tmp_path / "it")
    if metadata is not None:
        (tmp_path / "it" / "_metadata").write_bytes(metadata)
    done = inspect(f"reattach inspect it {arguments}", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"error: {says}\n", done.stderr), done.stderr
