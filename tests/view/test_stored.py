"""What is in a checkpoint, as rows: each part of a thread, summary, table, JSON, and bytes of a newer release."""

import base64
import json
from pathlib import Path

import msgpack  # type: ignore[import-untyped]
import pytest
from rich.console import Console

from reattach.models.answers import Phase
from reattach.models.codec import SCHEMA_VERSION, decode_thread, encode_thread
from reattach.models.errors import ConfigError
from reattach.models.events import CancelOrdered, Restored, TimeReached
from reattach.models.lifecycle import Status
from reattach.models.thread import ThreadState
from reattach.runtime.cli.main import main
from reattach.runtime.flink.reading import folder_of, threads_in
from reattach.runtime.view import stored
from tests.fsm.making import BLIND, terms
from tests.replay.making import Host


def state_of(host: Host) -> ThreadState:
    assert host.stored is not None
    return decode_thread(host.stored)


@pytest.fixture
def rows() -> list[stored.Row]:
    """A thread with two turns that wait for a run, one with a parked call, one that has ended, one that drains."""
    running, parked, done, drained = Host(), Host(terms(BLIND)), Host(), Host()
    running.submit()
    running.ask("turn-2", turn=2)
    running.ask("turn-3", turn=3)
    parked.now_ms -= 1
    parked.ask("parked")
    done.submit()
    done.open(done.stored)
    done.on(Restored())
    done.probe(Phase.COMPLETED, b'"done"')
    drained.submit()
    drained.on(CancelOrdered("call-1", 1))
    threads = [("agent", "a", running), ("agent", "b", parked), ("other", "c", done), ("agent", "d", drained)]
    return stored.rows_of((agent, thread, state_of(host)) for agent, thread, host in threads)


def test_every_part_of_a_thread_has_its_row(rows: list[stored.Row]) -> None:
    assert [(row.thread_id, row.invocation_id, row.part, row.state) for row in rows][:2] == [
        ("b", "parked", stored.GOES_ON, "submitted.parked"),
        ("a", "call-1", stored.GOES_ON, "running.watching"),
    ], "the longest in its status first"
    assert {row.invocation_id for row in rows if row.part == stored.QUEUED} == {"turn-2", "turn-3"}
    (ended,) = [row for row in rows if row.part == stored.ENDED]
    assert (ended.agent, ended.state, ended.since_ms, ended.posts) == ("other", "completed", 0, 0)
    assert ended.wake_at_ms > 0
    assert rows[0].cause.startswith("not restored from this job's own")


def test_rows_are_chosen_and_counted(rows: list[stored.Row]) -> None:
    assert {row.invocation_id for row in stored.select(rows, statuses=[Status.NOT_STARTED])} == {"turn-2", "turn-3"}
    assert {row.thread_id for row in stored.select(rows, agent="other")} == {"c"}
    assert len(stored.select(rows, agent="agent", thread="a")) == 3
    assert list(stored.counts(rows))[:2] == ["waits for its turn", "submitted.parked"]
    first, *lines = stored.figures(rows, rows[0].since_ms + 90_000)
    assert first.startswith("6 calls on 4 threads: NOT_STARTED 2 · SUBMITTED 1 · RUNNING ")
    assert lines[1] == f"  {'submitted.parked':<26}       1, since 1970-01-01 00:16:40 UTC (1 min 30 s ago)"
    assert list(stored.figures([], 0)) == ["0 calls on 0 threads"]


def test_a_call_that_drains_is_told_so() -> None:
    host = Host()
    host.submit()
    state = state_of(host)
    assert state.active is not None
    host.on(CancelOrdered("call-1", 1))
    host.now_ms = state.active.request.requested_at_ms + 10 * host.terms.policy.deadline_ms
    for _ in range(20):
        if (state := state_of(host)).drain is not None:
            break
        host.now_ms = max(host.now_ms, state.wake_at_ms)
        host.on(TimeReached())
    assert state.drain is not None
    (row,) = [one for one in stored.rows_of([("agent", "t", state)]) if one.part == stored.DRAINS]
    assert row.cause.endswith("its thread still waits for the run to end")
    assert row.status is Status.FAILED


def test_the_table_and_json(rows: list[stored.Row]) -> None:
    console = Console(width=160)
    with console.capture() as captured:
        console.print(stored.table(rows, rows[0].since_ms + 60_000, console))
    text = captured.get()
    assert "\x1b" not in text
    assert text.split()[:7] == ["call", "agent", "thread", "state", "for", "POSTs", "probes"]
    line = next(line for line in text.splitlines() if "parked" in line)
    assert line.split() == ["parked", "agent", "b", "submitted.parked", "1", "min", "0", "0"]
    told = json.loads(json.dumps(stored.as_data(rows)))
    assert told[0]["status"] == "SUBMITTED" and told[0]["part"] == "goes on"


def test_a_newer_release_wrote_it(tmp_path: Path) -> None:
    schema, *rest = msgpack.unpackb(encode_thread(ThreadState()), use_list=False)
    newer = msgpack.packb((schema + 1, *rest))
    (tmp_path / "0").write_text(json.dumps(['["writer","t-4"]', base64.b64encode(newer).decode()]) + "\n")
    with pytest.raises(ConfigError) as caught:
        list(threads_in(tmp_path, Path("/checkpoints/chk-7")))
    assert str(caught.value) == (
        f'/checkpoints/chk-7: the thread ["writer","t-4"]: written with schema {SCHEMA_VERSION + 1}, this release '
        f"reads up to {SCHEMA_VERSION}: upgrade reattach to the release that wrote it, or a later one"
    )


def test_a_folder_without_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    half = tmp_path / "job" / "chk-8"
    half.mkdir(parents=True)
    assert main(["inspect", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path}: holds no checkpoint or savepoint (no _metadata in it); name a chk-… folder, a savepoint, "
        "or the folder that [job] calls checkpoints, of which the latest is read\n"
    )
    (half / "_metadata").touch()
    assert folder_of(tmp_path) == folder_of(half) == folder_of(half / "_metadata") == half
