"""A whole simulated world: one job, one server for each kind of remote, and one seed for everything.

The run has two phases. First everything that is on may go wrong, until the last call has come in and
has had its time. Then nothing goes wrong any more, and every call must come to an end:
safety is checked all the time, liveness in the second phase.

This world samples where the explorer (`reattach.runtime.explore`) visits everything: it has real
times, many calls at once, and long histories.
"""

import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from reattach.models.events import CancelOrdered, Requested
from reattach.models.identity import request_key
from reattach.models.journal import JournalEntry
from reattach.models.policy import CancelKind, Evidence, Policy, StreamKind, Terms
from reattach.models.request import Request
from reattach.runtime.driver import Key
from reattach.runtime.simulation.chance import Chance
from reattach.runtime.simulation.clock import Clock
from reattach.runtime.simulation.faults import NONE, Faults
from reattach.runtime.simulation.host import Surroundings
from reattach.runtime.simulation.job import Job
from reattach.runtime.simulation.ledger import Broken, Ledger
from reattach.runtime.simulation.mishaps import Mishaps
from reattach.runtime.simulation.network import Network
from reattach.runtime.simulation.people import People
from reattach.runtime.simulation.remotes import REMOTES, Remote
from reattach.runtime.simulation.report import Report
from reattach.runtime.simulation.server import Server
from reattach.runtime.simulation.source import Line, Source

START_MS: Final = 1_700_000_000_000
SETTLE_MS: Final = 3_600_000
GRACE_MS: Final = 5_000
THREAD_TURNS: Final = 3

POLICY: Final = Policy(
    submit_validity_ms=300,
    submit_timeout_ms=500,
    probe_timeout_ms=500,
    fetch_timeout_ms=500,
    slack_ms=100,
    admission_ms=200,
    overlap_ms=1_000,
    skew_max_ms=100,
    deadline_ms=600_000,
    drain_max_ms=20_000,
    watch_silence_ms=5_000,
    poll_ms=200,
    poll_max_ms=2_000,
    park_probe_ms=2_000,
    backoff_ms=50,
    backoff_max_ms=1_000,
    generations_max=3,
    retention_ms=120_000,
    tombstone_ttl_ms=150_000,
)


def terms_of(remote: Remote) -> Terms:
    """The terms of one kind of remote in this world."""
    capabilities = replace(
        remote.capabilities,
        admission_ms=POLICY.admission_ms or 0,
        key_lifetime_ms=None if remote.capabilities.key_lifetime_ms is None else POLICY.retention_ms,
        stream=StreamKind.LIVE,
        cancel=CancelKind.CONFIRMED,
        responds=True,
    )
    return Terms(capabilities, POLICY)


class World:
    """One simulated world.

    Args:
        seed: fixes everything.
        calls: how many requests the input holds.
        every_ms: mean time between two of them.
        remotes: kinds of remotes, one server each.
        on_entry: told of each entry of the journal; None for no journal.
    """

    def __init__(
        self,
        seed: int,
        faults: Faults = NONE,
        *,
        calls: int = 100,
        every_ms: int = 100,
        remotes: tuple[Remote, ...] = REMOTES,
        on_entry: Callable[[JournalEntry], None] | None = None,
    ) -> None:
        self.seed, self.calls, self.every_ms = seed, calls, every_ms
        self.clock = Clock(START_MS)
        self.chance = Chance(seed)
        self.mishaps = Mishaps(faults, self.chance)
        self.ledger = Ledger(lambda: self.clock.now_ms)
        self.terms = {remote.name: terms_of(remote) for remote in remotes}
        self.remotes = [replace(remote, capabilities=self.terms[remote.name].capabilities) for remote in remotes]
        self.servers = {
            remote.name: Server(remote, self.terms[remote.name], self.clock, self.mishaps, self.ledger, self._run_ended)
            for remote in self.remotes
        }
        self.network = Network(self.servers, self.terms, self.clock, self.mishaps)
        self.source = Source()
        self.people = People(self.servers, self.source, self.clock, self.mishaps, self.ledger, POLICY.generations_max)
        self.around = Surroundings(
            self.clock,
            self.mishaps,
            self.network,
            self.source,
            self.terms,
            self.ledger.emit,
            self.people.notice,
            on_entry,
        )
        self.job = Job(self.around, self.ledger.commit)
        self.asked: list[Request] = []

    def run(self) -> Report:
        """Let the whole history happen, or stop at the first property that breaks."""
        began = time.perf_counter()
        violations: tuple[str, ...] = ()
        crash = ""
        broken: tuple[str, ...] = ()
        self._write_input()
        self.job.start()
        try:
            self._suffer()
            self.mishaps.calm()
            stuck = broken = self._settle()
        except Broken as error:
            violations, broken, stuck = (str(error),), (error.name,), ()
        except Exception:
            crash, broken, stuck = traceback.format_exc(), self._under_way(), ()
        host = self.job.host
        return Report(
            seed=self.seed,
            calls=self.calls,
            crashes=self.job.crashes,
            checkpoints=self.job.checkpoints,
            steps=self.job.steps + (host.steps if host is not None else 0),
            ended=dict(sorted(self.ledger.ended().items())),
            parked=len(self.people.parked),
            happened=dict(sorted(self.mishaps.happened.items())),
            violations=violations,
            crash=crash,
            exceptions=bool(crash),
            stuck=len(stuck),
            broken=broken,
            simulated_ms=self.clock.now_ms - START_MS,
            seconds=time.perf_counter() - began,
        )

    def _under_way(self) -> tuple[str, ...]:
        """Calls of the thread that was stepped last and that have not ended."""
        key = self.around.last
        return tuple(
            r.invocation_id
            for r in self.asked
            if request_key(r) == key and r.invocation_id not in self.ledger.committed
        )

    def _write_input(self) -> None:
        chance, mishaps = self.chance, self.mishaps
        at = START_MS
        for number in range(self.calls):
            at += chance.around(self.every_ms)
            request = self._request(self.remotes[number % len(self.remotes)], number, at)
            self.asked.append(request)
            line = Line(at, request_key(request), Requested(request))
            self.source.append(line)
            if mishaps.strikes("repeat"):
                self.source.append(line)
            if mishaps.strikes("cancel"):
                order = CancelOrdered(request.invocation_id, 1)
                self.people.order(at + chance.between(0, 4_000), line.key, order)

    def _request(self, remote: Remote, number: int, at: int) -> Request:
        group = number // len(self.remotes)
        # Only a marker that reaches the whole history tells the turns of a thread apart for certain.
        shared = remote.capabilities.evidence is Evidence.MARKER and not remote.staged
        deadline = at + self.chance.between(500, 5_000) if self.mishaps.strikes("hurry") else 0
        return Request(
            invocation_id=f"{remote.name}-{number}",
            agent=remote.name,
            message=b'"hello"',
            requested_at_ms=at,
            thread_id=f"thread-{group // THREAD_TURNS}" if shared else "",
            deadline_ms=deadline,
            turn=group % THREAD_TURNS + 1 if shared else 0,
        )

    def _run_ended(self, key: Key) -> None:
        self.network.ended(key)

    def _suffer(self) -> None:
        """Let everything go wrong until all calls have come in and have had some time."""
        written = len(self.source.lines)
        end = self.source.lines[-1].at_ms + GRACE_MS
        limit = end + SETTLE_MS
        self.clock.until(end)
        while (self.job.host is None or self.job.host.position < written) and self.clock.now_ms < limit:
            self.clock.until(self.clock.now_ms + GRACE_MS)

    def _settle(self) -> tuple[str, ...]:
        """Let all calls end; returns those that did not within `SETTLE_MS`."""
        limit = self.clock.now_ms + SETTLE_MS
        while (left := self._left()) and self.clock.now_ms < limit:
            self.clock.until(self.clock.now_ms + GRACE_MS)
        return left

    def _left(self) -> tuple[str, ...]:
        done = self.ledger.committed
        return tuple(r.invocation_id for r in self.asked if r.invocation_id not in done)
