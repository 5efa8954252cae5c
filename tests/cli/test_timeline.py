"""`reattach timeline` as people meet it: the table, the page, JSON, and what it says of bad input."""

import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from reattach.models import events as e
from reattach.models.answers import Absent, Phase
from reattach.models.events import ProbeAnswered
from reattach.models.lifecycle import Status
from reattach.runtime.cli.main import main
from reattach.runtime.view import terminal
from reattach.runtime.view.lanes import timeline
from tests.fsm.making import BLIND, terms
from tests.replay.making import Host
from tests.view.making import hostile, journal_of, lane, many


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A folder with three calls: one completed, one that runs, one that is parked."""
    done, running, parked = Host(), Host(), Host(terms(BLIND))
    done.submit()
    done.open(done.stored)
    done.on(e.Restored())
    done.probe(Phase.COMPLETED, b'"done"')
    running.now_ms += 20_000
    running.ask("call-2")
    running.on(ProbeAnswered(running.ident, Absent("")))
    parked.ask("call-3")
    folder = tmp_path / "journal"
    folder.mkdir()
    journal_of(folder, done, running, parked)
    return folder


def test_help_shows_an_example_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["timeline", "--help"]) == 0
    text = capsys.readouterr().out
    assert "Example: reattach timeline journal/ --html timeline.html" in text
    assert "Exit codes: 0 shown, 2 the journal is damaged" in text


def test_the_table(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["timeline", str(journal)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0] == (
        "3 calls in 2 lives of the host, 1970-01-01 00:16:40 UTC to 1970-01-01 00:17:00 UTC (20 s): "
        "SUBMITTED 2 · COMPLETED 1"
    )
    assert lines[1].startswith("n NOT_STARTED   s SUBMITTED   r RUNNING   C COMPLETED   F FAILED   P a POST")
    rows = [line.split() for line in lines if re.match(r" ?call-", line)]
    assert [row[0] for row in rows] == ["call-3", "call-2", "call-1"], "the longest in its state first"
    assert rows[0][:2] == ["call-3", "t"]
    assert "submitted.parked" in rows[0]
    assert "not restored from this job's own" in re.sub(r"\s+", " ", out)
    assert rows[2][-1].endswith("C")
    assert "\x1b" not in out, "no colors where nobody looks"
    assert max(map(len, lines)) <= terminal.PLAIN_COLUMNS


def test_on_a_terminal_there_are_colors_and_no_line_is_too_long() -> None:
    lanes = [*many(12), lane("failed", cause="it broke")]
    of = timeline(lanes)
    for width in (80, 100, 200):
        console = Console(width=width, force_terminal=True, color_system="standard", record=True, file=None)
        with console.capture() as captured:
            console.print(terminal.legend())
            console.print(terminal.table(lanes, of, console))
        text = captured.get()
        assert "\x1b[34m" in text, "what runs is blue"
        plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
        assert max(map(len, plain.splitlines())) <= width
        assert "it broke" in plain


def test_the_command_uses_the_width_of_its_terminal(
    journal: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "90")
    assert main(["timeline", str(journal)]) == 0
    first, *lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert first.startswith("3 calls")
    assert max(map(len, lines[3:])) == 90


def test_columns_that_say_nothing_are_left_out() -> None:
    console = Console(width=160)

    def shown(*agents: str, thread: str = "") -> str:
        lanes = [lane(f"call-{number}", agent=agent, thread=thread) for number, agent in enumerate(agents)]
        with console.capture() as captured:
            console.print(terminal.table(lanes, timeline(lanes), console))
        return captured.get().splitlines()[1]

    assert shown("one", "one").split()[:2] == ["call", "state"]
    assert shown("one", "two").split()[:3] == ["call", "agent", "state"]
    assert shown("one", "one", thread="t").split()[:3] == ["call", "thread", "state"]


def test_names_do_nothing_to_a_terminal() -> None:
    lanes, console = hostile(), Console(width=200)
    with console.capture() as captured:
        console.print(terminal.table(lanes, timeline(lanes), console))
    text = captured.get()
    assert text.replace("\n", "").isprintable()
    assert "[31mred" in text, "without what would make it red"
    assert "window.hurt" in text
    assert len(text) < 40_000, "ten thousand characters are cut"


def test_calls_are_chosen_and_the_rest_is_counted(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["timeline", str(journal), "--status", "completed", "--status", "running"]) == 0
    assert capsys.readouterr().out.startswith("1 call in 2 lives of the host")
    assert main(["timeline", str(journal), "--find", "PARKED", "--agent", "agent", "--thread", "t"]) == 0
    assert "call-3" in capsys.readouterr().out
    assert main(["timeline", str(journal), "--limit", "1"]) == 0
    out = capsys.readouterr().out
    assert out.endswith("and 2 more: --limit, --status, --agent, --thread and --find choose, --html shows all\n")
    assert "call-2" not in out
    assert main(["timeline", str(journal), "--find", "nowhere"]) == 2
    assert capsys.readouterr().err == (
        "error: none of the 3 calls in this journal fits --status, --agent, --thread and --find; "
        "leave one of them out\n"
    )


def test_machines_read_it(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["timeline", str(journal), "--json", "--limit", "1"]) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert err == ""
    assert [call["invocation_id"] for call in told["calls"]] == ["call-3", "call-2", "call-1"], "all of them"
    assert [life["incarnation"] for life in told["lives"]] == ["life-1", "life-2"]
    parked = told["calls"][0]
    assert (parked["status"], parked["leaf"], parked["posts"]) == ("SUBMITTED", "submitted.parked", 0)
    assert parked["cause"].startswith("not restored")
    assert [step["event"] for step in parked["steps"]] == ["requested", "time_reached"]
    assert parked["steps"][0] == {
        "entry": 1, "times": 1, "at_ms": parked["steps"][0]["at_ms"], "incarnation": "life-1", "generation": 1,
        "before": None, "event": "requested", "after": "not_started.quiet", "effects": [],
        "says": "asked for, as of 1970-01-01 00:16:40 UTC", "note": "", "undone": False, "gap": False,
    }  # fmt: skip


def test_the_page_holds_what_was_chosen(journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "a page.html"
    assert main(["timeline", str(journal), "--html", str(page), "--status", "submitted"]) == 0
    assert capsys.readouterr().out.endswith(f"wrote {page}\n")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    told = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert len(told["calls"]) == 2
    assert "call-3" in told["texts"] and "call-1" not in told["texts"]
    assert main(["timeline", str(journal), "--html", str(page), "--json"]) == 0
    json.loads(capsys.readouterr().out)
    assert len(json.loads(page.read_text().partition('id="data">')[2].partition("</script>")[0])["calls"]) == 3


def test_bad_input_gets_one_line_that_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty, other, folder = tmp_path / "empty.journal", tmp_path / "notes.txt", tmp_path / "folder"
    empty.write_bytes(b"\n")
    other.write_bytes(b"hello\n")
    folder.mkdir()
    (folder / ".part-0.inprogress.journal").write_bytes(b"x")

    def said(*arguments: str) -> str:
        assert main(["timeline", *arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        return err

    assert "does not exist. (see reattach timeline --help)" in said(str(tmp_path / "gone.journal"))
    later = "a job writes its journal with its completed checkpoints, so look again after the next one\n"
    assert said(str(empty)) == f"error: {empty}: no entry in it yet; {later}"
    assert said(str(folder)) == f"error: {folder}: holds no *.journal file; {later}"
    assert said(str(other)) == (
        f"error: {other}, line 1 (offset 0): no journal entry: not base64; name files that a job with "
        '`journal = "folder"` in its [job] table has written, or that folder\n'
    )
    assert said(str(empty), "--html", str(tmp_path / "none" / "x.html")).startswith("error: --html: ")
    assert "Invalid value for '--status'" in said(str(empty), "--status", "stuck")


def test_a_last_line_that_is_still_being_written_is_left_out(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part = journal / "part-0.journal"
    whole = part.read_bytes()
    part.write_bytes(whole[:-20])
    assert main(["timeline", str(journal)]) == 0
    out, err = capsys.readouterr()
    assert "3 calls" in out
    assert re.fullmatch(
        rf"note: {re.escape(str(part))}, line \d+ \(offset \d+\): truncated: the last line is not complete; all before "
        r"it is shown\. If a job is writing the file, look again later\n",
        err,
    )


def test_damage_in_the_middle_is_told_and_the_rest_is_shown(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(1, 9):
        (journal / f"part-{number}.journal").write_bytes(b"?\n")
    assert main(["timeline", str(journal), "--json"]) == 2
    out, err = capsys.readouterr()
    assert len(json.loads(out)["calls"]) == 3
    lines = err.splitlines()
    assert lines[0] == (
        f"error: {journal}/part-1.journal, line 1 (offset 0): no journal entry: not base64; "
        "all before it and all other files are shown"
    )
    assert lines[5:] == ["error: 3 more places that cannot be read"]


def test_letters_and_colors_are_there_for_each_status() -> None:
    assert terminal.LETTERS.keys() == terminal.STYLES.keys() == set(Status)
