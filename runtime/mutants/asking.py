"""Faults of asking: when an absence may be believed."""

from reattach.fsm import guards
from reattach.fsm.draft import Draft
from reattach.fsm.guards import quiet_until_ms
from reattach.fsm.table import TABLE
from reattach.models.answers import Absent
from reattach.models.invocation import Tenure
from reattach.models.lifecycle import Leaf
from reattach.models.policy import Absence
from reattach.runtime.explore.kinds import slow
from reattach.runtime.explore.runs import named
from reattach.runtime.mutants.mutant import Mutant
from reattach.runtime.mutants.patching import Patch, attribute, before_lines, line, reline, swap, together
from reattach.runtime.mutants.worlds import forgetting, trial

_FRESH = (Leaf.NS_QUIET, Leaf.NS_BACKING_OFF)
_UNRESOLVED = (Leaf.SU_SENDING, Leaf.SU_PROBING, Leaf.SU_QUIET, Leaf.SU_FENCING, Leaf.SU_BACKING_OFF)


def _no_probe() -> Patch:
    return reline(_FRESH, "time_reached", line(Leaf.SU_SENDING, "note_attempt"))


def _resubmit_on_restore() -> Patch:
    return reline(_UNRESOLVED, "restored", line(Leaf.SU_SENDING, "note_attempt"))


def _no_quiet_time() -> Patch:
    return swap(quiet_until_ms, lambda _: 0)


def _waited_after_the_probe() -> Patch:
    def trusted(d: Draft) -> bool:
        return d.capabilities.absence is Absence.AFTER_QUIET and d.env.now_ms >= quiet_until_ms(d)

    return swap(guards.trusted, trusted)


def _overlap_ignored() -> Patch:
    def quiet(d: Draft) -> int:
        opened = d.env.opened_ms + d.env.terms.settle_ms
        return max(opened, d.sends_end_ms + d.env.terms.admission_ms) if d.sends_end_ms else opened

    return swap(quiet_until_ms, quiet)


def _admission_ignored() -> Patch:
    def quiet(d: Draft) -> int:
        policy = d.policy
        opened = d.env.opened_ms + policy.overlap_ms + policy.submit_validity_ms + policy.submit_timeout_ms
        return max(opened, d.sends_end_ms)

    return swap(quiet_until_ms, quiet)


def _own_sends_ignored() -> Patch:
    return swap(quiet_until_ms, lambda d: d.env.opened_ms + d.policy.overlap_ms + d.env.terms.settle_ms)


def _old_stamps_trusted() -> Patch:
    def take(self: Draft, tenure: Tenure) -> None:
        self.incarnation = self.env.incarnation
        self.permit = self.fenced = False
        self.sends_end_ms = tenure.sends_end_ms
        self.ordered_at_ms = tenure.ordered_at_ms
        self.known_at_ms = tenure.known_at_ms
        if tenure.incarnation == self.env.incarnation:
            self.permit, self.fenced = tenure.permit, tenure.fenced

    def quiet(d: Draft) -> int:
        terms = d.env.terms
        if d.sends_end_ms:
            return d.sends_end_ms + terms.admission_ms
        return d.env.opened_ms + terms.policy.overlap_ms + terms.settle_ms

    return together(attribute(Draft, "_take_tenure", take), swap(quiet_until_ms, quiet))


def _quiet_time_from_now() -> Patch:
    return swap(quiet_until_ms, lambda d: d.env.now_ms + d.policy.overlap_ms + d.env.terms.settle_ms)


def _memory_ignored() -> Patch:
    return swap(guards.remembered, lambda _: True)


def _marker_mismatch_believed() -> Patch:
    return swap(guards.credible, guards.remembered)


def _absence_while_running_resubmits() -> Patch:
    return before_lines((Leaf.RU_PROBING,), "found_absent", line(Leaf.SU_SENDING, "note_attempt"))


def _one_absence_is_a_loss() -> Patch:
    return swap(guards.twice_absent, lambda _: True)


def _later_turn_believed() -> Patch:
    return swap(guards.overtaken, lambda d: isinstance(d.answer, Absent) and d.answer.after is not None)


def _doubt_never_ends() -> Patch:
    lines = TABLE[Leaf.SU_PROBING]["found_absent"]
    return reline((Leaf.SU_PROBING,), "found_absent", *(one for one in lines if "doubt_absence" not in one.notes))


MUTANTS = (
    Mutant(
        "no-probe",
        "A call that seems fresh may have been submitted before the restore, so it is asked about first.",
        _no_probe,
        trial("marker-list", crashes=1),
        "accepted twice",
    ),
    Mutant(
        "resubmit-on-restore",
        "A POST whose answer was lost with its incarnation is asked about, never sent again.",
        _resubmit_on_restore,
        trial("marker-list", crashes=1, checkpoints=1),
        "accepted twice",
    ),
    Mutant(
        "no-quiet-time",
        "An absence is believed only once no POST of a dead incarnation can still land.",
        _no_quiet_time,
        trial("marker-list", crashes=1),
        "accepted twice",
    ),
    Mutant(
        "quiet-time-after-the-probe",
        "The quiet time passes before the probe is ordered, not between its answer and the POST.",
        _waited_after_the_probe,
        trial("marker-list", crashes=1),
        "accepted twice",
    ),
    Mutant(
        "overlap-ignored",
        "A superseded incarnation may step and send for the overlap after its successor has opened.",
        _overlap_ignored,
        trial("marker-list", crashes=1, zombies=1),
        "accepted twice",
    ),
    Mutant(
        "admission-bound-ignored",
        "What a remote has accepted may show in its status an admission bound later.",
        _admission_ignored,
        trial("marker-list", losses=1),
        "accepted twice",
    ),
    Mutant(
        "own-sends-ignored",
        "The quiet time also runs from the last POST of this very incarnation.",
        _own_sends_ignored,
        trial("marker-list", losses=1),
        "accepted twice",
    ),
    Mutant(
        "old-stamps-trusted",
        "After a restore only the opening of this incarnation counts, not when the old one thought its sends ended.",
        _old_stamps_trusted,
        trial("marker-list", crashes=1, checkpoints=1, losses=1),
        "accepted twice",
    ),
    Mutant(
        "quiet-time-from-now",
        "The quiet time is counted from a fixed instant, or it never ends (liveness).",
        _quiet_time_from_now,
        trial("marker-list"),
        "stuck",
    ),
    Mutant(
        "absence-past-the-retention",
        "An absence proves nothing once the remote may have forgotten the run.",
        _memory_ignored,
        forgetting("marker-list", 6, crashes=1),
        "accepted twice",
    ),
    Mutant(
        "key-past-its-lifetime",
        "A key deduplicates only while the remote remembers it.",
        _memory_ignored,
        forgetting("deduplicating", 6, losses=1),
        "accepted twice",
    ),
    Mutant(
        "marker-mismatch-believed",
        "An absence behind a turn that is not known here may be the absence of a turn that has passed.",
        _marker_mismatch_believed,
        trial("marker-last", turns=2, crashes=1),
        "accepted twice",
    ),
    Mutant(
        "absence-while-running-resubmits",
        "A run that was known is never submitted again, whatever the remote says later.",
        _absence_while_running_resubmits,
        trial(slow(named("marker-list"))),
        "rank fell",
    ),
    Mutant(
        "one-absence-is-a-loss",
        "A known run is lost only by two absences, the second an admission bound after the last proof.",
        _one_absence_is_a_loss,
        trial(slow(named("marker-list")), crashes=1, options={"same_outcome": True}),
        "outcomes differ",
    ),
    Mutant(
        "earlier-turn-believed-to-be-later",
        "A known run has ended once the thread shows a later turn, not once it shows any other.",
        _later_turn_believed,
        trial(slow(named("marker-last"))),
        "false fate",
    ),
    Mutant(
        "doubt-never-ends",
        "An absence that can never be believed is for people to decide, not asked about for ever (liveness).",
        _doubt_never_ends,
        forgetting("marker-list", 10, losses=1),
        "stuck",
    ),
)
