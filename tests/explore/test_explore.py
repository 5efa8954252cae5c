"""The exhaustive search of the shipped code: it visits everything, finds nothing, and can find."""

import json
import signal
from pathlib import Path

import pytest

from reattach.fsm import table
from reattach.models.lifecycle import Leaf
from reattach.runtime.cli.main import main
from reattach.runtime.explore import default
from reattach.runtime.explore.also import ALSO
from reattach.runtime.explore.default import DEFAULT, REMOTES, Bounds, Explored, run, run_all
from tests.stopping import STOPS, begun, ended

REQUIRED = {
    *((remote, 1, 2, 2, 2, 0) for remote in REMOTES),
    *((remote, 2, 2, 2, 1, 0) for remote in ("marker-list", "marker-last")),
    ("status-only", 2, 2, 2, 2, 0),
}


@pytest.fixture(scope="module")
def explored() -> dict[Bounds, Explored]:
    """The default run, on all cores."""
    return dict(zip(DEFAULT, run_all(DEFAULT, lambda _: None), strict=True))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_default_run_visits_a_million_worlds_and_more(explored: dict[Bounds, Explored]) -> None:
    assert sum(result.states for result in explored.values()) >= 1_000_000
    assert all(result.complete for result in explored.values())
    assert sum(result.violations for result in explored.values()) == 0
    assert sum(result.stuck for result in explored.values()) == 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("bounds", DEFAULT, ids=str)
def test_every_reachable_world_keeps_every_property(explored: dict[Bounds, Explored], bounds: Bounds) -> None:
    result = explored[bounds]
    assert result.good, result.counterexamples
    assert result.states > 200


def test_the_default_run_has_all_that_is_asked_for() -> None:
    plain = {(b.remote, b.turns, b.crashes, b.checkpoints, b.losses, b.zombies) for b in DEFAULT if not b.also}
    assert plain >= REQUIRED
    assert {b.remote for b in DEFAULT if b.zombies} == set(REMOTES)
    assert {b.also for b in DEFAULT} == set(ALSO)
    assert len(set(DEFAULT)) == len(DEFAULT)


def test_without_the_quiet_time_it_finds_the_second_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break the rule, and the shortest way to a duplicate is shown."""
    lines = table.TABLE[Leaf.NS_PROBING]["found_absent"]
    broken = tuple(
        table.Line(line.guards, line.target, line.notes, (), line.acts)
        if ("admissible", True) in line.guards and line.target is Leaf.SU_SENDING
        else line
        for line in lines
    )
    monkeypatch.setitem(table.TABLE[Leaf.NS_PROBING], "found_absent", broken)
    result = run(Bounds("status-only", crashes=1, checkpoints=1, losses=0))
    assert result.violations == 1
    assert "twice" in result.counterexamples[0]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "runs.json"
    arguments = ["explore", "--remote", "status-only", "--crashes", "1", "--checkpoints", "0", "--losses", "0"]
    assert main([*arguments, "--json", str(target)]) == 0
    (one,) = json.loads(target.read_text())
    assert (one["remote"], one["violations"], one["stuck"]) == ("status-only", 0, 0)
    documented = {
        "remote",
        "turns",
        "crashes",
        "checkpoints",
        "losses",
        "states",
        "edges",
        "violations",
        "stuck",
        "seconds",
    }
    assert set(one) == documented | {"zombies", "also", "depth", "complete", "counterexamples"}
    assert "0 violations" in capsys.readouterr().out


def test_an_unknown_remote_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--remote", "nonsense"]) == 2
    assert "known: status-only" in capsys.readouterr().err


def test_an_unknown_addition_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--remote", "status-only", "--also", "nonsense"]) == 2
    assert "known: questions" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--turns", "--crashes", "--checkpoints", "--losses", "--zombies", "--also"])
def test_a_bound_needs_a_remote(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", option, "cancel" if option == "--also" else "1"]) == 2
    assert capsys.readouterr().err == f"error: {option}: needs --remote\n"


def test_an_empty_remote_is_no_remote(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--remote", ""]) == 2
    assert capsys.readouterr().err.startswith("error: --remote '': no such model remote (known: status-only")


def test_bounds_that_are_not_given_are_as_the_help_says(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Bounds, ...]] = []

    def run_all(runs: tuple[Bounds, ...], *_: object) -> list[Explored]:
        asked.append(runs)
        return []

    monkeypatch.setattr(default, "run_all", run_all)
    assert main(["explore", "--remote", "fenceable"]) == 0
    assert main(["explore", "--remote", "fenceable", "--crashes", "0", "--zombies", "1"]) == 0
    assert main(["explore"]) == 0
    assert asked == [
        (Bounds("fenceable", 1, 2, 2, 2, 0, ""),),
        (Bounds("fenceable", 1, 0, 2, 2, 1, ""),),
        DEFAULT,
    ]


def test_a_file_that_cannot_be_written_is_refused_before_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(default, "run_all", lambda *_: pytest.fail("it searches"))
    file = tmp_path / "no" / "such"
    assert main(["explore", "--json", str(file)]) == 2
    assert capsys.readouterr().err == f"error: --json: {file}: cannot be written: No such file or directory\n"


def test_a_file_gets_each_row_once_under_its_names(capsys: pytest.CaptureFixture[str]) -> None:
    bounds = ["--crashes", "0", "--checkpoints", "0", "--losses", "0"]
    assert main(["explore", "--remote", "status-only", *bounds]) == 0
    names, row, summary = capsys.readouterr().out.splitlines()
    told = dict(zip(names.split(" "), row.split(" "), strict=True))
    assert (told["remote"], told["crashes"], told["also"], told["verdict"]) == ("status-only", "0", "-", "ok")
    assert summary == f"{told['states']} states, 0 violations, 0 stuck"


def test_a_terminal_gets_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    bounds = ["--crashes", "0", "--checkpoints", "0", "--losses", "0"]
    assert main(["explore", "--remote", "status-only", *bounds]) == 0
    shown = capsys.readouterr().out
    assert "Every reachable world" in shown
    assert "verdict" in shown
    assert shown.count("status-only") == 1


def test_what_was_cut_off_is_counted_last(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--remote", "status-only", "--states-max", "500"]) == 1
    *_, row, summary = capsys.readouterr().out.splitlines()
    assert row.endswith(" cut off")
    assert summary.endswith(" states, 0 violations, 0 stuck, 1 cut off")


# So much that it does not end by itself.
ENDLESS = [
    "--remote",
    "marker-list",
    "--turns",
    "2",
    "--crashes",
    "4",
    "--checkpoints",
    "4",
    "--losses",
    "4",
    "--zombies",
    "2",
]


@pytest.mark.parametrize(("how", "code"), STOPS)
def test_a_search_that_is_stopped_leaves_nobody_behind(how: signal.Signals, code: int) -> None:
    with begun(["explore", "--remote", "marker-list", *ENDLESS], rb"exploring, [1-9]") as process:
        process.send_signal(how)
        ended(process, code)


def test_states_are_told_while_a_run_goes_on() -> None:
    told: list[int] = []
    (result,) = run_all((Bounds("fenceable", crashes=1, checkpoints=1, losses=1),), lambda _: None, seen=told.append)
    assert told[-1] == result.states


def test_a_run_that_is_cut_off_is_not_good() -> None:
    result = run(Bounds("status-only"), states_max=500)
    assert not result.complete
    assert not result.good
