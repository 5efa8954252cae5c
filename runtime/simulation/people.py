"""The people around a simulated job: they read notices, and their orders come in through the input."""

from reattach.models.events import (
    AbandonOrdered,
    AdoptOrdered,
    CancelOrdered,
    ResponseGiven,
    ResubmitOrdered,
)
from reattach.models.identity import marker_of
from reattach.models.outcomes import Notice, NoticeKind
from reattach.runtime.driver import Key
from reattach.runtime.simulation.clock import Clock
from reattach.runtime.simulation.ledger import Ledger
from reattach.runtime.simulation.mishaps import Mishaps
from reattach.runtime.simulation.server import Server
from reattach.runtime.simulation.source import Line, Source

ANSWER_MS = (10, 2_000)
DECIDE_MS = (1_000, 30_000)
AGAIN_MS = (0, 20_000)

Decision = AdoptOrdered | ResubmitOrdered | AbandonOrdered
Said = CancelOrdered | ResponseGiven | Decision


class People:
    """Everybody who gives orders.

    Args:
        parked: names of calls that somebody had to decide on.
        generations_max: nobody asks for more generations of a call.
    """

    def __init__(
        self, servers: dict[str, Server], source: Source, clock: Clock, mishaps: Mishaps, ledger: Ledger,
        generations_max: int,
    ) -> None:  # fmt: skip
        self.servers, self.source, self.clock, self.mishaps, self.ledger = servers, source, clock, mishaps, ledger
        self.generations_max = generations_max
        self.parked: set[str] = set()

    def notice(self, key: Key, notice: Notice) -> None:
        """Read a notice, and answer after a while where it asks for that."""
        chance, now = self.mishaps.chance, self.clock.now_ms
        name, generation = notice.invocation_id, notice.generation
        if notice.kind is NoticeKind.DRAIN_EXPIRED:
            self.ledger.release(name)
        elif notice.kind is NoticeKind.AWAITING_INPUT:
            question = notice.message
            response = ResponseGiven(name, generation, f"to-{question}", question, b'"yes"')
            self.order(now + chance.between(*ANSWER_MS), key, response)
        elif notice.kind is NoticeKind.PARKED:
            self.parked.add(name)
            self.clock.at(now + chance.between(*DECIDE_MS), self._decide, key, name, generation)

    def order(self, at_ms: int, key: Key, said: Said) -> None:
        """Give an order at that time; when it repeats itself, once more later."""
        self.clock.at(at_ms, self._say, key, said)
        if self.mishaps.strikes("repeat_orders"):
            self.clock.at(at_ms + self.mishaps.chance.between(*AGAIN_MS), self._say, key, said)

    def _decide(self, key: Key, name: str, generation: int) -> None:
        """An operator looks at the remote, where a run may be found, and decides on a parked call."""
        handle = self.servers[key[0]].handle_of(key, marker_of(name, generation))
        choices: list[Decision] = [AbandonOrdered(name, generation)]
        if generation < self.generations_max:
            choices += [ResubmitOrdered(name, generation, self.clock.now_ms)] * 3
        if handle:
            choices += [AdoptOrdered(name, generation, handle)] * 6
        decision = self.mishaps.chance.pick(choices)
        if isinstance(decision, ResubmitOrdered):
            self.ledger.resubmit(name)
        self.mishaps.note(f"decision: {type(decision).__name__}")
        self.order(self.clock.now_ms, key, decision)

    def _say(self, key: Key, said: Said) -> None:
        self.source.append(Line(self.clock.now_ms, key, said))
