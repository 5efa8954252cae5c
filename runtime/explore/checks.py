"""The properties: what no world, no step and no outcome may ever show."""

from typing import Final

from reattach.fsm.thread import ThreadStep
from reattach.models.identity import marker_of
from reattach.models.invocation import Invocation, check_invocation
from reattach.models.outcomes import Outcome
from reattach.runtime.explore.kinds import ANSWERS, GONE
from reattach.runtime.explore.scenario import Violation
from reattach.runtime.explore.world import Life, Said
from reattach.runtime.invariants import no_wake_up, rank_fell
from reattach.runtime.simulation.remotes import ALIVE, Memory, result_of

_OVER: Final = ("ended", "cancelled")


def check_step(result: ThreadStep) -> None:
    """What must hold after every step, whatever the world did."""
    for transition in result.transitions:
        fell = rank_fell(transition.before, transition.after)
        if fell:
            raise Violation("rank fell", fell)
        wrong = check_invocation(transition.after)
        if wrong:
            raise Violation("bad record", wrong)
    asleep = "" if result.state is None else no_wake_up(result.state)
    if asleep:
        raise Violation("no wake-up", asleep)


def said_of(outcome: Outcome) -> Said:
    """What of an outcome people would call its meaning."""
    failure = outcome.failure
    return (
        outcome.invocation_id,
        outcome.generation,
        outcome.status.name,
        outcome.result or b"",
        failure.code.value if failure else "",
        failure.remote.value if failure else "",
    )


def check_outcome(said: Said, emitted: tuple[Said, ...]) -> None:
    """One lineage ends a call once, and with the call's own result."""
    name, generation, _, result, _, _ = said
    if any(old[0] == name for old in emitted):
        raise Violation("two outcomes", f"{name} ended twice in one lineage: {said}")
    if result and result != result_of(marker_of(name, generation)):
        raise Violation("wrong turn", f"{name} was given the result {result!r}")


def check_said(said: Said, before: tuple[Said, ...], memory: Memory, life: Life, same_outcome: bool) -> None:
    """What lineages say agrees, and what is said of the remote is true."""
    for old in before:
        if same_outcome and old[0] == said[0] and old != said:
            raise Violation("outcomes differ", f"{said} after {old}")
    marker = marker_of(said[0], said[1])
    if said[5] == "none" and not life.dies_at_ms and any(turn.marker == marker for turn in memory.turns):
        raise Violation("false fate", f"{said[0]} was accepted, the outcome says it was not")
    if said[5] in _OVER and any(turn.marker == marker and turn.phase in ALIVE for turn in memory.turns):
        raise Violation("false fate", f"the run of {said[0]} goes on, the outcome says that it is {said[5]}")


def check_response(before: Memory, after: Memory, inv: Invocation) -> None:
    """An answer that a run has just taken was not taken before, and answers what the run asked."""
    assert inv.response is not None
    taken = after.turns[-1]
    if any(old.marker == taken.marker for old in before.turns):
        raise Violation("answered twice", f"{taken.marker} was taken twice")
    if taken.thread != ANSWERS + inv.response.question_id:
        raise Violation("wrong question", f"{taken.marker} was given to {taken.thread}, it is for another question")


def check_accepted(before: Memory, after: Memory, emitted: tuple[Said, ...]) -> None:
    """A turn that has just begun is the first of its call, and alone on its thread."""
    turn = after.turns[-1]
    if any(old.marker == turn.marker for old in before.turns):
        raise Violation("accepted twice", f"{turn.marker} started a second run")
    if any(old.thread.removeprefix(GONE) == turn.thread and old.phase in ALIVE for old in before.turns):
        raise Violation("turns overlap", f"{turn.marker} was accepted while another turn ran")
    for said in emitted:
        if said[5] == "none" and marker_of(said[0], said[1]) == turn.marker:
            raise Violation("false fate", f"{said[0]} was accepted after its outcome said that it was not")
