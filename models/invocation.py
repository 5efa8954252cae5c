"""What is remembered of one call: the record that a host stores between steps.

The record has three kinds of fields. The *request* never changes. The *position* (generation,
slot, leaf, epoch, wake-up) says where the call is. The *tenure* holds the facts that only the
incarnation which gained them may rely on: when it opened a new life, a host's memory of what is
still in flight died with the old one, so `fsm.step` resets the tenure as a whole.

Only `fsm.step` makes new records. This module checks them, and does nothing else.
"""

from dataclasses import dataclass
from typing import Final

from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import Failure
from reattach.models.record import NOTHING_KEPT, Kept, record
from reattach.models.request import Request

COUNT_MAX: Final = 2**31
TEXT_MAX: Final = 4096
AFTER_MAX: Final = 8


@record
@dataclass(frozen=True, slots=True)
class Tenure:
    """Facts that die with their incarnation.

    Args:
        incarnation: the life of a host that gained them.
        permit: a POST may be sent without asking again (trusted absence, refusal, or not sent).
        fenced: the remote closed this slot, before the latest probe was ordered.
        sends_end_ms: no POST of this incarnation on this thread can still be under way after it.
        ordered_at_ms: when the latest probe was ordered.
        known_at_ms: when the remote was last seen to know this call.
    """

    incarnation: str = ""
    permit: bool = False
    fenced: bool = False
    sends_end_ms: int = 0
    ordered_at_ms: int = 0
    known_at_ms: int = 0


@record
@dataclass(frozen=True, slots=True)
class Response:
    """An answer to a remote's question, on its way."""

    response_id: str
    question_id: str
    payload: bytes


@record
@dataclass(frozen=True, slots=True)
class Invocation:
    """One call. See the module's text for the three kinds of fields.

    Args:
        slot: 1-based attempt number in the remote's own name space, for fenced remotes.
        epoch: number of the latest order given for this thread; answers carry it back.
        wake_at_ms: when the host must step this call again, whatever else happens.
        asked_at_ms: the time from which the remote's memory is counted.
        tries: orders in a row that brought nothing, for the backoff.
        absences: absences in a row of a run that was known.
        streams: twice the streams in a row that ended without an event; odd right behind such an end.
        resend: an earlier POST of this generation is unresolved (remotes that deduplicate).
        cancelled: a cancel was ordered; it is never taken back.
        after: markers of turns that the thread may show as its newest while this call is absent; ""
            stands for "no turn at all".
        cause: one line on why it waits where it waits.
        failure: why it FAILED.
        steps: how many events have been applied.
    """

    request: Request
    generation: int
    slot: int
    leaf: Leaf
    epoch: int
    wake_at_ms: int
    asked_at_ms: int
    entered_ms: int
    tenure: Tenure
    spent_ms: tuple[int, int, int] = (0, 0, 0)
    attempts: int = 0
    probes: int = 0
    tries: int = 0
    cancels: int = 0
    absences: int = 0
    streams: int = 0
    steps: int = 0
    resend: bool = False
    cancelled: bool = False
    handle: str = ""
    cursor: str = ""
    question_id: str = ""
    response: Response | None = None
    after: tuple[str, ...] = ("",)
    cause: str = ""
    failure: Failure | None = None
    kept: Kept = NOTHING_KEPT

    @property
    def status(self) -> Status:
        return self.leaf.status

    @property
    def id(self) -> str:
        return self.request.invocation_id


def check_invocation(invocation: Invocation) -> str:
    """Say what is wrong with a record, "" when it keeps every invariant.

    Guarantee: every record that `step` returns passes (tests/fsm/test_invariants.py).
    """
    inv = invocation
    if inv.leaf.terminal != (inv.wake_at_ms == 0):
        return "a call that has not ended needs a wake-up, one that has ended needs none"
    if (inv.leaf is Leaf.FAILED) != (inv.failure is not None):
        return "FAILED and a failure belong together"
    if inv.generation < 1 or inv.slot < 1 or inv.epoch < 0:
        return "generation and slot start at 1, epoch at 0"
    if len(inv.after) > AFTER_MAX:
        return f"more than {AFTER_MAX} markers to come after"
    if inv.leaf.value.startswith("running.responding") and inv.response is None:
        return "responding without a response"
    if inv.status >= Status.RUNNING and inv.status is not Status.FAILED and inv.tenure.permit:
        return "a permit to POST for a run that is known"
    return ""
