"""What holds after every step of every walk."""

from dataclasses import replace

from hypothesis import given

from reattach.fsm.step import step
from reattach.models.effects import Emit, Submit
from reattach.models.events import ProbeAnswered
from reattach.models.invocation import check_invocation
from reattach.models.lifecycle import Leaf, Status
from reattach.models.policy import Deduplication
from reattach.models.record import Kept
from tests.fsm.walks import Walk, walks


@given(walks())
def test_every_record_keeps_its_invariants(walk: Walk) -> None:
    for inv, event, env in walk:
        assert check_invocation(inv) == ""
        assert check_invocation(step(inv, event, env).invocation) == ""


@given(walks())
def test_what_a_later_release_knows_of_a_call_stays_with_it(walk: Walk) -> None:
    more = Kept((7,))
    for inv, event, env in walk:
        known = replace(inv, kept=more, request=replace(inv.request, kept=more))
        after = step(known, event, env).invocation
        assert after.kept == after.request.kept == more


@given(walks())
def test_the_rank_never_falls(walk: Walk) -> None:
    for inv, event, env in walk:
        after = step(inv, event, env).invocation
        assert (after.generation, after.status.rank) >= (inv.generation, inv.status.rank)


@given(walks())
def test_a_call_that_waits_wakes_up_in_the_future_or_at_once(walk: Walk) -> None:
    for inv, event, env in walk:
        result = step(inv, event, env)
        after = result.invocation
        if after is not inv and not after.leaf.terminal:
            assert after.wake_at_ms >= min(env.now_ms, inv.wake_at_ms)


@given(walks())
def test_one_outcome_and_only_at_the_end(walk: Walk) -> None:
    for inv, event, env in walk:
        result = step(inv, event, env)
        emitted = [effect for effect in result.effects if isinstance(effect, Emit)]
        assert len(emitted) == (1 if result.invocation.leaf.terminal and not inv.leaf.terminal else 0)


@given(walks())
def test_a_post_follows_a_probe_of_its_own_incarnation(walk: Walk) -> None:
    """Without deduplication or write-ahead, no life of a host POSTs before it has asked."""
    asked: set[str] = set()
    for inv, event, env in walk:
        if isinstance(event, ProbeAnswered) and event.ident.incarnation == env.incarnation:
            asked.add(env.incarnation)
        posts = [effect for effect in step(inv, event, env).effects if isinstance(effect, Submit)]
        blind = env.terms.capabilities.deduplication is Deduplication.KEY or inv.leaf is Leaf.SU_HOLDING
        if posts and not blind and inv.handle == "" and env.terms.capabilities.evidence.value != "handle_only":
            assert env.incarnation in asked


@given(walks())
def test_final_is_final(walk: Walk) -> None:
    inv, event, env = walk[-1]
    last = step(inv, event, env).invocation
    if last.status >= Status.COMPLETED:
        for _, late, _ in walk:
            again = step(last, late, env)
            assert again.invocation is last
            assert not [effect for effect in again.effects if hasattr(effect, "ident")]
