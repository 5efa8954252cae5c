"""The log's counting, on records made by hand, and the dice of the faults."""

import json
from pathlib import Path

import pytest

from reattach.models.errors import ConfigError
from reattach.runtime.agent.faults import Dice, Latency, Rules
from reattach.runtime.agent.log import Log, LogSummary, Record, read_log


def post(at_ms: int, one: str) -> Record:
    return {"kind": "post", "at_ms": at_ms, "agent": "a", "thread": f"t-{one}", "id": one, "did": "accepted"}


def turn(at_ms: int, one: str, number: int = 1) -> Record:
    return {"kind": "turn", "at_ms": at_ms, "agent": "a", "thread": f"t-{one}", "id": one, "turn": number}


def end(at_ms: int, one: str, number: int = 1) -> Record:
    return {"kind": "end", "at_ms": at_ms, "agent": "a", "thread": f"t-{one}", "turn": number, "status": "completed"}


def read(at_ms: int, one: str, status: str) -> Record:
    return {"kind": "read", "at_ms": at_ms, "agent": "a", "thread": f"t-{one}", "status": status}


def test_counting() -> None:
    records = [
        {"kind": "boot", "at_ms": 0, "threads": 0},
        *(post(1, "x"), turn(1, "x"), end(5, "x")),
        *(post(6, "x"), turn(6, "x", 2)),
        *(post(2, "y"), turn(2, "y"), post(3, "y"), end(9, "y"), read(10, "y", "completed")),
        post(4, "z"),
    ]
    summary = LogSummary.of(records, expected=["x", "y", "z", "w"])
    assert (summary.calls, summary.posts, summary.turns, summary.duplicates) == (3, 5, 3, 1)
    assert (summary.lost, summary.unfinished, summary.reads) == (2, 1, 1)


def test_what_a_crash_met() -> None:
    crash_ms = 100
    records = [
        *(
            post(10, "read-before"),
            turn(10, "read-before"),
            end(20, "read-before"),
            read(30, "read-before", "completed"),
        ),
        *(post(10, "ended"), turn(10, "ended"), end(90, "ended"), read(150, "ended", "completed")),
        *(post(10, "running"), turn(10, "running"), read(120, "running", "running"), end(130, "running")),
        read(140, "running", "completed"),
        *(post(10, "again"), turn(10, "again"), post(110, "again"), read(120, "again", "running")),
        *(post(10, "orphan"), turn(10, "orphan")),
        *(post(110, "new"), turn(110, "new"), end(120, "new"), read(130, "new", "completed")),
    ]
    summary = LogSummary.of(records)
    assert summary.reattached(crash_ms) == 1
    assert summary.read_after_crash(crash_ms) == 2


def test_a_torn_line_is_skipped_and_the_next_starts_a_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = Log(path)
    log.write("boot", note="ünïcödé \ud800")
    log.close()
    path.write_bytes(path.read_bytes() + b'{"kind": "post", "at_')
    log = Log(path, sync=True)
    log.write("boot", threads=1)
    log.close()
    assert [record["kind"] for record in read_log(path)] == ["boot", "boot"]
    assert all(json.loads(line) for line in path.read_bytes().splitlines() if line.endswith(b"}"))


def test_dice_do_not_depend_on_the_order() -> None:
    rules = Rules(seed=7, lose_answer=0.3, times=0)
    names = [f"m{n}" for n in range(1000)]
    forward = {name: Dice(rules).post("lose_answer", name) for name in names}
    dice = Dice(rules)
    backward = {name: dice.post("lose_answer", name) for name in reversed(names)}
    assert forward == backward
    assert 250 < sum(forward.values()) < 350


def test_a_fault_hits_a_message_as_often_as_it_may() -> None:
    dice = Dice(Rules(refuse=1.0, times=2))
    assert [dice.post("refuse", "m") for _ in range(4)] == [True, True, False, False]


def test_latency() -> None:
    latency = Latency.parse("2s-6s")
    spans = [latency.of(1, f"m{n}") for n in range(1000)]
    assert 2_000 <= min(spans) < 2_200 and 5_800 < max(spans) <= 6_000
    assert Latency.parse("250ms") == Latency(250, 250) and Latency.parse("0.5s-2s") == Latency(500, 2_000)
    for wrong in ("", "2", "6s-2s", "-1s", "1s-2s-3s", "inf", "nans", "1e9s"):
        with pytest.raises(ConfigError):
            Latency.parse(wrong)
