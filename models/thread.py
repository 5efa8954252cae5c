"""What is remembered of one remote conversation: the value in Flink's keyed state.

A thread is `free`, `busy` with one invocation, or `draining`: a call has ended locally (deadline,
cancel) while its run may still act, so the next turn has to wait.
"""

from dataclasses import dataclass

from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import FailureCode
from reattach.models.record import NOTHING_KEPT, Kept, record
from reattach.models.request import Request


@record
@dataclass(frozen=True, slots=True)
class Queued:
    """A later turn, waiting for the thread."""

    request: Request
    cancelled: bool = False
    kept: Kept = NOTHING_KEPT


@record
@dataclass(frozen=True, slots=True)
class Tombstone:
    """A finished call, remembered against re-delivered input until `expires_at_ms`."""

    invocation_id: str
    generation: int
    digest: bytes
    status: Status
    code: FailureCode | None
    expires_at_ms: int
    kept: Kept = NOTHING_KEPT


@record
@dataclass(frozen=True, slots=True)
class Drain:
    """A call that has ended here and may not have ended there.

    Args:
        invocation: FAILED; its epoch and tenure go on being used for probes.
        wake_at_ms: when to ask next.
        until_ms: when to give up and release the thread with a notice.
    """

    invocation: Invocation
    wake_at_ms: int
    until_ms: int
    kept: Kept = NOTHING_KEPT


@record
@dataclass(frozen=True, slots=True)
class ThreadState:
    """Everything about one (agent, thread).

    Args:
        epoch: number of the latest order on this thread, over all its calls.
        incarnation, sends_end_ms: the last turn's sends, for which the next turn must wait;
            they count only in that incarnation.
        after: markers that the remote may show as its newest turn now; "" stands for none.
    """

    active: Invocation | None = None
    drain: Drain | None = None
    queue: tuple[Queued, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()
    epoch: int = 0
    incarnation: str = ""
    sends_end_ms: int = 0
    after: tuple[str, ...] = ("",)
    kept: Kept = NOTHING_KEPT

    @property
    def wake_at_ms(self) -> int:
        """When the host must look at this thread again; 0 when never."""
        times = [stone.expires_at_ms for stone in self.tombstones[:1]]
        if self.active is not None:
            times.append(self.active.wake_at_ms)
        if self.drain is not None:
            times.append(self.drain.wake_at_ms)
        return min(times, default=0)

    @property
    def mode(self) -> str:
        """`free`, `busy` or `draining`."""
        if self.active is not None:
            return "busy"
        return "draining" if self.drain is not None else "free"


def check_thread(state: ThreadState) -> str:
    """Say what is wrong with a thread's own state, "" when it keeps every invariant.

    Guarantee: every state that `step_thread` returns passes, since the codec refuses the others.
    """
    if state.active is not None and state.active.leaf.terminal:
        return "the active call has ended"
    if state.drain is not None and state.drain.invocation.leaf is not Leaf.FAILED:
        return "only a call that FAILED here drains"
    if state.active is not None and state.drain is not None:
        return "a turn overlaps a call that drains"
    return ""
