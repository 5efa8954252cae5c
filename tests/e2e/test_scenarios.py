"""What goes wrong for people who do this today, at the level of real processes.

The identifiers are those of the public reports (docs/scenarios.md). Each test says what went wrong
elsewhere and shows what happens here, counted from the server's own log.
"""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import World, assert_each_once, world

pytestmark = pytest.mark.flink


def restart(made: World) -> None:
    made.kill()
    made.start()


def checkpointed_since(made: World) -> None:
    """Wait for a checkpoint that was started after now."""
    known = set(made.completed())
    fresh: set[Path] = set()

    def two_more() -> bool:
        # The first one to complete may have been under way already.
        fresh.update(set(made.completed()) - known)
        return len(fresh) >= 2

    made.until(two_more, "a checkpoint")


def only(made: World) -> dict[str, Any]:
    ((outcome,),) = made.outcomes_of().values()
    return outcome


def test_s1_a_restart_while_runs_are_going_on_sends_nothing(tmp_path: Path) -> None:
    """airflow #15588: the worker died while polling, its retry started a second run."""
    with world(tmp_path / "w", latency="14s-16s") as made:
        made.ask(20)
        made.start()
        made.until(lambda: made.kinds()["turn"] == 20, "all runs")
        checkpointed_since(made)
        restart(made)
        made.finish()
        assert_each_once(made)
        assert made.seen().posts == 20


def test_s2_a_crash_between_the_post_and_its_answer_is_asked_about(tmp_path: Path) -> None:
    """airflow #67118: a small window between submit returning and the state being saved."""
    with world(tmp_path / "w", rules={"answer_ms": 60_000}, policy={"submit_timeout_ms": 3_000}) as made:
        made.ask(20)
        made.start()
        made.until(lambda: made.kinds()["post"] == 20, "every POST received, none answered")
        restart(made)
        made.finish()
        assert_each_once(made)
        assert made.seen().posts == 20


@pytest.mark.parametrize(("admission_ms", "duplicates"), [(6_000, False), (0, True)], ids=["settled", "too-short"])
def test_s3_an_early_absence_is_not_believed(tmp_path: Path, admission_ms: int, duplicates: bool) -> None:
    """airflow #47780: the probe ran before the remote had made the job. The bound is what protects:
    set too small for the server, the same test sees the duplicates."""
    rules = {"late": 1.0, "late_ms": 5_000, "times": 0}
    policy = {"admission_ms": admission_ms, "submit_timeout_ms": 500, "submit_validity_ms": 500}
    # No breaker: that no POST is answered in time would open it for as long as the server takes.
    limits = {"breaker_failures": 0}
    # Short runs: while one is going on, this server answers a second POST without starting another.
    with world(tmp_path / "w", latency="50ms-100ms", rules=rules, policy=policy, limits=limits) as made:
        made.ask(20)
        made.start()
        made.until(lambda: made.kinds()["post"] >= 20, "every POST")
        if duplicates:
            made.finish()
            assert made.seen().duplicates > 0
            return
        restart(made)
        made.finish()
        assert_each_once(made)


def test_s9_a_run_far_longer_than_every_limit_is_one_run(tmp_path: Path) -> None:
    """langgraph #7417: calls longer than about 180 s were dispatched again while the first ran."""
    policy = {
        "submit_validity_ms": 200,
        "submit_timeout_ms": 250,
        "probe_timeout_ms": 250,
        "fetch_timeout_ms": 250,
        "watch_silence_ms": 250,
        "poll_ms": 100,
        "poll_max_ms": 200,
        "slack_ms": 50,
    }
    with world(tmp_path / "w", latency="25s", policy=policy) as made:
        made.ask(3)
        made.start()
        made.finish()
        assert_each_once(made)
        assert made.seen().posts == 3


def test_s10_redelivered_requests_are_absorbed(tmp_path: Path) -> None:
    """celery #5935: redelivery of a request that is still being worked on."""
    with world(tmp_path / "w", latency="3s-5s") as made:
        made.ask(20)
        made.start()
        made.until(lambda: made.kinds()["turn"] == 20, "all runs")
        text = (made.requests / "call.jsonl").read_text()
        made.drop("again", text.splitlines())
        made.until(lambda: len(made.outcomes_of()) >= 10, "half of the outcomes")
        made.drop("once-more", text.splitlines())
        made.finish()
        assert_each_once(made)


def test_s10_also_while_the_job_is_down(tmp_path: Path) -> None:
    with world(tmp_path / "w", latency="1s-2s") as made:
        made.ask(20)
        made.start()
        made.finish()
        made.drop("again", (made.requests / "call.jsonl").read_text().splitlines())
        made.ask(1, "one-more")
        made.start()
        made.finish()
        assert_each_once(made)


def test_s11_a_result_that_was_read_and_not_stored_is_read_again(tmp_path: Path) -> None:
    """vercel/workflow #2675: the work was done, saving its result failed, the work was done again."""
    with world(tmp_path / "w", latency="1s-2s", job={"checkpoint_interval_ms": 20_000}) as made:
        made.ask(20)
        made.start()
        made.until(lambda: made.kinds()["end"] == 20, "every run ended")
        made.until(lambda: sum(status == "completed" for _, _, status in made.seen()._seen) >= 10, "results read")
        assert made.outcomes_of() == {}
        restart(made)
        made.finish()
        assert_each_once(made)
        assert made.seen().posts == 20


def test_s15_a_run_that_never_ends_ends_here_at_its_deadline(tmp_path: Path) -> None:
    """prefect #16746: "running" for ever; ghosts ate the concurrency limit."""
    with world(tmp_path / "w", latency="100ms", rules={"stuck_run": 1.0, "match": "stuck"}) as made:
        made.ask(1, "warm-up")
        made.start()
        made.until(lambda: made.kinds()["turn"] == 1, "a job that works")
        made.ask(5, "stuck", deadline_ms=int(time.time() * 1000) + 15_000)
        made.finish()
        outcomes = made.outcomes_of()
        assert outcomes.pop("warm-up-0")[0]["status"] == "COMPLETED"
        for (outcome,) in outcomes.values():
            assert outcome["failure"]["code"] == "deadline_exceeded"
            assert outcome["failure"]["remote"] == "running"


def test_s20_known_once_and_unknown_now_is_lost(tmp_path: Path) -> None:
    """litellm #19899: a 404 after a 200, and the poll looped for ever."""
    with world(tmp_path / "w", latency="120s", policy={"admission_ms": 500, "watch_silence_ms": 1_000}) as made:
        made.ask(5)
        made.start()
        made.until(lambda: made.kinds()["turn"] == 5, "all runs")
        checkpointed_since(made)
        made.control("forget", {})
        made.finish()
        for (outcome,) in made.outcomes_of().values():
            assert outcome["failure"]["code"] == "lost"
        assert made.seen().posts == 5


def test_a_lost_answer_without_a_crash_is_one_run(tmp_path: Path) -> None:
    with world(tmp_path / "w", rules={"lose_answer": 1.0, "times": 1}) as made:
        made.ask(40)
        made.start()
        made.finish()
        assert_each_once(made)
        assert made.seen().posts == 40


def test_a_post_that_was_dropped_is_sent_again_once_that_is_proven(tmp_path: Path) -> None:
    with world(tmp_path / "w", rules={"drop_before": 1.0, "times": 1}) as made:
        made.ask(40)
        made.start()
        made.finish()
        assert_each_once(made)


def test_probes_that_fail_during_recovery_are_only_asked_again(tmp_path: Path) -> None:
    """Flink Agents: the job dies when one probe fails."""
    with world(tmp_path / "w", latency="10s-12s") as made:
        made.ask(20)
        made.start()
        made.until(lambda: made.kinds()["turn"] == 20, "all runs")
        checkpointed_since(made)
        made.kill()
        made.control("rules", {"reads_down_ms": 8_000})
        made.start()
        made.finish()
        assert_each_once(made)
        assert made.seen().posts == 20


def turns(made: World, threads: int, each: int) -> None:
    now = int(time.time() * 1000)
    rows = [
        {
            "invocation_id": f"t{thread}-{turn}",
            "agent": "echo",
            "thread_id": f"thread/{thread}",
            "turn": turn,
            "message": {"from": f"t{thread}-{turn}"},
            "requested_at_ms": now,
        }
        for turn in range(1, each + 1)
        for thread in range(threads)
    ]
    made.drop("turns", [json.dumps(row) for row in rows])
    made.expected += [str(row["invocation_id"]) for row in rows]


def test_several_turns_of_one_thread_come_in_order(tmp_path: Path) -> None:
    with world(tmp_path / "w", latency="500ms-1s", options={"marker": "last_message_id"}) as made:
        turns(made, threads=8, each=5)
        made.start()
        made.finish()
        assert_each_once(made)
        for name, (outcome,) in made.outcomes_of().items():
            assert outcome["result"]["turn"] == int(name.rsplit("-", 1)[1])


def test_several_turns_of_one_thread_are_killed_and_none_runs_twice(tmp_path: Path) -> None:
    """A server that shows its newest turn only may have moved on from a turn whose outcome was not
    committed yet: that one is reported as lost, with its run ended, and never run again."""
    with world(tmp_path / "w", latency="500ms-1s", options={"marker": "last_message_id"}) as made:
        turns(made, threads=8, each=5)
        made.start()
        made.until(lambda: made.kinds()["turn"] >= 12, "some turns")
        restart(made)
        made.finish()
        seen, outcomes = made.seen(), made.outcomes_of()
        assert (seen.duplicates, seen.lost) == (0, 0)
        assert set(outcomes) == set(made.expected)
        for name, rows in outcomes.items():
            (outcome,) = rows
            if outcome["status"] == "COMPLETED":
                assert outcome["result"]["turn"] == int(name.rsplit("-", 1)[1])
            else:
                assert (outcome["failure"]["code"], outcome["failure"]["remote"]) == ("lost", "ended")
