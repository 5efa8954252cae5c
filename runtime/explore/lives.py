"""What happens inside one incarnation: the shipped core applies a fact, its orders become requests.

A life is a value, and so is what a fact makes of it. Thousands of worlds share a life and differ
elsewhere, so what was worked out for one is remembered by the identity of the life and the hour.
"""

from typing import Any, NamedTuple

from reattach.fsm.env import Env
from reattach.fsm.thread import ThreadStep, step_thread
from reattach.models.effects import (
    Cancel,
    Count,
    Emit,
    Fence,
    Fetch,
    Hold,
    Notify,
    Probe,
    Report,
    Respond,
    Submit,
    Watch,
)
from reattach.models.events import (
    Answered,
    CancelAnswered,
    FetchAnswered,
    Ident,
    ProbeAnswered,
    Restored,
    ThreadEvent,
    TimeReached,
    WatchEnded,
)
from reattach.models.invocation import Invocation
from reattach.runtime.explore.checks import check_outcome, check_step, said_of
from reattach.runtime.explore.scenario import Scenario, Violation
from reattach.runtime.explore.strangers import welcome
from reattach.runtime.explore.world import Life, Post, Read, Said, Snapshot
from reattach.runtime.facts import doubt
from reattach.runtime.simulation.remotes import Memory

STRANGERS_MAX = 1
KEPT_MAX = 200_000
RESTORED, TIME, INPUT, SKIPPED = -1, -2, -3, -4


class Fed(NamedTuple):
    """A life after a fact, with what it has sent and said."""

    life: Life
    posts: tuple[Post, ...]
    said: tuple[Said, ...]


class Lives:
    """The lives of one scenario.

    Args:
        reduce: leave out answers that have become strangers; see `strangers`.
    """

    def __init__(self, scenario: Scenario, reduce: bool = True) -> None:
        self.scenario = scenario
        self.terms = scenario.terms
        self.remote = scenario.remote
        self.reduce = reduce
        self._kept: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def fact(self, life: Life, which: int) -> ThreadEvent:
        """The fact that is meant: an answer by its place in the inbox, or one of the three others."""
        if which >= 0:
            return life.inbox[which]
        if which == INPUT:
            return self.scenario.script[life.position]
        return Restored() if which == RESTORED else TimeReached()

    def feed(self, life: Life, which: int, now_ms: int) -> Fed:
        """Let the shipped core apply one fact.

        Raises:
            Violation: the step breaks a property, or raises.
        """
        key = (id(life), which, now_ms)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._keep(key, (life, self._feed(life, which, now_ms)))
        fed: Fed = kept[1]
        return fed

    def serve(self, life: Life, memory: Memory) -> tuple[Life, Memory, Answered]:
        """Let the remote answer the read that this life has under way."""
        key = (id(life), id(memory), "serve")
        kept = self._kept.get(key)
        if kept is None:
            assert life.read is not None
            after, answer = self._answer(life.read, memory)
            heard = hear(life._replace(read=None), answer, self.reduce)
            kept = self._keep(key, (life, memory, (heard, after, answer)))
        served: tuple[Life, Memory, Answered] = kept[2]
        return served

    def give_up(self, life: Life) -> tuple[Life, Answered]:
        """The read brings nothing."""
        key = (id(life), "nothing")
        kept = self._kept.get(key)
        if kept is None:
            assert life.read is not None
            answer = doubt(life.read.effect, "no answer")
            kept = self._keep(key, (life, (hear(life._replace(read=None), answer, self.reduce), answer)))
        given: tuple[Life, Answered] = kept[1]
        return given

    def hear(self, life: Life, answer: Answered) -> Life:
        """An answer has reached the executor of this life."""
        key = (id(life), answer)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._keep(key, (life, hear(life, answer, self.reduce)))
        heard: Life = kept[1]
        return heard

    def snapshot(self, life: Life) -> Snapshot:
        """What a checkpoint that is triggered now holds."""
        key = (id(life), "snapshot")
        kept = self._kept.get(key)
        if kept is None:
            kept = self._keep(key, (life, Snapshot(life.state, life.position, life.emitted, life.hold)))
        made: Snapshot = kept[1]
        return made

    def restored(self, snapshot: Snapshot | None, born: int, now_ms: int, lineage: bool) -> Life:
        """A new incarnation, with what a checkpoint holds, or with nothing."""
        key = (id(snapshot), born, now_ms, lineage)
        kept = self._kept.get(key)
        if kept is None:
            state, position, emitted, _ = snapshot or Snapshot(None, 0, ())
            busy = state is not None and (state.active is not None or state.drain is not None)
            life = Life(born, now_ms, lineage, state=state, position=position, recovering=busy, emitted=emitted)
            kept = self._keep(key, (snapshot, life))
        made: Life = kept[1]
        return made

    def _keep(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> tuple[Any, ...]:
        # What the key names by its id is part of the value, so that the id cannot be given away.
        if len(self._kept) >= KEPT_MAX:
            self._kept.clear()
        self._kept[key] = value
        return value

    def _feed(self, life: Life, which: int, now_ms: int) -> Fed:
        if which == SKIPPED:
            return Fed(life._replace(position=life.position + 1), (), ())
        event = self.fact(life, which)
        if which >= 0:
            life = life._replace(inbox=life.inbox[:which] + life.inbox[which + 1 :])
        elif which == INPUT:
            life = life._replace(position=life.position + 1)
        else:
            life = life._replace(recovering=False)
        result = self._step(life, event, now_ms)
        life = life._replace(state=result.state)
        posts: list[Post] = []
        news: list[Said] = []
        for effect, inv in result.effects:
            match effect:
                case Emit(outcome):
                    said = said_of(outcome)
                    check_outcome(said, life.emitted)
                    news.append(said)
                    life = life._replace(emitted=(*life.emitted, said))
                case Notify() | Count() | Report():
                    pass
                case Hold(ident):
                    life = life._replace(hold=ident)
                case Submit(ident, not_after_ms):
                    assert inv is not None
                    stage = "create" if self.remote.staged else "post"
                    posts.append(self._sent(stage, life, inv, ident, not_after_ms))
                case Respond(ident, not_after_ms):
                    assert inv is not None
                    posts.append(self._sent("respond", life, inv, ident, not_after_ms))
                case Fence(ident):
                    assert inv is not None
                    posts.append(self._sent("fence", life, inv, ident, now_ms))
                case _:
                    assert inv is not None
                    life = life._replace(read=Read(effect, inv))
        return Fed(tidy(life, self.reduce), tuple(posts), tuple(news))

    def _step(self, life: Life, event: ThreadEvent, now_ms: int) -> ThreadStep:
        """One step of the shipped core; worked out once for all lives that differ outside of their state."""
        key = (id(life.state), event, now_ms, life.opened_ms, life.born, life.lineage)
        kept = self._kept.get(key)
        if kept is None:
            env = Env(now_ms, life.opened_ms, life.name, self.terms, life.lineage)
            try:
                result = step_thread(life.state, event, env)
            except Exception as error:
                raise Violation("raised", f"{type(error).__name__}: {error}") from error
            check_step(result)
            kept = self._keep(key, (life.state, result))
        stepped: ThreadStep = kept[1]
        return stepped

    def _sent(self, stage: str, life: Life, inv: Invocation, ident: Ident, not_after_ms: int) -> Post:
        limit_ms = not_after_ms + self.terms.policy.submit_timeout_ms
        return Post(stage, life.born, inv, ident, limit_ms, limit_ms + self.terms.admission_ms)

    def _answer(self, read: Read, memory: Memory) -> tuple[Memory, Answered]:
        remote, inv = self.remote, read.inv
        match read.effect:
            case Probe(ident):
                return memory, ProbeAnswered(ident, remote.probe(memory, inv))
            case Fetch(ident):
                return memory, FetchAnswered(ident, remote.fetch(memory, inv))
            case Cancel(ident):
                memory, answer = remote.cancel(memory, inv)
                return memory, CancelAnswered(ident, answer)
            case Watch(ident):
                return memory, WatchEnded(ident, "the stream ended")


def hear(life: Life, answer: Answered, reduce: bool = False) -> Life:
    """Put an answer into the inbox."""
    return tidy(life._replace(inbox=(*life.inbox, answer)), reduce)


def tidy(life: Life, reduce: bool = False) -> Life:
    """Forget what cannot matter: reads of older orders, and strangers, of which a plain search keeps the newest."""
    epoch = life.epoch
    read, hold, inbox = life.read, life.hold, life.inbox
    if read is not None and read.effect.ident.epoch != epoch:
        read = None
    if hold is not None and hold.epoch != epoch:
        hold = None
    strangers = [a for a in inbox if not life.current(a) and not welcome(life, a)]
    if len(strangers) > (0 if reduce else STRANGERS_MAX):
        gone = strangers if reduce else strangers[:-STRANGERS_MAX]
        inbox = tuple(answer for answer in inbox if not any(answer is one for one in gone))
    if read is life.read and hold is life.hold and inbox is life.inbox:
        return life
    return life._replace(read=read, inbox=inbox, hold=hold)
