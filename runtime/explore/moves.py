"""What can happen next in the explored world.

Every source of uncertainty is a move of its own: an order of the network, a pause, a crash. Moves
that cost something of `Left` are faults; the others go on for ever once the faults have stopped.
The host's answers to what happens come from the shipped `step_thread`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from reattach.fsm.env import Env
from reattach.fsm.thread import ThreadStep, step_thread
from reattach.models.answers import NotSent, Phase, Refused, Unknown, Unresolved
from reattach.models.effects import Cancel, Count, Emit, Fence, Fetch, Hold, Notify, Probe, Report, Submit, Watch
from reattach.models.events import (
    Answered,
    CancelAnswered,
    CheckpointCompleted,
    FenceAnswered,
    FetchAnswered,
    Ident,
    ProbeAnswered,
    Restored,
    SubmitAnswered,
    ThreadEvent,
    TimeReached,
    WatchEnded,
)
from reattach.models.identity import marker_of
from reattach.models.invocation import Invocation, check_invocation
from reattach.models.lifecycle import Leaf
from reattach.models.outcomes import Failure, FailureCode, Outcome, RemoteFate
from reattach.models.policy import SubmitAfter, Terms
from reattach.runtime.explore.world import Left, Life, Post, Read, Said, Snapshot, World
from reattach.runtime.simulation.remotes import ALIVE, Memory, Remote, end, result_of, reveal

START_MS = 1_000
STALE_MAX = 1


@dataclass(frozen=True)
class Scenario:
    """One run of the explorer.

    Args:
        script: what the source holds, in its order.
        refusals, failures: the remote may refuse a POST; a run may fail.
        same_outcome: every outcome of one call must say the same, also over restores.
    """

    name: str
    remote: Remote
    terms: Terms
    script: tuple[ThreadEvent, ...]
    left: Left
    refusals: bool = False
    failures: bool = False
    same_outcome: bool = True


class Violation(Exception):
    """A property does not hold."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name
        self.text = text


class Move(NamedTuple):
    """One thing that happens.

    Args:
        what: its kind and details, for the timeline.
        fault: it uses up something of `Left`.
        world: the world after it, or the property that it breaks.
    """

    what: tuple[object, ...]
    fault: bool
    world: World | Violation


def first(scenario: Scenario) -> World:
    """The world in which a job starts for the first time."""
    return World(START_MS, Life(1, START_MS, True), scenario.left)


@dataclass
class Moves:
    """All moves of one scenario."""

    scenario: Scenario
    envs: dict[tuple[int, int, int, bool], Env] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.remote = self.scenario.remote
        self.terms = self.scenario.terms
        self.writes_ahead = self.terms.policy.submit_after is SubmitAfter.CHECKPOINT

    def of(self, world: World, clean_crash: bool = True) -> list[Move]:
        """Every move from here, in a fixed order.

        Args:
            clean_crash: also those crashes that leave nothing of the host alive.
        """
        moves: list[Move] = []
        moves += self._life(world, world.host)
        for zombie in world.zombies:
            moves += self._life(world, zombie)
        for number in range(len(world.posts)):
            moves += self._post(world, number)
        moves += self._remote(world)
        moves += self._checkpoint(world)
        tick = self._tick(world)
        if tick is not None:
            moves.append(Move(("tick",), False, tick))
        if world.left.crashes and world.left.zombies:
            moves += self._crash(world, zombie=True)
        if world.left.crashes and clean_crash:
            moves += self._crash(world, zombie=False)
        return moves

    # ---- the host

    def _life(self, world: World, life: Life) -> Iterator[Move]:
        if life.recovering:
            yield self._feed(world, life._replace(recovering=False), Restored(), ("restored",))
        state = life.state
        if state is not None and 0 < state.wake_at_ms <= world.now_ms:
            ready = life._replace(recovering=False)
            if not _owed(world, life):
                yield self._feed(world, ready, TimeReached(), ("time",))
            elif world.left.losses:
                yield self._feed(_lose(world), ready, TimeReached(), ("time, answer late",), fault=True)
        if life.position < len(self.scenario.script):
            event = self.scenario.script[life.position]
            yield self._feed(world, life._replace(position=life.position + 1), event, ("input", event))
        if life.read is not None:
            yield from self._read(world, life, life.read)
        for number, answer in enumerate(life.inbox):
            rest = life.inbox[:number] + life.inbox[number + 1 :]
            yield self._feed(world, life._replace(inbox=rest), answer, ("answer", answer))

    def _read(self, world: World, life: Life, read: Read) -> Iterator[Move]:
        memory, answer = self._serve(world, read)
        served = world if memory is world.memory else world._replace(memory=memory)
        yield Move(("serve", life.name, answer), False, _inbox(served, life._replace(read=None), answer))
        if world.left.losses:
            failed = _nothing(read)
            lost = _lose(world)
            yield Move(("read lost", life.name, failed), True, _inbox(lost, life._replace(read=None), failed))

    def _serve(self, world: World, read: Read) -> tuple[Memory, Answered]:
        memory, inv, effect = world.memory, read.inv, read.effect
        match effect:
            case Probe(ident):
                return memory, ProbeAnswered(ident, self.remote.probe(memory, inv))
            case Fetch(ident):
                return memory, FetchAnswered(ident, self.remote.fetch(memory, inv))
            case Cancel(ident):
                memory, answer = self.remote.cancel(memory, inv)
                return memory, CancelAnswered(ident, answer)
            case Watch(ident):
                return memory, WatchEnded(ident, "the stream ended")
        raise NotImplementedError(type(effect).__name__)

    def _feed(
        self, world: World, life: Life, event: ThreadEvent, what: tuple[object, ...], fault: bool = False
    ) -> Move:
        label = (what[0], life.name, *what[1:])
        try:
            return Move(label, fault, self._apply(world, life, event))
        except Violation as broken:
            return Move(label, fault, broken)

    def _apply(self, world: World, life: Life, event: ThreadEvent) -> World:
        """Let the shipped core apply one fact, and carry out what it orders."""
        if isinstance(event, SubmitAnswered):
            world = _ended(world, event, self.terms.admission_ms)
        env = Env(world.now_ms, life.opened_ms, life.name, self.terms, life.lineage)
        try:
            result = step_thread(life.state, event, env)
        except Exception as error:
            raise Violation("raised", f"{type(error).__name__}: {error}") from error
        check_step(result)
        life = life._replace(state=result.state)
        posts = world.posts
        for effect, inv in result.effects:
            match effect:
                case Emit(outcome):
                    world, life = self._emit(world, life, outcome)
                case Notify() | Count() | Report():
                    pass
                case Submit(ident, not_after_ms):
                    assert inv is not None
                    limit = not_after_ms + self.terms.policy.submit_timeout_ms
                    stage = "create" if self.remote.staged else "post"
                    posts = (*posts, self._sent(stage, life, inv, ident, limit))
                case Fence(ident):
                    assert inv is not None
                    limit = world.now_ms + self.terms.policy.submit_timeout_ms
                    posts = (*posts, self._sent("fence", life, inv, ident, limit))
                case Hold(ident):
                    life = life._replace(hold=ident)
                case _:
                    assert inv is not None
                    life = life._replace(read=Read(effect, inv))
        if posts is not world.posts:
            world = world._replace(posts=posts)
        return _with(world, _tidy(life))

    def _sent(self, stage: str, life: Life, inv: Invocation, ident: Ident, limit: int) -> Post:
        return Post(stage, life.born, inv, ident, limit, limit + self.terms.admission_ms)

    def _emit(self, world: World, life: Life, outcome: Outcome) -> tuple[World, Life]:
        said = _said(outcome)
        if any(old[0] == said[0] and old[1] == said[1] for old in life.emitted):
            raise Violation("two outcomes", f"{said[0]} ended twice in one lineage: {said}")
        if outcome.result is not None and outcome.result != result_of(marker_of(said[0], said[1])):
            raise Violation("wrong turn", f"{said[0]} was given the result {outcome.result!r}")
        for old in world.said:
            if self.scenario.same_outcome and old[0] == said[0] and old != said:
                raise Violation("outcomes differ", f"{said} after {old}")
        marker = marker_of(said[0], said[1])
        if said[5] == "none" and not life.dies_at_ms and any(t.marker == marker for t in world.memory.turns):
            raise Violation("false fate", f"{said[0]} was accepted, the outcome says it was not")
        everything = world.said if said in world.said else tuple(sorted((*world.said, said)))
        return world._replace(said=everything), life._replace(emitted=(*life.emitted, said))

    # ---- the network and the remote

    def _post(self, world: World, number: int) -> Iterator[Move]:
        post = world.posts[number]
        rest = world._replace(posts=world.posts[:number] + world.posts[number + 1 :])
        try:
            landed: World | Violation = self._land(rest, post)
        except Violation as broken:
            landed = broken
        yield Move(("land", post), False, landed)
        owner = _owner(world, post)
        if owner is None or not world.left.losses:
            return
        lost = _lose(rest)
        by = min(post.by_ms, world.now_ms + self.terms.admission_ms)
        cut = lost._replace(posts=_insert(lost.posts, number, post._replace(owner=0, by_ms=by)))
        yield Move(("answer lost", post), True, _inbox(cut, owner, _unresolved(post)))
        if post.stage != "fence":
            answer = SubmitAnswered(post.ident, NotSent("connection refused"))
            yield Move(("not sent", post), True, _inbox(lost, owner, answer))
            if self.scenario.refusals:
                answer = SubmitAnswered(post.ident, Refused(_BUSY))
                yield Move(("refused", post), True, _inbox(lost, owner, answer))

    def _land(self, world: World, post: Post) -> World:
        """A request reaches the server and is answered at once."""
        owner = _owner(world, post)
        memory = world.memory
        if post.stage == "create":
            memory, won = self.remote.create(memory, post.inv)
            world = world._replace(memory=memory)
            if owner is None:
                return world
            if won:
                return world._replace(posts=(*world.posts, post._replace(stage="post")))
            from reattach.models.answers import Occupied

            return _inbox(world, owner, SubmitAnswered(post.ident, Occupied("the thread exists")))
        if post.stage == "fence":
            memory, fenced = self.remote.fence(memory, post.inv)
            world = world._replace(memory=memory)
            return world if owner is None else _inbox(world, owner, FenceAnswered(post.ident, fenced))
        after, answer = self.remote.submit(memory, post.inv, post.by_ms)
        if len(after.turns) > len(memory.turns):
            _check_accepted(world, after.turns)
        world = world._replace(memory=after)
        return world if owner is None else _inbox(world, owner, SubmitAnswered(post.ident, answer))

    def _remote(self, world: World) -> Iterator[Move]:
        for number, turn in enumerate(world.memory.turns):
            if turn.hidden_until_ms:
                yield Move(("show", turn), False, world._replace(memory=reveal(world.memory, number)))
            if turn.phase in ALIVE:
                done = world._replace(memory=end(world.memory, number, Phase.COMPLETED))
                yield Move(("finish", turn), False, done)
                if self.scenario.failures and world.left.losses:
                    failed = _lose(world)._replace(memory=end(world.memory, number, Phase.FAILED))
                    yield Move(("fail", turn), True, failed)

    # ---- checkpoints, crashes, time

    def _checkpoint(self, world: World) -> Iterator[Move]:
        host, left = world.host, world.left
        if world.triggered is not None:
            done = world.triggered
            kept = (*world.checkpoints, done._replace(hold=None))[-max(1, self.scenario.left.checkpoints) :]
            after = world._replace(checkpoints=kept, triggered=None)
            if done.hold is not None:
                held = host._replace(hold=None) if host.hold == done.hold else host
                after = _inbox(after, held, CheckpointCompleted(done.hold))
            yield Move(("checkpoint completed",), False, after)
            return
        useful = left.crashes and left.checkpoints
        owed = self.writes_ahead and host.hold is not None
        if not useful and not owed:
            return
        snapshot = Snapshot(host.state, host.position, host.emitted, host.hold)
        spent = world._replace(left=left._replace(checkpoints=max(0, left.checkpoints - 1)))
        if self.writes_ahead:
            yield Move(("checkpoint triggered",), False, spent._replace(triggered=snapshot))
        elif not world.checkpoints or world.checkpoints[-1] != snapshot:
            yield Move(("checkpoint",), False, spent._replace(checkpoints=(*world.checkpoints, snapshot)))

    def _crash(self, world: World, zombie: bool) -> Iterator[Move]:
        for age, snapshot in enumerate((*reversed(world.checkpoints), None)):
            what = ("crash", "zombie stays" if zombie else "clean", f"back to {len(world.checkpoints) - age}")
            yield Move(what, True, self._restore(world, snapshot, age == 0, zombie))

    def _restore(self, world: World, snapshot: Snapshot | None, newest: bool, zombie: bool) -> World:
        old, left = world.host, world.left
        left = left._replace(crashes=left.crashes - 1, zombies=left.zombies - zombie)
        zombies, posts = world.zombies, world.posts
        if zombie:
            zombies = (*zombies, old._replace(dies_at_ms=world.now_ms + self.terms.policy.overlap_ms))
        else:
            posts = _orphan(posts, old.born)
        kept = snapshot or Snapshot(None, 0, ())
        busy = kept.state is not None and (kept.state.active is not None or kept.state.drain is not None)
        host = Life(
            born=world.lives + 1,
            opened_ms=world.now_ms,
            lineage=newest and old.lineage,
            state=kept.state,
            position=kept.position,
            recovering=busy,
            emitted=kept.emitted,
        )
        return world._replace(host=host, left=left, zombies=zombies, posts=posts, triggered=None, lives=world.lives + 1)

    def _tick(self, world: World) -> World | None:
        """Let one unit of time pass; None while something must happen before."""
        now = world.now_ms + 1
        for post in world.posts:
            if now > post.limit_ms and _owner(world, post) is not None:
                return None
        posts = world.posts
        zombies = tuple(z for z in world.zombies if z.dies_at_ms >= now)
        for zombie in world.zombies:
            if zombie.dies_at_ms < now:
                posts = _orphan(posts, zombie.born)
        posts = tuple(post for post in posts if post.by_ms > now)
        memory = world.memory
        for number, turn in enumerate(memory.turns):
            if 0 < turn.hidden_until_ms <= now:
                memory = reveal(memory, number)
        return world._replace(now_ms=now, posts=posts, zombies=zombies, memory=memory)


_BUSY = Failure(FailureCode.REJECTED, "too many requests", RemoteFate.NONE, retryable=True)


def same_after_crash(world: World, after: World) -> bool:
    """Whether a clean crash wipes out all the difference between two worlds."""
    return (
        world.now_ms == after.now_ms
        and world.left == after.left
        and world.posts is after.posts
        and world.memory is after.memory
        and world.checkpoints is after.checkpoints
        and world.said is after.said
        and world.zombies is after.zombies
        and world.host.born == after.host.born
    )


def check_step(result: ThreadStep) -> None:
    """What must hold after every step, whatever the world did."""
    for transition in result.transitions:
        before, after = transition.before, transition.after
        same = before is not None and before.id == after.id
        if before and same and (after.generation, after.status.rank) < (before.generation, before.status.rank):
            raise Violation("rank fell", f"{after.id}: {before.leaf.value} to {after.leaf.value}")
        wrong = check_invocation(after)
        if wrong:
            raise Violation("bad record", wrong)
    state = result.state
    if state is None:
        return
    if state.active is not None and state.active.wake_at_ms <= 0:
        raise Violation("no wake-up", state.active.leaf.value)
    if state.drain is not None and state.drain.wake_at_ms <= 0:
        raise Violation("no wake-up", "draining")
    if state.queue and state.active is None and state.drain is None:
        raise Violation("no wake-up", "a turn waits for a free thread")


def settled(scenario: Scenario, world: World) -> bool:
    """Nothing more is to come: every call has ended, or is parked for people to decide."""
    host = world.host
    if host.position < len(scenario.script) or host.recovering:
        return False
    state = host.state
    if state is None:
        return True
    if state.drain is not None:
        return False
    return state.active is None or state.active.leaf is Leaf.SU_PARKED


def _check_accepted(world: World, turns: tuple[object, ...]) -> None:
    new = world.memory.turns, turns[-1]
    old, turn = new
    if any(t.marker == turn.marker for t in old):  # type: ignore[attr-defined]
        raise Violation("accepted twice", f"{turn.marker} started a second run")  # type: ignore[attr-defined]
    if any(t.thread == turn.thread and t.phase in ALIVE for t in old):  # type: ignore[attr-defined]
        raise Violation("turns overlap", f"{turn.marker} was accepted while another turn ran")  # type: ignore[attr-defined]
    for said in world.host.emitted:
        if said[5] == "none" and marker_of(said[0], said[1]) == turn.marker:  # type: ignore[attr-defined]
            raise Violation("false fate", f"{said[0]} was accepted after its outcome said that it was not")


def _said(outcome: Outcome) -> Said:
    failure = outcome.failure
    return (
        outcome.invocation_id,
        outcome.generation,
        outcome.status.name,
        outcome.result or b"",
        failure.code.value if failure else "",
        failure.remote.value if failure else "",
    )


def _with(world: World, life: Life) -> World:
    if life.born == world.host.born:
        return world._replace(host=life)
    return world._replace(zombies=tuple(life if z.born == life.born else z for z in world.zombies))


def _tidy(life: Life) -> Life:
    """Forget what cannot matter: reads of older orders, and all but the newest stale answers."""
    epoch = life.epoch
    read = life.read
    if read is not None and read.effect.ident.epoch != epoch:
        read = None
    hold = life.hold
    if hold is not None and hold.epoch != epoch:
        hold = None
    stale = sum(1 for answer in life.inbox if answer.ident.epoch != epoch) - STALE_MAX
    inbox = life.inbox
    if stale > 0:
        kept: list[Answered] = []
        for answer in inbox:
            if answer.ident.epoch != epoch and stale > 0:
                stale -= 1
            else:
                kept.append(answer)
        inbox = tuple(kept)
    if read is life.read and hold is life.hold and inbox is life.inbox:
        return life
    return life._replace(read=read, inbox=inbox, hold=hold)


def _inbox(world: World, life: Life, answer: Answered) -> World:
    return _with(world, _tidy(life._replace(inbox=(*life.inbox, answer))))


def _lose(world: World) -> World:
    return world._replace(left=world.left._replace(losses=world.left.losses - 1))


def _owner(world: World, post: Post) -> Life | None:
    if post.owner == world.host.born:
        return world.host
    return next((z for z in world.zombies if z.born == post.owner), None)


def _owed(world: World, life: Life) -> bool:
    """The order that this life waits for is a POST, and its answer is still on its way."""
    epoch = life.epoch
    if any(post.owner == life.born and post.ident.epoch == epoch for post in world.posts):
        return True
    return any(isinstance(a, SubmitAnswered | FenceAnswered) and a.ident.epoch == epoch for a in life.inbox)


def _orphan(posts: tuple[Post, ...], born: int) -> tuple[Post, ...]:
    return tuple(post._replace(owner=0) if post.owner == born else post for post in posts)


def _insert(posts: tuple[Post, ...], number: int, post: Post) -> tuple[Post, ...]:
    return (*posts[:number], post, *posts[number:])


def _unresolved(post: Post) -> Answered:
    if post.stage == "fence":
        return FenceAnswered(post.ident, Unknown("no answer"))
    return SubmitAnswered(post.ident, Unresolved("no answer"))


def _nothing(read: Read) -> Answered:
    match read.effect:
        case Probe(ident):
            return ProbeAnswered(ident, Unknown("no answer"))
        case Fetch(ident):
            return FetchAnswered(ident, Unknown("no answer"))
        case Cancel(ident):
            return CancelAnswered(ident, Unknown("no answer"))
        case Watch(ident):
            return WatchEnded(ident, "connection lost")
    raise NotImplementedError(type(read.effect).__name__)


def _ended(world: World, event: SubmitAnswered, admission_ms: int) -> World:
    """The sender has its answer: what the remote took shows an admission bound later at the latest."""
    if all(turn.hidden_until_ms == 0 for turn in world.memory.turns):
        return world
    bound = world.now_ms + admission_ms
    marker = marker_of(event.ident.invocation_id, event.ident.generation)
    turns = tuple(
        t._replace(hidden_until_ms=min(t.hidden_until_ms, bound)) if t.marker == marker and t.hidden_until_ms else t
        for t in world.memory.turns
    )
    return world._replace(memory=world.memory._replace(turns=turns))
