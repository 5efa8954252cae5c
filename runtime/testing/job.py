"""The job under test: its lives, its input, its checkpoints, its orders in flight, and its clock.

The rules are Flink's. A checkpoint counts once it is complete, and completing one subsumes those
before it. A restore rewinds state, timers and the source together. Whoever was given up for dead may
go on for the overlap.
"""

import sys
from typing import Final

from reattach.models.codec import decode_thread
from reattach.models.effects import Hold
from reattach.models.events import CheckpointCompleted, Requested, ResubmitOrdered
from reattach.models.lifecycle import Leaf
from reattach.models.policy import OnAmbiguous
from reattach.runtime.driver import Applied
from reattach.runtime.testing.life import Fact, Life, Line, Snapshot
from reattach.runtime.testing.properties import Account, Wrong
from reattach.runtime.testing.remote import RemoteUnderTest
from reattach.runtime.testing.story import PropertyBroken, Story, short
from reattach.runtime.testing.wire import Wire

AGENT: Final = "agent"
START_MS: Final = 1_000_000
KEPT_MAX: Final = 3
WAITING: Final = (Leaf.SU_PARKED, Leaf.RU_AWAITING_INPUT)


class Job:
    """One job, over all its lives."""

    def __init__(self, remote: RemoteUnderTest) -> None:
        self.remote = remote
        self.now_ms = START_MS
        self.story = Story(START_MS)
        self.wire = Wire(remote, self.tell)
        self.account = Account(remote)
        self.lines: list[Line] = []
        self.kept = [Snapshot(0)]
        self.triggered: list[Snapshot] = []
        self.checkpoints = 0
        self.zombies: list[Life] = []
        self.lives = 1
        self.host = Life(AGENT, remote.terms, 1, self.now_ms, self.kept[0], lineage=True)
        self.wire.now_ms = self.now_ms
        remote.pass_time(self.now_ms, self.now_ms)

    def tell(self, text: str) -> None:
        self.story.tell(self.now_ms, text)

    def broken(self, name: str, text: str) -> PropertyBroken:
        """Make the failure that shows everything."""
        failure = PropertyBroken(name, text, f"{self.story.text()}\n\nWhere it stands:\n{self.standing()}")
        if self.remote.unsteady:
            # Where time is real it may not come again when Hypothesis wants to show it.
            sys.stderr.write(f"{failure}\n")
        return failure

    def append(self, line: Line) -> None:
        """The input has one more record."""
        self.lines.append(line)
        if isinstance(line.event, Requested):
            self.account.requests.setdefault(line.event.request.invocation_id, line.event.request)
        elif isinstance(line.event, ResubmitOrdered):
            self.account.released.add(line.event.invocation_id)
        self.tell(f"input: {short(line.event)}")

    def facts(self, life: Life) -> list[Fact]:
        return life.facts(self.lines, self.now_ms)

    def apply(self, life: Life, fact: Fact) -> None:
        """Let the shipped driver apply one fact, and give out what follows."""
        life.take(fact)
        stored = life.states.get(fact.key)
        try:
            applied = life.driver.apply(fact.key, stored, fact.event, self.now_ms)
        except Exception as error:
            raise self.broken("raised", f"{short(fact.event)}: {type(error).__name__}: {error}") from error
        life.store(fact.key, applied)
        before = None if stored is None else decode_thread(stored)
        after = None if applied.stored is None else decode_thread(applied.stored)
        zombie = " (zombie)" if life.superseded else ""
        self.tell(f"{life.name}{zombie} takes {short(fact.event)} => {_where(after)}{_ordered(applied)}")
        try:
            self.account.stepped(life, before, after, applied)
            for outcome in applied.outcomes:
                self.account.emitted(life, outcome, self.now_ms)
                life.emitted.append(outcome)
                self.tell(f"{life.name} says: {outcome.invocation_id} {outcome.status.name}")
        except Wrong as wrong:
            raise self.broken(wrong.name, wrong.text) from None
        for effect, inv in applied.orders:
            if isinstance(effect, Hold):
                life.holds[fact.key] = effect.ident
            else:
                self.wire.order(life, fact.key, effect, inv)
        if self.remote.terms.policy.on_ambiguous is OnAmbiguous.RESUBMIT:
            self.account.released.update(self.account.requests)

    def check(self) -> None:
        """Check the properties that are not about one step."""
        try:
            self.account.check(self.host)
        except Wrong as wrong:
            raise self.broken(wrong.name, wrong.text) from None

    def trigger(self) -> None:
        """A checkpoint begins: from here on it holds what is stored now."""
        self.checkpoints += 1
        self.triggered.append(self.host.snapshot(self.checkpoints))
        self.tell(f"checkpoint {self.checkpoints} is triggered")

    def complete(self, which: int) -> None:
        """A checkpoint is complete; older ones that are not will never be."""
        snapshot = self.triggered[which]
        self.triggered = self.triggered[which + 1 :]
        self.kept = [*self.kept, snapshot][-KEPT_MAX:]
        self.tell(f"checkpoint {snapshot.number} is complete")
        for key, ident in snapshot.holds.items():
            if self.host.holds.get(key) == ident:
                del self.host.holds[key]
                self.host.inbox.append((key, CheckpointCompleted(ident)))

    def crash(self, back: int, *, zombie: bool) -> None:
        """The host dies, or is given up for dead; another one starts from a checkpoint.

        Args:
            back: 0 for the newest checkpoint, then older ones; beyond the oldest: from nothing.
            zombie: the old one goes on for its overlap.
        """
        old, oldest = self.host, len(self.kept) - 1
        snapshot = self.kept[oldest - back] if back <= oldest else Snapshot(0)
        self.kept = self.kept[: oldest - back + 1] if back <= oldest else [snapshot]
        self.triggered = []
        self.lives += 1
        where = f"checkpoint {snapshot.number}" if snapshot.number else "nothing"
        self.tell(
            f"{old.name} {'is given up for dead' if zombie else 'crashes'}; life-{self.lives} starts from {where}"
        )
        if zombie:
            old.dies_at_ms = self.now_ms + self.remote.terms.policy.overlap_ms
            self.zombies.append(old)
        else:
            self.wire.die(old)
        lineage = old.lineage and back == 0
        self.host = Life(AGENT, self.remote.terms, self.lives, self.now_ms, snapshot, lineage=lineage)

    def advance(self, to_ms: int) -> None:
        """Let time pass, and whatever time alone brings."""
        while self.now_ms < to_ms:
            ends = [zombie.dies_at_ms + 1 for zombie in self.zombies]
            instants = [at_ms for at_ms in (*self.wire.instants(), *ends) if self.now_ms < at_ms < to_ms]
            self._advance(min(instants, default=to_ms))
        self.tell("time has passed")

    def _advance(self, to_ms: int) -> None:
        self.wire.expire(to_ms)
        for zombie in [zombie for zombie in self.zombies if zombie.dies_at_ms < to_ms]:
            self.zombies.remove(zombie)
            self.wire.die(zombie)
        self.remote.pass_time(self.now_ms, to_ms)
        self.now_ms = self.wire.now_ms = to_ms

    def settled(self) -> bool:
        """Nothing more is to come: every call has ended, or waits for people."""
        host = self.host
        if host.recovering or host.position < len(self.lines):
            return False
        ended = {outcome.invocation_id for outcome in host.emitted}
        for state in host.threads().values():
            if state.drain is not None:
                return False
            if state.active is not None and state.active.leaf in WAITING:
                ended |= {state.active.id, *(waiting.request.invocation_id for waiting in state.queue)}
        return ended >= self.account.requests.keys()

    def standing(self) -> str:
        """Say where everything stands, for people."""
        lines = [_life(life) for life in (self.host, *self.zombies)]
        lines += [f"  under way: {x}" for x in self.wire.exchanges]
        counts = ", ".join(f"{marker} x{self.remote.accepted(marker)}" for marker in self.account.markers)
        lines.append(f"  accepted at the remote: {counts or 'nothing'}")
        return "\n".join(lines)


def _where(state: object) -> str:
    active = getattr(state, "active", None)
    if active is not None:
        return f"{active.id} {active.leaf.value}" + (f" ({active.cause})" if active.cause else "")
    drain = getattr(state, "drain", None)
    return f"{drain.invocation.id} drains" if drain is not None else "free"


def _ordered(applied: Applied) -> str:
    orders = ", ".join(type(effect).__name__ for effect, _ in applied.orders)
    return f"; orders {orders}" if orders else ""


def _life(life: Life) -> str:
    zombie = f", a zombie until t={life.dies_at_ms - START_MS}" if life.superseded else ""
    threads = [
        f"{_where(state)}, timer at t={life.timers[key] - START_MS}" if key in life.timers else _where(state)
        for key, state in life.threads().items()
    ]
    return f"  {life.name}{zombie}: {'; '.join(threads) or 'nothing stored'}; {len(life.inbox)} answers wait"
