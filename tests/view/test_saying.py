"""Words for whatever may stand in a journal: every fact has a sentence, and what a remote said stays on one line."""

import typing
from types import UnionType

import pytest

from reattach.fsm.table import TABLE
from reattach.models import answers as a
from reattach.models import effects, events
from reattach.models.events import Ident, ThreadEvent
from reattach.models.journal import JournalEntry
from reattach.models.lifecycle import Leaf
from reattach.models.outcomes import Failure, FailureCode
from reattach.runtime.view import saying, waits
from tests.fsm.making import request

WHO = Ident("life-1", "call-1", 1, 1)
NO = Failure(FailureCode.REJECTED, "no\x1b[31m such\nmodel")


def said(event: ThreadEvent, before: Leaf | None = Leaf.RU_PROBING, names: tuple[str, ...] = ()) -> tuple[str, str]:
    entry = JournalEntry(
        "agent", "t", "call-1", 1, 1, 0, 0, "life-1", False, event, before, Leaf.RU_WATCHING, names, b""
    )
    return saying.fact(entry), saying.orders(entry)


FACTS: list[tuple[ThreadEvent, str]] = [
    (events.Requested(request()), "asked for, as of 1970-01-01 00:16:40 UTC"),
    (events.Restored(), "a new life of the host found it"),
    (events.ProbeAnswered(WHO, a.Absent()), "the remote does not know it"),
    (events.ProbeAnswered(WHO, a.Absent("")), "the remote does not know it; it shows no turn there"),
    (events.ProbeAnswered(WHO, a.Absent("call-0")), "the remote does not know it; its newest turn there is call-0"),
    (events.ProbeAnswered(WHO, a.Unknown("")), "the remote's answer proves nothing"),
    (events.ProbeAnswered(WHO, a.Unknown("500")), "the remote's answer proves nothing: 500"),
    (events.ProbeAnswered(WHO, a.Present(a.Phase.RUNNING, "r1")), "the remote shows it running as r1"),
    (
        events.ProbeAnswered(WHO, a.Present(a.Phase.AWAITING_INPUT, question_id="q1")),
        "the remote shows it waiting for an answer to its question: q1",
    ),
    (events.ProbeAnswered(WHO, a.Present(a.Phase.COMPLETED)), "the remote shows it completed"),
    (
        events.ProbeAnswered(WHO, a.Present(a.Phase.COMPLETED, result=b"1")),
        "the remote shows it completed and brings the result",
    ),
    (events.ProbeAnswered(WHO, a.Present(a.Phase.FAILED)), "the remote shows that its run failed"),
    (
        events.ProbeAnswered(WHO, a.Present(a.Phase.FAILED, failure=NO)),
        "the remote shows that its run failed: no [31m such model",
    ),
    (events.ProbeAnswered(WHO, a.Present(a.Phase.CANCELLED)), "the remote shows that its run was cancelled"),
    (events.SubmitAnswered(WHO, a.Accepted()), "the remote accepted the POST"),
    (events.SubmitAnswered(WHO, a.Occupied("409")), "the remote says that something runs there already: 409"),
    (events.SubmitAnswered(WHO, a.Refused(NO)), "the remote refused the POST: no [31m such model"),
    (events.SubmitAnswered(WHO, a.NotSent("refused")), "the POST did not leave this machine: refused"),
    (events.SubmitAnswered(WHO, a.Unresolved("cut")), "the POST may or may not have been accepted: cut"),
    (events.RespondAnswered(WHO, a.Accepted()), "the remote accepted the response"),
    (events.HandleLearned(WHO, "r1"), "the remote named the run: r1"),
    (events.Progressed(WHO, (a.Progress(b"1"),)), "1 stream event"),
    (events.Progressed(WHO, ()), "0 stream events"),
    (events.WatchEnded(WHO, "eof"), "the stream ended: eof"),
    (events.WatchEnded(WHO, "the stream ended"), "the stream ended"),
    (events.FetchAnswered(WHO, a.Result(b"1")), "the result has come"),
    (events.FetchAnswered(WHO, a.NotReady()), "the remote has no result yet"),
    (events.FetchAnswered(WHO, a.Gone("410")), "the remote no longer has the result: 410"),
    (events.FetchAnswered(WHO, a.Unknown("500")), "no result came: 500"),
    (events.FenceAnswered(WHO, a.Fenced()), "the slot is closed: no late POST can be accepted in it"),
    (events.FenceAnswered(WHO, a.Occupied()), "the slot is taken"),
    (events.FenceAnswered(WHO, a.Unknown("?")), "it is not known whether the slot is closed: ?"),
    (events.CancelAnswered(WHO, a.Confirmed()), "the remote says that the run has ended"),
    (events.CancelAnswered(WHO, a.Taken()), "the remote took the wish to cancel"),
    (events.CancelAnswered(WHO, a.Unknown("")), "the cancel brought no answer"),
    (events.CheckpointCompleted(WHO), "a completed checkpoint holds the intention to POST"),
    (events.CancelOrdered("call-1", 1), "an order: cancel"),
    (events.AdoptOrdered("call-1", 1, "r\n1"), "an order: adopt the run r 1"),
    (events.ResubmitOrdered("call-1", 1, 1), "an order: resubmit"),
    (events.AbandonOrdered("call-1", 1), "an order: abandon"),
    (events.ResponseGiven("call-1", 1, "x", "q1", b"1"), "an order: respond to the question q1"),
]


@pytest.mark.parametrize(("event", "words"), FACTS, ids=[words[:40] for _, words in FACTS])
def test_every_fact_has_a_sentence(event: ThreadEvent, words: str) -> None:
    assert said(event)[0] == words


def members(union: UnionType) -> set[type]:
    return {one for each in typing.get_args(union) for one in (members(each) if typing.get_args(each) else {each})}


def test_no_fact_is_forgotten() -> None:
    told = {type(event) for event, _ in FACTS} | {events.TimeReached}
    assert told == members(events.ThreadEvent)
    answers = {type(event.answer) for event, _ in FACTS if hasattr(event, "answer")}
    unions = (a.ProbeAnswer, a.SubmitAnswer, a.FetchAnswer, a.FenceAnswer, a.CancelAnswer)
    assert answers == set().union(*(members(union) for union in unions))


def test_time_says_what_was_waited_for_in_every_leaf() -> None:
    assert said(events.TimeReached(), None)[0] == "it begins"
    for leaf in Leaf:
        assert said(events.TimeReached(), leaf)[0]
        assert waits.waits_for(leaf).startswith("for ")
    assert said(events.TimeReached(), Leaf.SU_SENDING)[0] == "no answer to the POST within its time limit"
    assert set(TABLE) == set(Leaf)


def test_a_thread_that_begins_to_wait_is_no_new_life() -> None:
    assert said(events.Restored(), Leaf.FAILED)[0] == "its thread waits for the run to end"


def test_every_order_has_words_but_the_ones_that_go_with_each_fact() -> None:
    silent = {one.__name__ for one in members(effects.Effect) if not said(events.Restored(), names=(one.__name__,))[1]}
    assert silent == {"Report"}
    assert said(events.Restored(), names=("Submit", "Report", "Notify"))[1] == "orders the POST, gives a notice"


def test_what_a_remote_says_stays_on_one_line_and_is_cut() -> None:
    words = said(events.WatchEnded(WHO, "a\x1b]0;title\x07\n" + "b" * 5_000))[0]
    assert words.isprintable()
    assert len(words) < 350


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (-5, "0 ms"), (0, "0 ms"), (999, "999 ms"), (1_000, "1 s"), (1_500, "1.5 s"), (59_999, "60 s"),
        (60_000, "1 min"), (61_000, "1 min 1 s"), (3_600_000, "1 h"), (3_661_000, "1 h 1 min"),
        (86_400_000, "1 d"), (90_000_000, "1 d 1 h"),
    ],
)  # fmt: skip
def test_lengths_of_time(ms: int, words: str) -> None:
    assert saying.span(ms) == words


def test_times_are_utc_and_impossible_ones_are_numbers() -> None:
    assert saying.clock(1_764_400_000_007) == "07:06:40.007"
    assert saying.moment(1_764_400_000_007) == "2025-11-29 07:06:40 UTC"
    assert "9223372036854775807" in saying.moment(2**63 - 1)
    assert "9223372036854775807" in saying.clock(2**63 - 1)
