"""The agent server as a process: what it promises to those who count by its log."""

import asyncio
import json
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from reattach.adapters import http
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.thread import ThreadAdapter
from reattach.models.answers import Absent, Accepted, Occupied, Phase, Present, Refused, Result, Unknown, Unresolved
from reattach.runtime.agent.log import LogSummary, read_log
from tests.adapters.wire import invocation
from tests.agent.serving import Served, serving


def talk(served: Served, work: Callable[[ThreadAdapter], Awaitable[Any]], marker: str = "") -> Any:
    async def main() -> Any:
        client = http.open_client()
        try:
            async with asyncio.timeout(30):
                return await work(ThreadAdapter(client, Endpoint(served.url), agent="a", marker=marker))
        finally:
            await client.aclose()

    return asyncio.run(main())


def ignore(handle: str) -> None: ...


async def ended(adapter: ThreadAdapter, inv: Any) -> Present:
    while True:
        answer = await adapter.probe(inv)
        if isinstance(answer, Present) and answer.phase is not Phase.RUNNING:
            return answer
        await asyncio.sleep(0.02)


def test_one_call(tmp_path: Path) -> None:
    inv = invocation(message=b'{"q":1}')

    async def work(adapter: ThreadAdapter) -> None:
        assert await adapter.probe(inv) == Absent(None)
        assert await adapter.submit(inv, ignore) == Accepted()
        assert await adapter.probe(inv) == Present(Phase.RUNNING)
        progress = [json.loads(item.data) async for item in adapter.watch(inv, "")]
        assert progress and progress[0] == {"n": 1, "turn": 1}
        assert await adapter.fetch(inv) == Result(b'{"echo":{"q":1},"turn":1}')

    with serving(tmp_path / "log", "--latency", "300ms", "--progress-ms", "100") as served:
        talk(served, work)
        assert served.stop() in (0, -signal.SIGTERM)
    summary = LogSummary.of_file(tmp_path / "log", expected=["call-1", "call-2"])
    assert (summary.calls, summary.posts, summary.turns, summary.duplicates, summary.lost) == (1, 1, 1, 0, 1)
    assert (summary.reads, summary.streams, summary.unfinished) == (3, 1, 0)


@pytest.mark.parametrize("marker", ["last_message_id", "turns", "message_ids"])
def test_several_turns_on_a_thread(marker: str, tmp_path: Path) -> None:
    one = invocation("one", thread_id="t/../x", turn=1)
    two = invocation("two", thread_id="t/../x", turn=2)

    async def work(adapter: ThreadAdapter) -> None:
        assert isinstance(await adapter.probe(one), Absent)
        assert await adapter.submit(one, ignore) == Accepted()
        assert isinstance(await adapter.probe(two), Unknown)
        assert isinstance(await adapter.submit(two, ignore), Occupied)
        first = await ended(adapter, one)
        assert first.result == b'{"echo":"hi","turn":1}'
        assert isinstance(await adapter.probe(two), Absent)
        assert await adapter.submit(two, ignore) == Accepted()
        assert (await ended(adapter, two)).result == b'{"echo":"hi","turn":2}'
        later = await adapter.probe(one)
        assert later in (Absent("two"), Present(Phase.COMPLETED))

    with serving(tmp_path / "log", "--latency", "100ms") as served:
        talk(served, work, marker)
    assert LogSummary.of_file(tmp_path / "log").duplicates == 0


def test_a_second_post_after_the_end_is_a_duplicate(tmp_path: Path) -> None:
    """The reference protocol is idempotent only while a run is running: the whole reason for this project."""

    async def work(adapter: ThreadAdapter) -> None:
        inv = invocation()
        await adapter.submit(inv, ignore)
        await adapter.submit(inv, ignore)
        await ended(adapter, inv)
        await adapter.submit(inv, ignore)

    with serving(tmp_path / "log", "--latency", "100ms") as served:
        talk(served, work)
    summary = LogSummary.of_file(tmp_path / "log")
    assert (summary.posts, summary.turns, summary.duplicates) == (3, 2, 1)


def test_runs_go_on_over_a_kill_of_the_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    calls = [invocation(f"call-{n}") for n in range(20)]

    async def submit(adapter: ThreadAdapter) -> None:
        for inv in calls:
            assert await adapter.submit(inv, ignore) == Accepted()
        await ended(adapter, calls[0])

    async def read(adapter: ThreadAdapter) -> None:
        for inv in calls:
            assert (await ended(adapter, inv)).result == b'{"echo":"hi","turn":1}'

    with serving(log, "--latency", "200ms-1s") as served:
        talk(served, submit)
        port = served.port
        served.kill()
    with log.open("ab") as file:
        file.write(b'{"kind":"turn","torn')
    with serving(log, "--latency", "9s", port=port) as served:
        talk(served, read)
    summary = LogSummary.of_file(log)
    assert (summary.turns, summary.duplicates, summary.unfinished) == (20, 0, 0)
    assert sum(record["kind"] == "end" for record in read_log(log)) == 20


FAULTS = [
    ({"lose_answer": 1.0}, Unresolved, 1),
    ({"drop_before": 1.0}, Unresolved, 0),
    ({"refuse": 1.0}, Refused, 0),
    ({"refuse": 1.0, "refuse_status": 503}, Unresolved, 0),
    ({"error_before": 1.0}, Unresolved, 0),
    ({"error_after": 1.0}, Unresolved, 1),
    ({"lose_answer": 1.0, "match": "other"}, Accepted, 1),
]


@pytest.mark.parametrize(("rules", "expected", "turns"), FAULTS)
def test_faults_of_a_post(rules: dict[str, Any], expected: type, turns: int, tmp_path: Path) -> None:
    async def work(adapter: ThreadAdapter) -> None:
        inv = invocation()
        assert isinstance(await adapter.submit(inv, ignore), expected)
        assert isinstance(await adapter.probe(inv), Present if turns else Absent)
        assert LogSummary.of_file(served.log).turns == turns
        # Each fault hits a message once; after it the server is well again.
        assert await adapter.submit(inv, ignore) == Accepted()

    with serving(tmp_path / "log", "--latency", "5s", "--rules", json.dumps(rules)) as served:
        talk(served, work)


@pytest.mark.parametrize("early", [True, False])
def test_a_post_that_is_admitted_late(early: bool, tmp_path: Path) -> None:
    rules = {"late": 1.0, "late_ms": 2_000, "late_answer": early}

    async def work(adapter: ThreadAdapter) -> None:
        inv = invocation()
        try:
            async with asyncio.timeout(1):
                assert await adapter.submit(inv, ignore) == Accepted()
                assert early
        except TimeoutError:
            assert not early
        assert await adapter.probe(inv) == Absent(None)
        await asyncio.sleep(2.5)
        assert await adapter.probe(inv) == Present(Phase.RUNNING)

    with serving(tmp_path / "log", "--latency", "5s", "--rules", json.dumps(rules)) as served:
        talk(served, work)
        assert LogSummary.of_file(served.log).turns == 1


def test_runs_that_fail_or_are_stuck(tmp_path: Path) -> None:
    async def work(adapter: ThreadAdapter) -> None:
        for name in ("fail-1", "stuck-1"):
            await adapter.submit(invocation(name), ignore)
            served.control("rules", {"stuck_run": 1.0})
        failed = await ended(adapter, invocation("fail-1"))
        assert failed.failure is not None and failed.failure.message == "the agent gave up on fail-1"
        assert await adapter.probe(invocation("stuck-1")) == Present(Phase.RUNNING)

    with serving(tmp_path / "log", "--latency", "50ms", "--rules", '{"fail_run": 1}') as served:
        talk(served, work)


def test_reads_that_fail(tmp_path: Path) -> None:
    async def work(adapter: ThreadAdapter) -> None:
        inv = invocation()
        assert [type(await adapter.probe(inv)) for _ in range(3)] == [Unknown, Unknown, Absent]
        served.control("rules", {"reads_down_ms": 400})
        assert isinstance(await adapter.probe(inv), Unknown)
        await asyncio.sleep(0.5)
        assert isinstance(await adapter.probe(inv), Absent)
        served.control("rules", {"read_drop": 1.0})
        assert isinstance(await adapter.probe(inv), Unknown)
        served.control("rules", {})
        await adapter.submit(inv, ignore)
        assert isinstance(await adapter.probe(inv), Present)
        served.control("forget", {"agent": "a", "thread": "nothing"})
        assert isinstance(await adapter.probe(inv), Present)
        served.control("forget", {})
        assert isinstance(await adapter.probe(inv), Absent)

    with serving(tmp_path / "log", "--latency", "5s", "--rules", '{"reads_down_first": 2}') as served:
        talk(served, work)


@pytest.mark.parametrize("mode", ["none", "cut", "endless", "long_line"])
def test_streams_that_misbehave(mode: str, tmp_path: Path) -> None:
    async def work(adapter: ThreadAdapter) -> None:
        inv = invocation()
        await adapter.submit(inv, ignore)
        count = 0
        async for _ in adapter.watch(inv, ""):
            count += 1
            if count == 20:
                break
        assert count == {"none": 0, "cut": 1, "endless": 20, "long_line": 0}[mode]
        assert isinstance(await adapter.probe(inv), Present)

    rules = json.dumps({"stream": mode})
    with serving(tmp_path / "log", "--latency", "100ms", "--progress-ms", "20", "--rules", rules) as served:
        talk(served, work)


def test_what_is_wrong_at_the_start_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from reattach.runtime.agent.__main__ import main

    for wrong, says in (
        (["--latency", "soon"], "error: latency = 'soon': must be like"),
        (["--rules", '{"los": 1}'], "error: los: no such rule"),
        (["--rules", '{"refuse": 2}'], "error: refuse = 2: must be a probability"),
        (["--rules", '{"stream": "x"}'], "error: stream = 'x'"),
        (["--rules", "[1]"], "error: rules: cannot read"),
        (["--rules", '{"a"'], "error: rules: not JSON"),
    ):
        assert main(["--log", str(tmp_path / "log"), *wrong]) == 2
        assert capfd.readouterr().err.startswith(says)


def test_a_malformed_message_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path / "log") as served:
        url = served.url + "/api/agents/a/threads/t/messages"
        for body in (b"", b"[]", b"{}", b"[" * 100_000, b'{"message": 1, "message_id": 2}'):
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(urllib.request.Request(url, body, method="POST"))
            assert caught.value.code == 422
        with urllib.request.urlopen(served.url + "/control/summary") as answer:
            assert json.load(answer)["turns"] == 0


@pytest.mark.slow
def test_ten_thousand_runs_at_once(tmp_path: Path) -> None:
    calls = 10_000

    async def main(url: str) -> float:
        client = http.open_client(connections_max=64)
        adapter = ThreadAdapter(client, Endpoint(url), agent="a")
        places = asyncio.Semaphore(64)

        async def one(number: int) -> None:
            async with places:
                assert await adapter.submit(invocation(f"call-{number}"), ignore) == Accepted()

        began = time.monotonic()
        await asyncio.gather(*(one(number) for number in range(calls)))
        rate = calls / (time.monotonic() - began)
        await client.aclose()
        return rate

    with serving(tmp_path / "log", "--latency", "120s") as served:
        rate = asyncio.run(main(served.url))
    summary = LogSummary.of_file(tmp_path / "log")
    assert (summary.turns, summary.unfinished, summary.duplicates) == (calls, calls, 0)
    assert sum(1 for _ in read_log(tmp_path / "log")) == 2 * calls + 1
    assert rate > 100, f"{rate:.0f} requests/s"


def test_requests_have_an_id_each(tmp_path: Path) -> None:
    """Two agents may have threads of the same name."""
    with serving(tmp_path / "log", "--latency", "5s") as served:
        for agent in ("a", "b"):
            reply = httpx.post(
                f"{served.url}/api/agents/{agent}/threads/t/messages", json={"message": 1, "message_id": agent}
            )
            assert reply.json() == {"thread_id": "t", "status": "started"}
