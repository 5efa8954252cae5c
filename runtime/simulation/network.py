"""The way between a host and the servers: what is sent may be late, lost, doubled or orphaned.

It does what the shipped executor promises (one read per call, a newer one replaces it; a POST leaves
within its validity or not at all; each order has one answer within its time limit), and beyond that
whatever a network may do. A request of a dead host stays under way until its bound.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from reattach.models.answers import NotSent, Occupied, SubmitAnswer, Unresolved
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
from reattach.runtime.facts import doubt
from reattach.runtime.simulation.clock import Clock
from reattach.runtime.simulation.mishaps import Mishaps
from reattach.runtime.simulation.server import Server

LATENCY_MS = (1, 20)
Read = Probe | Fetch | Cancel | Fence
Posted = Callable[[Ident, SubmitAnswer], Answered]


class Sender(Protocol):
    """What the network must know of a host."""

    @property
    def acts(self) -> bool:
        """It still lives, in charge or as a zombie."""
        ...

    @property
    def skew_ms(self) -> int:
        """How far its clock is ahead."""
        ...

    def hear(self, key: Key, event: Answered) -> None: ...


@dataclass(frozen=True, slots=True)
class Post:
    """A request that changes something.

    Args:
        limit_ms: its sender waits no longer.
        creates: it makes the thread of a staged submit; the POST follows where that was won.
    """

    sender: Sender
    key: Key
    ident: Ident
    inv: Invocation
    limit_ms: int
    answered: Posted
    creates: bool

    def told(self, answer: SubmitAnswer) -> Answered:
        return self.answered(self.ident, answer)


class Network:
    """Carries orders of every incarnation to the servers, and answers back."""

    def __init__(self, servers: dict[str, Server], terms: dict[str, Terms], clock: Clock, mishaps: Mishaps) -> None:
        self.servers, self.terms = servers, terms
        self.clock, self.mishaps, self.chance = clock, mishaps, mishaps.chance
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
                if self.mishaps.strikes("lose"):
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

    def _read(self, sender: Sender, key: Key, effect: Read, inv: Invocation) -> None:
        policy = self.terms[key[0]].policy
        limit_ms = self.clock.now_ms + _limit_ms(effect, policy)
        self._reads[sender, key] = effect
        if self.mishaps.strikes("lose"):
            if self.chance.happens(0.5):
                self.clock.at(self._soon(), self._serve, key, effect, inv)
            self.clock.at(limit_ms, self._answer, sender, key, effect, doubt(effect, "no answer"))
        else:
            arrives = self._late(limit_ms) if self.mishaps.strikes("delay") else self._soon()
            self.clock.at(arrives, self._exchange, sender, key, effect, inv)

    def _exchange(self, sender: Sender, key: Key, effect: Read, inv: Invocation) -> None:
        """A read reaches the server; its answer sets out."""
        self.clock.at(self._soon(), self._answer, sender, key, effect, self._serve(key, effect, inv))

    def _serve(self, key: Key, effect: Read, inv: Invocation) -> Answered:
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

    def _answer(self, sender: Sender, key: Key, effect: Read, answer: Answered) -> None:
        replaced = self._reads.get((sender, key)) is not effect
        if not replaced:
            del self._reads[sender, key]
        # An answer that was finished already may still come after the order that replaced its own.
        if not replaced or self.mishaps.strikes("duplicate"):
            self._deliver(sender, key, answer)

    def _post(
        self, sender: Sender, key: Key, ident: Ident, inv: Invocation, not_after_ms: int, answered: Posted
    ) -> None:
        # The stamp was written by the sender's clock.
        not_after_ms -= sender.skew_ms
        if self.mishaps.strikes("unsent"):
            self.clock.at(self._soon(), self._deliver, sender, key, answered(ident, NotSent("connection refused")))
            return
        limit_ms = not_after_ms + self.terms[key[0]].policy.submit_timeout_ms
        creates = answered is SubmitAnswered and self.servers[key[0]].remote.staged
        post = Post(sender, key, ident, inv, limit_ms, answered, creates)
        if self.mishaps.strikes("delay"):
            self.clock.at(self.chance.between(self.clock.now_ms, not_after_ms), self._leave, post)
        else:
            self._leave(post)

    def _leave(self, post: Post) -> None:
        """The bytes go out; from here on the request may live longer than its sender."""
        chance, now, limit_ms = self.chance, self.clock.now_ms, post.limit_ms
        if not post.sender.acts:
            return
        admission_ms = self.terms[post.key[0]].admission_ms
        if self.mishaps.strikes("lose"):
            # The connection breaks: the request lands within the admission bound from there, or never.
            breaks = chance.between(now, limit_ms)
            self.clock.at(breaks, self._deliver, post.sender, post.key, post.told(Unresolved("connection lost")))
            bound_ms = breaks + admission_ms
            if chance.happens(0.7):
                lands = bound_ms - 1 if self.mishaps.strikes("linger") else chance.between(now, bound_ms - 1)
                self.clock.at(lands, self._land, post, bound_ms, False)
        else:
            lands = self._late(limit_ms) if self.mishaps.strikes("delay") else min(self._soon(), limit_ms)
            self.clock.at(lands, self._land, post, limit_ms + admission_ms, True)

    def _land(self, post: Post, bound_ms: int, heard: bool) -> None:
        """A request that changes something reaches the server.

        Args:
            bound_ms: what it starts is shown by then; heard: its connection is still there.
        """
        server, now = self.servers[post.key[0]], self.clock.now_ms
        waits = heard and post.sender.acts
        if not waits:
            self.mishaps.note("a request outlives its connection")
        answer: SubmitAnswer
        if post.creates:
            if server.create(post.key, post.inv):
                if waits:
                    self.clock.at(min(self._soon(), post.limit_ms), self._leave, replace(post, creates=False))
                return
            answer = Occupied("the thread exists")
        elif post.answered is RespondAnswered:
            answer = server.respond(post.key, post.inv)
        else:
            shown_by = min(bound_ms, now + server.terms.admission_ms) if waits else bound_ms
            answer = server.submit(post.key, post.inv, shown_by)
        if heard:
            back = self._soon()
            if back > post.limit_ms:
                back, answer = post.limit_ms, Unresolved("no answer in time")
            self.clock.at(back, self._deliver, post.sender, post.key, post.told(answer))

    def _deliver(self, sender: Sender, key: Key, answer: Answered) -> None:
        if sender.acts:
            sender.hear(key, answer)
            if self.mishaps.strikes("duplicate"):
                again = self.clock.now_ms + self.chance.between(1, 5_000)
                self.clock.at(again, self._again, sender, key, answer)

    def _again(self, sender: Sender, key: Key, answer: Answered) -> None:
        if sender.acts:
            sender.hear(key, answer)

    def _soon(self) -> int:
        return self.clock.now_ms + self.chance.between(*LATENCY_MS)

    def _late(self, limit_ms: int) -> int:
        return self.chance.between(self.clock.now_ms, limit_ms)


def _limit_ms(effect: Read, policy: Policy) -> int:
    if isinstance(effect, Probe):
        return policy.probe_timeout_ms
    return policy.fetch_timeout_ms if isinstance(effect, Fetch) else policy.submit_timeout_ms
