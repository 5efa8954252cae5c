"""`reattach run` with real processes: its own end, rejects, resuming, Ctrl-C, SIGKILL, and clear last words."""

import base64
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reattach.models.codec import decode_entry
from reattach.models.errors import ReattachError
from reattach.models.lifecycle import Leaf
from reattach.runtime.config import load_config
from reattach.runtime.processes import members
from reattach.runtime.run.rest import Health, Rest
from reattach.runtime.run.runner import JobFailed, Runner, Snapshot
from tests.e2e.harness import Process, World, assert_each_once, until, world

CALLS = 30


def jvm_of(made: World) -> int:
    """The JVM is the one process of the job's session that is not its leader."""
    assert made.job is not None
    leader = made.job.child.pid
    (jvm,) = [pid for pid in members(leader) if Path(f"/proc/{pid}/exe").resolve().name == "java"]
    return jvm


def last_words(made: World) -> str:
    assert made.job is not None
    return made.job.text().strip().splitlines()[-1]


@pytest.mark.flink
def test_it_ends_by_itself_writes_rejects_and_resumes(tmp_path: Path) -> None:
    journal, progress = tmp_path / "journal", tmp_path / "progress"
    # Flink takes a path as it is, and a Path's own URI would be another folder to it.
    with world(tmp_path / "ü %20 w", job={"journal": str(journal), "progress": str(progress)}) as made:
        made.ask(CALLS, "first")
        made.drop(
            "bad", ["", "nonsense", '{"invocation_id": "x", "agent": "nobody", "message": 1, "requested_at_ms": 1}']
        )
        made.start()
        made.finish()
        assert_each_once(made)
        assert last_words(made) == f"2 lines were rejected: see {made.folder}/outcomes.rejects.txt"
        rejects = (made.folder / "outcomes.rejects.txt").read_text().splitlines()
        assert [reject.split(": ")[0] for reject in rejects] == ["bad.jsonl:2", "bad.jsonl:3"]

        made.ask(CALLS, "second")
        job = made.start()
        made.finish()
        assert_each_once(made)
        assert job.text().startswith("resuming from ")
        assert f"{2 * CALLS} of {2 * CALLS} requests have their outcome ({2 * CALLS} COMPLETED)" in job.text()
        assert "\x1b[" not in job.text()
        assert len((made.folder / "outcomes.rejects.txt").read_text().splitlines()) == 2

        lines = [line for path in journal.glob("part-*.journal") for line in path.read_bytes().splitlines()]
        entries = [decode_entry(base64.b64decode(line)) for line in lines]
        ended = [entry.invocation_id for entry in entries if entry.after is Leaf.COMPLETED]
        assert sorted(ended) == sorted(made.expected)
        assert list(progress.glob("part-*.jsonl"))


@pytest.mark.flink
def test_ctrl_c_ends_it_in_order_and_the_calls_go_on(tmp_path: Path) -> None:
    with world(tmp_path / "w", latency="15s-18s") as made:
        made.ask(CALLS)
        job = made.start()
        made.until(lambda: made.seen().turns == CALLS, "every call running")
        seen = made.checkpoint_count()
        made.until(lambda: made.checkpoint_count() >= min(seen + 1, 3), "a checkpoint")
        os.kill(job.child.pid, signal.SIGINT)
        until(lambda: job.child.poll() is not None, "the job's end", 60)
        assert job.child.returncode == 130, job.text()
        assert last_words(made) == f"stopped; to resume: reattach run {made.config}"
        assert members(job.child.pid) == []
        assert "Traceback" not in job.text()
        made.start()
        made.finish()
        assert_each_once(made)
        assert made.seen().posts == CALLS


@pytest.mark.flink
def test_no_second_job_no_orphan_and_clear_last_words(tmp_path: Path) -> None:
    with world(tmp_path / "w", latency="60s-65s") as made:
        made.ask(CALLS)
        job = made.start()
        made.until(lambda: made.seen().turns == CALLS, "every call running")
        second = subprocess.run(
            [sys.executable, "-m", "reattach", "run", str(made.config)],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert second.returncode == 2
        assert f"in use by another reattach run (pid {job.child.pid})" in second.stderr

        os.kill(jvm_of(made), signal.SIGKILL)
        until(lambda: job.child.poll() is not None, "the job's end", 30)
        assert job.child.returncode == 1
        assert last_words(made).startswith("error: the Flink process was killed by signal 9; start again to resume")
        assert "Traceback" not in job.text()

        job = made.start()
        made.until(lambda: "running:" in job.text(), "the job's second life")
        jvm = jvm_of(made)
        job.child.kill()
        job.child.wait()
        killed_s = time.monotonic()
        until(lambda: jvm not in members(job.child.pid), "the end of the JVM", 10)
        assert time.monotonic() - killed_s < 2, "the JVM outlived its client"

        made.start()
        made.finish()
        assert_each_once(made)
        assert made.seen().posts == CALLS


@pytest.mark.flink
def test_a_damaged_checkpoint_is_one_line(tmp_path: Path) -> None:
    with world(tmp_path / "w") as made:
        made.ask(1)
        damaged = made.checkpoints / "damaged" / "chk-1"
        damaged.mkdir(parents=True)
        (damaged / "_metadata").write_bytes(b"not a checkpoint")
        job = made.start()
        until(lambda: job.child.poll() is not None, "the job's end", 120)
        assert job.child.returncode == 1
        assert last_words(made).startswith("error: ")
        assert "Traceback" not in job.text()
        assert "damaged/chk-1" in last_words(made)


class Silent:
    """A screen that nobody looks at."""

    def say(self, line: str) -> None: ...

    def update(self, snapshot: Snapshot) -> None: ...


class Told(Rest):
    """A REST interface that gives one answer."""

    def __init__(self, answer: Health) -> None:
        super().__init__(1, "0")
        self._answer = answer

    def health(self) -> Health:
        return self._answer

    def sums(self, prefix: str) -> dict[str, int]:
        return {}


@pytest.mark.parametrize(
    ("health", "message"),
    [
        (
            Health("RESTARTING", failure="PythonException: <class 'ModuleNotFoundError'>: No module named 'pemja'"),
            "the job cannot start: .*No module named 'pemja'; logs: ",
        ),
        (Health("RUNNING", failure="ConfigError: python.execution-mode: needs thread mode"), "the job cannot start: "),
        (Health("FAILED", failure="IOException: disk full"), "the job failed: IOException: disk full; logs: "),
        (Health("CANCELED"), r"ended from outside \(CANCELED\); start again to resume it"),
    ],
)
def test_a_job_that_cannot_go_on_says_why(tmp_path: Path, health: Health, message: str) -> None:
    (tmp_path / "job.toml").write_text(
        '[job]\nrequests = "in"\noutcomes = "out"\ncheckpoints = "state"\n'
        '[agents.a]\nprotocol = "thread"\nurl = "http://127.0.0.1:1"\npolicy.retention_ms = 1000\n'
    )
    runner = Runner(load_config(tmp_path / "job.toml"), Silent())
    with pytest.raises(JobFailed, match=message) as caught:
        runner.ask(Told(health))
    assert isinstance(caught.value, ReattachError)
    assert "\n" not in str(caught.value)


@pytest.mark.flink
def test_a_port_that_somebody_takes_in_the_last_moment_is_no_end(tmp_path: Path) -> None:
    """Between the look for a free port and Flink's own use of it lies a moment."""
    script = (
        "import socket, sys\n"
        "from reattach.runtime.cli import main\n"
        "from reattach.runtime.run import runner\n"
        "taken = socket.create_server(('127.0.0.1', 0))\n"
        "free, ports = runner.free_port, [taken.getsockname()[1]]\n"
        "runner.free_port = lambda: ports.pop() if ports else free()\n"
        "code = main.main(['run', sys.argv[1]])\n"
        "assert not ports, 'the taken port was tried'\n"
        "sys.exit(code)\n"
    )
    with world(tmp_path / "w", latency="100ms") as made:
        made.ask(3)
        made.job = Process([sys.executable, "-c", script, str(made.config)], made.folder / "job.out")
        made.finish()
        assert_each_once(made)
