"""The exhaustive search of the shipped code: it visits everything, finds nothing, and can find."""

import json
from pathlib import Path

import pytest

from reattach.fsm import table
from reattach.models.lifecycle import Leaf
from reattach.runtime.cli.main import main
from reattach.runtime.explore.default import REMOTES, Bounds, Explored, run, run_all

RUNS = (
    *(Bounds(remote, crashes=1, checkpoints=1, losses=1) for remote in REMOTES),
    *(Bounds(remote, crashes=1, checkpoints=1, losses=0, zombies=1) for remote in ("status-only", "deduplicating")),
    Bounds("fenceable", crashes=1, checkpoints=0, losses=0, zombies=1),
    Bounds("marker-list", turns=2, crashes=1, checkpoints=1, losses=0),
)


@pytest.fixture(scope="module")
def explored() -> dict[Bounds, Explored]:
    """Every run, on all cores; the command's own default run is larger."""
    return dict(zip(RUNS, run_all(RUNS, lambda _: None), strict=True))


@pytest.mark.parametrize(
    "bounds", RUNS, ids=lambda b: f"{b.remote}-{b.turns}-{b.crashes}{b.checkpoints}{b.losses}{b.zombies}"
)
def test_every_reachable_world_keeps_every_property(explored: dict[Bounds, Explored], bounds: Bounds) -> None:
    result = explored[bounds]
    assert result.good, result.counterexamples
    assert result.states > 500


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
    assert "0 violations" in capsys.readouterr().out


def test_an_unknown_remote_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--remote", "nonsense"]) == 2
    assert "known: status-only" in capsys.readouterr().err


def test_a_run_that_is_cut_off_is_not_good() -> None:
    result = run(Bounds("status-only"), states_max=500)
    assert not result.complete
    assert not result.good
