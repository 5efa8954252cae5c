"""Where orders wait for their turn: one lane per agent, so that one remote's limits are not another's.

Agents take turns, one order each. A lane at one of its limits leaves the round until something of
its own ends or its rate allows more, so a remote that hangs costs the others nothing, and no order
that waits is ever looked at twice: every step is O(1), however many wait.

Within a lane sends go before reads, since they have the shorter time; but not more than a few in
a row while reads wait: at a remote that takes less than is ordered, nothing would ever be finished.

Some orders are turned down without being carried out. Their answer is the honest one for "nothing
was asked", so the call decides anew, after a pause that grows:

- a send whose validity is over, and a read that has waited so long that its caller would have given it
  up before the answer came;
- every order while the agent's breaker is open.

Pure bookkeeping: no loop, no I/O, and the clock (monotonic seconds) is handed in.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from reattach.adapters.contract import Limits
from reattach.models.effects import Fetch, Hold, Probe, RemoteEffect, Respond, Submit, Watch
from reattach.models.invocation import Invocation
from reattach.models.policy import Policy
from reattach.runtime.limits import Breaker, Bucket, Kind
from reattach.runtime.witness import Sight

SENDS_IN_A_ROW_MAX: Final = 4
# A read may wait for half the time that its caller gives it; the other half is for its answer.
READ_SHARE: Final = 0.5
LATE: Final = "its time was over before its turn came"
DOWN: Final = "not asked: the last requests to this agent all failed"  # and why the very last did


@dataclass(frozen=True, slots=True)
class Order:
    """One effect to carry out.

    Args:
        until: monotonic seconds after which it must not begin any more; 0.0 for a read that may wait.
    """

    key: str
    effect: RemoteEffect | Hold
    invocation: Invocation
    until: float

    @property
    def kind(self) -> Kind:
        if isinstance(self.effect, Submit | Respond):
            return Kind.SEND
        return Kind.STREAM if isinstance(self.effect, Watch) else Kind.READ


@dataclass(slots=True)
class Run:
    """One order under way.

    Args:
        trial: see `Breaker.begin`.
        stream: it has one of the streams that are allowed.
    """

    lane: "Lane"
    order: Order
    trial: int
    stream: bool
    sight: Sight = field(default_factory=Sight)


def until_s(effect: RemoteEffect | Hold, policy: Policy, now_s: float, wall_s: float) -> float:
    """Say until when an order that is given now may begin, in monotonic seconds; 0.0 for at any time.

    Args:
        now_s: the monotonic clock.
        wall_s: the wall clock.
    """
    match effect:
        case Submit() | Respond():
            # Two clocks, and the span itself: a wall clock that is set back, before or after the
            # order was written, must not prolong the right to send.
            return now_s + min(effect.not_after_ms / 1000 - wall_s, policy.submit_validity_ms / 1000)
        case Probe():
            return now_s + (policy.probe_timeout_ms + policy.slack_ms) * READ_SHARE / 1000
        case Fetch():
            return now_s + (policy.fetch_timeout_ms + policy.slack_ms) * READ_SHARE / 1000
    # The others change something at the remote or follow a run, and are worth it later too.
    return 0.0


class Lane:
    """The orders of one agent that wait, and what of it is under way.

    Attributes:
        in_round: it takes its turns.
        asleep: it takes none before its rate allows another request.
        cause: why the last request that failed did so.
    """

    def __init__(self, name: str, limits: Limits) -> None:
        self.name = name
        self.bucket = Bucket(limits.requests_per_second)
        self.breaker = Breaker(limits.breaker_failures, limits.breaker_open_ms / 1000)
        self.cause = ""
        self.in_flight = 0
        self.streams = 0
        self.sends: deque[Order] = deque()
        # Not a dict: to find the first key of one that is emptied from its front is O(n).
        self.reads: OrderedDict[str, Order] = OrderedDict()
        self.in_round = False
        self.asleep = False
        self._limits = limits
        self._in_a_row = 0

    def __len__(self) -> int:
        return len(self.sends) + len(self.reads)

    @property
    def full(self) -> bool:
        return 0 < self._limits.concurrency_max <= self.in_flight

    def put(self, order: Order) -> None:
        """Let an order wait; a read takes the place of an older one for the same key."""
        if order.kind is Kind.SEND:
            self.sends.append(order)
        else:
            self.reads[order.key] = order

    def begin(self, order: Order, *, stream: bool) -> Run:
        """Count an order that `next` has named as under way.

        Args:
            stream: others have left a stream for it, should it be a watch.
        """
        run = Run(self, order, self.breaker.begin(), stream=False)
        if order.kind is Kind.STREAM:
            most = self._limits.streams_max
            run.stream = stream and (not most or self.streams < most)
            self.streams += run.stream
        else:
            self.in_flight += 1
        if run.stream or order.kind is not Kind.STREAM:
            self.bucket.take()
        return run

    def end(self, run: Run, now_s: float, *, stopped: bool) -> None:
        """Count an order as ended, and let the breaker know what was seen of the remote.

        Args:
            stopped: it was ordered to stop, so that nobody knows what would have come.
        """
        if run.order.kind is Kind.STREAM:
            self.streams -= run.stream
            return
        self.in_flight -= 1
        self.breaker.end(run.trial, None if stopped else run.sight.failed, now_s)
        if run.sight.failed and not stopped:
            self.cause = run.sight.cause

    def drop(self, order: Order) -> None:
        """Forget an order that `refused` or `next` has named."""
        if order.kind is Kind.SEND:
            self.sends.popleft()
            self._in_a_row += 1
        else:
            del self.reads[order.key]
            self._in_a_row = 0

    def refused(self, now_s: float) -> tuple[Order, str] | None:
        """An order that is to be answered without being carried out, and why; None when there is none in front."""
        for order in self._front():
            if order.until and now_s > order.until:
                return order, LATE
            if not self.breaker.admits(order.kind, now_s):
                return order, f"{DOWN}; the latest: {self.cause}" if self.cause else DOWN
        return None

    def next(self, now_s: float) -> Order | None:
        """The order that may begin now; None when nothing waits or a limit is reached."""
        if self.full or self.bucket.wait_s(now_s):
            return None
        front = list(self._front())
        if len(front) == 2 and (self._in_a_row >= SENDS_IN_A_ROW_MAX or not self.breaker.closed):
            return front[1]
        return front[0] if front else None

    def _front(self) -> Iterator[Order]:
        if self.sends:
            yield self.sends[0]
        if self.reads:
            yield next(iter(self.reads.values()))


class Round:
    """The lanes of all agents, and whose turn it is."""

    def __init__(self, lanes: Iterable[Lane]) -> None:
        self.lanes = {lane.name: lane for lane in lanes}
        self._round: deque[Lane] = deque()

    def __len__(self) -> int:
        return sum(map(len, self.lanes.values()))

    def put(self, order: Order) -> None:
        lane = self.lanes[order.invocation.request.agent]
        lane.put(order)
        self.join(lane)

    def join(self, lane: Lane) -> None:
        """Give a lane turns again, if it has orders."""
        if not lane.in_round and not lane.asleep and len(lane):
            lane.in_round = True
            self._round.append(lane)

    def turn(self) -> Lane | None:
        """The lane whose turn it is; the next call names the one behind it."""
        if not self._round:
            return None
        self._round.rotate(-1)
        return self._round[-1]

    def leave(self, lane: Lane, *, asleep: bool) -> None:
        """Take the lane that `turn` has just named out of the round."""
        assert self._round[-1] is lane
        self._round.pop()
        lane.in_round, lane.asleep = False, asleep

    def clear(self) -> None:
        for lane in self.lanes.values():
            lane.sends.clear()
            lane.reads.clear()
