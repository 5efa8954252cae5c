"""Faults of sending: what an answer proves, and how far a right to POST reaches."""

from collections.abc import Callable

from reattach.fsm import endings, guards, notes, orders, step
from reattach.fsm.draft import Draft
from reattach.fsm.env import Env
from reattach.fsm.table import TABLE
from reattach.models.answers import Absent, Occupied, Unresolved
from reattach.models.effects import Count, Effect
from reattach.models.events import Event, Ident, SubmitAnswered
from reattach.models.invocation import Invocation, Tenure
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import RemoteFate
from reattach.models.policy import Absence
from reattach.runtime.mutants.mutant import Mutant
from reattach.runtime.mutants.patching import Patch, attribute, item, line, reline, swap, together
from reattach.runtime.mutants.worlds import only_late, trial


def _unresolved_is_not_sent() -> Patch:
    return item(step._ANSWER_NAMES, (SubmitAnswered, Unresolved), "submit_not_sent")


def _occupied_is_not_sent() -> Patch:
    return item(step._ANSWER_NAMES, (SubmitAnswered, Occupied), "submit_not_sent")


def _late_proof_dropped() -> Patch:
    return swap(step._late_proof, lambda *_: False)


def _permit_survives_a_restore() -> Patch:
    take = Draft._take_tenure

    def keep(self: Draft, tenure: Tenure) -> None:
        take(self, tenure)
        self.permit = tenure.permit

    return attribute(Draft, "_take_tenure", keep)


def _permit_not_spent() -> Patch:
    submit = orders.submit

    def again(d: Draft) -> None:
        permit = d.permit
        submit(d)
        d.permit = permit

    return swap(submit, again)


def _send_limit_forgotten() -> Patch:
    submit = orders.submit

    def forget(d: Draft) -> None:
        submit(d)
        d.sends_end_ms = d.env.now_ms

    return swap(submit, forget)


def _refusal_of_a_resend_believed() -> Patch:
    return swap(guards.resending, lambda _: False)


def _leave_slot(d: Draft) -> None:
    d.slot += 1
    d.permit = True


def _fence_skipped() -> Patch:
    return together(
        reline((Leaf.SU_SENDING,), "submit_unresolved", line(Leaf.SU_PROBING, "note_unresolved")),
        reline((Leaf.SU_PROBING,), "found_absent", line(Leaf.SU_BACKING_OFF, "note_silence", _leave_slot)),
    )


def _lost_fence_answer_believed() -> Patch:
    return reline((Leaf.SU_FENCING,), "fence_unanswered", line(Leaf.SU_PROBING, "note_fence"))


def _taken_slot_left_open() -> Patch:
    return reline((Leaf.SU_SENDING,), "submit_occupied", line(Leaf.SU_BACKING_OFF, "note_silence", _leave_slot))


def _matching(same: Callable[[Ident, Ident], bool]) -> Patch:
    """Take an answer for current by less than its whole identity; what no line knows is dropped as ever."""
    screen = step._screen

    def lax(inv: Invocation, event: Event, env: Env) -> Effect | None:
        ident = getattr(event, "ident", None)
        if ident is None:
            return screen(inv, event, env)
        known = step.event_name(event) in TABLE[inv.leaf]
        current = same(ident, Ident(env.incarnation, inv.id, inv.generation, inv.epoch))
        return None if known and current else Count("stale_answer")

    return swap(screen, lax)


def _epoch_ignored() -> Patch:
    return _matching(lambda had, wanted: (*_call(had), had.incarnation) == (*_call(wanted), wanted.incarnation))


def _epoch_alone() -> Patch:
    return _matching(lambda had, wanted: had.epoch == wanted.epoch)


def _incarnation_ignored() -> Patch:
    return _matching(lambda had, wanted: (*_call(had), had.epoch) == (*_call(wanted), wanted.epoch))


def _call(ident: Ident) -> tuple[str, int]:
    return ident.invocation_id, ident.generation


def _first_post_is_no_resend() -> Patch:
    attempt = notes.note_attempt

    def sure(d: Draft) -> None:
        resend = d.resend
        attempt(d)
        d.resend = resend

    return swap(attempt, sure)


def _closed_slot_is_proof() -> Patch:
    fate = endings._fate

    def sure(d: Draft) -> RemoteFate:
        found = fate(d)
        fenceable = d.capabilities.absence is Absence.BY_FENCE and d.status is not Status.RUNNING
        if found is not RemoteFate.UNKNOWN or not fenceable:
            return found
        proven = d.permit or (isinstance(d.answer, Absent) and guards.trusted(d) and guards.credible(d))
        return RemoteFate.NONE if proven else found

    return swap(fate, sure)


MUTANTS = (
    Mutant(
        "unresolved-is-not-sent",
        "A POST without an answer may have been accepted; only what provably never left may be sent again.",
        _unresolved_is_not_sent,
        trial("marker-list", losses=1),
        "accepted twice",
    ),
    Mutant(
        "occupied-is-not-sent",
        "Who finds a slot taken closes it and asks; to send again never gets through (liveness).",
        _occupied_is_not_sent,
        trial("fenceable", crashes=1, losses=1),
        "stuck",
    ),
    Mutant(
        "late-proof-dropped",
        "An acceptance that is answered late is still proof, also where nobody else can tell (liveness).",
        _late_proof_dropped,
        trial("handle-only", losses=1),
        "stuck",
        only_late,
    ),
    Mutant(
        "permit-survives-a-restore",
        "A right to POST dies with the incarnation that gained it.",
        _permit_survives_a_restore,
        trial("marker-list", crashes=1, checkpoints=1, losses=1),
        "accepted twice",
    ),
    Mutant(
        "permit-not-spent",
        "A right to POST is good for one POST.",
        _permit_not_spent,
        trial("marker-list", losses=2),
        "accepted twice",
    ),
    Mutant(
        "send-limit-forgotten",
        "A POST whose answer is late may be under way until its own time limit.",
        _send_limit_forgotten,
        trial("marker-list", losses=1),
        "accepted twice",
    ),
    Mutant(
        "refusal-of-a-resend-believed",
        "A refusal of a resend says nothing about the POST before it.",
        _refusal_of_a_resend_believed,
        trial("deduplicating", losses=3, options={"refusals": True}),
        "false fate",
    ),
    Mutant(
        "fence-skipped",
        "Where a slot can be closed, an absence counts only behind the closed slot.",
        _fence_skipped,
        trial("fenceable", losses=1),
        "accepted twice",
    ),
    Mutant(
        "lost-fence-answer-believed",
        "A fence whose answer was lost entitles to nothing.",
        _lost_fence_answer_believed,
        trial("fenceable", losses=2),
        "accepted twice",
    ),
    Mutant(
        "taken-slot-left-open",
        "Who finds a slot taken closes it before the next one is used.",
        _taken_slot_left_open,
        trial("fenceable", crashes=1),
        "accepted twice",
    ),
    Mutant(
        "epoch-ignored",
        "An answer counts only for the latest order: an older absence was asked for too early.",
        _epoch_ignored,
        trial("marker-list", crashes=1),
        "accepted twice",
    ),
    Mutant(
        "epoch-alone",
        "An epoch is rolled back by a restore, and says nothing without the incarnation and the call.",
        _epoch_alone,
        trial("marker-list", crashes=1, options={"foreign": True}),
        "accepted twice",
    ),
    Mutant(
        "incarnation-ignored",
        "An answer to a dead incarnation's order is not an answer to the same epoch of its successor.",
        _incarnation_ignored,
        trial("marker-list", crashes=1, options={"foreign": True}),
        "accepted twice",
    ),
    Mutant(
        "refusal-settles-an-earlier-life",
        "A refusal says nothing about a POST that an earlier life may have sent.",
        _first_post_is_no_resend,
        trial("deduplicating", crashes=1, losses=2, options={"refusals": True}),
        "false fate",
    ),
    Mutant(
        "closed-slot-proves-that-nothing-runs",
        "A closed slot says nothing about the next one, into which another life may have gone on.",
        _closed_slot_is_proof,
        trial("fenceable", crashes=1, checkpoints=1, losses=1, deadline_ms=5),
        "false fate",
    ),
)
