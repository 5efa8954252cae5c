"""The canonical form of a world: what can still make a difference, and nothing else.

Two worlds with one form have the same future, so the search visits only one of them. What is left
out, and why nothing is hidden by it (tests/simulation/test_canon.py compares the futures of worlds
that share a form):

- Absolute times. The core only compares stamps with each other and with now, so each stamp is told
  by its distance to the time from which on it no longer matters, 0 once it does not.
- Counters for people (`steps`, `probes`, `spent_ms`, `entered_ms`, `attempts` without refusals), causes and
  the scatter of `tries`: with backoffs of one unit every wait is one unit.
- The stamps of the quiet time, where nothing is known by waiting.
- Epochs and names of incarnations: only "current or not" and "own or foreign" are ever compared.
- In a checkpoint the tenure's stamps and the wake-ups: a restore resets the one and is due at once
  by the other.
- Checkpoints, once no crash is left to restore one.

With `reduce`, which takes the core to be sound in a few respects and so is not for mutants, also:

- Of a call that has not been taken over, in a checkpoint or after a restore, all but what the core
  makes of it as it takes it over; it does that before all else.
- Where nothing waits for a checkpoint: the order of checkpoints, those that hold what another one
  holds or nothing at all, and whether a life was restored from the newest.
- Answers to older orders that prove nothing. That they change nothing is not assumed but tried, in
  every life that the search meets (`strangers`).
"""

import hashlib
import marshal
from collections.abc import Callable
from typing import Any

from reattach.fsm import step as core
from reattach.fsm.env import Env
from reattach.models.events import Answered, Requested, Restored, ResubmitOrdered
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf
from reattach.models.policy import Absence
from reattach.models.request import Request
from reattach.models.thread import ThreadState, Tombstone
from reattach.runtime.explore.scenario import Scenario
from reattach.runtime.explore.strangers import welcome
from reattach.runtime.explore.world import Life, Post, Snapshot, World
from reattach.runtime.simulation.remotes import Memory

FAR_MS = 10**6
SEARCHED_MS = 10**5
SHARED_MAX = 100_000
LEAVES = {leaf: number for number, leaf in enumerate(Leaf)}
_ASKING = frozenset({Leaf.NS_PROBING, Leaf.SU_PROBING, Leaf.RU_PROBING, Leaf.RU_RESPONDING_PROBING, Leaf.FAILED})
_RUNNING = frozenset(leaf for leaf in Leaf if leaf.value.startswith("running"))


class Canon:
    """The forms of one scenario's worlds.

    Args:
        met: told of every life whose form is new, with the time.
    """

    def __init__(self, scenario: Scenario, reduce: bool = True, met: Callable[[Life, int], None] | None = None) -> None:
        terms = scenario.terms
        policy = terms.policy
        self.policy = policy
        self.admission = terms.admission_ms
        self.elder = policy.overlap_ms + policy.skew_max_ms
        self.quiet = policy.overlap_ms + terms.settle_ms
        # A response waits for the quiet time whatever an absence rests on.
        self.waits = terms.capabilities.absence is Absence.AFTER_QUIET or terms.capabilities.responds
        self.memory = terms.memory_ms - terms.settle_ms - policy.skew_max_ms
        self.counts_attempts = scenario.refusals
        self.forgets_at_ms = scenario.forgets_at_ms
        asked = [event.request for event in scenario.script if isinstance(event, Requested)]
        self.orders = [event for event in scenario.script if isinstance(event, ResubmitOrdered)]
        # What is too far away to come nearer in a search is the same in every world.
        self.asked = [request for request in asked if self._asked(0, request) != self._asked(SEARCHED_MS, request)]
        # Worlds share their parts: a part's form is worked out once per object and instant, and has a number.
        self._numbers: dict[Any, int] = {}
        self._seen: dict[tuple[int, int], tuple[object, int]] = {}
        self.writes_ahead = terms.writes_ahead
        self.reduce = reduce
        self.terms = terms
        self._met = met
        self._nothing = self._told(self._snapshot(0, Snapshot(None, 0, ())))

    def key(self, world: World) -> bytes:
        """8 bytes that stand for the form."""
        return hashlib.blake2b(marshal.dumps(self.form(world), 0), digest_size=8).digest()

    def form(self, world: World) -> tuple[int, ...]:
        """The form as numbers of the forms of its parts, the same for equal parts in one search."""
        now, left, number = world.now_ms, world.left, self._number
        parts = [self._number_life(now, world.host), number(now, world.memory, self._memory), self._told(world.said)]
        for zombie in world.zombies:
            parts += (-1, self._number_life(now, zombie), zombie.dies_at_ms - now)
        for post in world.posts:
            parts += (-2, *self._post(now, post, world))
        if world.triggered is not None:
            parts += (-3, number(now, world.triggered, self._snapshot))
        if left.crashes:
            parts += (-4, left.crashes, left.checkpoints, left.zombies)
            kept = [number(now, snapshot, self._snapshot) for snapshot in world.checkpoints]
            parts += kept if self.writes_ahead or not self.reduce else sorted({*kept, self._nothing})
        parts.append(left.losses)
        parts += [max(0, order.ordered_at_ms - now) for order in self.orders]
        if self.forgets_at_ms:
            parts.append(max(-1, self.forgets_at_ms - now))
        if self.asked:
            parts.append(self._told(tuple(self._asked(now, request) for request in self.asked)))
        return tuple(parts)

    def _number_life(self, now: int, life: Life) -> int:
        found = self._seen.get((id(life), now))
        if found is not None and found[0] is life:
            return found[1]
        known = len(self._numbers)
        made = self._number(now, life, self._life)
        if made >= known and self._met is not None:
            self._met(life, now)
        return made

    def _number(self, now: int, part: Any, form: Callable[[int, Any], Any]) -> int:
        found = self._seen.get((id(part), now))
        if found is not None and found[0] is part:
            return found[1]
        if len(self._seen) > SHARED_MAX:
            self._seen.clear()
        made = self._told(form(now, part))
        # The part is kept with its number, so that its id cannot be given to another.
        self._seen[id(part), now] = (part, made)
        return made

    def _told(self, form: Any) -> int:
        return self._numbers.setdefault(form, len(self._numbers))

    def _memory(self, now: int, memory: Memory) -> Any:
        turns = tuple(
            (t.marker, t.thread, t.phase.value, t.hidden_until_ms and t.hidden_until_ms - now) for t in memory.turns
        )
        return turns, memory.created, memory.fenced

    def _life(self, now: int, life: Life) -> tuple[Any, ...]:
        read = life.read
        return (
            self._thread(now, life.state, life),
            max(0, life.opened_ms + (self.quiet if self.waits else self.admission) - now),
            life.lineage and (self.writes_ahead or not self.reduce),
            life.position,
            life.recovering,
            tuple(order.ordered_at_ms <= life.opened_ms + self.elder for order in self.orders),
            None if read is None else (type(read.effect).__name__, self._about(read.inv), read.inv.handle),
            tuple(
                self._answer(answer, life)
                for answer in life.inbox
                if not self.reduce or life.current(answer) or welcome(life, answer)
            ),
            life.hold is not None,
            life.emitted,
        )

    def _about(self, inv: Invocation) -> tuple[Any, ...]:
        return inv.id, inv.generation, inv.slot

    def _answer(self, event: Answered, life: Life) -> tuple[Any, ...]:
        ident = event.ident
        answer = getattr(event, "answer", None)
        own = ident.incarnation == life.name
        return (
            type(event).__name__, ident.invocation_id, ident.generation,
            life.current(event) if own else (ident.incarnation, max(-1, ident.epoch - life.epoch)),
            type(answer).__name__, repr(answer),
        )  # fmt: skip

    def _post(self, now: int, post: Post, world: World) -> tuple[int, ...]:
        inv = post.inv
        response = inv.response.response_id if post.stage == "respond" and inv.response is not None else ""
        about = self._told((post.stage, inv.id, inv.generation, inv.slot, response))
        for whose, life in enumerate((world.host, *world.zombies)):
            if life.born == post.owner:
                current = post.ident.epoch == life.epoch
                return about, whose, current, max(0, post.limit_ms - now), post.by_ms - now
        return about, post.by_ms - now

    def _snapshot(self, now: int, snapshot: Snapshot) -> tuple[Any, ...]:
        return self._thread(now, snapshot.state, None), snapshot.position, snapshot.emitted, snapshot.hold is not None

    def _thread(self, now: int, state: ThreadState | None, life: Life | None) -> tuple[Any, ...] | None:
        if state is None:
            return None
        drain = state.drain
        own = life is not None and state.incarnation == life.name
        return (
            None if state.active is None else self._call(now, state.active, life),
            None
            if drain is None
            else (
                self._call(now, drain.invocation, life),
                max(0, drain.wake_at_ms - now) if owns(drain.invocation, life) else 0,
                max(0, drain.until_ms - now),
            ),
            tuple((q.request.invocation_id, q.cancelled) for q in state.queue),
            tuple(self._stone(now, stone) for stone in state.tombstones),
            max(0, state.sends_end_ms + self.admission - now) if own and self.waits else 0,
            state.after,
        )

    def _stone(self, now: int, stone: Tombstone) -> tuple[object, ...]:
        left_ms = min(FAR_MS, max(0, stone.expires_at_ms - now))
        return stone.invocation_id, stone.generation, stone.status.name, left_ms

    def _asked(self, now: int, request: Request) -> tuple[int, int]:
        """How near the times are that the input itself brings along; a request may come again at any time."""
        deadline = request.deadline_ms or request.requested_at_ms + self.policy.deadline_ms
        return (
            min(FAR_MS, max(-self.policy.drain_max_ms, deadline - now)),
            min(FAR_MS, max(0, request.requested_at_ms + self.memory - now)),
        )

    def _call(self, now: int, inv: Invocation, life: Life | None) -> tuple[Any, ...]:
        policy = self.policy
        if self.reduce and not owns(inv, life) and not inv.leaf.terminal:
            inv, life = self._taken_over(now, inv, life), None
        tenure = inv.tenure
        failure = inv.failure
        return (
            inv.id,
            inv.generation,
            inv.slot,
            LEAVES[inv.leaf],
            min(FAR_MS, max(0, inv.asked_at_ms + self.memory - now)),
            min(inv.attempts, policy.submit_attempts_max) if self.counts_attempts else 0,
            inv.cancels,
            min(inv.absences, 1),
            inv.streams,
            inv.resend,
            inv.cancelled,
            inv.handle,
            inv.question_id,
            None if inv.response is None else inv.response.response_id,
            inv.after,
            None if failure is None else (failure.code.value, failure.remote.value),
            tenure.permit,
            tenure.fenced,
            *(self._stamps(now, inv, life) if life is not None else ()),
        )

    def _taken_over(self, now: int, inv: Invocation, life: Life | None) -> Invocation:
        name, opened_ms, lineage = ("", now, False) if life is None else (life.name, life.opened_ms, life.lineage)
        return core.step(inv, Restored(), Env(now, opened_ms, name, self.terms, lineage)).invocation

    def _stamps(self, now: int, inv: Invocation, life: Life) -> tuple[Any, ...]:
        tenure = inv.tenure
        if not owns(inv, life):
            return ("foreign",)
        opened, admission, ordered = life.opened_ms, self.admission, tenure.ordered_at_ms
        asking = inv.leaf in _ASKING
        waiting = asking and self.waits
        sends_end = tenure.sends_end_ms
        known = max(tenure.known_at_ms, opened) if inv.leaf in _RUNNING else 0
        return (
            max(0, inv.wake_at_ms - now),
            max(0, sends_end + admission - now) if self.waits else 0,
            max(0, known + admission - now),
            min(0, max(-self.quiet, ordered - opened - self.quiet)) if waiting else 0,
            min(0, max(-self.quiet, ordered - sends_end - admission)) if waiting else 0,
            ordered >= known + admission if asking and known else False,
            # Whether the request is older than this life; only an operator's order ever is not.
            inv.asked_at_ms <= opened + self.elder,
        )


def owns(inv: Invocation, life: Life | None) -> bool:
    """This life has stepped the call, and so it may trust the stamps; a restored one is due at once."""
    return life is not None and inv.tenure.incarnation == life.name
