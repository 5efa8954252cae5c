"""Every deliberate fault is found, the unbroken code passes where it is, and nothing stays broken."""

import json
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reattach.fsm.table import TABLE
from reattach.runtime.cli.main import main
from reattach.runtime.mutants import running
from reattach.runtime.mutants.catalogue import MUTANTS
from reattach.runtime.mutants.mutant import Verdict, where
from reattach.runtime.mutants.patching import attribute, item, swap, together
from tests.packaging.layers import ROOT
from tests.stopping import STOPS, begun, ended

PAGE = ROOT / "docs" / "mutants.md"
REMEDY = "run: reattach mutants --document > docs/mutants.md"
NAMES = tuple(MUTANTS)
PLACES = ("reattach.fsm.", "reattach.runtime.explore.")


# What people who know the problem would break first, and the mutants that do.
ASKED_FOR = {
    "no probe": "no-probe",
    "resubmit on restore": "resubmit-on-restore",
    "no quiet time": "no-quiet-time",
    "quiet time waited after the probe": "quiet-time-after-the-probe",
    "epoch ignored": "epoch-ignored",
    "not-sent and unresolved confused": "unresolved-is-not-sent",
    "absence while RUNNING resubmits": "absence-while-running-resubmits",
    "terminal not absorbing": "terminal-not-absorbing",
    "deadline not armed": "deadline-not-armed",
    "tombstone forgotten": "tombstone-forgotten",
    "queue of turns overlapping": "turns-overlap",
    "fence result ignored": "lost-fence-answer-believed",
    "result emitted before it is stored": "emitted-before-stored",
    "a permit to POST that survives a restore": "permit-survives-a-restore",
    "an answer matched by epoch alone": "epoch-alone",
    "a stamp of an older incarnation trusted": "old-stamps-trusted",
    "a deadline that releases the thread while its POST is in flight": "released-while-its-post-is-in-flight",
    "a re-delivered decision that POSTs again": "decision-posts-at-once",
    "an absence trusted past the retention": "absence-past-the-retention",
    "a status-only thread reused for a second turn": "status-only-thread-reused",
    "write-ahead by timestamp": "write-ahead-by-time",
    "write-ahead by newer than the newest completed": "newer-than-the-newest-completed",
    "a response sent again without asking": "response-sent-again-without-asking",
}


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Verdict]:
    return {verdict.name: verdict for verdict in running.try_all(NAMES, lambda _: None)}


@pytest.fixture(scope="module")
def spared() -> dict[str, tuple[str, ...]]:
    return dict(zip(NAMES, running.spare_all(NAMES), strict=True))


def held() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Everything that a fault could replace, by where it is held."""
    for name, module in sorted(sys.modules.items()):
        if not name.startswith(PLACES):
            continue
        for key, value in vars(module).items():
            yield (name, key), value
            if isinstance(value, type) and value.__module__ == name:
                yield from (((name, key, inner), thing) for inner, thing in vars(value).items())
            if isinstance(value, dict) and not key.startswith("__"):
                yield from (((name, key, repr(inner)), thing) for inner, thing in value.items())
    for leaf, rows in TABLE.items():
        yield from (((leaf.value, event), lines) for event, lines in rows.items())


def snapshot() -> dict[tuple[str, ...], Any]:
    return dict(held())


def differing(one: dict[tuple[str, ...], Any], other: dict[tuple[str, ...], Any]) -> set[tuple[str, ...]]:
    assert one.keys() == other.keys()
    return {place for place in one if one[place] is not other[place]}


@pytest.mark.parametrize("name", NAMES)
def test_the_mutant_is_killed(verdicts: dict[str, Verdict], name: str) -> None:
    assert verdicts[name].killed, f"{name} survives; found instead: {verdicts[name].by or 'nothing'}"


@pytest.mark.parametrize("name", NAMES)
def test_the_unbroken_code_passes_where_the_mutant_is_killed(spared: dict[str, tuple[str, ...]], name: str) -> None:
    assert spared[name] == ()


@pytest.mark.parametrize("name", NAMES)
def test_the_fault_is_there_and_is_gone(name: str) -> None:
    mutant = MUTANTS[name]
    before = snapshot()
    with suppress(InterruptedError), mutant.world(), mutant.apply():
        assert differing(before, snapshot())
        raise InterruptedError
    assert not differing(before, snapshot())


def test_there_are_enough_and_each_tells_its_rule() -> None:
    assert len(MUTANTS) >= 25
    rules = [mutant.breaks for mutant in MUTANTS.values()]
    assert all(rule.endswith((".", ")")) and "\n" not in rule and "|" not in rule for rule in rules)
    assert len(MUTANTS) == sum(len(part) for part in _parts())


def test_what_people_would_break_first_is_broken() -> None:
    assert set(ASKED_FOR.values()) <= set(MUTANTS)
    assert len(set(ASKED_FOR.values())) == len(ASKED_FOR)


def _parts() -> Iterator[tuple[Any, ...]]:
    from reattach.runtime.mutants import ahead, asking, exchange, sending, threads

    for part in (ahead, asking, exchange, sending, threads):
        yield part.MUTANTS


def test_a_function_that_nobody_holds_is_no_fault() -> None:
    with pytest.raises(LookupError, match="unheard"), swap(unheard, unheard):
        pass


def unheard() -> None:
    """Held by nobody in the core."""


def test_faults_of_one_mutant_are_undone_together() -> None:
    table = {"a": 1}
    with (
        pytest.raises(KeyError),
        together(item(table, "a", 2), attribute(sys.modules[__name__], "PAGE", None), item(table, "b", 3)),
    ):
        pass
    assert table == {"a": 1}
    assert PAGE.name == "mutants.md"


def test_the_page_says_what_is_found_today(verdicts: dict[str, Verdict]) -> None:
    page = running.document([verdicts[name] for name in NAMES])
    assert _without_seconds(PAGE.read_text()) == _without_seconds(page), REMEDY


def _without_seconds(page: str) -> str:
    return re.sub(r"\| [0-9.]+ \|$", "|", page, flags=re.MULTILINE)


def test_a_world_is_named_by_what_may_go_wrong() -> None:
    assert where(MUTANTS["permit-survives-a-restore"].trial) == "marker-list/1 (1 crash, 1 checkpoint, 1 loss)"
    assert where(MUTANTS["permit-not-spent"].trial) == "marker-list/1 (2 losses)"
    assert where(MUTANTS["tombstone-forgotten"].trial) == "marker-list/1 (no faults)"


def test_the_command_writes_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "verdicts.json"
    assert main(["mutants", "no-probe", "no-wake-up", "--json", str(path)]) == 0
    assert "2 of 2 killed" in capsys.readouterr().out
    told = json.loads(path.read_text())
    assert [set(one) for one in told] == [{"name", "killed", "by", "depth", "seconds"}] * 2
    assert [one["name"] for one in told] == ["no-probe", "no-wake-up"]
    assert all(one["killed"] is True and one["depth"] >= 1 and one["by"].startswith("explore") for one in told)


def test_a_survivor_is_a_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    survivor = Verdict("no-probe", False, "", 0, 0.0)
    monkeypatch.setattr(running, "try_all", lambda names, done: [survivor for name in names if not done(survivor)])
    assert main(["mutants", "no-probe"]) == 1
    assert "SURVIVED" in capsys.readouterr().out
    assert main(["mutants", "no-probe", "--document"]) == 1
    shown = capsys.readouterr()
    assert "**survives**" in shown.out and shown.out.startswith("# Mutants\n")
    assert "0 of 1 killed" in shown.err


def test_a_name_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mutants", "no-such"]) == 2
    assert "no-such: no such mutant (known: no-probe" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_refused_before_the_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "try_all", lambda *_: pytest.fail("it tries"))
    file = tmp_path / "no" / "such"
    assert main(["mutants", "--json", str(file)]) == 2
    assert capsys.readouterr().err == f"error: --json: {file}: cannot be written: No such file or directory\n"


@pytest.mark.parametrize(("how", "code"), STOPS)
def test_trials_that_are_stopped_leave_nobody_behind(how: signal.Signals, code: int) -> None:
    with begun(["mutants"], rb"[1-9]\d*/%d" % len(NAMES)) as process:
        process.send_signal(how)
        ended(process, code)
