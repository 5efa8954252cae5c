"""The way between a host and the servers: what is sent may be late, lost, doubled or orphaned.

It does what the shipped executor promises (one read per call, a newer one replaces it; a POST leaves
within its validity or not at all; each order has one answer within its time limit), and beyond that
whatever a network may do. A request of a dead host stays under way until its bound.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Protocol

from reattach.models.answers import NotSent, Occupied, SubmitAnswer, Unknown, Unresolved
from reattach.models.effects import Cancel, Fence, Fetch, Probe, RemoteEffect, Respond, Submit, Watch
from reattach.models.events import (
    Answered,
    CancelAnswered,
    FenceAnswered,
    FetchAnswered,
    Ident,
    ProbeAnswered,
    RespondAnswered,
    SubmitAnswered,
    WatchEnded,
)
from reattach.models.invocation import Invocation
from reattach.models.policy import Policy, Terms
from reattach.runtime.driver import Key
from reattach.runtime.simulation.chance import Chance
from reattach.runtime.simulation.clock import Clock
from reattach.runtime.simulation.faults import Faults
from reattach.runtime.simulation.server import Server

LATENCY_MS = (1, 20)
Posted = Callable[[Ident, SubmitAnswer], Answered]


class Sender(Protocol):
    """What the network must know of a host."""

    @property
    def acts(self) -> bool:
        """It still lives, in charge or as a zombie."""
        ...

    def hear(self, key: Key, event: Answered) -> None: ...


class Network:
    """Carries orders of every incarnation to the servers, and answers back."""

    def __init__(
        self, servers: dict[str, Server], terms: dict[str, Terms], clock: Clock, chance: Chance, faults: Faults
    ) -> None:
        self.servers, self.terms = servers, terms
        self.clock, self.chance, self.faults = clock, chance, faults
        self._reads: dict[tuple[Sender, Key], object] = {}
        self._watches: dict[Key, list[tuple[Sender, Ident]]] = defaultdict(list)

    def send(self, sender: Sender, key: Key, effect: RemoteEffect, inv: Invocation) -> None:
        """Take an order; it never waits."""
        match effect:
            case Submit(ident, not_after_ms):
                self._post(sender, key, ident, inv, not_after_ms, SubmitAnswered)
            case Respond(ident, not_after_ms):
                self._post(sender, key, ident, inv, not_after_ms, RespondAnswered)
            case Watch(ident):
                self._reads[sender, key] = effect
                self._watches[key].append((sender, ident))
                if self.chance.happens(self.faults.lose):
                    self.clock.at(self._soon() + self.chance.between(*LATENCY_MS), self._cut, sender, key, ident)
            case _:
                self._read(sender, key, effect, inv)

    def close(self, sender: Sender) -> None:
        """The reads of a dead host are nobody's."""
        for place in [place for place in self._reads if place[0] is sender]:
            del self._reads[place]

    def ended(self, key: Key) -> None:
        """A run has ended or waits: its streams end."""
        for sender, ident in self._watches.pop(key, ()):
            self.clock.at(self._soon(), self._cut, sender, key, ident)

    def _cut(self, sender: Sender, key: Key, ident: Ident) -> None:
        watch = self._reads.get((sender, key))
        if isinstance(watch, Watch) and watch.ident == ident:
            del self._reads[sender, key]
            self._deliver(sender, key, WatchEnded(ident, "the stream ended"))

    def _read(self, sender: Sender, key: Key, effect: RemoteEffect, inv: Invocation) -> None:
        policy = self.terms[key[0]].policy
        limit_ms = self.clock.now_ms + _limit_ms(effect, policy)
        self._reads[sender, key] = effect
        if self.chance.happens(self.faults.lose):
            if self.chance.happens(0.5):
                self.clock.at(self._soon(), self._serve, key, effect, inv)
            self.clock.at(limit_ms, self._answer, sender, key, effect, _nothing(effect))
        else:
            arrives = self._late(limit_ms) if self.chance.happens(self.faults.delay) else self._soon()
            self.clock.at(arrives, self._exchange, sender, key, effect, inv)

    def _exchange(self, sender: Sender, key: Key, effect: RemoteEffect, inv: Invocation) -> None:
        """A read reaches the server; its answer sets out."""
        self.clock.at(self._soon(), self._answer, sender, key, effect, self._serve(key, effect, inv))

    def _serve(self, key: Key, effect: RemoteEffect, inv: Invocation) -> Answered:
        server = self.servers[key[0]]
        match effect:
            case Probe(ident):
                return ProbeAnswered(ident, server.probe(key, inv))
            case Fetch(ident):
                return FetchAnswered(ident, server.fetch(key, inv))
            case Cancel(ident):
                return CancelAnswered(ident, server.cancel(key, inv))
            case Fence(ident):
                return FenceAnswered(ident, server.fence(key, inv))
        raise NotImplementedError(type(effect).__name__)

    def _answer(self, sender: Sender, key: Key, effect: RemoteEffect, answer: Answered) -> None:
        replaced = self._reads.get((sender, key)) is not effect
        if not replaced:
            del self._reads[sender, key]
        # An answer that was finished already may still come after the order that replaced its own.
        if not replaced or self.chance.happens(self.faults.duplicate):
            self._deliver(sender, key, answer)

    def _post(
        self, sender: Sender, key: Key, ident: Ident, inv: Invocation, not_after_ms: int, answered: Posted
    ) -> None:
        chance, now = self.chance, self.clock.now_ms
        terms = self.terms[key[0]]
        leaves = chance.between(now, not_after_ms) if chance.happens(self.faults.delay) else now
        if chance.happens(self.faults.unsent):
            self.clock.at(self._soon(), self._deliver, sender, key, answered(ident, NotSent("connection refused")))
        else:
            limit_ms = not_after_ms + terms.policy.submit_timeout_ms
            self.clock.at(leaves, self._leave, sender, key, ident, inv, limit_ms, answered)

    def _leave(self, sender: Sender, key: Key, ident: Ident, inv: Invocation, limit_ms: int, answered: Posted) -> None:
        """The bytes go out; from here on the request may live longer than its sender."""
        if not sender.acts:
            return
        chance, now = self.chance, self.clock.now_ms
        bound_ms = limit_ms + self.terms[key[0]].admission_ms
        if chance.happens(self.faults.lose):
            # The connection breaks: the request lands within the admission bound from there, or never.
            breaks = chance.between(now, limit_ms)
            self.clock.at(breaks, self._deliver, sender, key, answered(ident, Unresolved("connection lost")))
            bound_ms = breaks + self.terms[key[0]].admission_ms
            if chance.happens(0.7):
                lands = bound_ms - 1 if chance.happens(self.faults.linger) else chance.between(now, bound_ms - 1)
                self.clock.at(lands, self._land, None, key, ident, inv, bound_ms, answered)
        else:
            lands = self._late(limit_ms) if chance.happens(self.faults.delay) else min(self._soon(), limit_ms)
            self.clock.at(lands, self._land, sender, key, ident, inv, bound_ms, answered)

    def _land(
        self, sender: Sender | None, key: Key, ident: Ident, inv: Invocation, bound_ms: int, answered: Posted
    ) -> None:
        """A request that changes something reaches the server."""
        server, now = self.servers[key[0]], self.clock.now_ms
        waits = sender is not None and sender.acts
        answer: SubmitAnswer
        if answered is RespondAnswered:
            answer = server.respond(key, inv)
        elif server.remote.staged and not server.create(key, inv):
            answer = Occupied("the thread exists")
        elif server.remote.staged and not waits:
            return
        else:
            shown_by = min(bound_ms, now + server.terms.admission_ms) if waits else bound_ms
            answer = server.submit(key, inv, shown_by)
        if sender is not None:
            self.clock.at(self._soon(), self._deliver, sender, key, answered(ident, answer))

    def _deliver(self, sender: Sender, key: Key, answer: Answered) -> None:
        if sender.acts:
            sender.hear(key, answer)
            if self.chance.happens(self.faults.duplicate):
                again = self.clock.now_ms + self.chance.between(1, 5_000)
                self.clock.at(again, self._again, sender, key, answer)

    def _again(self, sender: Sender, key: Key, answer: Answered) -> None:
        if sender.acts:
            sender.hear(key, answer)

    def _soon(self) -> int:
        return self.clock.now_ms + self.chance.between(*LATENCY_MS)

    def _late(self, limit_ms: int) -> int:
        return self.chance.between(self.clock.now_ms, limit_ms)


def _limit_ms(effect: RemoteEffect, policy: Policy) -> int:
    if isinstance(effect, Probe):
        return policy.probe_timeout_ms
    return policy.fetch_timeout_ms if isinstance(effect, Fetch) else policy.submit_timeout_ms


def _nothing(effect: RemoteEffect) -> Answered:
    unknown = Unknown("no answer")
    match effect:
        case Probe(ident):
            return ProbeAnswered(ident, unknown)
        case Fetch(ident):
            return FetchAnswered(ident, unknown)
        case Cancel(ident):
            return CancelAnswered(ident, unknown)
        case Fence(ident):
            return FenceAnswered(ident, unknown)
    raise NotImplementedError(type(effect).__name__)
