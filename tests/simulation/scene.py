"""A small stage for one story: a simulated world whose faults are named and placed by hand."""

from collections.abc import Callable
from typing import Any

from reattach.models.answers import Accepted, CancelAnswer, SubmitAnswer, Unknown, Unresolved
from reattach.models.codec import decode_thread
from reattach.models.events import Ordered, Requested
from reattach.models.identity import marker_of, request_key
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf
from reattach.models.outcomes import Notice, NoticeKind
from reattach.models.request import Request
from reattach.runtime.driver import Key
from reattach.runtime.simulation.faults import NONE, Faults
from reattach.runtime.simulation.host import Host, Snapshot
from reattach.runtime.simulation.remotes import Remote
from reattach.runtime.simulation.server import Server
from reattach.runtime.simulation.source import Line
from reattach.runtime.simulation.world import World

NAME = "call-1"
NOTHING = Snapshot(0)


class Counting(Server):
    """A server that counts what reaches it.

    Args:
        drops: so many POSTs are accepted, and then their connection is dropped.
        deaf: so many cancels reach it and do nothing.
    """

    drops = 0
    deaf = 0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.posts: list[str] = []
        self.cancels: list[str] = []

    def submit(self, key: Key, inv: Invocation, shown_by_ms: int) -> SubmitAnswer:
        self.posts.append(marker_of(inv.id, inv.generation))
        answer = super().submit(key, inv, shown_by_ms)
        if isinstance(answer, Accepted) and self.drops:
            self.drops -= 1
            return Unresolved("connection dropped")
        return answer

    def cancel(self, key: Key, inv: Invocation) -> CancelAnswer:
        self.cancels.append(inv.id)
        if self.deaf:
            self.deaf -= 1
            return Unknown("no answer")
        return super().cancel(key, inv)


class Scene:
    """One world with one remote, moved by hand."""

    def __init__(self, remote: Remote, faults: Faults = NONE, seed: int = 1) -> None:
        self.world = world = World(seed, faults, calls=0, remotes=(remote,))
        agent = remote.name
        self.agent, self.clock, self.ledger, self.job = agent, world.clock, world.ledger, world.job
        # The network and the people hold the same dictionary.
        model, terms = world.servers[agent].remote, world.terms[agent]
        self.server = Counting(model, terms, world.clock, world.mishaps, world.ledger, world.network.ended)
        world.servers[agent] = self.server
        self.notices: list[Notice] = []
        world.around.on_notice = self._notice
        world.job.start()

    @property
    def host(self) -> Host:
        assert self.job.host is not None
        return self.job.host

    def ask(self, name: str = NAME, message: bytes = b'"hello"', **more: Any) -> Key:
        """Put a request into the input now."""
        now = self.clock.now_ms
        more.setdefault("requested_at_ms", now)
        request = Request(name, self.agent, message, **more)
        key = request_key(request)
        self.world.source.append(Line(now, key, Requested(request)))
        return key

    def order(self, key: Key, event: Ordered) -> None:
        """Let a person say something, through the input."""
        self.world.source.append(Line(self.clock.now_ms, key, event))

    def record(self, key: Key) -> Invocation | None:
        """The call that a thread is busy with."""
        stored = self.host.states.get(key)
        return None if stored is None else decode_thread(stored).active

    def leaf(self, key: Key) -> Leaf | None:
        record = self.record(key)
        return None if record is None else record.leaf

    def pass_by(self, ms: int) -> None:
        """Let time pass."""
        end = self.clock.now_ms + ms
        self.clock.at(end, lambda: None)
        while self.clock.now_ms < end and self.clock.step():
            pass

    def until(self, holds: Callable[[], object], limit_ms: int = 900_000) -> None:
        """Go on until something holds."""
        limit = self.clock.now_ms + limit_ms
        while not holds():
            assert self.clock.now_ms < limit and self.clock.step(), "it did not come to that"

    def ended(self, *names: str) -> None:
        """Go on until calls have ended for good."""
        self.until(lambda: all(name in self.ledger.committed for name in names or (NAME,)))

    def checkpoint(self) -> None:
        """Take a checkpoint, and complete it at once."""
        self.job.checkpoints += 1
        snapshot = self.host.snapshot(self.job.checkpoints)
        self.job.kept = [*self.job.kept, snapshot]
        for _, outcome in snapshot.outcomes:
            self.ledger.commit(outcome, self.job.went_back)
        self.host.told(snapshot)

    def crash(self, snapshot: Snapshot | None = None, *, down_ms: int = 100, zombie_ms: int = 0) -> None:
        """Kill the host, and open another one.

        Args:
            snapshot: what is restored; the latest completed checkpoint without.
            zombie_ms: how long the old one goes on beside the new one.
        """
        old, now = self.host, self.clock.now_ms
        self.job.host = None
        old.dies_at_ms = now + down_ms + zombie_ms if zombie_ms else now - 1
        self.clock.at(old.dies_at_ms + 1, self.world.network.close, old)
        self.pass_by(down_ms)
        self.job.lives += 1
        lineage = old.lineage and snapshot is None
        self.job.host = Host(self.world.around, self.job.lives, snapshot or self.job.kept[-1], lineage)
        self.job.host.open()

    def told(self, kind: NoticeKind) -> list[Notice]:
        return [notice for notice in self.notices if notice.kind is kind]

    def _notice(self, key: Key, notice: Notice) -> None:
        self.notices.append(notice)
        if notice.kind is NoticeKind.DRAIN_EXPIRED:
            self.ledger.release(notice.invocation_id)
