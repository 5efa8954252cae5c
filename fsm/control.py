"""Orders for a call that is not going on: it waits for its turn, it has ended, or nobody knows it.

What an order does to a call that is going on stands in the chart. Here it can mark a waiting turn as cancelled and
nothing else; all others are answered: with a notice, or with a count when what they ask for is the case already, since
orders may be delivered again.
"""

from collections.abc import Sequence
from dataclasses import replace

from reattach.fsm.env import Env
from reattach.models.effects import Count, Effect, Notify
from reattach.models.events import AbandonOrdered, CancelOrdered, Ordered, ResubmitOrdered
from reattach.models.outcomes import FailureCode, Notice, NoticeKind
from reattach.models.thread import Queued, Tombstone


def take_order(
    order: Ordered, queue: list[Queued], tombstones: Sequence[Tombstone], env: Env
) -> tuple[list[Queued], Effect | None]:
    """Take an order for a call that is not going on.

    Args:
        tombstones: oldest first.

    Returns:
        The queue after it, and what to tell: None when the order is taken.
    """
    for index, waiting in enumerate(queue):
        if waiting.request.invocation_id == order.invocation_id:
            effect = _waiting(order, waiting)
            if effect is not None:
                return queue, effect
            return [*queue[:index], replace(waiting, cancelled=True), *queue[index + 1 :]], None
    for stone in reversed(tombstones):
        if stone.invocation_id == order.invocation_id:
            return queue, _ended(order, stone, env)
    return queue, _notice(order, "no such call on this thread")


def _waiting(order: Ordered, waiting: Queued) -> Effect | None:
    generation = waiting.request.generation
    if order.generation != generation:
        return _notice(order, f"the call waits for its turn at generation {generation}")
    if not isinstance(order, CancelOrdered):
        return _notice(order, "not possible while the call waits for its turn")
    return Count("duplicate_order") if waiting.cancelled else None


def _ended(order: Ordered, stone: Tombstone, env: Env) -> Effect:
    if _brought_about(order, stone, env):
        return Count("duplicate_order")
    how = stone.status.name if stone.code is None else f"{stone.status.name}, {stone.code.value}"
    return _notice(order, f"too late, the call has ended ({how})", NoticeKind.LATE)


def _brought_about(order: Ordered, stone: Tombstone, env: Env) -> bool:
    """The call ended as this order asks for: it was delivered again, or something else was quicker."""
    match order:
        case CancelOrdered(generation=generation):
            return (generation, FailureCode.CANCELLED) == (stone.generation, stone.code)
        case AbandonOrdered(generation=generation):
            return (generation, FailureCode.AMBIGUOUS) == (stone.generation, stone.code)
        case ResubmitOrdered(generation=generation):
            # Only an order opens a generation beyond these.
            return stone.generation > max(generation, env.terms.policy.generations_max)
    return False


def _notice(order: Ordered, why: str, kind: NoticeKind = NoticeKind.REFUSED) -> Notify:
    return Notify(Notice(kind, order.invocation_id, order.generation, f"{type(order).__name__}: {why}"))
