"""Faults of answering a remote's question."""

from reattach.fsm import guards
from reattach.models.events import ResponseGiven
from reattach.models.lifecycle import Leaf
from reattach.runtime.explore.kinds import asking
from reattach.runtime.explore.runs import named, request
from reattach.runtime.explore.scenario import Scenario
from reattach.runtime.mutants.mutant import Mutant
from reattach.runtime.mutants.patching import Patch, before_lines, line, swap
from reattach.runtime.mutants.worlds import trial

_SCRIPT = (request("a"), ResponseGiven("a", 1, "r1", "q1", b'"yes"'))


def _asked(name: str = "marker-list", *, crashes: int = 0, losses: int = 0) -> Scenario:
    return trial(asking(named(name)), crashes=crashes, losses=losses, script=_SCRIPT)


def _sent_again_without_asking() -> Patch:
    return before_lines((Leaf.RU_RESPONDING_QUIET,), "time_reached", line(Leaf.RU_RESPONDING_SENDING))


def _any_question_will_do() -> Patch:
    return swap(guards.same_question, lambda d: d.response is not None)


def _early_question_believed() -> Patch:
    sent = line(Leaf.RU_RESPONDING_SENDING, "learn", cond=("same_question",))
    return before_lines((Leaf.RU_RESPONDING_PROBING,), "found_waiting", sent)


def _asked_as_for_an_absence() -> Patch:
    return swap(guards.quiet_passed, guards.trusted)


MUTANTS = (
    Mutant(
        "response-sent-again-without-asking",
        "A response whose fate is not known is sent again only if a probe shows its question still open.",
        _sent_again_without_asking,
        _asked(losses=1),
        "answered twice",
    ),
    Mutant(
        "response-to-any-question",
        "A response answers its own question, not the one that is open now.",
        _any_question_will_do,
        _asked(losses=1),
        "answered twice",
    ),
    Mutant(
        "open-question-believed-at-once",
        "That a question is still open counts only if it was asked about after the quiet time.",
        _early_question_believed,
        _asked(crashes=1),
        "answered twice",
    ),
    Mutant(
        "response-waits-for-a-certain-absence",
        "A response needs the quiet time only, not what makes an absence certain (liveness).",
        _asked_as_for_an_absence,
        _asked("fenceable"),
        "stuck",
    ),
)
