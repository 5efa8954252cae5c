"""Faults of writing ahead and of hosts, and of an operator's decisions."""

from reattach.fsm import guards, notes, step
from reattach.fsm.draft import Draft
from reattach.fsm.env import Env
from reattach.models.events import Event, ResubmitOrdered
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf
from reattach.runtime.explore.runs import request
from reattach.runtime.explore.scenario import START_MS
from reattach.runtime.mutants.mutant import Mutant
from reattach.runtime.mutants.patching import Patch, before_lines, line, reline, swap
from reattach.runtime.mutants.worlds import (
    any_checkpoint_will_do,
    emitted_before_stored,
    lineage_regained,
    slow_checkpoints,
    trial,
    write_ahead_by_time,
)

_FRESH = (Leaf.NS_QUIET, Leaf.NS_BACKING_OFF)
_TWICE = (request("a"), request("a"))
_DECIDED = (request("a"), ResubmitOrdered("a", 1, START_MS))

_DECIDED_LATE = (request("a"), ResubmitOrdered("a", 1, START_MS + 8))


def _not_held() -> Patch:
    return reline(_FRESH, "time_reached", line(Leaf.SU_SENDING, "note_attempt"))


def _held_anew() -> Patch:
    return reline((Leaf.SU_HOLDING,), "time_reached", line(Leaf.SU_HOLDING))


def _lineage_ignored() -> Patch:
    return swap(guards.never_sent, guards.writes_ahead)


def _restored_intent_believed_unsent() -> Patch:
    return before_lines((Leaf.SU_HOLDING,), "restored", line(Leaf.SU_HOLDING))


def _decision_posts_at_once() -> Patch:
    return reline(
        (Leaf.SU_PARKED,),
        "resubmit_ordered",
        line(Leaf.SU_SENDING, "open_generation", "count_from_order", "note_attempt"),
    )


def _not_taken_over() -> Patch:
    stepped = step.step

    def direct(invocation: Invocation, event: Event, env: Env) -> step.Step:
        return stepped(invocation, event, env) if invocation.leaf.terminal else step._apply(invocation, event, env)

    return swap(stepped, direct)


def _generation_reused() -> Patch:
    opened = notes.open_generation

    def reuse(d: Draft) -> None:
        generation = d.generation
        opened(d)
        d.generation = generation

    return swap(opened, reuse)


def _generation_within_reach() -> Patch:
    def counted(d: Draft) -> None:
        assert isinstance(d.event, ResubmitOrdered)
        d.asked_at_ms = max(d.asked_at_ms, d.event.ordered_at_ms)

    return swap(notes.count_from_order, counted)


def _old_line_believed_fresh() -> Patch:
    def fresh(d: Draft) -> bool:
        return guards.writes_ahead(d) and (d.env.lineage or not guards.elder(d))

    return swap(guards.never_sent, fresh)


MUTANTS = (
    Mutant(
        "intent-not-held",
        "Where nothing can be asked, the POST waits for a checkpoint that holds its intent.",
        _not_held,
        trial("handle-only", crashes=1),
        "accepted twice",
    ),
    Mutant(
        "newer-than-the-newest-completed",
        "The checkpoint that frees a POST was triggered after its intent was written, not merely completed after it.",
        any_checkpoint_will_do,
        trial("handle-only", crashes=1, checkpoints=1),
        "accepted twice",
    ),
    Mutant(
        "write-ahead-by-time",
        "That a checkpoint holds an intent is known by ids: by the clock it may only look younger.",
        write_ahead_by_time,
        trial("handle-only", crashes=1, checkpoints=1),
        "accepted twice",
    ),
    Mutant(
        "held-anew-at-every-wake-up",
        "A held call waits on under the same order, or a slow checkpoint never lets its POST go (liveness).",
        _held_anew,
        trial("handle-only"),
        "stuck",
        slow_checkpoints,
    ),
    Mutant(
        "lineage-regained",
        "Once a job has gone back further than its newest checkpoint, no later one is proof either.",
        lineage_regained,
        trial("handle-only", crashes=2, checkpoints=2),
        "accepted twice",
    ),
    Mutant(
        "lineage-ignored",
        "Only a restore from the job's own latest checkpoint proves that a fresh call was never sent.",
        _lineage_ignored,
        trial("handle-only", crashes=1, checkpoints=1),
        "accepted twice",
    ),
    Mutant(
        "restored-intent-believed-unsent",
        "A restored intent is in the very checkpoint that let its POST go: it is ambiguous.",
        _restored_intent_believed_unsent,
        trial("handle-only", crashes=1, checkpoints=2),
        "accepted twice",
    ),
    Mutant(
        "restored-record-not-taken-over",
        "Whatever wakes a record of another incarnation, it is taken over first: its orders died with that (liveness).",
        _not_taken_over,
        trial("handle-only", crashes=1, checkpoints=1),
        "stuck",
    ),
    Mutant(
        "decision-posts-at-once",
        "A decision that is delivered again after a restore opens a generation under all rules, it does not POST.",
        _decision_posts_at_once,
        trial("handle-only", crashes=1, checkpoints=2, losses=1, script=_DECIDED),
        "accepted twice",
    ),
    Mutant(
        "generation-reused",
        "A retry has a remote identity of its own.",
        _generation_reused,
        trial("marker-list", losses=1, options={"failures": True}, generations_max=2),
        "rank fell",
    ),
    Mutant(
        "emitted-before-stored",
        "No checkpoint falls between what a step says and what it stores.",
        emitted_before_stored,
        trial("marker-list", crashes=1, checkpoints=1),
        "two outcomes",
    ),
    Mutant(
        "operator-opens-a-number-of-retries",
        "An operator's generation has a number that no retry can reach, so no undone life has had it.",
        _generation_within_reach,
        trial(
            "handle-only",
            crashes=1,
            checkpoints=1,
            losses=2,
            script=_DECIDED_LATE,
            options={"failures": True},
            generations_max=2,
        ),
        "accepted twice",
    ),
    Mutant(
        "old-line-believed-fresh",
        "A request that is older than the tombstones may be one that has ended, in this very life.",
        _old_line_believed_fresh,
        trial("handle-only", script=_TWICE, tombstone_ttl_ms=6),
        "accepted twice",
    ),
)
