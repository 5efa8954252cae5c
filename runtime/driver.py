"""One incarnation's way of applying facts to stored threads: shared by every host.

Bytes in, bytes out: a host reads the thread's stored bytes, calls `apply`, writes the new bytes,
and only then carries out what `Applied` lists. Nothing here knows Flink, a clock or a network, so
the simulated world drives the very code that runs in a job.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reattach.fsm.env import Env
from reattach.fsm.thread import ThreadStep, Transition, step_thread
from reattach.models.codec import decode_thread, encode_invocation, encode_thread
from reattach.models.effects import Count, Emit, Hold, Notify, RemoteEffect, Report
from reattach.models.events import ThreadEvent
from reattach.models.invocation import Invocation
from reattach.models.journal import Basis, JournalEntry, redact_event, redact_record
from reattach.models.lifecycle import Leaf
from reattach.models.outcomes import Notice, Outcome
from reattach.models.policy import Terms
from reattach.models.record import record
from reattach.models.terms import terms_text
from reattach.models.thread import ThreadState

# About 80 MB of states at the most.
RECENT_MAX: Final = 8_192
RECENT_BYTES_MAX: Final = 4_096

Key = tuple[str, str]
Order = tuple[RemoteEffect | Hold, Invocation]


@record
@dataclass(frozen=True, slots=True)
class Applied:
    """What a host must do after one fact, in this order: store, set the timer, send out, order.

    Args:
        stored: the thread's new bytes; None to clear them.
        changed: the bytes differ from what was read.
        wake_at_ms: a durable timer must exist at or before this time; 0 for none.
        orders: remote effects for the executor, each with the record it was ordered for.
        leaf: the state of the call that is under way now, None for none.
        queued: later turns that wait for the thread.
    """

    stored: bytes | None
    changed: bool
    wake_at_ms: int
    orders: tuple[Order, ...]
    outcomes: tuple[Outcome, ...]
    reports: tuple[Report, ...]
    notices: tuple[Notice, ...]
    counts: tuple[str, ...]
    journal: tuple[JournalEntry, ...]
    leaf: Leaf | None
    queued: int


class Driver:
    """Applies facts in the name of one incarnation.

    Args:
        terms: by agent.
        incarnation: unique name of this life of the host.
        opened_ms: the host's clock when it opened.
        lineage: see `fsm.env.Env`.
        journal: make journal entries.
    """

    def __init__(
        self,
        terms: Mapping[str, Terms],
        *,
        incarnation: str,
        opened_ms: int,
        lineage: bool = False,
        journal: bool = True,
    ) -> None:
        self._terms = dict(terms)
        self.incarnation = incarnation
        self.opened_ms = opened_ms
        self._lineage = lineage
        self._journal = journal
        # Not a dict: to find the first key of one that is emptied from its front is O(n).
        self._recent: OrderedDict[Key, tuple[bytes, ThreadState]] = OrderedDict()
        self._texts = {name: terms_text(each) for name, each in self._terms.items()} if journal else {}

    def knows(self, agent: str) -> bool:
        return agent in self._terms

    def apply(self, key: Key, stored: bytes | None, event: ThreadEvent, now_ms: int) -> Applied:
        """Apply one fact to the thread `key`.

        Args:
            stored: the thread's bytes as last stored, None when there are none.
            now_ms: never smaller than in the call before.

        Raises:
            CodecError: the stored bytes cannot be read.
            IllegalEvent: the host delivered an answer that no order can have.
            KeyError: the agent is not configured.
        """
        env = Env(now_ms, self.opened_ms, self.incarnation, self._terms[key[0]], self._lineage)
        state = None if stored is None else self._decoded(key, stored)
        result = step_thread(state, event, env)
        after = None if result.state is None else encode_thread(result.state)
        self._keep(key, after, result.state)
        journal = tuple(self._entry(key, t, env, state) for t in result.transitions) if self._journal else ()
        wake_at_ms = 0 if result.state is None else result.state.wake_at_ms
        return _sorted_out(result, after, after != stored, wake_at_ms, journal)

    def remembered(self, key: Key) -> bytes | None:
        """The bytes that the last fact of a thread left, as long as they are remembered: what is stored then."""
        recent = self._recent.get(key)
        return None if recent is None else recent[0]

    def _decoded(self, key: Key, stored: bytes) -> ThreadState:
        recent = self._recent.get(key)
        return recent[1] if recent is not None and recent[0] == stored else decode_thread(stored)

    def _keep(self, key: Key, after: bytes | None, state: ThreadState | None) -> None:
        """Remember what these bytes mean: most facts of a thread come close upon each other."""
        if after is None or state is None or len(after) > RECENT_BYTES_MAX:
            self._recent.pop(key, None)
            return
        self._recent[key] = (after, state)
        if len(self._recent) > RECENT_MAX:
            self._recent.popitem(last=False)

    def _entry(self, key: Key, transition: Transition, env: Env, state: ThreadState | None) -> JournalEntry:
        after = transition.after
        return JournalEntry(
            agent=key[0],
            thread_id=key[1],
            invocation_id=after.id,
            generation=after.generation,
            seq=after.steps,
            at_ms=env.now_ms,
            opened_ms=env.opened_ms,
            incarnation=env.incarnation,
            lineage=env.lineage,
            event=redact_event(transition.event),
            before=None if transition.before is None else transition.before.leaf,
            after=after.leaf,
            effects=tuple(type(effect).__name__ for effect in transition.effects),
            state=state_digest(after),
            basis=self._basis(key[0], transition, state),
        )

    def _basis(self, agent: str, transition: Transition, state: ThreadState | None) -> Basis | None:
        """What a replay cannot know from the entries before, if this is our first one of the call."""
        before = transition.before
        if before is None:
            return Basis(self._texts[agent], redact_record(transition.after))
        if before.tenure.incarnation == self.incarnation:
            return None
        drain = state.drain if state is not None and before.leaf.terminal else None
        return Basis(self._texts[agent], redact_record(before), 0 if drain is None else drain.until_ms)


# How a blob begins: an array of three, and the number of its schema.
_OF_SCHEMA_1: Final = b"\x93\x01"


def state_digest(invocation: Invocation) -> bytes:
    """8 bytes that differ when a replay comes to another record; the same under every schema that stores it alike."""
    return hashlib.sha256(_OF_SCHEMA_1 + encode_invocation(redact_record(invocation))[2:]).digest()[:8]


def _sorted_out(
    result: ThreadStep, stored: bytes | None, changed: bool, wake_at_ms: int, journal: tuple[JournalEntry, ...]
) -> Applied:
    orders: list[Order] = []
    outcomes: list[Outcome] = []
    reports: list[Report] = []
    notices: list[Notice] = []
    counts: list[str] = []
    for effect, invocation in result.effects:
        match effect:
            case Emit(outcome):
                outcomes.append(outcome)
            case Notify(notice):
                notices.append(notice)
            case Report():
                reports.append(effect)
            case Count(name):
                counts.append(name)
            case _:
                assert invocation is not None
                orders.append((effect, invocation))
    return Applied(
        stored,
        changed,
        wake_at_ms,
        tuple(orders),
        tuple(outcomes),
        tuple(reports),
        tuple(notices),
        tuple(counts),
        journal,
        None if result.state is None or result.state.active is None else result.state.active.leaf,
        0 if result.state is None else len(result.state.queue),
    )
