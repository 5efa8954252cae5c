"""Faults of answering a remote's question, and the world in which a remote asks.

The explorer's own worlds have no questions. Here a run asks `q1` as soon as it is accepted, and `q2`
once it has taken an answer; it takes every answer that reaches it for an answer to what it asks then.
A response travels like a POST: it can land late, twice, or without its sender.
"""

from dataclasses import replace
from typing import Any

from reattach.fsm import guards
from reattach.models.answers import Accepted, Phase, Present, ProbeAnswer, SubmitAnswer
from reattach.models.effects import Respond
from reattach.models.events import Answered, Ident, RespondAnswered, ResponseGiven, SubmitAnswered
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf
from reattach.runtime.explore.lives import Fed, Lives
from reattach.runtime.explore.runs import named, request
from reattach.runtime.explore.world import Life, Post
from reattach.runtime.mutants.mutant import Mutant
from reattach.runtime.mutants.patching import Patch, attribute, before_lines, line, swap, together
from reattach.runtime.mutants.worlds import trial
from reattach.runtime.simulation.remotes import Memory, Remote, Turn

_ANSWERS = "answers"
_SCRIPT = (request("a"), ResponseGiven("a", 1, "r1", "q1", b'"yes"'))


class Asking(Remote):
    """A remote whose runs ask."""

    def submit(self, memory: Memory, inv: Invocation, hidden_until_ms: int) -> tuple[Memory, SubmitAnswer]:
        if inv.leaf is not Leaf.RU_RESPONDING_SENDING:
            return super().submit(memory, inv, hidden_until_ms)
        assert inv.response is not None
        # Taken answers are remembered as turns beside the run, so that the same one twice is seen as such.
        taken = Turn(inv.response.response_id, _ANSWERS, Phase.COMPLETED, 0)
        return memory._replace(turns=(*memory.turns, taken)), Accepted()

    def probe(self, memory: Memory, inv: Invocation) -> ProbeAnswer:
        found = super().probe(memory, inv)
        if not isinstance(found, Present) or found.phase is not Phase.RUNNING:
            return found
        answered = sum(turn.thread == _ANSWERS for turn in memory.turns)
        return replace(found, phase=Phase.AWAITING_INPUT, question_id=f"q{1 + answered}")


class _Asked(Ident):
    """The identity of a response under way, so that its answer is told apart from a POST's."""


def questions() -> Patch:
    """A world in which responses are sent."""
    feed, hear = Lives._feed, Lives.hear

    def fed(self: Lives, life: Life, which: int, now_ms: int) -> Fed:
        after = feed(self, life, which, now_ms)
        read = after.life.read
        if read is None or not isinstance(read.effect, Respond):
            return after
        ident, terms = _Asked(*_parts(read.effect.ident)), self.terms
        limit_ms = read.effect.not_after_ms + terms.policy.submit_timeout_ms
        post = Post("respond", life.born, read.inv, ident, limit_ms, limit_ms + terms.admission_ms)
        return after._replace(life=after.life._replace(read=None), posts=(*after.posts, post))

    def heard(self: Lives, life: Life, answer: Answered) -> Life:
        if isinstance(answer, SubmitAnswered) and isinstance(answer.ident, _Asked):
            answer = RespondAnswered(Ident(*_parts(answer.ident)), answer.answer)
        return hear(self, life, answer)

    return together(attribute(Lives, "_feed", fed), attribute(Lives, "hear", heard))


def _parts(ident: Ident) -> tuple[str, str, int, int]:
    return ident.incarnation, ident.invocation_id, ident.generation, ident.epoch


def _asking() -> Remote:
    remote = named("marker-list")
    capabilities: Any = replace(remote.capabilities, responds=True)
    return Asking("asking", capabilities, remote.exclusive, remote.staged, remote.history)


def _sent_again_without_asking() -> Patch:
    return before_lines((Leaf.RU_RESPONDING_QUIET,), "time_reached", line(Leaf.RU_RESPONDING_SENDING))


def _any_question_will_do() -> Patch:
    return swap(guards.same_question, lambda d: d.response is not None)


def _early_question_believed() -> Patch:
    sent = line(Leaf.RU_RESPONDING_SENDING, "learn", cond=("same_question",))
    return before_lines((Leaf.RU_RESPONDING_PROBING,), "found_waiting", sent)


MUTANTS = (
    Mutant(
        "response-sent-again-without-asking",
        "A response whose fate is not known is sent again only if a probe shows its question still open.",
        _sent_again_without_asking,
        trial(_asking(), losses=1, script=_SCRIPT),
        "accepted twice",
        questions,
    ),
    Mutant(
        "response-to-any-question",
        "A response answers its own question, not the one that is open now.",
        _any_question_will_do,
        trial(_asking(), losses=1, script=_SCRIPT),
        "accepted twice",
        questions,
    ),
    Mutant(
        "open-question-believed-at-once",
        "That a question is still open counts only if it was asked about after the quiet time.",
        _early_question_believed,
        trial(_asking(), crashes=1, script=_SCRIPT),
        "accepted twice",
        questions,
    ),
)
