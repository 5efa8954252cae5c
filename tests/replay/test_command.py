"""`reattach replay` as people meet it: what it prints, its exit codes, its JSON."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reattach.fsm import step as stepping
from reattach.runtime.cli.main import main
from tests.replay.making import Host, break_guard, killed, lines_of


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A folder with one call: killed while running, completed, restored from the older checkpoint."""
    folder = tmp_path / "journal"
    folder.mkdir()
    (folder / "part-0.journal").write_bytes(lines_of(killed().entries))
    return folder


def test_help_shows_an_example_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--help"]) == 0
    text = capsys.readouterr().out
    assert "Example: reattach replay journal/" in text
    assert "Exit codes: 0 every state is the same" in text


def test_the_same(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(journal)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("replayed 8 entries of 1 call in ")
    assert out.endswith(
        "every state is the same\n  lives: 1 takeover; 1 restore from an older state, 2 entries undone\n"
    )
    assert err == ""


def test_a_divergence(journal: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    break_guard(monkeypatch, "admissible", False)
    assert main(["replay", str(journal)]) == 1
    text = capsys.readouterr().out
    assert "divergence: call call-1 (agent agent, thread t), entry 3 of 8" in text
    assert f"{journal}/part-0.journal, line 3 (offset " in text
    assert ">    3     +0.000 s  life-1    not_started.probing: found_absent -> submitted.sending  [Submit]" in text
    assert "  recorded: submitted.sending  [Submit]  state " in text
    assert "  today:    not_started.quiet  []  state " in text
    assert "    leaf: not_started.probing -> not_started.quiet" in text
    assert "1 call diverged" in text


def test_a_step_that_raises(journal: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> stepping.Step:
        raise KeyError("no such leaf")

    monkeypatch.setattr(stepping, "step", broken)
    assert main(["replay", str(journal)]) == 1
    assert "  today:    raised KeyError: 'no such leaf'" in capsys.readouterr().out


def test_only_the_record_differs(
    journal: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = stepping.step

    def patient(*arguments: Any) -> stepping.Step:
        result = whole(*arguments)
        return replace(result, invocation=replace(result.invocation, tries=7))

    monkeypatch.setattr(stepping, "step", patient)
    assert main(["replay", str(journal)]) == 1
    assert "only the record differs; today's step made of the record:" in (text := capsys.readouterr().out)
    assert "    tries: 0 -> 7" in text


def test_damage_and_divergence_are_told_apart(
    journal: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (journal / "part-1.journal").write_bytes(b"no journal\n")
    assert main(["replay", str(journal)]) == 2
    out, err = capsys.readouterr()
    assert "every state is the same" in out
    assert err == f"error: {journal}/part-1.journal, line 1 (offset 0): no journal entry: not base64\n"
    break_guard(monkeypatch, "admissible", False)
    assert main(["replay", str(journal)]) == 1


def test_missing_entries_are_bad_input(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part = journal / "part-0.journal"
    lines = part.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join(lines[:1] + lines[2:]))
    assert main(["replay", str(journal)]) == 2
    assert "incomplete: 1 call with missing entries, 2 entries not compared" in capsys.readouterr().out
    part.write_bytes(b"".join(lines[1:]))
    assert main(["replay", str(journal)]) == 0, "older parts may have been deleted"
    assert "not compared: 3 entries of lives that began before this journal" in capsys.readouterr().out


def test_one_call_is_shown_entry_by_entry(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(journal), "--invocation", "call-1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8 + 2
    assert lines[0].split() == ["1", "+0.000", "s", "life-1", "(nothing):", "requested", "->", "not_started.quiet"]
    assert lines[4].endswith(
        "running.watching: restored -> running.probing  [Probe]  (taken over by a new incarnation)"
    )
    assert lines[6].endswith("(restored from an older checkpoint: back to entry 4, 2 entries undone)")
    assert main(["replay", str(journal), "--invocation", "call-1", "--until", "2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 1


def test_machines_read_it(journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "found.json"
    assert main(["replay", str(journal), "--json", str(target)]) == 0
    found = json.loads(target.read_text())
    assert (found["verdict"], found["checked"], found["restores"], found["divergences"]) == ("same", 8, 1, [])
    assert found["entries_per_second"] > 0
    break_guard(monkeypatch, "admissible", False)
    (journal / "part-1.journal").write_bytes(b"no journal\n")
    assert main(["replay", str(journal), "--json", str(target)]) == 1
    found = json.loads(target.read_text())
    (divergence,) = found["divergences"]
    assert (divergence["invocation_id"], divergence["entry"], divergence["line"]) == ("call-1", 3, 3)
    assert divergence["recorded"]["leaf"] == "submitted.sending"
    assert divergence["changes"]["leaf"] == ["not_started.probing", "not_started.quiet"]
    assert [row["entry"] for row in divergence["context"]] == [1, 2]
    assert found["damages"][0]["line"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.journal"], "error: Invalid value for 'JOURNAL': "),
        ([], "error: Missing argument 'JOURNAL'."),
        (["{journal}", "--until", "-1"], "error: Invalid value for '--until'"),
        (["{journal}", "--invocation", "call-9"], "error: --invocation: 'call-9' is none of the calls in this journal"),
        (["{journal}", "--json", "{journal}/none/x"], "error: --json: "),
    ],
)
def test_wrong_usage_is_one_line(
    journal: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["replay", *(one.format(journal=journal) for one in arguments)]) == 2
    err = capsys.readouterr().err
    assert err.startswith(message)
    assert err.count("\n") == 1


def test_many_divergences_are_listed_shortly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host()
    for number in range(15):
        host.open(None)
        host.ask(f"call-{number}")
    file = tmp_path / "many.journal"
    file.write_bytes(lines_of(host.entries))
    monkeypatch.setattr("reattach.fsm.step.ORDERS", {leaf: lambda _: None for leaf in stepping.Leaf})  # type: ignore[attr-defined]
    assert main(["replay", str(file)]) == 1
    text = capsys.readouterr().out
    assert text.count("also: call ") == 10
    assert "also: 4 more calls" in text
