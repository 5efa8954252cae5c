"""`reattach explain` as people meet it: what it prints, what it says of names that are not there, its JSON."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from reattach.models import events as e
from reattach.models.answers import Phase
from reattach.runtime.cli.main import main
from tests.fsm.making import BLIND, terms
from tests.replay.making import Host, lines_of
from tests.view.making import journal_of


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A folder with a call that is parked, and one that completed after a crash."""
    parked, done = Host(terms(BLIND)), Host()
    parked.ask("call-2")
    done.submit()
    done.open(done.stored)
    done.on(e.Restored())
    done.probe(Phase.COMPLETED, b'"done"')
    folder = tmp_path / "journal"
    folder.mkdir()
    journal_of(folder, parked, done)
    return folder


def test_help_shows_an_example_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--help"]) == 0
    text = capsys.readouterr().out
    assert "Example: reattach explain order-17 --journal journal/" in text
    assert "Exit codes: 0 told, 2 the journal is damaged" in text


def test_a_call_in_words(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "call-1", "--journal", str(journal)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    lines = out.splitlines()
    assert lines[0] == "call-1  agent agent, thread t, generation 1"
    assert lines[1] == "  completed since 1970-01-01 00:16:47 UTC"
    assert re.fullmatch(r"  the journal ends at 1970-01-01 00:16:47 UTC, \d+ d \d+ h ago", lines[2])
    assert [line for line in lines if line and not line.startswith(" ")][1:] == [
        "What happened", "What it waits for", "What was sent", "What the guarantee rests on here", "What may be done",
    ]  # fmt: skip
    happened = lines[lines.index("What happened") + 1 : lines.index("What it waits for") - 1]
    assert happened == [
        "  1970-01-01",
        "  -- life life-1 of the host, opened at 00:16:40.001",
        "  00:16:47.501    1  asked for, as of 1970-01-01 00:16:40 UTC -> not_started.quiet",
        "  00:16:47.501    2  the wait is over; asks whether the remote knows it -> not_started.probing",
        (
            "  00:16:47.501    3  the remote does not know it; it shows no turn there; orders the POST"
            " -> submitted.sending"
        ),
        "  00:16:47.501    4  the remote accepted the POST as run-1; opens the stream -> running.watching",
        "  -- life life-2 of the host, opened at 00:16:47.502: taken over by a new incarnation",
        "  00:16:47.502    5  a new life of the host found it; asks whether the remote knows it -> running.probing",
        "  00:16:47.502    6  the remote shows it completed and brings the result; emits the outcome -> completed",
    ]


def test_the_commands_name_the_config_that_was_given(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "call-2", "--journal", str(journal), "--config", "my jobs/a.toml", "--steps", "1"]) == 0
    out = capsys.readouterr().out
    assert "    reattach control 'my jobs/a.toml' abandon call-2 --agent agent --thread t --generation 1\n" in out
    assert "  (1 steps before; --steps 0 shows all)\n" in out


def test_on_a_terminal_there_are_colors(
    journal: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["explain", "call-2", "--journal", str(journal)]) == 0
    out = capsys.readouterr().out
    assert "\x1b[1mWhat happened" in out
    assert max(len(line) for line in re.sub(r"\x1b\[[0-9;]*m", "", out).splitlines()) <= 100


def test_a_name_that_is_not_there_gets_names_near_it(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "call-3\x1b[31m", "--journal", str(journal)]) == 2
    assert capsys.readouterr().err.startswith("error: 'call-3 [31m' is none of the 2 calls in this journal")
    assert main(["explain", "call", "--journal", str(journal)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: 'call' is none of the 2 calls in this journal; near it: call-2, call-1\n"
    assert main(["explain", "\x1b[31m", "--journal", str(journal)]) == 2
    assert capsys.readouterr().err == (
        "error: ' [31m' is none of the 2 calls in this journal; "
        "a turn that still waits for its thread has no entry yet\n"
    )


def test_machines_read_it(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "call-2", "--journal", str(journal), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["invocation_id"], told["leaf"], told["generation"]) == ("call-2", "submitted.parked", 1)
    assert [option["order"] for option in told["options"]] == ["cancel", "adopt", "resubmit", "abandon"]
    assert told["posts"] == []
    assert told["waits_for"].startswith("for people to decide")
    assert told["wake_at_ms"] > told["since_ms"] == told["steps"][-1]["at_ms"]
    assert main(["explain", "call-1", "--journal", str(journal), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    (post,) = told["posts"]
    assert (post["fate"], post["number"], post["evidence_number"]) == ("yes", 3, 4)
    assert (told["options"], told["handle"]) == ([], "run-1")


def test_one_id_on_two_threads_is_told_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host = Host()
    host.submit()
    first, second = tmp_path / "a.journal", tmp_path / "b.journal"
    first.write_bytes(lines_of(host.entries))
    second.write_bytes(lines_of(replace(entry, agent="other") for entry in host.entries))
    assert main(["explain", "call-1", "--journal", str(first), "--journal", str(second)]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^call-1  agent (\w+)", out, re.MULTILINE) == ["agent", "other"]


def test_bad_input_gets_one_line(journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "call-1"]) == 2
    assert capsys.readouterr().err == "error: Missing option '--journal'. (see reattach explain --help)\n"
    assert main(["explain", "call-1", "--journal", str(tmp_path / "gone")]) == 2
    assert "does not exist" in capsys.readouterr().err
    (journal / "part-1.journal").write_bytes(b"?\n")
    assert main(["explain", "call-1", "--journal", str(journal)]) == 2
    out, err = capsys.readouterr()
    assert "What happened" in out
    assert err.count("\n") == 1 and "no journal entry: not base64; all before it" in err
    assert main(["explain", "call-9", "--journal", str(journal)]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_a_torn_last_line_is_noted(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part = journal / "part-0.journal"
    part.write_bytes(part.read_bytes()[:-5])
    assert main(["explain", "call-1", "--journal", str(journal), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)[0]["leaf"] == "running.probing"
    assert err.startswith("note: ") and "truncated" in err
