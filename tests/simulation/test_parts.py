"""The parts of the simulated world, one by one: Flink's rules, the ledger's properties, the server's memory."""

from dataclasses import replace

import pytest

from reattach.fsm.step import begin
from reattach.models.answers import Absent, Fenced, NotReady, Present
from reattach.models.effects import Submit
from reattach.models.events import Ident
from reattach.models.identity import request_key
from reattach.models.lifecycle import Status
from reattach.models.outcomes import Failure, FailureCode, Outcome, RemoteFate
from reattach.runtime.simulation.clock import Clock
from reattach.runtime.simulation.faults import NONE, Faults
from reattach.runtime.simulation.host import Host, Snapshot
from reattach.runtime.simulation.job import Job
from reattach.runtime.simulation.ledger import Broken, Ledger
from reattach.runtime.simulation.network import Post
from reattach.runtime.simulation.remotes import FENCEABLE, HANDLE_ONLY, Remote
from reattach.runtime.simulation.world import START_MS, World
from tests.fsm.making import env, request

LOST = Failure(FailureCode.LOST, "lost", RemoteFate.NONE, retryable=False)


def outcome(name: str = "a", *, result: bytes | None = b'"a"', failure: Failure | None = None) -> Outcome:
    return Outcome(
        invocation_id=name,
        agent="agent",
        thread_id="t",
        generation=1,
        status=Status.FAILED if failure else Status.COMPLETED,
        result=None if failure else result,
        failure=failure,
        handle="",
        attempts=1,
        probes=0,
        spent_ms=(0, 0, 0),
        finished_at_ms=1,
    )


class TestClock:
    def test_what_is_due_together_happens_in_the_order_of_asking(self) -> None:
        clock, seen = Clock(10), list[str]()
        clock.at(20, seen.append, "second")
        clock.at(15, seen.append, "first")
        clock.at(20, seen.append, "third")
        clock.at(5, seen.append, "at once")
        while clock.step():
            pass
        assert seen == ["at once", "first", "second", "third"]
        assert clock.now_ms == 20


class TestCheckpoints:
    @pytest.fixture
    def job(self) -> Job:
        return World(1, NONE, calls=1).job

    def test_an_older_one_does_not_complete_after_a_newer(self, job: Job) -> None:
        assert job.host is not None
        older, newer = job.host.snapshot(1), job.host.snapshot(2)
        job._complete(job.host, newer)
        job._complete(job.host, older)
        assert [one.number for one in job.kept] == [0, 2]

    def test_one_of_a_life_that_is_over_does_not_complete(self, job: Job) -> None:
        host = job.host
        assert host is not None
        under_way = host.snapshot(1)
        job._crash(host)
        job._complete(host, under_way)
        job._restore(True)
        job._complete(host, under_way)
        assert [one.number for one in job.kept] == [0]

    def test_a_restore_brings_back_what_the_checkpoint_held_and_nothing_else(self) -> None:
        world = World(1, NONE, calls=40)
        world._write_input()
        world.job.start()
        world.clock.until(START_MS + 2_000)
        host = world.job.host
        assert host is not None
        snapshot = host.snapshot(99)
        world.clock.until(START_MS + 2_800)
        assert host.states != snapshot.states
        world.job._complete(host, snapshot)
        world.job._crash(host)
        world.clock.until(START_MS + 2_801)
        world.job._restore(True)
        again = world.job.host
        assert again is not None
        assert (again.states, again.position) == (snapshot.states, snapshot.position)
        assert snapshot.timers.items() <= again.timers.items()
        assert again.driver.incarnation != host.driver.incarnation


class TestLedger:
    @pytest.fixture
    def ledger(self) -> Ledger:
        return Ledger(lambda: 7)

    def test_a_second_submit(self, ledger: Ledger) -> None:
        ledger.accept("a", [])
        ledger.accept("a#2", [])
        with pytest.raises(Broken, match=r"accepted twice: a \(at 7 ms\)"):
            ledger.accept("a", [])

    def test_turns_that_overlap_unless_people_know(self, ledger: Ledger) -> None:
        ledger.release("b")
        ledger.accept("a", ["b"])
        ledger.resubmit("c")
        ledger.accept("c#2", ["a"])
        with pytest.raises(Broken, match="turns overlap: d was accepted while a ran"):
            ledger.accept("d", ["a"])

    def test_a_result_of_another_turn(self, ledger: Ledger) -> None:
        ledger.emit(outcome("a", result=b'"a"'))
        with pytest.raises(Broken, match="wrong turn: a was given"):
            ledger.emit(outcome("a", result=b'"b"'))

    def test_a_second_outcome_unless_the_job_went_back(self, ledger: Ledger) -> None:
        ledger.commit(outcome(), went_back=False)
        ledger.commit(outcome(), went_back=True)
        assert ledger.repeated == 1
        with pytest.raises(Broken, match="two outcomes: a"):
            ledger.commit(outcome(), went_back=False)

    def test_a_false_fate_that_is_told_after_the_acceptance(self, ledger: Ledger) -> None:
        ledger.accept("a", [])
        with pytest.raises(Broken, match="false fate: a was accepted"):
            ledger.commit(outcome(failure=LOST), went_back=False)

    def test_a_false_fate_that_is_told_before_the_acceptance(self, ledger: Ledger) -> None:
        ledger.commit(outcome(failure=LOST), went_back=False)
        ledger.accept("a#2", [])
        with pytest.raises(Broken, match="false fate: a was accepted after"):
            ledger.accept("a", [])


class TestServer:
    @pytest.mark.parametrize("remote", [HANDLE_ONLY, FENCEABLE])
    def test_what_is_forgotten_is_absent_and_its_number_is_not_used_again(self, remote: Remote) -> None:
        world = World(1, Faults(forget=1), calls=1, remotes=(remote,))
        (server,) = world.servers.values()
        asked = replace(request("a"), agent=remote.name)
        key = request_key(asked)
        first = replace(begin(asked, env()), handle="r0")
        server.submit(key, first, 0)
        assert isinstance(server.probe(key, first), Present)
        assert isinstance(server.fetch(key, first), NotReady)
        world.clock.until(START_MS + server.memory_ms + 10_000)
        assert isinstance(server.probe(key, first), Absent)
        server.submit(key, replace(first, generation=2), 0)
        assert isinstance(server.probe(key, first), Absent)
        assert isinstance(server.probe(key, replace(first, generation=2, handle="r1")), Present)

    def test_a_fence_is_forgotten(self) -> None:
        world = World(1, Faults(forget=1), calls=1, remotes=(FENCEABLE,))
        (server,) = world.servers.values()
        asked = replace(request("a"), agent=FENCEABLE.name)
        key, record = request_key(asked), begin(asked, env())
        assert isinstance(server.fence(key, record), Fenced)
        assert server.threads[key].fenced == server.threads[key].created != ()
        world.clock.until(START_MS + server.memory_ms + 1)
        assert server.threads[key].fenced == server.threads[key].created == ()


class TestSkew:
    """A host whose clock is ahead, or behind, goes by its own clock in everything."""

    @pytest.mark.parametrize("skew_ms", [-100, 70])
    def test_timers_fire_when_its_clock_says_so(self, skew_ms: int) -> None:
        world = World(1, NONE, calls=1)
        host = world.job.host = Host(world.around, 2, Snapshot(1, position=0), skew_ms=skew_ms)
        fired: list[int] = []
        host._fire = lambda *_: fired.append(world.clock.now_ms)  # type: ignore[method-assign]
        host._wake(("agent", "t"), START_MS + 500)
        while world.clock.step():
            pass
        assert fired == [START_MS + 500 - skew_ms]
        assert host.driver.opened_ms == START_MS + skew_ms

    def test_a_post_leaves_within_the_time_that_its_clock_wrote(self) -> None:
        world = World(1, Faults(delay=1), calls=1)
        host = Host(world.around, 2, Snapshot(1), skew_ms=100)
        asked = replace(request("a"), agent="marker-list")
        record = begin(asked, env())
        (timeout_ms,) = {one.policy.submit_timeout_ms for one in world.terms.values()}
        posts: list[Post] = []
        world.network._leave = posts.append  # type: ignore[method-assign, assignment]
        now = world.clock.now_ms + host.skew_ms
        for _ in range(50):
            world.network.send(host, request_key(asked), Submit(Ident("life-2", "a", 1, 1), now + 200), record)
        left = []
        while world.clock.step():
            left.append(world.clock.now_ms)
        assert {post.limit_ms for post in posts} == {START_MS + 200 + timeout_ms}
        assert START_MS <= min(left) <= max(left) <= START_MS + 200
