"""One call in words: what was sent and how that is known, what may be done, and that all of it is true."""

import json
import shlex
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from reattach.fsm.env import Env
from reattach.fsm.step import step
from reattach.models import events as e
from reattach.models.answers import Absent, Accepted, NotSent, Phase, Present, Refused, Unknown, Unresolved
from reattach.models.codec import decode_entry
from reattach.models.effects import Count, Notify
from reattach.models.events import ProbeAnswered, SubmitAnswered
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import Failure, FailureCode, RemoteFate
from reattach.models.policy import CancelKind, StreamKind, Terms
from reattach.runtime.cli.main import main
from reattach.runtime.orders import read_order
from reattach.runtime.replay.fold import Fold
from reattach.runtime.replay.knowledge import Fate
from reattach.runtime.replay.reading import Journal, read
from reattach.runtime.simulation.history import write_journal
from reattach.runtime.simulation.many import Plan
from reattach.runtime.view import options, rests, words
from reattach.runtime.view.account import Account, account_of, near_names
from reattach.runtime.view.waits import details
from tests.fsm.making import BLIND, CONTAINER, FENCED, KEYED, MARKER, OPENED, QUIET, request, terms
from tests.replay.making import Host, break_guard, lines_of
from tests.view.making import journal

CALL = ("agent", "t", "call-1")


def of(folder: Path, host: Host, now_ms: int = 0) -> Account:
    return account_of(CALL, journal(folder, host), now_ms=now_ms or host.now_ms, config="job.toml")


def told(account: Account, steps_max: int = 0) -> str:
    return "\n".join(line.plain for line in words.lines(account, steps_max))


def section(account: Account, title: str) -> list[str]:
    text = told(account)
    return [line.strip() for line in text.partition(f"\n{title}\n")[2].partition("\n\n")[0].splitlines()]


@cache
def histories() -> tuple[tuple[Account, Journal], ...]:
    """Calls of a simulated job with everything that may go wrong, seen at several times of its life."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "world.journal"
        for seed in (3, 4):
            write_journal(Plan(seed, 60, "all"), file)
            lines = file.read_bytes().splitlines(keepends=True)
            for part in (0.15, 0.3, 0.6, 1):
                file.write_bytes(b"".join(lines[: int(len(lines) * part)]))
                whole = read([file])
                # While it goes on: later, every deadline has passed.
                for call in whole.calls:
                    account = account_of(call, whole, now_ms=whole.latest_ms, config="job.toml")
                    found.append((account, whole))
    return tuple(found)


def test_the_orders_that_are_shown_are_those_that_control_promises() -> None:
    seen: dict[Leaf, set[tuple[str, ...]]] = defaultdict(set)
    for account, _ in histories():
        assert account.unknown == ""
        seen[account.leaf].add(tuple(option.order for option in account.options))
    assert seen[Leaf.COMPLETED] == seen[Leaf.FAILED] == {()}
    assert seen[Leaf.SU_PARKED] <= {("cancel", "adopt", "resubmit", "abandon"), ("adopt", "resubmit", "abandon")}
    assert ("cancel", "adopt", "resubmit", "abandon") in seen[Leaf.SU_PARKED]
    assert ("cancel", "respond") in seen[Leaf.RU_AWAITING_INPUT]
    for leaf in set(seen) - {Leaf.COMPLETED, Leaf.FAILED, Leaf.SU_PARKED}:
        assert seen[leaf] <= {("cancel",), ("cancel", "respond"), ()}, leaf
        if leaf.status is not Status.RUNNING:
            assert seen[leaf] <= {("cancel",), ()}, leaf
    assert len(seen) >= 12


def test_each_line_is_an_order_that_the_job_obeys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line goes through `reattach control`, what that writes through the job's reader, and that to the call."""
    monkeypatch.chdir(tmp_path)
    given: dict[str, int] = defaultdict(int)
    for account, whole in histories():
        for option in account.options:
            if given[option.order] >= 6:
                continue
            given[option.order] += 1
            line = shlex.split(option.command.replace(options.ANSWER, '{"yes": 1}'))
            config(Path("job.toml"), account.call[0])
            assert (line[0], main(line[1:])) == ("reattach", 0)
            (file,) = Path("control").glob("*.jsonl")
            order = read_order(file.read_text().strip(), {account.call[0]: 10_000})
            file.unlink()
            assert obeyed(account, whole, order.event), option.command
            assert (order.agent, order.event.invocation_id) == (account.call[0], account.call[2])
    assert {order: count > 0 for order, count in given.items()} == dict.fromkeys(
        ("cancel", "respond", "adopt", "resubmit", "abandon"), True
    )


def config(file: Path, agent: str) -> None:
    file.write_text(
        '[job]\nrequests = "requests"\noutcomes = "outcomes"\ncheckpoints = "checkpoints"\ncontrol = "control"\n'
        f'[agents.{agent}]\nprotocol = "thread"\nurl = "http://127.0.0.1:9"\npolicy.retention_ms = 1_000_000\n'
    )


def obeyed(account: Account, whole: Journal, order: e.Ordered) -> bool:
    """The step that the job takes, on the record as the journal tells it."""
    fold = Fold()
    entries = [decode_entry(one.data) for one in whole.calls[account.call]]
    for entry in entries:
        fold.add(entry)
    latest = entries[-1]
    assert fold.record is not None and fold.terms is not None
    env = Env(account.now_ms, latest.opened_ms, latest.incarnation, fold.terms, latest.lineage)
    result = step(fold.record, order, env)
    return result.invocation != fold.record and not any(isinstance(one, Count) for one in result.effects)


def test_every_account_can_be_told_and_is_plain_data() -> None:
    for account, whole in histories():
        text = told(account)
        assert text.replace("\n", "").isprintable()
        assert text.count("What may be done") == 1
        data = json.loads(json.dumps(words.as_data(account)))
        assert (data["leaf"], data["known_until_ms"]) == (account.leaf.value, whole.latest_ms)
        assert len(data["posts"]) >= sum("Submit" in one["effects"] for one in data["steps"])


def test_what_is_said_of_a_post_fits_where_the_call_stands() -> None:
    for account, _ in histories():
        fates = [post.fate for post in account.posts]
        generation = account.steps[-1].generation
        latest = [post for post in account.posts if post.generation == generation]
        if account.leaf is Leaf.COMPLETED or account.leaf.value.startswith("running."):
            assert Fate.YES in [post.fate for post in latest], account.call
        if account.leaf is Leaf.SU_SENDING:
            assert latest[-1].fate is Fate.DOUBT or latest[-1].evidence_number < latest[-1].number
        assert all(post.evidence for post in account.posts if post.fate in (Fate.YES, Fate.NO)), account.call
        assert None not in fates
        then = {post.number: account.steps[at + 1] for post in account.posts for at in places(account, post.number)}
        for post in account.posts:
            said = then[post.number].event if post.number in then else ""
            if said == "submit_accepted":
                assert post.fate is Fate.YES, account.call
            if said in ("submit_not_sent", "submit_refused"):
                assert post.fate is not Fate.DOUBT or len(fates) > 1, account.call


def places(account: Account, number: int) -> list[int]:
    """Where the entry stands among the steps, if it is not the last one."""
    return [at for at, step in enumerate(account.steps[:-1]) if step.number == number]


def test_an_answer_proves_a_post(tmp_path: Path) -> None:
    host = Host()
    host.submit()
    (post,) = of(tmp_path, host).posts
    assert (post.number, post.fate, post.evidence_number) == (3, Fate.YES, 4)
    assert section(of(tmp_path, host), "What was sent") == [
        "generation 1: a POST, ordered at 1970-01-01 00:16:47 UTC (entry 3, by life life-1)",
        "accepted; entry 4: the remote accepted the POST as run-1",
    ]


def sent(answer: object, of_: Terms | None = None) -> Host:
    host = Host(of_)
    host.now_ms = OPENED + QUIET
    host.ask()
    if host.holder is not None and host.holder.leaf is Leaf.NS_PROBING:
        host.on(ProbeAnswered(host.ident, Absent("")))
    if answer is not None:
        host.on(SubmitAnswered(host.ident, answer))  # type: ignore[arg-type]
    return host


def test_a_post_in_flight_is_in_doubt_and_nothing_has_come(tmp_path: Path) -> None:
    account = of(tmp_path, sent(None))
    assert [post.fate for post in account.posts] == [Fate.DOUBT]
    assert section(account, "What was sent")[1] == "not known whether the remote accepted it; nothing has come since"
    assert section(account, "What it waits for")[0] == "for the answer to the one POST"


def test_a_lost_answer_leaves_doubt_until_an_absence_can_be_believed(tmp_path: Path) -> None:
    host = sent(Unresolved("cut off"))
    assert of(tmp_path, host).posts[0].fate is Fate.DOUBT
    assert section(of(tmp_path, host), "What was sent")[1] == (
        "not known whether the remote accepted it; entry 4: the POST may or may not have been accepted: cut off"
    )
    host.on(ProbeAnswered(host.ident, Absent("")), host.now_ms + 10)
    assert of(tmp_path, host).posts[0].fate is Fate.DOUBT, "asked too early"
    assert host.holder is not None and host.holder.leaf is Leaf.SU_QUIET
    host.on(e.TimeReached(), host.holder.wake_at_ms)
    host.on(ProbeAnswered(host.ident, Absent("")), host.now_ms + 10)
    (post,) = of(tmp_path, host).posts
    assert (post.fate, post.evidence_number) == (Fate.NO, 7)
    assert "the right to POST is held by the life life-1 alone, and dies with it" in of(tmp_path, host).rests_on
    assert "then it POSTs again without asking, since the one before was not accepted" in of(tmp_path, host).details
    host.on(e.TimeReached(), host.holder.wake_at_ms)
    host.on(SubmitAnswered(host.ident, Accepted("run-2")))
    posts = of(tmp_path, host).posts
    assert [(post.number, post.fate) for post in posts] == [(3, Fate.NO), (8, Fate.YES)]


@pytest.mark.parametrize(
    ("answer", "words_"),
    [
        (
            NotSent("no route"),
            "not accepted, and never will be; entry 4: the POST did not leave this machine: no route",
        ),
        (
            Refused(Failure(FailureCode.REJECTED, "no such model", RemoteFate.NONE)),
            "not accepted, and never will be; entry 4: the remote refused the POST: no such model",
        ),
    ],
)
def test_a_definite_no_proves_that_nothing_was_accepted(tmp_path: Path, answer: object, words_: str) -> None:
    assert section(of(tmp_path, sent(answer)), "What was sent")[1] == words_


def test_the_fact_that_lets_a_second_post_go_settles_the_first(tmp_path: Path) -> None:
    """A POST of a life that was undone: the next life asks, believes the absence, and POSTs."""
    host = Host()
    host.ask()
    checkpoint = host.stored
    host.on(ProbeAnswered(host.ident, Absent("")))
    assert host.holder is not None
    host.on(e.TimeReached(), host.holder.wake_at_ms)
    host.on(ProbeAnswered(host.ident, Absent("")), host.now_ms + 1)
    host.on(SubmitAnswered(host.ident, Unresolved("cut off")))
    host.open(checkpoint)
    host.on(e.Restored())
    host.on(ProbeAnswered(host.ident, Absent("")))
    host.on(e.TimeReached(), host.holder.wake_at_ms)
    host.on(ProbeAnswered(host.ident, Absent("")), host.now_ms + 1)
    account = of(tmp_path, host)
    assert [post.fate for post in account.posts] == [Fate.NO, Fate.DOUBT]
    assert account.posts[0].evidence == "the remote does not know it; it shows no turn there"
    assert [step.number for step in account.steps if step.undone] == [3, 4, 5, 6]
    assert "(undone)" in told(account)
    assert "-- life life-2 of the host, opened at " in told(account)
    assert "restored from an older checkpoint: back to entry 2, 4 entries undone" in told(account)


def test_a_run_that_no_entry_has_started_is_told(tmp_path: Path) -> None:
    host = Host()
    host.ask()
    host.on(ProbeAnswered(host.ident, Present(Phase.RUNNING, "run-7")))
    account = of(tmp_path, host)
    assert [(post.number, post.fate, post.evidence_number) for post in account.posts] == [(0, Fate.YES, 3)]
    assert section(account, "What was sent") == [
        "generation 1: no POST of it is in this journal",
        "accepted; entry 3: the remote shows it running as run-7",
    ]
    assert account.handle == "run-7"


def test_nothing_sent_is_told(tmp_path: Path) -> None:
    host = Host()
    host.ask()
    assert section(of(tmp_path, host), "What was sent") == ["no POST"]


def test_a_key_makes_a_second_post_harmless_and_both_are_told(tmp_path: Path) -> None:
    host = sent(Unresolved("cut off"), terms(KEYED))
    assert host.holder is not None
    host.on(e.TimeReached(), host.holder.wake_at_ms)
    assert [post.fate for post in of(tmp_path, host).posts] == [Fate.DOUBT, Fate.DOUBT]
    assert any("under the same key" in one for one in of(tmp_path, host).rests_on)


def test_each_kind_of_remote_rests_on_its_own() -> None:
    host = Host()
    host.ask()
    assert host.holder is not None
    found = {
        name: rests.rests_on(host.holder, terms(kind), lineage=False, now_ms=host.now_ms)
        for name, kind in (("m", MARKER), ("c", CONTAINER), ("k", KEYED), ("f", FENCED), ("b", BLIND))
    }
    assert "the remote shows every POST that it has accepted: this one carries the marker call-1" in found["m"]
    assert any("a thread that is this call's own" in one for one in found["c"])
    assert any("second POST under the same key" in one for one in found["k"])
    assert any("once the remote has closed the slot" in one for one in found["f"])
    assert any("none is known, so it cannot be asked" in one for one in found["b"])
    assert "a POST is held until a completed checkpoint contains the intention to send it" in found["b"]
    assert any(one.startswith("this life may not be restored") for one in found["b"])
    settle = "a POST is accepted within 3.5 s of its order or never"
    for one in found.values():
        assert f"{settle} (1 s to leave, 2 s to be answered, 500 ms to be shown)" in one
        assert "a superseded task dies within 4 s" in one


def test_what_it_rests_on_changes_with_time_lineage_and_what_is_known() -> None:
    host = Host(terms(BLIND))
    host.ask()
    assert host.holder is not None
    known = replace(host.holder, handle="run-1", resend=True)
    found = rests.rests_on(known, terms(BLIND, overlap_ms=0), lineage=True, now_ms=OPENED + 90_000_000)
    assert any(one.endswith("run-1, which is known") for one in found)
    assert any("what is not started was never sent" in one for one in found)
    assert not any("an absence counts" in one or "an absence proves" in one for one in found), "it never does"
    late, early = (rests.rests_on(known, terms(), lineage=True, now_ms=now) for now in (OPENED + 90_000_000, OPENED))
    assert any("an absence proves nothing now" in one for one in late)
    assert any("an absence counts until" in one for one in early)
    assert any("an earlier POST is unresolved" in one for one in found)
    assert not any("superseded" in one for one in found)


def parked() -> Host:
    host = Host(terms(BLIND))
    host.ask()
    return host


def test_a_parked_call_says_so_and_what_may_be_done(tmp_path: Path) -> None:
    account = of(tmp_path, parked())
    assert section(account, "What it waits for")[:2] == [
        "for people to decide, or for the remote to show the run: the job cannot know what was accepted",
        "the remote cannot be asked, since the run's name is not known",
    ]
    assert section(account, "What may be done") == [
        "wait: it goes on by itself as told above",
        "end it; this protocol cannot end a run, so one that goes on is left to itself:",
        "reattach control job.toml cancel call-1 --agent agent --thread t --generation 1",
        "its run is known to you: follow the one that the remote calls HANDLE:",
        "reattach control job.toml adopt call-1 --agent agent --thread t --generation 1 --handle HANDLE",
        "start it anew under another name, although it may have run: only if running twice does no harm:",
        "reattach control job.toml resubmit call-1 --agent agent --thread t --generation 1",
        "fail it as ambiguous; what it may have started goes on:",
        "reattach control job.toml abandon call-1 --agent agent --thread t --generation 1",
    ]


def test_a_run_that_an_undone_life_has_seen_is_offered_to_be_adopted() -> None:
    offered = [option for account, _ in histories() for option in account.options if option.order == "adopt"]
    filled = [option for option in offered if "HANDLE" not in option.command]
    assert filled
    for option in filled:
        handle = shlex.split(option.command)[-1]
        assert option.meaning == f"follow the run {handle}, which an undone life has seen to be its own"


def test_a_call_that_should_have_gone_on_is_late(tmp_path: Path) -> None:
    host = parked()
    assert host.holder is not None
    wake_ms = host.holder.wake_at_ms
    assert "the job is not running" not in told(of(tmp_path, host, wake_ms + 60_000))
    text = told(of(tmp_path, host, wake_ms + 3 * 3_600_000))
    assert "that was 3 h ago: the job is not running, or no checkpoint has completed since" in text
    assert "its deadline is 1970-01-01 01:16:40 UTC; that has passed" in text
    assert "the journal ends at 1970-01-01 00:16:40 UTC, 3 h 1 min ago" in text


def test_a_question_is_answered_while_there_is_time(tmp_path: Path) -> None:
    host = Host(terms(replace(MARKER, responds=True, cancel=CancelKind.CONFIRMED)))
    host.submit()
    host.on(e.WatchEnded(host.ident, ""))
    host.on(ProbeAnswered(host.ident, Present(Phase.AWAITING_INPUT, question_id="q 1")))
    account = of(tmp_path, host)
    assert [option.order for option in account.options] == ["cancel", "respond"]
    assert account.options[0].meaning == "end it, and its run at the remote"
    assert account.options[1].command.endswith("--generation 1 --question 'q 1' --answer '\"ANSWER\"'")
    assert "the question's id is q 1" in account.details
    host.on(e.TimeReached(), host.now_ms + 60_000)
    host.on(ProbeAnswered(host.ident, Present(Phase.RUNNING)))
    assert of(tmp_path, host).options[1].meaning.startswith("answer the latest question that is known")
    late = of(tmp_path, host, OPENED + 3_600_001)
    assert [option.order for option in late.options] == ["cancel"], "past the deadline nothing is answered"


def test_an_order_that_was_given_is_not_offered_again(tmp_path: Path) -> None:
    host = Host()
    host.submit()
    host.on(e.CancelOrdered("call-1", 1))
    account = of(tmp_path, host)
    assert account.options == ()
    assert "a cancel was ordered: it ends as soon as the remote's side is known" in account.details


def test_a_call_that_has_ended_says_how_and_whether_its_thread_waits(tmp_path: Path) -> None:
    host = Host()
    host.submit()
    host.on(e.WatchEnded(host.ident, ""))
    host.on(ProbeAnswered(host.ident, Unknown("503")), OPENED + 3_600_000 + 60_000)
    account = of(tmp_path, host)
    assert account.leaf is Leaf.FAILED
    text = told(account)
    assert "failed as deadline_exceeded: " in text
    assert "of its run is known: " in text
    assert "its thread still waits for the run to end, until " in text
    assert section(account, "What may be done") == ["nothing: it has ended, and what comes is counted and dropped"]
    host.probe(Phase.COMPLETED)
    assert "its thread still waits" not in told(of(tmp_path, host))


def test_details_of_the_other_leaves() -> None:
    host = Host()
    host.ask()
    assert host.holder is not None
    asked = details(host.holder, host.terms, None)
    assert asked == ["asked at 1970-01-01 00:16:40 UTC, with a time limit of 2 s"]
    assert details(replace(host.holder, tenure=replace(host.holder.tenure, ordered_at_ms=0)), host.terms, None) == []
    host.on(ProbeAnswered(host.ident, Unknown("503")))
    assert details(host.holder, host.terms, None) == ["1 in a row brought nothing", "then it asks", "because: 503"]
    host = sent(None)
    assert host.holder is not None
    assert details(host.holder, host.terms, None)[0].startswith("if it is on its way, the POST ends by ")
    host.on(SubmitAnswered(host.ident, Accepted()))
    assert details(host.holder, host.terms, None) == ["its stream is progress only: each end of it leads to a question"]
    silent = terms(replace(MARKER, stream=StreamKind.NONE))
    assert details(host.holder, silent, None) == [
        "this remote has no stream that is followed: it is asked now and then"
    ]
    askable = replace(host.holder, leaf=Leaf.SU_PARKED)
    assert details(askable, host.terms, None) == ["the remote is asked every 1 min"]
    quiet = replace(host.holder, leaf=Leaf.RU_AWAITING_INPUT)
    assert details(quiet, host.terms, None) == []
    failed = replace(quiet, leaf=Leaf.FAILED, failure=Failure(FailureCode.LOST, "gone", RemoteFate.ENDED, True))
    assert details(failed, host.terms, None)[0] == "failed as lost: gone; trying again later may succeed"


def test_what_cannot_be_rebuilt_is_told_and_nothing_is_made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sent(Unresolved("cut off"))
    whole = list(host.entries)
    host.entries = whole[1:]
    account = of(tmp_path, host)
    assert account.unknown == "the entry with which its latest life began is not in this journal"
    assert (account.options, account.rests_on) == ((), ())
    assert [post.fate for post in account.posts] == [None]
    text = told(account)
    assert "not known here: entries before it are missing" in text
    assert "What may be done" not in text
    assert "Not known\n  the entry with which" in text
    basis = whole[0].basis
    assert basis is not None
    host.entries = [replace(whole[0], basis=replace(basis, terms="{}")), *whole[1:]]
    assert of(tmp_path, host).unknown.startswith("entry 1 cannot be replayed: terms: ")
    host.entries = whole
    break_guard(monkeypatch, "admissible", False)
    assert of(tmp_path, host).unknown == "this release comes to another state at entry 3 (reattach replay shows it)"


def test_turns_of_one_thread_are_told_apart(tmp_path: Path) -> None:
    host = Host()
    host.submit()
    host.ask("call-2")
    host.on(e.WatchEnded(host.ident, ""), host.now_ms + 20_000)
    host.probe(Phase.COMPLETED, b"1")
    host.on(ProbeAnswered(host.ident, Absent("call-1")))
    host.on(SubmitAnswered(host.ident, Accepted("run-2")))
    whole = journal(tmp_path, host)
    for name, handle in (("call-1", "run-1"), ("call-2", "run-2")):
        account = account_of(("agent", "t", name), whole, now_ms=host.now_ms, config="job.toml")
        assert [post.evidence for post in account.posts] == [f"the remote accepted the POST as {handle}"]


def test_long_stories_are_cut_and_days_are_named(tmp_path: Path) -> None:
    host = parked()
    for _ in range(50):
        assert host.holder is not None
        host.on(e.TimeReached(), host.holder.wake_at_ms)
    account = of(tmp_path, host)
    assert "  (49 steps before; --steps 0 shows all)" in told(account, 3)
    assert "steps before" not in told(account, 0)
    assert told(account, 0).count("\n  1970-01-01\n") == 1


def test_entries_that_are_missing_are_told_where_they_were(tmp_path: Path) -> None:
    host = Host()
    host.submit()
    host.open(host.stored)
    host.on(e.Restored())
    host.probe(Phase.RUNNING)
    del host.entries[4]
    assert "-- entries are missing here; life life-2 of the host" in told(of(tmp_path, host))


def named(name: str, **more: str) -> Invocation:
    host = parked()
    assert host.holder is not None
    return replace(host.holder, request=request(name, **more))


@pytest.mark.parametrize(
    ("name", "thread", "words_"),
    [
        ("order 17", "", ["cancel", "order 17", "--agent", "agent", "--generation", "1"]),
        ("$(rm -rf ~)'", "-t", ["cancel", "$(rm -rf ~)'", "--agent", "agent", "--thread=-t", "--generation", "1"]),
        ("--help", "", ["cancel", "--agent", "agent", "--generation", "1", "--", "--help"]),
    ],
)
def test_names_cannot_break_out_of_a_command(name: str, thread: str, words_: list[str]) -> None:
    record = named(name, thread_id=thread)
    line = options.command(record, "cancel", [], "my job.toml")
    assert shlex.split(line) == ["reattach", "control", "my job.toml", *words_]


def test_a_name_with_signs_for_the_terminal_is_written_in_escapes() -> None:
    name = "a\x1b[31m'\\\n\u202eé"
    line = options.command(named(name), "cancel", [], "job.toml")
    assert line.isprintable()
    script = f'shift_name() {{ printf %s "$4"; }}; shift_name {line.removeprefix("reattach ")}'
    # What a shell makes of it is what the job knows.
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode() == name


def names() -> Iterator[tuple[str, str, str]]:
    yield from (("agent", "t", f"order-{number}") for number in range(200))
    yield "agent", "t", "Payment-7"


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("order-17x", ["order-17", "order-1"]),
        ("ORDER-199", ["order-199", "order-19", "order-1"]),
        ("payment", ["Payment-7"]),
        ("ordr-5", ["order-5"]),
        ("???", []),
    ],
)
def test_near_names(wanted: str, near: list[str]) -> None:
    found = near_names(wanted, names())
    assert found[: len(near)] == near
    assert bool(found) is bool(near)


def test_an_order_is_refused_where_notices_would_say_so() -> None:
    host = Host()
    host.submit()
    assert host.holder is not None
    env = Env(host.now_ms, host.driver.opened_ms, "life-1", host.terms)
    effects = step(host.holder, e.AbandonOrdered("call-1", 1), env).effects
    assert [type(one) for one in effects] == [Notify]
    assert [option.order for option in options.options_of(host.holder, env, "job.toml")] == ["cancel"]


def test_a_journal_in_any_order_tells_the_same(tmp_path: Path) -> None:
    host = sent(Unresolved("cut off"))
    account = of(tmp_path, host)
    (tmp_path / "part-0.journal").write_bytes(lines_of(reversed(host.entries)))
    again = account_of(CALL, read([tmp_path / "part-0.journal"]), now_ms=host.now_ms, config="job.toml")
    assert told(again) == told(account)
