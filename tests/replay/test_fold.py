"""The fold: what is compared, how lives hang together, and what is history rather than divergence."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reattach.fsm import step as stepping
from reattach.fsm.env import Env
from reattach.models import events as e
from reattach.models.answers import Absent, Phase, Progress
from reattach.models.errors import IllegalEvent
from reattach.models.journal import JournalEntry
from reattach.models.lifecycle import Leaf
from reattach.runtime.replay.fold import Checked, Fold, Skipped, Verdict
from reattach.runtime.replay.lives import Restore
from tests.fsm.making import OPENED, QUIET, request, terms
from tests.fsm.walks import ABSENTS, UNKNOWNS, all_terms, facts, presents
from tests.replay.making import Host, break_guard, replayed

DEADLINE = OPENED + 3_600_000


def verdicts(entries: list[JournalEntry]) -> list[Verdict]:
    fold = Fold()
    return [fold.add(entry) for entry in entries]


def notes(entries: list[JournalEntry]) -> list[str]:
    return [verdict.note for verdict in verdicts(entries) if isinstance(verdict, Checked) and verdict.note]


def assert_same(entries: list[JournalEntry]) -> None:
    for verdict in verdicts(entries):
        assert isinstance(verdict, Checked)
        assert verdict.mismatch is None and not verdict.gap


def test_a_whole_call_comes_to_the_same_states() -> None:
    host = Host()
    host.submit()
    host.on(e.Progressed(host.ident, (Progress(b'{"n":1}'),)))
    host.on(e.WatchEnded(host.ident, "end"))
    host.probe(Phase.COMPLETED, b'"done"')
    assert host.entries[-1].after is Leaf.COMPLETED
    assert_same(host.entries)
    assert notes(host.entries) == []


def test_a_life_that_goes_on_from_the_latest_state_took_over() -> None:
    host = Host()
    host.submit()
    host.open(host.stored)
    host.on(e.Restored())
    assert_same(host.entries)
    assert notes(host.entries) == ["taken over by a new incarnation"]


def test_an_older_checkpoint_is_a_restore_and_no_divergence(tmp_path: Path) -> None:
    host = Host()
    host.submit()
    checkpoint, known = host.stored, len(host.entries)
    host.on(e.WatchEnded(host.ident, "end"))
    host.probe(Phase.COMPLETED, b'"done"')
    undone = len(host.entries) - known
    host.open(checkpoint)
    host.on(e.Restored())
    host.probe(Phase.COMPLETED, b'"done"')
    report, rows = replayed(tmp_path, host.entries)
    assert report.code == 0
    assert (report.restores, report.undone, report.takeovers) == (1, undone, 0)
    (restored,) = [row.verdict for row in rows if isinstance(row.verdict, Checked) and row.verdict.restore]
    assert restored.restore == Restore(known, undone)
    assert restored.note == f"restored from an older checkpoint: back to entry {known}, {undone} entries undone"


def test_a_checkpoint_that_did_not_know_the_call_is_a_restore() -> None:
    host = Host()
    host.submit()
    host.open(None)
    host.submit()
    assert_same(host.entries)
    assert notes(host.entries) == ["restored to before it began: 4 entries undone"]


def test_a_later_generation_and_a_forgotten_call_begin_again() -> None:
    host = Host(terms(tombstone_ttl_ms=1_000_000))
    host.submit()
    host.on(e.TimeReached(), DEADLINE)
    host.probe(Phase.CANCELLED)
    assert host.entries[-1].after is Leaf.FAILED
    host.ask(generation=2, deadline_ms=DEADLINE + 1_000_000)
    assert host.entries[-1].generation == 2
    host.on(e.CancelOrdered("call-1", 2))
    host.on(e.ProbeAnswered(host.ident, Absent("")))
    host.on(e.TimeReached(), DEADLINE + 2_000_000)
    assert host.stored is None
    host.ask(generation=2, deadline_ms=DEADLINE + 9_000_000)
    assert_same(host.entries)
    assert notes(host.entries) == ["generation 2 begins", "asked for again after it had been forgotten"]


def test_later_turns_begin_as_the_thread_let_them() -> None:
    """Epoch, waiting time, markers and an early cancel come from the thread, not from the call."""
    host = Host()
    host.submit()
    host.ask("call-2", turn=2)
    host.ask("call-3", turn=3)
    host.on(e.CancelOrdered("call-3", 1))
    host.on(e.WatchEnded(host.ident, "end"))
    for _ in range(3):
        host.probe(Phase.COMPLETED, b"1")
    assert host.holder is None
    by_call = {name: [one for one in host.entries if one.invocation_id == name] for name in ("call-2", "call-3")}
    assert by_call["call-2"][0].basis is not None and by_call["call-2"][0].basis.record.epoch > 0
    assert by_call["call-3"][0].basis is not None and by_call["call-3"][0].basis.record.cancelled
    for entries in by_call.values():
        assert_same(entries)


def draining() -> Host:
    host = Host()
    host.submit()
    host.on(e.TimeReached(), DEADLINE)
    host.probe(Phase.RUNNING)
    assert host.entries[-1].before is Leaf.FAILED
    return host


def test_a_run_that_outlives_its_call_is_followed_to_its_end() -> None:
    host = draining()
    host.probe(Phase.RUNNING)
    host.on(e.TimeReached(), DEADLINE + 31_000)
    host.on(e.HandleLearned(replace(host.ident, epoch=1), "run-1"))
    host.probe(Phase.COMPLETED, b"1")
    assert host.holder is None
    assert_same(host.entries)


def test_a_life_that_takes_over_a_run_to_wait_for_knows_until_when() -> None:
    host = draining()
    host.open(host.stored)
    host.on(e.Restored())
    host.on(e.TimeReached(), DEADLINE + terms().policy.drain_max_ms)
    assert host.entries[-1].effects == ("Notify",)
    assert_same(host.entries)
    assert notes(host.entries) == ["taken over by a new incarnation"]


@pytest.mark.parametrize(("most", "leaf"), [(4, Leaf.FAILED), (1_000, Leaf.COMPLETED), (11, Leaf.COMPLETED)])
def test_a_result_over_the_limit_is_so_in_the_replay_as_well(most: int, leaf: Leaf) -> None:
    """The digest that stands for a result may be longer or shorter than the result was."""
    host = Host(terms(result_bytes_max=most))
    host.submit()
    host.on(e.WatchEnded(host.ident, "end"))
    host.probe(Phase.COMPLETED, b'"too long"')
    assert host.entries[-1].after is leaf
    assert_same(host.entries)


def test_a_missing_entry_is_a_gap_until_the_next_life() -> None:
    host = Host()
    host.submit()
    host.open(host.stored)
    host.on(e.Restored())
    host.probe(Phase.RUNNING)
    entries = host.entries
    kinds = [type(verdict) for verdict in verdicts(entries[:1] + entries[2:])]
    assert kinds == [Checked, Skipped, Skipped, Checked, Checked]
    assert all(verdict.gap for verdict in verdicts(entries[:1] + entries[2:]) if isinstance(verdict, Skipped))
    (_, _, _, linked, _) = verdicts(entries[:1] + entries[2:])
    assert isinstance(linked, Checked) and not linked.gap, "the state that it went on from stands in the journal"


def test_a_life_from_a_state_that_the_journal_does_not_hold_is_a_gap() -> None:
    host = Host()
    host.submit()
    known = len(host.entries)
    host.on(e.WatchEnded(host.ident, "end"))
    host.open(host.stored)
    host.on(e.Restored())
    (*_, linked) = verdicts(host.entries[:known] + host.entries[known + 1 :])
    assert isinstance(linked, Checked) and linked.gap and linked.mismatch is None


def test_a_clock_that_ran_backwards_between_two_lives_is_no_gap(tmp_path: Path) -> None:
    host = Host()
    host.submit()
    host.now_ms -= 1_000_000
    host.open(host.stored)
    host.on(e.Restored())
    report, rows = replayed(tmp_path, host.entries)
    assert (report.code, report.checked) == (0, len(host.entries))
    assert isinstance(rows[0].verdict, Checked)
    assert rows[0].verdict.note == "goes on from a state further down: the host's clock ran backwards"


def test_a_difference_in_effects_alone_is_one(tmp_path: Path) -> None:
    host = Host()
    host.submit()
    wrong = replace(host.entries[-1], effects=("Submit",))
    report, _ = replayed(tmp_path, [*host.entries[:-1], wrong])
    (found,) = report.divergences
    assert found.mismatch.recorded.effects == ("Submit",) and found.mismatch.today.effects == ("Watch",)


@pytest.mark.parametrize("missing", [4, 6], ids=["by-count", "by-leaf"])
def test_what_tells_a_gap(missing: int, tmp_path: Path) -> None:
    """The count of steps jumps; or it does not, since what follows was dropped, and the leaf does not fit."""
    host = Host()
    host.submit()
    host.on(e.Progressed(host.ident, ()))
    host.on(e.Progressed(host.ident, ()))
    host.on(e.WatchEnded(host.ident, "end"))
    host.on(e.ProbeAnswered(replace(host.ident, epoch=1), Absent("")))
    del host.entries[missing]
    report, rows = replayed(tmp_path, host.entries)
    assert report.divergences == []
    assert report.gaps == 1
    assert isinstance(rows[missing].verdict, Skipped)


def test_a_journal_may_begin_in_the_middle() -> None:
    host = Host()
    host.submit()
    host.open(host.stored)
    host.on(e.Restored())
    assert verdicts(host.entries[2:])[:2] == [Skipped(gap=False)] * 2
    assert notes(host.entries[4:]) == ["goes on from a state older than this journal"]


def test_a_broken_guard_shows_where_and_how(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    host = Host()
    host.ask()
    host.on(e.ProbeAnswered(host.ident, Absent("")))
    assert host.entries[-1].after is Leaf.NS_QUIET, "too early to be believed"
    break_guard(monkeypatch, "admissible", True)
    break_guard(monkeypatch, "credible", True)
    report, _ = replayed(tmp_path, host.entries)
    (found,) = report.divergences
    assert (found.row.number, found.of) == (3, 3)
    assert found.row.place.line == 3
    assert [row.number for row in found.context] == [1, 2]
    assert (found.mismatch.recorded.leaf, found.mismatch.recorded.effects) == ("not_started.quiet", ())
    assert (found.mismatch.today.leaf, found.mismatch.today.effects) == ("submitted.sending", ("Submit",))
    assert found.changes["leaf"] == ("not_started.probing", "submitted.sending")
    assert found.changes["attempts"] == ("0", "1")
    assert "request" not in found.changes and "generation" not in found.changes


def test_a_field_that_no_leaf_shows_is_compared_as_well(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    host = Host()
    host.submit()
    whole = stepping.step

    def patient(*arguments: object) -> stepping.Step:
        result = whole(*arguments)  # type: ignore[arg-type]
        return stepping.Step(replace(result.invocation, tries=result.invocation.tries + 1), result.effects)

    monkeypatch.setattr(stepping, "step", patient)
    report, _ = replayed(tmp_path, host.entries)
    (found,) = report.divergences
    assert found.mismatch.recorded.leaf == found.mismatch.today.leaf
    assert found.mismatch.recorded.state != found.mismatch.today.state
    assert found.row.number == 2


def test_a_step_that_raises_today_is_a_divergence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    host = Host()
    host.submit()

    def strict(*_: object) -> stepping.Step:
        raise IllegalEvent("not any more\nsays today's step")

    monkeypatch.setattr(stepping, "step", strict)
    report, _ = replayed(tmp_path, host.entries)
    (found,) = report.divergences
    assert found.mismatch.today.error == "IllegalEvent: not any more"
    assert found.mismatch.after is None and found.changes == {}


def test_a_thread_that_is_released_earlier_today_is_a_divergence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host = draining()
    host.probe(Phase.RUNNING)
    monkeypatch.setattr("reattach.fsm.drain._ALIVE", frozenset())
    report, _ = replayed(tmp_path, host.entries)
    assert [found.row.number for found in report.divergences] == [len(host.entries)]
    monkeypatch.setattr("reattach.fsm.drain.needs_drain", lambda _: False)
    report, _ = replayed(tmp_path, host.entries)
    assert "not draining" in report.divergences[0].mismatch.today.error


def test_an_entry_that_contradicts_itself_is_damage(tmp_path: Path) -> None:
    host = Host()
    host.ask()
    first = host.entries[0]
    assert first.basis is not None
    for wrong in (
        replace(first, event=e.TimeReached()),
        replace(first, before=Leaf.SU_SENDING),
        replace(first, basis=replace(first.basis, terms="{}")),
    ):
        report, _ = replayed(tmp_path, [wrong, *host.entries[1:]])
        assert report.code == 2
        assert "cannot be replayed from here" in report.damages[0].message


@st.composite
def hosts(draw: st.DrawFn) -> Host:
    """Two turns of a thread, several lives, restores from any state that was ever stored."""
    host = Host(draw(all_terms()))
    host.now_ms += draw(st.sampled_from([0, QUIET - OPENED]))
    asked: list[e.ThreadEvent] = [e.Requested(request(f"call-{n}", thread_id="t", turn=n)) for n in (1, 2)]
    host.on(asked[0])
    kept = [None, host.stored]
    for _ in range(draw(st.integers(1, 25))):
        holder = host.holder
        chance = draw(st.integers(0, 11))
        if chance == 0:
            host.open(draw(st.sampled_from(kept)))
            continue
        event: e.ThreadEvent
        if holder is None or chance == 1:
            event = draw(st.sampled_from(asked))
        elif holder.leaf is Leaf.FAILED and chance < 8:
            event = e.ProbeAnswered(host.ident, draw(st.one_of(presents(), ABSENTS, UNKNOWNS)))
        else:
            event = draw(facts(holder, Env(host.now_ms, 0, host.driver.incarnation, host.terms)))
        if getattr(getattr(event, "ident", None), "epoch", 0) < 0:
            continue
        host.now_ms += draw(st.sampled_from([0, 0, 1, 50, 8_000]))
        wake_ms = holder.wake_at_ms if holder is not None and isinstance(event, e.TimeReached) else 0
        host.on(event, wake_ms)
        kept.append(host.stored)
    return host


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(host=hosts(), shuffle=st.randoms(use_true_random=False))
def test_what_the_driver_wrote_replays_in_whatever_order_it_is_read(
    tmp_path: Path, host: Host, shuffle: object
) -> None:
    """Files are read in any order; only entries of one moment stand in the order in which they were made."""
    report, rows = replayed(tmp_path, host.entries)
    assert report.divergences == [] and report.damages == []
    assert (report.gaps, report.skipped, report.lost) == (0, 0, 0)
    assert len(rows) == report.checked
    lives: dict[str, list[JournalEntry]] = {}
    for entry in host.entries:
        lives.setdefault(entry.incarnation, []).append(entry)
    mixed = list(lives.values())
    shuffle.shuffle(mixed)  # type: ignore[attr-defined]
    again, _ = replayed(tmp_path, [entry for life in mixed for entry in life])
    assert (again.checked, again.restores, again.undone) == (report.checked, report.restores, report.undone)
