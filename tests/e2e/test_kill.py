"""SIGKILL of the whole job at random moments: nothing runs twice, nothing is lost.

Reproduce one: pytest tests/e2e/test_kill.py -k 'seed-7'. Set REATTACH_SEED to shift all seeds.
"""

import os
import shutil
import time
from pathlib import Path

import pytest

from tests.e2e.harness import World, assert_each_once, random_moment, world

pytestmark = pytest.mark.flink
BASE = int(os.environ.get("REATTACH_SEED", "0"))
CALLS = 60


def started(made: World) -> None:
    made.until(lambda: made.kinds()["read"] > 0, "the job's first request")


@pytest.mark.parametrize("seed", range(BASE + 1, BASE + 8), ids=lambda seed: f"seed-{seed}")
def test_killed_at_a_random_moment_and_restored_from_the_latest_checkpoint(tmp_path: Path, seed: int) -> None:
    with world(tmp_path / "w", latency="1s-5s") as made:
        made.ask(CALLS)
        made.start()
        started(made)
        moment = random_moment(seed, 0.0, 8.0)
        print(f"seed {seed}: killed {moment:.2f} s after the first request")
        time.sleep(moment)
        made.kill()
        made.start()
        made.finish()
        assert_each_once(made)


@pytest.mark.parametrize("kept", ["an-empty-checkpoint", "no-checkpoint"])
def test_killed_before_any_checkpoint_knew_of_a_post(tmp_path: Path, kept: str) -> None:
    """Flink takes its first checkpoint as the job starts: it is restored, or lost as well."""
    with world(tmp_path / "w", job={"checkpoint_interval_ms": 3_600_000}) as made:
        made.ask(CALLS)
        made.start()
        made.until(lambda: made.checkpoint_count() == 1, "the first checkpoint")
        assert made.kinds()["post"] == 0
        made.until(lambda: made.kinds()["turn"] >= CALLS // 2, "half of the calls running")
        made.kill()
        assert made.checkpoint_count() == 1
        if kept == "no-checkpoint":
            for checkpoint in made.completed():
                shutil.rmtree(checkpoint)
        made.config.write_text(made.config.read_text().replace("3600000", "500"))
        made.start()
        made.finish()
        assert_each_once(made)


def test_killed_with_a_checkpoint_completed_while_every_call_was_in_flight(tmp_path: Path) -> None:
    with world(tmp_path / "w", latency="12s-14s") as made:
        made.ask(CALLS)
        made.start()
        made.until(lambda: made.kinds()["turn"] == CALLS, "all calls running")
        before = made.completed()
        made.until(lambda: set(made.completed()) - set(before), "one more checkpoint")
        assert made.kinds()["end"] == 0
        made.kill()
        made.start()
        made.finish()
        assert_each_once(made)
        assert made.seen().posts == CALLS, "re-attached, not sent again"


def test_killed_three_times_in_a_row(tmp_path: Path) -> None:
    with world(tmp_path / "w", latency="2s-6s") as made:
        made.ask(CALLS)
        for kill in range(3):
            made.start()
            reads = made.kinds()["read"]
            _more_reads(made, reads)
            time.sleep(random_moment(kill, 0.2, 2.5))
            made.kill()
        made.start()
        made.finish()
        assert_each_once(made)


def test_an_older_checkpoint_emits_again_what_it_emitted_before(tmp_path: Path) -> None:
    """The job goes back in time; what comes out again is equal to the first, and nothing runs again."""
    with world(tmp_path / "w", latency="1s-6s") as made:
        made.ask(CALLS)
        made.start()
        made.until(lambda: made.kinds()["turn"] >= 10, "some calls running")
        old = made.until(made.completed, "a checkpoint")[-1]
        kept = tmp_path / "kept"
        made.until(lambda: _copied(old, kept), "a copy of a whole checkpoint")
        made.finish()
        first = made.outcomes_of()
        assert_each_once(made)
        shutil.rmtree(made.outcomes)
        made.start("--from", str(kept))
        made.finish()
        again = made.outcomes_of()
        assert made.seen().duplicates == 0
        assert made.seen().posts == CALLS
        for name, rows in again.items():
            for row in rows:
                for field in ("status", "result", "failure", "thread_id", "handle", "generation"):
                    assert row[field] == first[name][0][field]
        assert set(again) == set(made.expected) - _ended_before(again, first)


def _more_reads(made: World, reads: int) -> None:
    made.until(lambda: made.kinds()["read"] > reads, "requests of this life")


def _copied(source: Path, target: Path) -> bool:
    try:
        shutil.copytree(source, target)
    except (OSError, shutil.Error):
        shutil.rmtree(target, ignore_errors=True)
        return False
    return (target / "_metadata").exists()


def _ended_before(again: dict[str, list[dict[str, object]]], first: dict[str, list[dict[str, object]]]) -> set[str]:
    """Calls whose outcome had been committed before the old checkpoint: they are not emitted again."""
    return set(first) - set(again)
