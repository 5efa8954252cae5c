"""The record while a step works on it: the only mutable thing in the core, and it never leaves it.

Guards read a draft, notes and orders write to it, `freeze` makes the next record. It mirrors the
fields of `Invocation` (a test compares the two lists), with the tenure laid flat.
"""

from typing import Any

from reattach.fsm.env import Env
from reattach.models.effects import Effect
from reattach.models.events import Event, Ident
from reattach.models.identity import marker_of
from reattach.models.invocation import Invocation, Response, Tenure
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import Failure, Notice, NoticeKind
from reattach.models.policy import Capabilities, Policy

NO_WAIT = -1
CAUSE_CHARS_MAX = 500


class Draft:
    """One step's working copy of an invocation.

    Args:
        source: the leaf in which the step began.
        pause_ms: set by a note: wait this long in the next leaf instead of giving its order.
        ask: set by a note: a parked call is to be probed once more.
    """

    __slots__ = (
        "absences", "after", "answer", "ask", "asked_at_ms", "attempts", "cancelled", "cancels", "cause",
        "cursor", "effects", "entered_ms", "env", "epoch", "event", "failure", "fenced", "generation", "handle",
        "incarnation", "kept", "known_at_ms", "leaf", "ordered_at_ms", "pause_ms", "permit", "probes", "question_id",
        "request", "resend", "response", "result", "sends_end_ms", "slot", "source", "spent_ms", "steps", "streams",
        "tries", "wake_at_ms",
    )  # fmt: skip

    def __init__(self, inv: Invocation, event: Event, env: Env) -> None:
        self.event = event
        # Guards of answers read the answer's own fields; the table only calls them on those events.
        self.answer: Any = getattr(event, "answer", event)
        self.env = env
        self.effects: list[Effect] = []
        self.pause_ms = NO_WAIT
        self.ask = False
        self.result: bytes | None = None
        self.request = inv.request
        self.generation = inv.generation
        self.slot = inv.slot
        self.leaf: Leaf = inv.leaf
        self.source = inv.leaf
        self.epoch = inv.epoch
        self.wake_at_ms = inv.wake_at_ms
        self.asked_at_ms = inv.asked_at_ms
        self.entered_ms = inv.entered_ms
        self.spent_ms = inv.spent_ms
        self.attempts = inv.attempts
        self.probes = inv.probes
        self.tries = inv.tries
        self.cancels = inv.cancels
        self.absences = inv.absences
        self.streams = inv.streams
        self.steps = inv.steps
        self.resend = inv.resend
        self.cancelled = inv.cancelled
        self.handle = inv.handle
        self.cursor = inv.cursor
        self.question_id = inv.question_id
        self.response: Response | None = inv.response
        self.after = inv.after
        self.cause = inv.cause
        self.failure: Failure | None = inv.failure
        self.kept = inv.kept
        self._take_tenure(inv.tenure)

    def _take_tenure(self, tenure: Tenure) -> None:
        # What another incarnation knew of its own sends and permits is worth nothing here.
        if tenure.incarnation != self.env.incarnation:
            tenure = Tenure(self.env.incarnation)
        self.incarnation = tenure.incarnation
        self.permit = tenure.permit
        self.fenced = tenure.fenced
        self.sends_end_ms = tenure.sends_end_ms
        self.ordered_at_ms = tenure.ordered_at_ms
        self.known_at_ms = tenure.known_at_ms

    @property
    def policy(self) -> Policy:
        return self.env.terms.policy

    @property
    def capabilities(self) -> Capabilities:
        return self.env.terms.capabilities

    @property
    def status(self) -> Status:
        return self.leaf.status

    @property
    def ident(self) -> Ident:
        return Ident(self.incarnation, self.request.invocation_id, self.generation, self.epoch)

    @property
    def deadline_ms(self) -> int:
        return self.request.deadline_ms or self.request.requested_at_ms + self.policy.deadline_ms

    @property
    def seed(self) -> str:
        return marker_of(self.request.invocation_id, self.generation)

    def because(self, cause: str) -> None:
        self.cause = cause[:CAUSE_CHARS_MAX]

    def notice(self, kind: NoticeKind, message: str, detail: bytes = b"") -> Notice:
        return Notice(kind, self.request.invocation_id, self.generation, message, detail)

    def freeze(self) -> Invocation:
        return Invocation(
            self.request,
            self.generation,
            self.slot,
            self.leaf,
            self.epoch,
            self.wake_at_ms,
            self.asked_at_ms,
            self.entered_ms,
            Tenure(self.incarnation, self.permit, self.fenced, self.sends_end_ms, self.ordered_at_ms, self.known_at_ms),
            self.spent_ms,
            self.attempts,
            self.probes,
            self.tries,
            self.cancels,
            self.absences,
            self.streams,
            self.steps,
            self.resend,
            self.cancelled,
            self.handle,
            self.cursor,
            self.question_id,
            self.response,
            self.after,
            self.cause,
            self.failure,
            self.kept,
        )
