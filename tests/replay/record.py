"""Record histories from real runs of the job: `python -m tests.replay.record [NAME...]`.

Each scenario is a function named for what its history pins. It runs a real job against the real
agent server, and keeps what the job committed to its journal. A history is never recorded again to
fit the code: it is what a job of an earlier release did, and today's `step` must still do the same.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.harness import World, world

HISTORIES = Path(__file__).parent / "histories"
Scenario = Callable[[World], None]
SCENARIOS: dict[str, tuple[Scenario, dict[str, Any]]] = {}
UNTIL_STOPPED = {"idle_stop": False}


def scenario(**settings: Any) -> Callable[[Scenario], Scenario]:
    def named(function: Scenario) -> Scenario:
        SCENARIOS[function.__name__.replace("_", "-")] = function, settings
        return function

    return named


def completed(made: World) -> list[Path]:
    """The completed checkpoints, oldest first; [] while one of them is being deleted under our eyes."""
    try:
        found = made.checkpoints.glob("**/chk-*/_metadata")
        return sorted((path.parent for path in found), key=lambda path: int(path.name.removeprefix("chk-")))
    except FileNotFoundError:
        return []


def checkpointed(made: World) -> None:
    """Wait for a checkpoint that was started after now; the first to complete may have been under way."""
    known = set(completed(made))
    fresh: set[Path] = set()

    def two_more() -> bool:
        fresh.update(set(completed(made)) - known)
        return len(fresh) >= 2

    made.until(two_more, "a checkpoint")


def restart(made: World) -> None:
    made.kill()
    made.start()


def stop(made: World) -> None:
    """End a job that does not end by itself."""
    checkpointed(made)
    time.sleep(1)
    assert made.job is not None
    os.kill(made.job.child.pid, signal.SIGTERM)
    made.job.child.wait(60)


@scenario(latency="9s-10s")
def killed_while_running_and_rejoined(made: World) -> None:
    made.ask(2)
    made.start()
    made.until(lambda: made.kinds()["turn"] == 2, "both runs")
    checkpointed(made)
    restart(made)
    made.finish()


@scenario(latency="1s-2s", rules={"answer_ms": 60_000}, policy={"submit_timeout_ms": 4_000})
def killed_between_a_post_and_its_answer(made: World) -> None:
    made.ask(2)
    made.start()
    made.until(lambda: made.kinds()["post"] == 2, "both POSTs received, none answered")
    checkpointed(made)
    restart(made)
    made.finish()


@scenario(latency="2s-3s", rules={"lose_answer": 1.0, "times": 1})
def lost_answer_then_found_running(made: World) -> None:
    made.ask(2)
    made.start()
    made.finish()


@scenario(latency="1s-2s", rules={"drop_before": 1.0, "times": 1})
def lost_post_then_proven_absent(made: World) -> None:
    made.ask(2)
    made.start()
    made.finish()


@scenario(rules={"stuck_run": 1.0}, policy={"drain_max_ms": 4_000}, job=UNTIL_STOPPED)
def deadline_with_a_stuck_run(made: World) -> None:
    made.ask(1, deadline_ms=int(time.time() * 1000) + 25_000)
    made.start()
    made.until(made.outcomes_of, "the outcome")
    time.sleep(6)
    stop(made)


@scenario(rules={"stuck_run": 1.0}, policy={"drain_max_ms": 300_000}, job=UNTIL_STOPPED)
def killed_while_draining(made: World) -> None:
    made.ask(1, deadline_ms=int(time.time() * 1000) + 25_000)
    made.start()
    made.until(made.outcomes_of, "the outcome")
    checkpointed(made)
    made.kill()
    made.start()
    checkpointed(made)
    time.sleep(3)
    stop(made)


@scenario(latency="6s-7s", job=UNTIL_STOPPED)
def re_delivered_request(made: World) -> None:
    made.ask(1)
    rows = (made.requests / "call.jsonl").read_text().splitlines()
    made.start()
    made.until(lambda: made.kinds()["turn"] == 1, "the run")
    made.drop("again", rows)
    checkpointed(made)
    restart(made)
    made.drop("once-more", rows)
    made.until(made.outcomes_of, "the outcome")
    made.drop("too-late", rows)
    stop(made)


@scenario(latency="1s-6s")
def restored_from_an_older_checkpoint(made: World) -> None:
    made.ask(3)
    made.start()
    made.until(lambda: made.kinds()["turn"] == 3, "all runs")
    checkpointed(made)
    kept = made.folder / "kept"
    shutil.copytree(made.until(lambda: completed(made), "a checkpoint")[-1], kept)
    made.finish()
    shutil.rmtree(made.outcomes)
    made.start("--from", str(kept))
    made.finish()


@scenario(latency="1s-2s", options={"marker": "last_message_id"})
def turns_of_one_thread_with_a_kill_between(made: World) -> None:
    now = int(time.time() * 1000)
    rows = [
        {
            "invocation_id": f"turn-{turn}",
            "agent": "echo",
            "thread_id": "talk",
            "turn": turn,
            "message": {"from": f"turn-{turn}"},
            "requested_at_ms": now,
        }
        for turn in range(1, 4)
    ]
    made.drop("turns", [json.dumps(row) for row in rows])
    made.expected += [str(row["invocation_id"]) for row in rows]
    made.start()
    made.until(lambda: made.kinds()["turn"] == 2, "the second turn")
    checkpointed(made)
    restart(made)
    made.finish()


@scenario(latency="120s", policy={"admission_ms": 500, "watch_silence_ms": 1_000})
def known_once_and_then_lost(made: World) -> None:
    made.ask(1)
    made.start()
    made.until(lambda: made.kinds()["turn"] == 1, "the run")
    checkpointed(made)
    made.control("forget", {})
    made.finish()


def record(name: str) -> Path:
    """Run one scenario and keep its journal.

    Raises:
        FileExistsError: the history is there already.
    """
    play, settings = SCENARIOS[name]
    target = HISTORIES / f"{name}.journal"
    if target.exists():
        raise FileExistsError(f"{target} exists: a history is never recorded again")
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "journal"
        job = {**settings.get("job", {}), "journal": str(journal)}
        with world(Path(folder) / "w", **{**settings, "job": job}) as made:
            play(made)
        parts = list(journal.glob("part-*.journal"))
        parts.sort(key=lambda path: (path.stat().st_mtime, int(path.stem.rsplit("-", 1)[1])))
        target.write_bytes(b"".join(path.read_bytes() for path in parts))
    return target


if __name__ == "__main__":
    for wanted in sys.argv[1:] or [name for name in SCENARIOS if not (HISTORIES / f"{name}.journal").exists()]:
        print(record(wanted), flush=True)
