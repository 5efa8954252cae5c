"""What can happen next in the explored world.

Every source of uncertainty is a move of its own: an order of the network, a pause, a crash. Moves
that cost something of `Left` are faults; the others go on for ever once the faults have stopped.
How a host answers to what happens is for the shipped core (`lives`); what must never happen stands
in `checks`.
"""

from collections.abc import Iterator

from reattach.models.answers import Occupied, Phase
from reattach.models.events import (
    AdoptOrdered,
    Answered,
    CheckpointCompleted,
    FenceAnswered,
    RespondAnswered,
    ResubmitOrdered,
    SubmitAnswered,
    ThreadEvent,
)
from reattach.models.identity import marker_of
from reattach.runtime.explore.checks import check_accepted, check_response, check_said
from reattach.runtime.explore.kinds import ANSWERS, Asking, Forgetful
from reattach.runtime.explore.lives import INPUT, RESTORED, SKIPPED, TIME, Lives
from reattach.runtime.explore.scenario import START_MS, Move, Scenario, Violation, first, settled
from reattach.runtime.explore.strangers import welcome
from reattach.runtime.explore.wire import not_sent, orphan, owed, owner, refused, unresolved
from reattach.runtime.explore.world import Life, Post, Said, Snapshot, World
from reattach.runtime.simulation.remotes import ALIVE, Memory, end, reveal

__all__ = ["START_MS", "Move", "Moves", "Scenario", "Violation", "first", "same_after_crash", "settled"]


class Moves:
    """All moves of one scenario.

    Args:
        reduce: as the search's.
    """

    def __init__(self, scenario: Scenario, reduce: bool = True) -> None:
        self.scenario = scenario
        self.remote = scenario.remote
        self.terms = scenario.terms
        self.lives = Lives(scenario, reduce)
        self.memories: dict[Memory, Memory] = {}

    def of(self, world: World, clean_crash: bool = True) -> list[Move]:
        """Every move from here, in a fixed order.

        Args:
            clean_crash: also those crashes that leave nothing of the host alive.
        """
        moves = [*self._life(world, world.host)]
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

    def _life(self, world: World, life: Life) -> Iterator[Move]:
        """What the host may do next: its timers, its input, the answers that it has."""
        now = world.now_ms
        if life.recovering:
            yield self._feed(world, life, RESTORED, ("restored", life.born))
        state = life.state
        if state is not None and 0 < state.wake_at_ms <= now:
            if not owed(world, life):
                yield self._feed(world, life, TIME, ("time", life.born))
            elif world.left.losses:
                yield self._feed(_lose(world), life, TIME, ("time, answer late", life.born), fault=True)
        if life.position < len(self.scenario.script):
            item = self.scenario.script[life.position]
            if not isinstance(item, ResubmitOrdered) or item.ordered_at_ms <= now:
                yield self._input(world, life, item)
        if life.read is not None:
            served, memory, answer = self.lives.serve(life, world.memory)
            after = world if memory is world.memory else self._remember(world, memory)
            yield Move(("serve", life.born, answer), False, _with(after, served))
            if world.left.losses:
                failed, answer = self.lives.give_up(life)
                yield Move(("read lost", life.born, answer), True, _with(_lose(world), failed))
        for number, answer in enumerate(life.inbox):
            move = self._feed(world, life, number, ("answer", life.born, answer))
            yield move
            if self.scenario.duplicates and world.left.losses and isinstance(move.world, World):
                after = _lose(move.world)
                again = next(one for one in (after.host, *after.zombies) if one.born == life.born)
                yield Move(("answer, twice", life.born, answer), True, _with(after, self.lives.hear(again, answer)))

    def _input(self, world: World, life: Life, item: ThreadEvent) -> Move:
        """Hand over what the source holds next; people adopt only a run that they see."""
        if isinstance(item, AdoptOrdered):
            marker = marker_of(item.invocation_id, item.generation)
            if all(turn.marker != marker for turn in world.memory.turns):
                return self._feed(world, life, SKIPPED, ("no order", life.born, item))
        return self._feed(world, life, INPUT, ("input", life.born, item))

    def _feed(self, world: World, life: Life, which: int, what: tuple[object, ...], fault: bool = False) -> Move:
        try:
            fed = self.lives.feed(life, which, world.now_ms)
            if which >= 0:
                world = self._ended(world, life, life.inbox[which])
            for said in fed.said:
                world = self._said(world, life, said)
        except Violation as broken:
            return Move(what, fault, broken)
        if fed.posts:
            world = world._replace(posts=world.posts + fed.posts)
        return Move(what, fault, _with(world, fed.life))

    def _said(self, world: World, life: Life, said: Said) -> World:
        check_said(said, world.said, world.memory, life, self.scenario.same_outcome)
        return world if said in world.said else world._replace(said=tuple(sorted((*world.said, said))))

    def _ended(self, world: World, life: Life, answer: Answered) -> World:
        """The sender has its answer: what the remote took shows an admission bound later at the latest."""
        memory = world.memory
        if not isinstance(answer, SubmitAnswered | RespondAnswered) or all(
            t.hidden_until_ms == 0 for t in memory.turns
        ):
            return world
        if not life.current(answer) and not welcome(life, answer):
            return world
        bound = world.now_ms + self.terms.admission_ms
        marker = marker_of(answer.ident.invocation_id, answer.ident.generation)
        responded = isinstance(answer, RespondAnswered)
        for number, turn in enumerate(memory.turns):
            meant = turn.thread.startswith(ANSWERS) if responded else turn.marker == marker
            if meant and turn.hidden_until_ms > bound:
                turns = (*memory.turns[:number], turn._replace(hidden_until_ms=bound), *memory.turns[number + 1 :])
                memory = memory._replace(turns=turns)
        return world if memory is world.memory else self._remember(world, memory)

    def _post(self, world: World, number: int) -> Iterator[Move]:
        """What may become of a request that changes something."""
        post = world.posts[number]
        rest = world._replace(posts=world.posts[:number] + world.posts[number + 1 :])
        sender = owner(world, post)
        try:
            yield Move(("land", post), False, self._land(rest, post, sender))
        except Violation as broken:
            yield Move(("land", post), False, broken)
        if sender is None or not world.left.losses:
            return
        lost = _lose(rest)
        by_ms = min(post.by_ms, world.now_ms + self.terms.admission_ms)
        adrift = post._replace(owner=0, by_ms=by_ms)
        cut = lost._replace(posts=(*lost.posts[:number], adrift, *lost.posts[number:]))
        yield Move(("answer lost", post), True, _with(cut, self.lives.hear(sender, unresolved(post))))
        if post.stage != "fence":
            yield Move(("not sent", post), True, _with(lost, self.lives.hear(sender, not_sent(post))))
            if self.scenario.refusals:
                yield Move(("refused", post), True, _with(lost, self.lives.hear(sender, refused(post))))

    def _land(self, world: World, post: Post, sender: Life | None) -> World:
        """A request reaches the server and is answered at once."""
        memory, inv = world.memory, post.inv
        answer: Answered
        if post.stage == "create":
            memory, won = self.remote.create(memory, inv)
            if won and sender is not None:
                # The creator alone goes on to POST, in the same request of the host.
                return world._replace(memory=memory, posts=(*world.posts, post._replace(stage="post")))
            answer = SubmitAnswered(post.ident, Occupied("the thread exists"))
        elif post.stage == "fence":
            memory, fenced = self.remote.fence(memory, inv)
            answer = FenceAnswered(post.ident, fenced)
        elif post.stage == "respond":
            assert isinstance(self.remote, Asking)
            memory, taken = self.remote.respond(memory, inv, post.by_ms)
            answer = RespondAnswered(post.ident, taken)
            if len(memory.turns) > len(world.memory.turns):
                check_response(world.memory, memory, inv)
        else:
            memory, taken = self.remote.submit(memory, inv, post.by_ms)
            answer = SubmitAnswered(post.ident, taken)
            if len(memory.turns) > len(world.memory.turns):
                check_accepted(world.memory, memory, world.host.emitted)
        if memory is not world.memory:
            world = self._remember(world, memory)
        return world if sender is None else _with(world, self.lives.hear(sender, answer))

    def _remember(self, world: World, memory: Memory) -> World:
        """Equal memories are one object, so that what is known of one is known of all."""
        return world._replace(memory=self.memories.setdefault(memory, memory))

    def _remote(self, world: World) -> Iterator[Move]:
        """What the remote does by itself."""
        for number, turn in enumerate(world.memory.turns):
            if turn.hidden_until_ms:
                yield Move(("show", turn), False, self._remember(world, reveal(world.memory, number)))
            if turn.phase in ALIVE and not (isinstance(self.remote, Asking) and self.remote.waits(world.memory)):
                done = self._remember(world, end(world.memory, number, Phase.COMPLETED))
                yield Move(("finish", turn), False, done)
                if self.scenario.failures and world.left.losses:
                    failed = self._remember(_lose(world), end(world.memory, number, Phase.FAILED))
                    yield Move(("fail", turn), True, failed)

    def _checkpoint(self, world: World) -> Iterator[Move]:
        """Checkpoints: in one move, but for those that write ahead, which wait for the end of one."""
        host, left = world.host, world.left
        if world.triggered is not None:
            done = world.triggered
            kept = (*world.checkpoints, done._replace(hold=None))[-max(1, self.scenario.left.checkpoints) :]
            after = world._replace(checkpoints=kept, triggered=None)
            if done.hold is not None:
                held = host._replace(hold=None) if host.hold == done.hold else host
                after = _with(after, self.lives.hear(held, CheckpointCompleted(done.hold)))
            yield Move(("checkpoint completed",), False, after)
            return
        # A call that is held must get its checkpoint, whatever the bound says.
        owed = self.scenario.writes_ahead and host.hold is not None
        if not (left.crashes and left.checkpoints) and not owed:
            return
        snapshot = self.lives.snapshot(host)
        spent = world._replace(left=left._replace(checkpoints=max(0, left.checkpoints - 1)))
        if self.scenario.writes_ahead:
            yield Move(("checkpoint triggered",), False, spent._replace(triggered=snapshot))
        else:
            yield Move(("checkpoint",), False, spent._replace(checkpoints=(*world.checkpoints, snapshot)))

    def _crash(self, world: World, zombie: bool) -> Iterator[Move]:
        """The host dies, or is taken for dead; a new one starts from any checkpoint or from nothing."""
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
            posts = orphan(posts, old.born)
        born = world.lives + 1
        # Once a job has gone back further than its newest checkpoint, no later one is proof either.
        host = self.lives.restored(snapshot, born, world.now_ms, newest and old.lineage)
        if self.scenario.foreign:
            for answer in old.inbox:
                host = self.lives.hear(host, answer)
        return world._replace(host=host, left=left, zombies=zombies, posts=posts, triggered=None, lives=born)

    def _tick(self, world: World) -> World | None:
        """Let one unit of time pass; None while something must happen before."""
        now = world.now_ms + 1
        posts, zombies, memory = world.posts, world.zombies, world.memory
        for post in posts:
            if now > post.limit_ms and owner(world, post) is not None:
                return None
        if zombies:
            for zombie in zombies:
                if zombie.dies_at_ms < now:
                    posts = orphan(posts, zombie.born)
            zombies = tuple(z for z in zombies if z.dies_at_ms >= now)
        if any(post.by_ms <= now for post in posts):
            posts = tuple(post for post in posts if post.by_ms > now)
        for number, turn in enumerate(memory.turns):
            if 0 < turn.hidden_until_ms <= now:
                memory = reveal(memory, number)
        if now == self.scenario.forgets_at_ms:
            assert isinstance(self.remote, Forgetful)
            memory = self.remote.forget(memory)
        if memory is not world.memory:
            world = self._remember(world, memory)
        return world._replace(now_ms=now, posts=posts, zombies=zombies)


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


def _with(world: World, life: Life) -> World:
    """The same world with a life in another state; lives are told apart by their number."""
    if life.born == world.host.born:
        return world._replace(host=life)
    return world._replace(zombies=tuple(life if z.born == life.born else z for z in world.zombies))


def _lose(world: World) -> World:
    return world._replace(left=world.left._replace(losses=world.left.losses - 1))
