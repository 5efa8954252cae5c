"""What must hold of a thread after every step, whatever the world did: asked by every search."""

from reattach.models.invocation import Invocation
from reattach.models.thread import ThreadState


def rank_fell(before: Invocation | None, after: Invocation | None) -> str:
    """Say how a call went back; "" when it did not."""
    if before is None or after is None or before.id != after.id:
        return ""
    if (after.generation, after.status.rank) < (before.generation, before.status.rank):
        return f"{after.id}: {before.leaf.value} to {after.leaf.value}"
    return ""


def no_wake_up(state: ThreadState) -> str:
    """Say who waits for nothing; "" when everything open has a time at which it goes on."""
    if state.active is not None and state.active.wake_at_ms <= 0:
        return f"{state.active.id} in {state.active.leaf.value}"
    if state.drain is not None and state.drain.wake_at_ms <= 0:
        return f"{state.drain.invocation.id} drains"
    if state.queue and state.active is None and state.drain is None:
        return f"{state.queue[0].request.invocation_id} waits for a thread that is free"
    return ""
