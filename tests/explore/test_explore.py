"""The exhaustive search of the shipped code: it visits everything, finds nothing, and can find."""

import json
from pathlib import Path

import pytest

from reattach.fsm import table
from reattach.models.lifecycle import Leaf
from reattach.runtime.cli.main import main
from reattach.runtime.explore.also import ALSO
from reattach.runtime.explore.default import DEFAULT, REMOTES, Bounds, Explored, run, run_all

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


def test_states_are_told_while_a_run_goes_on() -> None:
    told: list[int] = []
    (result,) = run_all((Bounds("fenceable", crashes=1, checkpoints=1, losses=1),), lambda _: None, seen=told.append)
    assert told[-1] == result.states


def test_a_run_that_is_cut_off_is_not_good() -> None:
    result = run(Bounds("status-only"), states_max=500)
    assert not result.complete
    assert not result.good
