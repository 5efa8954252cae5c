"""What a call waits for, in words."""

from collections.abc import Callable
from typing import Final

from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf
from reattach.models.policy import Evidence, StreamKind, Terms
from reattach.models.thread import Drain
from reattach.runtime.view.saying import cut, moment, span

_WAITS: Final[dict[Leaf, str]] = {
    Leaf.NS_QUIET: "for the moment from which the remote's answer can be believed",
    Leaf.NS_PROBING: "for the remote's answer: does it know the call?",
    Leaf.NS_BACKING_OFF: "for the next try to ask the remote",
    Leaf.SU_HOLDING: "for a completed checkpoint that contains the intention to POST",
    Leaf.SU_SENDING: "for the answer to the one POST",
    Leaf.SU_PROBING: "for the remote's answer: what became of the POST?",
    Leaf.SU_QUIET: "for the quiet time to pass, since a POST may still arrive",
    Leaf.SU_FENCING: "for the remote to close the slot, so that no late POST can land",
    Leaf.SU_BACKING_OFF: "for the next try",
    Leaf.SU_PARKED: "for people to decide, or for the remote to show the run: the job cannot know what was accepted",
    Leaf.RU_WATCHING: "for the run to go on",
    Leaf.RU_PROBING: "for the remote's answer: how is the run?",
    Leaf.RU_FETCHING: "for the result",
    Leaf.RU_AWAITING_INPUT: "for somebody to answer the question that the run asks",
    Leaf.RU_RESPONDING_SENDING: "for the remote to take the answer to its question",
    Leaf.RU_RESPONDING_PROBING: "for the remote's answer: is the question still open?",
    Leaf.RU_RESPONDING_QUIET: "for the quiet time to pass, since the answer to the question may still arrive",
    Leaf.RU_CANCELLING: "for the remote to confirm the cancel",
    Leaf.COMPLETED: "for nothing: it has ended",
    Leaf.FAILED: "for nothing: it has ended",
}


def waits_for(leaf: Leaf) -> str:
    """The sentence that fits every call in this leaf."""
    return _WAITS[leaf]


def details(record: Invocation, terms: Terms, drain: Drain | None) -> list[str]:
    """What is known besides: the cause, what is asked and since when, what there is to wait for after it."""
    found = [] if record.leaf.terminal else _MORE.get(record.leaf, _nothing)(record, terms)
    if record.cause and not record.leaf.terminal:
        found.append(f"because: {cut(record.cause)}")
    if record.cancelled and not record.leaf.terminal:
        found.append("a cancel was ordered: it ends as soon as the remote's side is known")
    if record.failure is not None:
        failure = record.failure
        retry = "; trying again later may succeed" if failure.retryable else ""
        found.append(f"failed as {failure.code.value}: {cut(failure.message)}{retry}")
        found.append(f"of its run is known: {failure.remote.value}")
    if drain is not None:
        found.append(
            f"its thread still waits for the run to end, until {moment(drain.until_ms)} at the latest; "
            "the next turn begins after that"
        )
    return found


def deadline_ms(record: Invocation, terms: Terms) -> int:
    """When the call ends by itself at the latest, as far as it depends on its own side."""
    return record.request.deadline_ms or record.request.requested_at_ms + terms.policy.deadline_ms


def _nothing(_record: Invocation, _terms: Terms) -> list[str]:
    return []


def _asked(record: Invocation, terms: Terms) -> list[str]:
    asked, limit = record.tenure.ordered_at_ms, terms.policy.probe_timeout_ms
    return [f"asked at {moment(asked)}, with a time limit of {span(limit)}"] if asked else []


def _sent(record: Invocation, _terms: Terms) -> list[str]:
    return [f"if it is on its way, the POST ends by {moment(record.tenure.sends_end_ms)}"]


def _trying(record: Invocation, _terms: Terms) -> list[str]:
    what = "POSTs again without asking, since the one before was not accepted" if record.tenure.permit else "asks"
    return [f"{record.tries} in a row brought nothing", f"then it {what}"]


def _parked(record: Invocation, terms: Terms) -> list[str]:
    if terms.capabilities.evidence is Evidence.HANDLE_ONLY and not record.handle:
        return ["the remote cannot be asked, since the run's name is not known"]
    return [f"the remote is asked every {span(terms.policy.park_probe_ms)}"]


def _watching(_record: Invocation, terms: Terms) -> list[str]:
    if terms.capabilities.stream is StreamKind.NONE or not terms.policy.watch:
        return ["this remote has no stream that is followed: it is asked now and then"]
    return ["its stream is progress only: each end of it leads to a question"]


def _question(record: Invocation, _terms: Terms) -> list[str]:
    return [f"the question's id is {cut(record.question_id)}"] if record.question_id else []


_MORE: Final[dict[Leaf, Callable[[Invocation, Terms], list[str]]]] = {
    Leaf.NS_PROBING: _asked,
    Leaf.NS_BACKING_OFF: _trying,
    Leaf.SU_SENDING: _sent,
    Leaf.SU_PROBING: _asked,
    Leaf.SU_BACKING_OFF: _trying,
    Leaf.SU_PARKED: _parked,
    Leaf.RU_WATCHING: _watching,
    Leaf.RU_PROBING: _asked,
    Leaf.RU_AWAITING_INPUT: _question,
    Leaf.RU_RESPONDING_SENDING: _question,
    Leaf.RU_RESPONDING_PROBING: _question,
    Leaf.RU_RESPONDING_QUIET: _question,
}
