"""Crashes that did not happen: recorded histories go on in the simulated world, and nothing breaks."""

import json
from pathlib import Path
from typing import Any

import pytest

from reattach.models import events as e
from reattach.models.answers import Absent, Accepted, NotSent, Occupied, Phase, Present, Refused, Unresolved
from reattach.models.journal import JournalEntry
from reattach.models.lifecycle import Leaf
from reattach.models.outcomes import Failure, FailureCode
from reattach.models.policy import SubmitAfter, Terms
from reattach.runtime.cli.main import main
from reattach.runtime.driver import Driver
from reattach.runtime.mutants.catalogue import MUTANTS
from reattach.runtime.mutants.patching import line, reline
from reattach.runtime.replay.kinds import remote_of
from reattach.runtime.replay.knowledge import Fate
from reattach.runtime.replay.past import Moment, past_of
from reattach.runtime.replay.reading import read
from reattach.runtime.replay.supposing import Supposed, suppose
from reattach.runtime.replay.whatif import Arrival, Checkpoint, Continued, continuations
from reattach.runtime.simulation.faults import ALL, Faults
from reattach.runtime.simulation.remotes import REMOTES
from reattach.runtime.simulation.world import World
from tests.fsm import making
from tests.replay.making import Host, lines_of
from tests.replay.record import HISTORIES, SCENARIOS

BETWEEN = "killed-between-a-post-and-its-answer"
TURNS = "turns-of-one-thread-with-a-kill-between"
NO = Refused(Failure(FailureCode.REJECTED, "too busy", retryable=True))


def history(name: str) -> Path:
    return HISTORIES / f"{name}.journal"


def crash(name: str, number: int, invocation: str = "call-0") -> Supposed:
    (found,) = suppose(read([history(name)]), number, invocation=invocation)
    return found


def latest(host: Host) -> Moment:
    """What is known after the last thing that a host has recorded."""
    return past_of(host.entries).moments[len(host.entries) - 1]


def sending(of: Terms | None = None) -> Host:
    """A host whose POST is under way."""
    host = Host(of)
    host.now_ms = making.QUIET + 10
    host.ask()
    if host.holder is not None and host.holder.leaf is Leaf.NS_PROBING:
        host.on(e.ProbeAnswered(host.ident, Absent("")))
    return host


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_crash_behind_any_entry_of_a_recorded_history_breaks_nothing(name: str) -> None:
    found = list(suppose(read([history(name)]), 0))
    assert [(one.call, one.number) for one in found if not one.worlds] == [], "every entry can be rebuilt"
    assert [(one.number, world.broken) for one in found for world in one.broken] == []
    assert {world.outcome for one in found for world in one.worlds} & {"none", "parked"} == set()
    assert max(world.accepted for one in found for world in one.worlds) <= 1


@pytest.mark.parametrize("remote", REMOTES, ids=lambda remote: remote.name)
@pytest.mark.parametrize("faults", [Faults(), ALL], ids=["calm", "all-faults"])
def test_histories_of_every_kind_of_remote_go_on(tmp_path: Path, remote: Any, faults: Faults) -> None:
    entries: list[JournalEntry] = []
    world = World(5, faults, calls=6, remotes=(remote,), on_entry=entries.append)
    assert world.run().violations == ()
    (tmp_path / "simulated.journal").write_bytes(lines_of(entries))
    found = list(suppose(read([tmp_path / "simulated.journal"]), 0))
    assert [(one.call, one.number, world.broken) for one in found for world in one.broken] == []
    assert sum(bool(one.worlds) for one in found) > 0.9 * len(found) > 0


class TestWorlds:
    def test_a_post_in_doubt_may_have_arrived_or_not_or_be_late(self) -> None:
        found = crash(BETWEEN, 5)
        assert {(world.checkpoint, world.arrival) for world in found.worlds} == {
            (checkpoint, arrival)
            for checkpoint in (Checkpoint.ENTRY, Checkpoint.BEFORE_POST, Checkpoint.NOTHING)
            for arrival in (Arrival.ARRIVED, Arrival.LOST, Arrival.LATE)
        }
        assert {(world.arrival, world.posts, world.accepted) for world in found.worlds} == {
            (Arrival.ARRIVED, 0, 1),
            (Arrival.LOST, 1, 1),
            (Arrival.LATE, 0, 1),
        }

    def test_of_several_posts_the_first_and_the_latest_may_be_undone(self) -> None:
        """Entry 8 is the second POST, which a trusted absence permitted; its answer is entry 9."""
        found = crash("lost-post-then-proven-absent", 8)
        assert {world.checkpoint for world in found.worlds} == set(Checkpoint)
        assert {world.accepted for world in found.worlds} == {1}

    def test_before_the_post_there_is_nothing_in_doubt(self) -> None:
        found = crash(BETWEEN, 4)
        assert [(world.checkpoint, world.arrival, world.posts) for world in found.worlds] == [
            (Checkpoint.ENTRY, Arrival.CERTAIN, 1),
            (Checkpoint.NOTHING, Arrival.CERTAIN, 1),
        ]

    def test_what_is_known_to_run_is_never_sent_again(self) -> None:
        found = crash("killed-while-running-and-rejoined", 7)
        assert [(world.arrival, world.posts, world.accepted) for world in found.worlds] == [(Arrival.CERTAIN, 0, 1)] * 3

    def test_entries_of_one_step_are_stored_together(self) -> None:
        """Nothing is ever stored between the end of a call and the drain of its thread."""
        ended, draining = crash("deadline-with-a-stuck-run", 17), crash("deadline-with-a-stuck-run", 18)
        assert [_facts(world) for world in ended.worlds] == [_facts(world) for world in draining.worlds]

    def test_later_turns_of_the_thread_come_after(self) -> None:
        """The continuation of the first turn reads the requests that were recorded later, one after another."""
        journal = read([history(TURNS)])
        (found,) = suppose(journal, 6, invocation="turn-1")
        for world in found.worlds:
            final = [one.text for one in world.story if one.text.startswith("final")]
            assert final == [f"final: turn-{number} completed" for number in (1, 2, 3)]

    def test_earlier_turns_are_part_of_the_world(self, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = ["replay", str(history(TURNS)), "--invocation", "turn-3", "--what-if", "crash@every"]
        assert main(arguments) == 0
        text = capsys.readouterr().out
        assert text.count("accepted 1; completed") == 10
        assert "turn-1  " not in text

    def test_write_ahead_restored_from_before_its_intent_knows_no_lineage(self) -> None:
        blind = making.terms(making.BLIND, submit_after=SubmitAfter.CHECKPOINT)
        host = Host(blind)
        host.driver = Driver({"agent": blind}, incarnation="life-1", opened_ms=host.now_ms, lineage=True)
        host.ask()
        host.on(e.CheckpointCompleted(host.ident))
        found = list(continuations(past_of(host.entries), latest(host), len(host.entries)))
        assert [world.broken for world in found if world.broken] == []
        assert {(world.checkpoint, world.posts, world.outcome) for world in found} == {
            (checkpoint, 0, "parked") for checkpoint in Checkpoint if checkpoint is not Checkpoint.BEFORE_FIRST
        }


def _facts(world: Continued) -> tuple[object, ...]:
    return world.checkpoint, world.arrival, world.posts, world.accepted, world.outcome


class TestKnowledge:
    def test_an_order_is_in_doubt_until_it_is_answered(self) -> None:
        (run,) = latest(sending()).runs
        assert (run.fate, run.marker) == (Fate.DOUBT, "call-1")
        assert run.bound_ms == making.QUIET + 10 + 1_000 + 2_000 + 500, "validity, timeout, admission"

    @pytest.mark.parametrize(
        ("answer", "fate"),
        [
            (Accepted("run-1"), Fate.YES),
            (NotSent("refused"), Fate.NO),
            (NO, Fate.NO),
            (Unresolved("lost"), Fate.DOUBT),
            (Occupied(), Fate.DOUBT),
        ],
        ids=lambda value: value.name if isinstance(value, Fate) else type(value).__name__,
    )
    def test_its_answer_settles_it_or_not(self, answer: Any, fate: Fate) -> None:
        host = sending()
        host.on(e.SubmitAnswered(host.ident, answer))
        assert [run.fate for run in latest(host).runs] == [fate]

    def test_a_refusal_of_a_second_post_leaves_the_first_in_doubt(self) -> None:
        host = sending(making.terms(making.KEYED))
        host.on(e.SubmitAnswered(host.ident, Unresolved("lost")))
        holder = host.holder
        assert holder is not None
        host.on(e.TimeReached(), holder.wake_at_ms)
        assert latest(host).entry.effects == ("Submit",)
        host.on(e.SubmitAnswered(host.ident, NO))
        assert [run.fate for run in latest(host).runs] == [Fate.DOUBT]

    def test_an_absence_that_the_job_trusts_settles_it(self) -> None:
        host = sending()
        host.on(e.SubmitAnswered(host.ident, Unresolved("lost")))
        early = latest(host)
        assert [run.fate for run in early.runs] == [Fate.DOUBT]
        host.on(e.ProbeAnswered(host.ident, Absent("")))
        assert [run.fate for run in latest(host).runs] == [Fate.DOUBT], "asked before the quiet time had passed"
        holder = host.holder
        assert holder is not None
        host.on(e.TimeReached(), holder.wake_at_ms)
        host.on(e.ProbeAnswered(host.ident, Absent("")))
        assert [run.fate for run in latest(host).runs] == [Fate.NO]

    def test_where_the_run_stands_is_the_last_that_was_said(self) -> None:
        host = sending()
        host.on(e.SubmitAnswered(host.ident, Accepted("run-1")))
        assert [run.phase for run in latest(host).runs] == [Phase.RUNNING]
        holder = host.holder
        assert holder is not None
        host.on(e.TimeReached(), holder.wake_at_ms)
        host.probe(Phase.COMPLETED, b'"done"')
        (run,) = latest(host).runs
        assert (run.fate, run.phase, run.bound_ms) == (Fate.YES, Phase.COMPLETED, 0)

    @pytest.mark.parametrize(("retryable", "accepted"), [(True, 2), (False, 1)])
    def test_a_run_has_failed_as_it_was_recorded(self, retryable: bool, accepted: int) -> None:
        host = sending(making.terms(generations_max=2))
        failure = Failure(FailureCode.REMOTE_FAILED, "no luck", retryable=retryable)
        host.on(e.SubmitAnswered(host.ident, Accepted("run-1")))
        holder = host.holder
        assert holder is not None
        host.on(e.TimeReached(), holder.wake_at_ms)
        host.on(e.ProbeAnswered(host.ident, Present(Phase.FAILED, failure=failure)))
        past, moment = past_of(host.entries), latest(host)
        assert [run.failure for run in moment.runs] == [failure]
        found = [world for world in continuations(past, moment, 9) if world.checkpoint is Checkpoint.NOTHING]
        assert [(world.broken, world.accepted) for world in found] == [("", accepted)]

    def test_a_restore_takes_nothing_from_what_the_remote_knows(self) -> None:
        host = sending()
        stored = host.stored
        host.on(e.SubmitAnswered(host.ident, Accepted("run-1")))
        host.open(stored)
        host.on(e.Restored())
        assert [run.fate for run in latest(host).runs] == [Fate.YES]
        assert latest(host).posted == past_of(host.entries).moments[2].posted

    @pytest.mark.parametrize("remote", REMOTES, ids=lambda remote: remote.name)
    def test_the_kind_of_remote_is_known_by_its_capabilities(self, remote: Any) -> None:
        entries: list[JournalEntry] = []
        world = World(1, calls=1, remotes=(remote,), on_entry=entries.append)
        world.run()
        assert remote_of(world.terms[remote.name], past_of(entries)) == world.servers[remote.name].remote


class TestCommand:
    def test_one_crash_is_told_world_by_world(self, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = ["replay", str(history(BETWEEN)), "--invocation", "call-1", "--what-if", "crash@5"]
        assert main(arguments) == 0
        lines = capsys.readouterr().out.splitlines()
        assert "what if the job had crashed behind entry 5 of call call-1 (agent echo, thread " in lines[9]
        assert sum(line.startswith("! crash ") for line in lines) == 9
        assert sum("restored -> submitted.probing  [Probe]" in line for line in lines) == 1 + 3
        table = lines.index("  the checkpoint           the POST in doubt                 POSTs  accepted  outcome")
        assert lines[table + 2].split()[-3:] == ["1", "1", "completed"]
        assert lines[-1] == "1 crash in 9 worlds: every property holds"

    def test_every_crash_is_a_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        for word in ("crash@every", "crash@*"):
            assert main(["replay", str(history(BETWEEN)), "--what-if", word]) == 0
            lines = capsys.readouterr().out.splitlines()
            assert len(lines) == 2 + 14 + 1
            assert lines[-1] == "14 crashes in 52 worlds: every property holds"

    def test_the_same_is_told_every_time(self, capsys: pytest.CaptureFixture[str]) -> None:
        told = []
        for _ in range(2):
            assert main(["replay", str(history(TURNS)), "--what-if", "crash@8"]) == 0
            told.append(capsys.readouterr().out.splitlines()[2:])
        assert told[0] == told[1]

    def test_a_fault_that_the_history_does_not_show_is_found(self, capsys: pytest.CaptureFixture[str]) -> None:
        """This history holds no restart, so a replay alone cannot tell that a restart sends again."""
        journal = str(history("known-once-and-then-lost"))
        with MUTANTS["resubmit-on-restore"].apply():
            assert main(["replay", journal]) == 0
            capsys.readouterr()
            assert main(["replay", journal, "--what-if", "crash@5"]) == 1
            assert "=> BROKEN: accepted twice: call-0 (at " in capsys.readouterr().out
            assert main(["replay", journal, "--what-if", "crash@every"]) == 1
        text = capsys.readouterr().out
        assert "BROKEN in 1 of 9 worlds" in text
        assert text.count("=> BROKEN: accepted twice: call-0 (at ") == 1, "the first in full"
        assert text.splitlines()[-1].startswith("16 crashes in 50 worlds: ")
        assert not text.endswith("every property holds\n")

    def test_a_call_that_never_ends_is_found(self, capsys: pytest.CaptureFixture[str]) -> None:
        with MUTANTS["quiet-time-from-now"].apply():
            assert main(["replay", str(history(BETWEEN)), "--what-if", "crash@2", "--invocation", "call-0"]) == 1
        assert "=> BROKEN: stuck: call-0" in capsys.readouterr().out

    def test_a_rank_that_falls_is_found(self, capsys: pytest.CaptureFixture[str]) -> None:
        with reline((Leaf.RU_WATCHING,), "restored", line(Leaf.SU_PROBING)):
            assert main(["replay", str(history(TURNS)), "--what-if", "crash@6", "--invocation", "turn-3"]) == 1
        assert "=> BROKEN: rank fell: turn-3" in capsys.readouterr().out

    def test_an_exception_of_todays_code_is_found(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise KeyError("no such order")

        monkeypatch.setattr("reattach.runtime.simulation.network.Network.send", refuse)
        assert main(["replay", str(history(TURNS)), "--what-if", "crash@6", "--invocation", "turn-1"]) == 1
        assert "=> BROKEN: crash: KeyError: 'no such order'" in capsys.readouterr().out

    def test_what_comes_out_otherwise_today_is_not_continued(self, capsys: pytest.CaptureFixture[str]) -> None:
        with MUTANTS["no-quiet-time"].apply():
            assert main(["replay", str(history(BETWEEN)), "--what-if", "crash@every"]) == 1
        text = capsys.readouterr().out
        assert "divergence: call call-0" in text
        assert text.count("left out: what was stored then cannot be rebuilt") == 2 * 3, "entries 3 to 5 of each call"

    def test_machines_read_it(self, tmp_path: Path) -> None:
        target = tmp_path / "found.json"
        assert main(["replay", str(history(BETWEEN)), "--what-if", "crash@5", "--json", str(target)]) == 0
        found = json.loads(target.read_text())
        assert len(found["what_if"]) == 2 * 9
        assert found["what_if"][0] == {
            "agent": "echo",
            "thread_id": "5ec67b3a-e81e-5129-a044-4f187722ac5e",
            "invocation_id": "call-0",
            "entry": 5,
            "checkpoint": "entry",
            "arrival": "arrived",
            "posts": 0,
            "accepted": 1,
            "outcome": "completed",
            "broken": "",
        }

    def test_without_it_nothing_is_supposed(self, tmp_path: Path) -> None:
        target = tmp_path / "found.json"
        assert main(["replay", str(history(BETWEEN)), "--json", str(target)]) == 0
        assert "what_if" not in json.loads(target.read_text())

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            (["crash@0"], "crash@0: crash@N with the number of an entry (from 1), or crash@every"),
            (["crash@-1"], "crash@-1: crash@N with the number of an entry (from 1), or crash@every"),
            (["crash@x"], "crash@x: crash@N with the number of an entry (from 1), or crash@every"),
            (["crash@"], "crash@: crash@N with the number of an entry (from 1), or crash@every"),
            (["reboot@5"], "reboot@5: crash@N with the number of an entry (from 1), or crash@every"),
            (["crash@8"], "crash@8: beyond the end, the longest call has 7 entries"),
            (["crash@6", "--until", "5"], "crash@6: beyond the end, the longest call has 5 entries"),
        ],
        ids=lambda value: value[0] if isinstance(value, list) else "",
    )
    def test_nonsense_is_refused_in_one_line(
        self, capsys: pytest.CaptureFixture[str], more: list[str], message: str
    ) -> None:
        assert main(["replay", str(history(BETWEEN)), "--what-if", *more]) == 2
        assert capsys.readouterr().err == f"error: --what-if {message}\n"

    def test_a_call_that_is_not_there_is_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = ["replay", str(history(BETWEEN)), "--what-if", "crash@1", "--invocation", "call-9"]
        assert main(arguments) == 2
        assert capsys.readouterr().err == "error: --invocation: 'call-9' is none of the calls in this journal\n"

    def test_a_history_without_its_beginning_goes_on_from_the_next_life(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        part = tmp_path / "part.journal"
        lines = history("re-delivered-request").read_bytes().splitlines(keepends=True)
        part.write_bytes(b"".join(lines[1:]))
        assert main(["replay", str(part), "--what-if", "crash@every"]) == 0
        told = "8 crashes in 2 worlds, 6 entries left out: every property holds"
        assert capsys.readouterr().out.splitlines()[-1] == told
        assert main(["replay", str(part), "--what-if", "crash@1"]) == 2
        assert capsys.readouterr().err == "error: --what-if: nothing could be continued\n"

    def test_damage_is_told_and_what_is_whole_goes_on(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        part = tmp_path / "part.journal"
        part.write_bytes(history("re-delivered-request").read_bytes()[:-20])
        assert main(["replay", str(part), "--what-if", "crash@every"]) == 2
        out, err = capsys.readouterr()
        assert out.splitlines()[-1].startswith("8 crashes in ")
        assert "truncated: the last line is not complete" in err
