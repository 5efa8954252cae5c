"""What the runner reads from outside: requests, outcomes, checkpoints, and Flink's words."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach.models.errors import ConfigError
from reattach.runtime.run import checkpoints
from reattach.runtime.run.inbox import Inbox, one_line
from reattach.runtime.run.outbox import Outbox
from reattach.runtime.run.rest import root_cause

LIMITS = {"a": 1_000}


def request(name: str = "one", **more: object) -> str:
    return json.dumps({"invocation_id": name, "agent": "a", "message": 1, "requested_at_ms": 1, **more})


def outcome(name: str = "one", status: str = "COMPLETED", **more: object) -> str:
    failure = None if status == "COMPLETED" else {"code": "lost"}
    whole = {"invocation_id": name, "agent": "a", "thread_id": "t", "generation": 1, "status": status}
    return json.dumps({**whole, "failure": failure, **more})


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    (tmp_path / "in").mkdir()
    return Inbox(tmp_path / "in", tmp_path / "rejects.txt", LIMITS)


def test_rejects_name_file_line_and_reason(tmp_path: Path, inbox: Inbox) -> None:
    lines = [
        request(), "", "nonsense", request("two", agent="b"), request("three", message="x" * 2_000), "  ",
        request("four", turm=1), '{"invocation_id": "five"}', "[1]",
    ]  # fmt: skip
    (tmp_path / "in" / "calls.jsonl").write_text("\n".join(lines))
    inbox.scan()
    rejects = (tmp_path / "rejects.txt").read_text().splitlines()
    assert [line.split(": ")[0] for line in rejects] == [f"calls.jsonl:{n}" for n in (3, 4, 5, 7, 8, 9)]
    assert "not JSON" in rejects[0]
    assert "agent: none named 'b' is configured (a)" in rejects[1]
    assert "message: 2002 bytes, the limit is 1000" in rejects[2]
    assert "turm: no such field" in rejects[3]
    assert "message: required" in rejects[4]
    assert "not a JSON object" in rejects[5]
    assert inbox.calls == {("a", "one", "")}
    assert inbox.rejected == 6


def test_rejects_are_written_once_whatever_happens_to_the_runner(tmp_path: Path, inbox: Inbox) -> None:
    (tmp_path / "in" / "a.jsonl").write_text("bad\nworse\n")
    inbox.scan()
    inbox.scan()
    again = Inbox(tmp_path / "in", tmp_path / "rejects.txt", LIMITS)
    again.scan()
    assert (tmp_path / "rejects.txt").read_text().count("\n") == 2
    (tmp_path / "in" / "b.jsonl").write_text("bad\n")
    again.scan()
    assert (tmp_path / "rejects.txt").read_text().splitlines()[2].startswith("b.jsonl:1: ")


def test_files_are_taken_as_flink_takes_them(tmp_path: Path, inbox: Inbox) -> None:
    folder = tmp_path / "in"
    (folder / ".hidden").write_text(request("hidden"))
    (folder / "_hidden").mkdir()
    (folder / "_hidden" / "a").write_text(request("hidden too"))
    (folder / "sub").mkdir()
    (folder / "sub" / "a.jsonl").write_bytes((request("cr") + "\r" + request("crlf") + "\r\n").encode())
    (folder / "b.jsonl.gz").write_bytes(gzip.compress((request("packed") + "\n").encode()))
    (folder / "broken.gz").write_bytes(b"not gzip")
    assert len(inbox.scan()) == 3
    assert sorted(name for _, name, _ in inbox.calls) == ["cr", "crlf", "packed"]
    assert (tmp_path / "rejects.txt").read_text().startswith("broken.gz:0: cannot be read")


def test_a_file_that_grows_is_reported_and_not_read_again(tmp_path: Path, inbox: Inbox) -> None:
    path = tmp_path / "in" / "a.jsonl"
    path.write_text(request() + "\n")
    inbox.scan()
    with path.open("a") as file:
        file.write(request("late") + "\n")
    assert inbox.scan() == {}
    assert inbox.changed == [path]
    assert len(inbox.calls) == 1


@given(st.binary(max_size=300))
def test_no_bytes_are_too_strange_for_a_line(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("in")
    (folder / "a").write_bytes(data)
    rejects = folder.parent / f"{folder.name}.txt"
    inbox = Inbox(folder, rejects, LIMITS)
    inbox.scan()
    written = rejects.read_text(encoding="utf-8").split("\n")[:-1] if rejects.exists() else []
    assert len(written) == inbox.rejected
    assert all(line.startswith("a:") for line in written)


def test_done_is_when_every_call_has_its_outcome(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    outbox.expect({("a", "one", ""): 1, ("a", "two", "t"): 1})
    assert outbox.missing == 2
    (tmp_path / "part-1.jsonl").write_text(outcome() + "\n")
    (tmp_path / ".part-2.jsonl.inprogress").write_text(outcome("two") + "\n")
    assert outbox.scan() == 1
    assert outbox.missing == 1
    (tmp_path / "part-2.jsonl").write_text(outcome("two", "FAILED") + "\n" + outcome() + "\n")
    assert outbox.scan() == 2
    assert outbox.missing == 0
    outbox.expect({("a", "one", ""): 1})
    assert outbox.missing == 0
    # A line that an older checkpoint brought back counts as a line, not as a call.
    assert (outbox.lines, outbox.calls, dict(outbox.by_status)) == (3, 2, {"COMPLETED": 1, "FAILED": 1})
    assert dict(outbox.failures) == {"lost": 1}


def test_a_later_generation_is_awaited_only_after_a_failure(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    (tmp_path / "part").write_text(outcome("failed", "FAILED") + "\n" + outcome("completed", thread_id="u") + "\n")
    outbox.scan()
    outbox.expect({("a", "failed", ""): 2, ("a", "completed", ""): 2})
    assert outbox.missing == 1
    (tmp_path / "part2").write_text(outcome("failed", "COMPLETED", generation=2, thread_id="t2") + "\n")
    outbox.scan()
    assert outbox.missing == 0


def checkpoint(folder: Path, run: str, number: int, mtime: int, *, complete: bool = True) -> Path:
    path = folder / run / f"chk-{number}"
    path.mkdir(parents=True)
    name = checkpoints.METADATA if complete else "._metadata.inprogress.1"
    (path / name).write_text("")
    os.utime(path / name, (mtime, mtime))
    return path


def test_the_newest_complete_checkpoint_is_found(tmp_path: Path) -> None:
    assert checkpoints.latest(tmp_path) is None
    checkpoint(tmp_path, "old", 90, 1_000)
    newest = checkpoint(tmp_path, "new", 9, 2_000)
    checkpoint(tmp_path, "new", 8, 1_900)
    checkpoint(tmp_path, "new", 10, 3_000, complete=False)
    assert checkpoints.latest(tmp_path) == newest
    assert checkpoints.check_checkpoint(newest) == newest
    with pytest.raises(ConfigError, match="holds no completed checkpoint"):
        checkpoints.check_checkpoint(tmp_path / "new" / "chk-10")


def test_runs_long_gone_are_removed_and_the_one_in_use_is_not(tmp_path: Path) -> None:
    kept = checkpoint(tmp_path, "run-0", 1, 1)
    for number in range(1, 6):
        checkpoint(tmp_path, f"run-{number}", 1, 10 * number)
    (tmp_path / "logs").mkdir()
    checkpoints.prune(tmp_path, kept)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "run-0", "run-3", "run-4", "run-5"]


def test_two_runs_cannot_hold_the_same_checkpoints(tmp_path: Path) -> None:
    lock = checkpoints.Lock(tmp_path)
    with pytest.raises(ConfigError, match=rf"in use by another reattach run \(pid {os.getpid()}\)"):
        checkpoints.Lock(tmp_path, wait_s=0.2)
    # As the JVM does: whoever inherits the descriptor holds the lock after its owner has gone.
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, pass_fds=[lock.fileno()]
    )
    lock.release()
    with pytest.raises(ConfigError):
        checkpoints.Lock(tmp_path, wait_s=0.2)
    child.kill()
    child.communicate()
    checkpoints.Lock(tmp_path, wait_s=5).release()


TRACE = """\
org.apache.flink.runtime.taskmanager.AsynchronousException: Caught exception while processing timer.
\tat org.apache.flink.streaming.runtime.tasks.StreamTask.handle(StreamTask.java:1)
Caused by: TimerException{java.lang.RuntimeException: x}
\t... 12 more
Caused by: pemja.core.PythonException: <class 'ModuleNotFoundError'>: No module named 'pemja'
\tat /lib/x.process(x.py:1)
"""


def test_a_stack_trace_becomes_its_last_cause() -> None:
    assert root_cause(TRACE) == "PythonException: <class 'ModuleNotFoundError'>: No module named 'pemja'"
    assert root_cause("something else\nmore") == "something else"
    assert root_cause("") == ""


def test_text_from_outside_is_one_printable_line() -> None:
    assert one_line("a\nb\x1b[31m", 100) == "a b [31m"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"


def test_checkpoints_are_listed_while_others_vanish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flink removes an old checkpoint between a look at its folder and one at what is in it."""
    for number in (1, 2):
        folder = tmp_path / "run" / f"chk-{number}"
        folder.mkdir(parents=True)
        (folder / "_metadata").touch()
    os.utime(tmp_path / "run" / "chk-1" / "_metadata", ns=(1, 1))
    real, vanished = Path.stat, list[Path]()

    def stat(self: Path, **more: bool) -> os.stat_result:
        if self.name == "_metadata" and self.parent.name == "chk-1" and not vanished:
            vanished.append(self)
            raise FileNotFoundError(self)
        return real(self, **more)

    monkeypatch.setattr(Path, "stat", stat)
    assert [path.name for path in checkpoints.completed(tmp_path)] == ["chk-1", "chk-2"]
    assert vanished
