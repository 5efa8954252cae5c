"""`reattach control`: one line in one file, whole or not at all, and errors in one line."""

import json
import os
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from reattach.models.control import ORDERS, parse_order
from reattach.models.errors import ConfigError
from reattach.models.events import ResponseGiven
from reattach.runtime.cli.control import Order
from reattach.runtime.cli.main import main
from reattach.runtime.config import load_config
from reattach.runtime.run.inbox import Inbox, Orders, visible_files

AGENT = '[agents.{name}]\nprotocol = "thread"\nurl = "http://127.0.0.1:1"\npolicy.retention_ms = 1000\n'


def config(folder: Path, *agents: str, control: str = 'control = "orders"') -> Path:
    path = folder / "job.toml"
    path.write_text(
        f'[job]\nrequests = "in"\noutcomes = "out"\ncheckpoints = "state"\n{control}\n'
        + "".join(AGENT.format(name=name) for name in agents or ("a",))
    )
    return path


def written(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in visible_files(folder / "orders")]


def test_every_order_is_a_command() -> None:
    assert issubclass(Order, Enum)
    assert [order.value for order in Order] == list(ORDERS)


@pytest.mark.parametrize(
    ("words", "row"),
    [
        (["cancel", "c"], {"order": "cancel"}),
        (["cancel", "c", "--thread", "t", "--generation", "2"], {"order": "cancel", "generation": 2, "thread_id": "t"}),
        (["adopt", "c", "--handle", "run-7"], {"order": "adopt", "handle": "run-7"}),
        (["abandon", "c", "--agent", "a"], {"order": "abandon"}),
        (
            ["respond", "c", "--question", "q", "--answer", '{"ok": true}', "--response-id", "r"],
            {"order": "respond", "question_id": "q", "payload": {"ok": True}, "response_id": "r"},
        ),
    ],
)
def test_an_order_is_one_line_of_one_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], row: dict[str, Any]
) -> None:
    assert main(["control", str(config(tmp_path)), *words]) == 0
    assert written(tmp_path) == [{"agent": "a", "invocation_id": "c", "generation": 1, **row}]
    (path,) = (tmp_path / "orders").iterdir()
    assert path.suffix == ".jsonl"
    assert path.read_text().endswith("\n")
    assert capsys.readouterr().out == f"{path}\n{path.read_text()}"


def test_a_resubmit_says_when_it_was_ordered(tmp_path: Path) -> None:
    assert main(["control", str(config(tmp_path)), "resubmit", "c"]) == 0
    (row,) = written(tmp_path)
    assert row["ordered_at_ms"] > 1_700_000_000_000
    parse_order(json.dumps(row), payload_bytes_max=100)


def test_the_same_answer_twice_is_one_answer_and_another_is_another(tmp_path: Path) -> None:
    path = str(config(tmp_path))
    (tmp_path / "answer.json").write_text('{"b":1, "a":2}')
    for answer in ('{"a": 2, "b": 1}', f"@{tmp_path}/answer.json", "3"):
        assert main(["control", path, "respond", "c", "--question", "q", "--answer", answer]) == 0
    assert main(["control", path, "respond", "c", "--question", "p", "--answer", "3"]) == 0
    events = [parse_order(json.dumps(row), payload_bytes_max=100).event for row in written(tmp_path)]
    assert events[0] == events[1]
    assert len({event.response_id for event in events if isinstance(event, ResponseGiven)}) == 3


def test_a_file_is_seen_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[dict[str, Any]]] = []
    monkeypatch.setattr(os, "fsync", lambda _: seen.append(written(tmp_path)))
    assert main(["control", str(config(tmp_path)), "cancel", "c"]) == 0
    assert seen == [[]]
    assert len(written(tmp_path)) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cancel"], "Missing argument 'INVOCATION'"),
        (["kill", "c"], "'kill' is not one of 'cancel', 'adopt', 'resubmit', 'abandon', 'respond'"),
        (["adopt", "c"], "adopt needs --handle"),
        (["respond", "c", "--answer", "1"], "respond needs --question"),
        (["cancel", "c", "--response-id", "r"], "--response-id has no meaning with cancel"),
        (["cancel", "c", "--agent", "b"], "agent: none named 'b' is configured (a)"),
        (["cancel", "c", "--generation", "0"], "Invalid value for '--generation'"),
        (["cancel", "x" * 300], "invocation_id: must be a string of 1 to 256 characters"),
        (["respond", "c", "--question", "q", "--answer", "yes"], "--answer: not JSON"),
        (["respond", "c", "--question", "q", "--answer", '"\\ud800"'], "--answer: not plain JSON"),
        (
            ["respond", "c", "--question", "q", "--answer", "@nowhere"],
            "--answer @nowhere: cannot be read: No such file",
        ),
        (["respond", "c", "--question", "q", "--answer", f'"{"x" * 262_144}"'], "payload: 262146 bytes, the limit is"),
    ],
)
def test_errors_are_one_line_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["control", str(config(tmp_path)), *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ") and said.err.count("\n") == 1
    assert message in said.err
    assert written(tmp_path) == []


def test_with_several_agents_one_has_to_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(config(tmp_path, "a", "b"))
    assert main(["control", path, "cancel", "c"]) == 2
    assert "--agent is needed, since there are several: a, b" in capsys.readouterr().err
    assert main(["control", path, "cancel", "c", "--agent", "b"]) == 0


def test_a_job_without_a_control_folder_says_what_to_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = config(tmp_path, control="")
    assert main(["control", str(path), "cancel", "c"]) == 2
    assert capsys.readouterr().err == (
        f'error: {path}: job.control: not set, so the job reads no orders; write control = "control"\n'
    )


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = config(tmp_path, control='control = "file/orders"')
    (tmp_path / "file").write_text("")
    assert main(["control", str(path), "cancel", "c"]) == 2
    assert "job.control:" in capsys.readouterr().err


def test_the_control_folder_is_apart_from_the_others(tmp_path: Path) -> None:
    for value in ("in", "in/orders", "out", "state/orders"):
        with pytest.raises(ConfigError, match=r"job\.control.* or lie within it"):
            load_config(config(tmp_path, control=f'control = "{value}"'))
    with pytest.raises(ConfigError, match=r"job\.rejects: .* must not lie within job\.control"):
        load_config(config(tmp_path, control='control = "orders"\nrejects = "orders/rejects.txt"'))


def test_what_is_no_order_goes_to_the_rejects_with_file_and_line(tmp_path: Path) -> None:
    loaded = load_config(config(tmp_path))
    assert loaded.job.control == tmp_path / "orders"
    main(["control", str(loaded.source), "cancel", "c"])
    (tmp_path / "orders" / "by-hand.jsonl").write_text('\nnonsense\n{"order": "cancel"}\n')
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "bad.jsonl").write_text("nonsense\n")
    for _ in range(2):
        requests, orders = (kind(folder, loaded.job.rejects, {"a": 100}) for kind, folder in kinds(tmp_path))
        requests.look()
        orders.look()
        assert (requests.rejected, orders.rejected) == (1, 2)
    lines = loaded.job.rejects.read_text().splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        "bad.jsonl:1",
        "control/by-hand.jsonl:2",
        "control/by-hand.jsonl:3",
    ]
    assert lines[2].endswith("invocation_id: required")


def kinds(folder: Path) -> list[tuple[type[Inbox] | type[Orders], Path]]:
    return [(Inbox, folder / "in"), (Orders, folder / "orders")]
