"""One entry of a journal in words: the fact that came, and what was ordered because of it.

Sentences hold what the remote said (causes, handles, ids) as it is told in the journal, cut to one line.
Whoever shows them still has to escape them.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from reattach.models import answers as a
from reattach.models import events as e
from reattach.models.journal import JournalEntry
from reattach.models.lifecycle import Leaf
from reattach.runtime.run.inbox import one_line

CAUSE_CHARS_MAX: Final = 300

# Seconds of a unit and its name, and of the one below it.
_UNITS: Final = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))
_WAITED: Final[dict[Leaf, str]] = {
    Leaf.NS_QUIET: "the wait is over",
    Leaf.NS_PROBING: "no answer to the question within its time limit",
    Leaf.NS_BACKING_OFF: "the pause is over",
    Leaf.SU_HOLDING: "no completed checkpoint holds it yet",
    Leaf.SU_SENDING: "no answer to the POST within its time limit",
    Leaf.SU_PROBING: "no answer to the question within its time limit",
    Leaf.SU_QUIET: "the quiet time has passed",
    Leaf.SU_FENCING: "no answer to the fence within its time limit",
    Leaf.SU_BACKING_OFF: "the pause is over",
    Leaf.SU_PARKED: "time to ask again",
    Leaf.RU_WATCHING: "time to ask again",
    Leaf.RU_PROBING: "no answer to the question within its time limit",
    Leaf.RU_FETCHING: "no result within its time limit",
    Leaf.RU_AWAITING_INPUT: "time to ask again",
    Leaf.RU_RESPONDING_SENDING: "no answer to the response within its time limit",
    Leaf.RU_RESPONDING_PROBING: "no answer to the question within its time limit",
    Leaf.RU_RESPONDING_QUIET: "the quiet time has passed",
    Leaf.RU_CANCELLING: "no answer to the cancel within its time limit",
    Leaf.COMPLETED: "time to ask again",
    Leaf.FAILED: "time to ask again",
}
_ORDERED: Final = {
    "Probe": "asks whether the remote knows it",
    "Submit": "orders the POST",
    "Watch": "opens the stream",
    "Fetch": "asks for the result",
    "Fence": "closes the slot",
    "Cancel": "asks the remote to end the run",
    "Respond": "sends the answer to the question",
    "Hold": "holds the POST until a checkpoint contains it",
    "Emit": "emits the outcome",
    "Notify": "gives a notice",
    "Count": "changes nothing, and is counted",
}


def fact(entry: JournalEntry) -> str:
    """Say what came, in one line."""
    event = entry.event
    if isinstance(event, e.TimeReached):
        return "it begins" if entry.before is None else _WAITED[entry.before]
    if isinstance(event, e.Restored) and entry.before is Leaf.FAILED and entry.basis is None:
        # In the life in which it failed, this is how the thread begins to wait.
        return "its thread waits for the run to end"
    return _FACTS[type(event)](event)


def orders(entry: JournalEntry) -> str:
    """Say what was ordered because of it; "" where that is nothing."""
    # Stream events are passed on with every fact of a stream.
    return ", ".join(_ORDERED[name] for name in entry.effects if name in _ORDERED)


def clock(at_ms: int) -> str:
    """A time of day in UTC, to the millisecond."""
    return _utc(at_ms, "%H:%M:%S.") + f"{at_ms % 1000:03}"


def moment(at_ms: int) -> str:
    """A date and a time of day in UTC, to the second."""
    return _utc(at_ms, "%Y-%m-%d %H:%M:%S UTC")


def _utc(at_ms: int, form: str) -> str:
    try:
        return datetime.fromtimestamp(at_ms // 1000, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        # A journal holds what a host's clock said, and no more was checked than that it is a number.
        return f"({at_ms} ms) "


def span(ms: int) -> str:
    """A length of time, in its two largest units."""
    ms = max(0, ms)
    if ms < 1_000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s".replace(".0 s", " s")
    seconds = ms // 1000
    size, unit, smaller, name = next(one for one in _UNITS if seconds >= one[0])
    rest = seconds % size // smaller
    return f"{seconds // size} {unit}" + (f" {rest} {name}" if rest else "")


def _with(text: str, more: str) -> str:
    return f"{text}: {cut(more)}" if more else text


def cut(text: str) -> str:
    """What a remote or a person has said, on one line."""
    return one_line(text, CAUSE_CHARS_MAX)


def _named(text: str, handle: str) -> str:
    return f"{text} as {cut(handle)}" if handle else text


def _probed(event: e.ProbeAnswered) -> str:
    answer = event.answer
    if isinstance(answer, a.Unknown):
        return _with("the remote's answer proves nothing", answer.cause)
    if isinstance(answer, a.Absent):
        if answer.after:
            return f"the remote does not know it; its newest turn there is {cut(answer.after)}"
        return "the remote does not know it" + ("; it shows no turn there" if answer.after == "" else "")
    match answer.phase:
        case a.Phase.RUNNING:
            return _named("the remote shows it running", answer.handle)
        case a.Phase.AWAITING_INPUT:
            return _with("the remote shows it waiting for an answer to its question", answer.question_id)
        case a.Phase.COMPLETED:
            has = " and brings the result" if answer.result is not None else ""
            return _named("the remote shows it completed", answer.handle) + has
        case a.Phase.FAILED:
            return _with(
                "the remote shows that its run failed", "" if answer.failure is None else answer.failure.message
            )
        case a.Phase.CANCELLED:
            return "the remote shows that its run was cancelled"


def _submitted(event: e.SubmitAnswered | e.RespondAnswered) -> str:
    what = "POST" if isinstance(event, e.SubmitAnswered) else "response"
    match event.answer:
        case a.Accepted(handle=handle):
            return _named(f"the remote accepted the {what}", handle)
        case a.Occupied(cause=cause):
            return _with("the remote says that something runs there already", cause)
        case a.Refused(failure=failure):
            return _with(f"the remote refused the {what}", failure.message)
        case a.NotSent(cause=cause):
            return _with(f"the {what} did not leave this machine", cause)
        case a.Unresolved(cause=cause):
            return _with(f"the {what} may or may not have been accepted", cause)


def _fetched(event: e.FetchAnswered) -> str:
    match event.answer:
        case a.Result():
            return "the result has come"
        case a.NotReady():
            return "the remote has no result yet"
        case a.Gone(cause=cause):
            return _with("the remote no longer has the result", cause)
        case a.Unknown(cause=cause):
            return _with("no result came", cause)


def _fenced(event: e.FenceAnswered) -> str:
    match event.answer:
        case a.Fenced():
            return "the slot is closed: no late POST can be accepted in it"
        case a.Occupied(cause=cause):
            return _with("the slot is taken", cause)
        case a.Unknown(cause=cause):
            return _with("it is not known whether the slot is closed", cause)


def _cancelled(event: e.CancelAnswered) -> str:
    match event.answer:
        case a.Confirmed():
            return "the remote says that the run has ended"
        case a.Taken():
            return "the remote took the wish to cancel"
        case a.Unknown(cause=cause):
            return _with("the cancel brought no answer", cause)


def _ended(event: e.WatchEnded) -> str:
    words = "the stream ended"
    return _with(words, "" if event.cause == words else event.cause)


def _progressed(event: e.Progressed) -> str:
    return f"{len(event.items)} stream event{'s' * (len(event.items) != 1)}"


_FACTS: Final[dict[type, Callable[..., str]]] = {
    e.Requested: lambda event: f"asked for, as of {moment(event.request.requested_at_ms)}",
    e.Restored: lambda _: "a new life of the host found it",
    e.ProbeAnswered: _probed,
    e.SubmitAnswered: _submitted,
    e.HandleLearned: lambda event: f"the remote named the run: {cut(event.handle)}",
    e.Progressed: _progressed,
    e.WatchEnded: _ended,
    e.FetchAnswered: _fetched,
    e.FenceAnswered: _fenced,
    e.CancelAnswered: _cancelled,
    e.RespondAnswered: _submitted,
    e.CheckpointCompleted: lambda _: "a completed checkpoint holds the intention to POST",
    e.CancelOrdered: lambda _: "an order: cancel",
    e.AdoptOrdered: lambda event: f"an order: adopt the run {cut(event.handle)}",
    e.ResubmitOrdered: lambda _: "an order: resubmit",
    e.AbandonOrdered: lambda _: "an order: abandon",
    e.ResponseGiven: lambda event: f"an order: respond to the question {cut(event.question_id)}",
}
