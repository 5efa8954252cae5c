"""Orders on their way to the remote, and answers on their way back.

It keeps what the shipped executor promises: a send leaves within its validity or not at all, each
order has an answer within its time limit, a newer read takes the place of an older one. Beyond that
it does nothing by itself: rules decide when a request leaves, arrives, is answered or is lost.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from reattach.models import events
from reattach.models.answers import Refused
from reattach.models.effects import Fetch, Probe, RemoteEffect, Respond, Submit, Watch
from reattach.models.events import Answered
from reattach.models.invocation import Invocation
from reattach.models.outcomes import Failure, FailureCode, RemoteFate
from reattach.runtime.driver import Key
from reattach.runtime.facts import doubt, not_sent, send_answered
from reattach.runtime.testing.life import Life
from reattach.runtime.testing.remote import Facts, RemoteUnderTest
from reattach.runtime.testing.story import short

HEARD_MAX: Final = 6
BUSY: Final = Refused(Failure(FailureCode.REJECTED, "too many requests", RemoteFate.NONE, retryable=True))


@dataclass(eq=False, slots=True)
class Exchange:
    """One order under way.

    Args:
        life: who waits for the answer; None once nobody does.
        leaves_by_ms: a send that has not left by then never will; 0 once it has left.
        limit_ms: its sender is told by then; 0 for a stream.
        by_ms: it has taken effect before this time, or never will.
        step: how often it has reached the remote.
        facts: the answer on its way back.
    """

    life: Life | None
    key: Key
    effect: RemoteEffect
    inv: Invocation
    leaves_by_ms: int
    limit_ms: int
    by_ms: int
    step: int = 0
    facts: Facts | None = None

    @property
    def changes(self) -> bool:
        """It may take effect at the remote although nobody waits for its answer."""
        return not isinstance(self.effect, Probe | Fetch | Watch)

    @property
    def sends(self) -> bool:
        return isinstance(self.effect, Submit | Respond)

    def __str__(self) -> str:
        whose = self.life.name if self.life is not None else self.effect.ident.incarnation + " (gone)"
        return f"{type(self.effect).__name__} {self.inv.id} of {whose}"


class Wire:
    """Everything that is under way.

    Args:
        tell: adds a line to the story.
    """

    def __init__(self, remote: RemoteUnderTest, tell: Callable[[str], None]) -> None:
        self.remote, self.tell = remote, tell
        self.now_ms = 0
        self.exchanges: list[Exchange] = []
        self.heard: list[tuple[Key, Answered]] = []

    def order(self, life: Life, key: Key, effect: RemoteEffect, inv: Invocation) -> None:
        """Take an order."""
        policy, now = self.remote.terms.policy, self.now_ms
        if isinstance(effect, Submit | Respond):
            limit_ms = effect.not_after_ms + policy.submit_timeout_ms
            leaves_by_ms = effect.not_after_ms
        else:
            self._replace_reads(life, key)
            leaves_by_ms = 0
            span = {Probe: policy.probe_timeout_ms, Fetch: policy.fetch_timeout_ms}
            limit_ms = 0 if isinstance(effect, Watch) else now + span.get(type(effect), policy.submit_timeout_ms)
        by_ms = limit_ms + self.remote.terms.admission_ms
        self.exchanges.append(Exchange(life, key, effect, inv, leaves_by_ms, limit_ms, by_ms))

    def _replace_reads(self, life: Life, key: Key) -> None:
        for old in [x for x in self.exchanges if x.life is life and x.key == key and not x.sends]:
            self._abandon(old)

    def leave(self, x: Exchange) -> None:
        """The bytes of a send go out; its time limit runs from here."""
        terms = self.remote.terms
        x.leaves_by_ms = 0
        x.limit_ms = self.now_ms + terms.policy.submit_timeout_ms
        x.by_ms = x.limit_ms + terms.admission_ms
        self.tell(f"leaves: {x}")

    def reach(self, x: Exchange) -> None:
        """The request reaches the remote, which answers at once."""
        facts = self.remote.carry(x.effect, x.inv, step=x.step, by_ms=x.by_ms)
        x.step += 1
        said = "goes on" if facts is None else ", ".join(map(short, facts))
        self.tell(f"reaches the remote: {x} -> {said}")
        if x.life is None:
            self.exchanges.remove(x)
        else:
            x.facts = facts

    def answer(self, x: Exchange) -> None:
        """The answer arrives."""
        assert x.facts is not None
        self._tell_sender(x, x.facts)
        self.exchanges.remove(x)

    def handle_first(self, x: Exchange) -> None:
        """The name of the run arrives before the rest of the answer."""
        handle = handle_in(x)
        if x.life is not None and handle:
            self._hear(x.life, x.key, events.HandleLearned(x.effect.ident, handle))

    def lose(self, x: Exchange) -> None:
        """The request is lost before it has reached the remote, or its answer is lost after."""
        self.tell(f"lost {'before' if x.facts is None and not x.step else 'after'} it reached the remote: {x}")
        self._tell_sender(x, (doubt(x.effect, "connection lost"),))
        self.exchanges.remove(x)

    def cut(self, x: Exchange) -> None:
        """The connection breaks, and the request goes on its way without it."""
        self.tell(f"connection cut: {x}")
        self._tell_sender(x, (doubt(x.effect, "connection lost"),))
        self._orphan(x)

    def not_sent(self, x: Exchange, cause: str = "connection refused") -> None:
        """Provably nothing has left."""
        self.tell(f"not sent: {x}")
        assert isinstance(x.effect, Submit | Respond)
        self._tell_sender(x, (not_sent(x.effect, cause),))
        self.exchanges.remove(x)

    def refuse(self, x: Exchange) -> None:
        """The remote is too busy to take a POST, and says so."""
        assert isinstance(x.effect, Submit | Respond)
        x.step += 1
        x.facts = (send_answered(x.effect, BUSY),)
        self.tell(f"refused by the remote: {x}")

    def hear_again(self, life: Life, which: int) -> None:
        """An answer that somebody has had, or was to have, arrives once more."""
        key, event = self.heard[which]
        self.tell(f"arrives at {life.name} once more: {short(event)} of {event.ident.incarnation}")
        life.inbox.append((key, event))

    def die(self, life: Life) -> None:
        """Nobody waits for the answers of this incarnation any more."""
        for x in [x for x in self.exchanges if x.life is life]:
            for event in x.facts or ():
                self._remember(x.key, event)
            self._abandon(x)

    def instants(self) -> list[int]:
        """When something must happen of itself."""
        found = [x.by_ms for x in self.exchanges if x.life is None]
        for x in self.exchanges:
            if x.life is not None and x.limit_ms:
                found.append(x.leaves_by_ms + 1 if x.leaves_by_ms else x.limit_ms)
        return found

    def expire(self, target_ms: int) -> None:
        """What must have happened before `target_ms`, when time is about to pass from now to there."""
        for x in list(self.exchanges):
            if x.life is None:
                if x.by_ms <= target_ms:
                    self.exchanges.remove(x)
            elif x.leaves_by_ms:
                if x.leaves_by_ms < target_ms:
                    self.not_sent(x, "its time to be sent was over before its turn came")
            elif 0 < x.limit_ms < target_ms:
                self.tell(f"no answer within the time limit: {x}")
                self._tell_sender(x, (doubt(x.effect, "no answer within the time limit"),))
                self._orphan(x)

    def _abandon(self, x: Exchange) -> None:
        """Nobody waits any more, and the connection is closed."""
        if x.changes and x.facts is None and not x.leaves_by_ms:
            x.life = None
        else:
            self.exchanges.remove(x)

    def _orphan(self, x: Exchange) -> None:
        x.by_ms = min(x.by_ms, self.now_ms + self.remote.terms.admission_ms)
        self._abandon(x)

    def _tell_sender(self, x: Exchange, facts: Facts) -> None:
        assert x.life is not None
        if isinstance(x.effect, Submit):
            self.remote.told(x.inv)
        for event in facts:
            self._hear(x.life, x.key, event)

    def _hear(self, life: Life, key: Key, event: Answered) -> None:
        life.inbox.append((key, event))
        self._remember(key, event)

    def _remember(self, key: Key, event: Answered) -> None:
        self.heard = [*self.heard, (key, event)][-HEARD_MAX:]


def handle_in(x: Exchange) -> str:
    """The handle that an accepted POST's answer brings; "" where there is none."""
    for event in x.facts or ():
        if isinstance(event, events.SubmitAnswered):
            return getattr(event.answer, "handle", "")
    return ""
