"""A user's own function around the host: failures inside the interpreter, which survives them."""

import sys
import time
from pathlib import Path

import pytest

from tests.e2e.harness import Process, World, assert_each_once, random_moment, world

pytestmark = pytest.mark.flink
CALLS = 50


def start(made: World, mode: str = "thread") -> tuple[Path, Path]:
    trigger = made.folder / "trigger"
    made.job = Process(
        [sys.executable, "-m", "tests.flink.embedded", str(made.config), str(trigger), mode],
        made.folder / "embedded.out",
    )
    return trigger, made.folder / "trigger.lives"


def lives(path: Path) -> list[list[int]]:
    return [[int(word) for word in line.split()] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_exception_in_the_task_leaves_no_old_loop_behind(tmp_path: Path, seed: int) -> None:
    with world(tmp_path / "w", latency="2s-6s") as made:
        made.ask(CALLS)
        trigger, opened = start(made)
        made.until(lambda: made.kinds()["read"] > 0, "the first request")
        time.sleep(random_moment(seed, 0.0, 5.0))
        trigger.touch()
        made.until(lambda: len(lives(opened)) == 2, "the second life")
        assert lives(opened)[0][0] == lives(opened)[1][0], "the same process"
        made.until(lambda: len(made.outcomes_of()) == CALLS, "every outcome")
        assert_each_once(made)


def test_a_loop_that_is_killed_takes_its_task_with_it_and_nothing_else(tmp_path: Path) -> None:
    """Nobody would send or hear anything any more; the JVM, the interpreter and the runs go on."""
    with world(tmp_path / "w", latency="2s-6s") as made:
        made.ask(CALLS)
        trigger, opened = start(made)
        made.until(lambda: made.kinds()["end"] > 0, "a run that has ended")
        loop = made.folder / "loop"
        loop.write_text("loop")
        loop.rename(trigger)
        made.until(lambda: len(lives(opened)) == 2, "the second life")
        assert lives(opened)[0][0] == lives(opened)[1][0], "the same process"
        made.until(lambda: len(made.outcomes_of()) == CALLS, "every outcome")
        assert_each_once(made)
        assert "the loop that carries requests out has ended" in _everything(made)


def test_twenty_restarts_in_one_interpreter_leave_threads_and_sockets_flat(tmp_path: Path) -> None:
    with world(tmp_path / "w", latency="40s-45s") as made:
        made.ask(20)
        trigger, opened = start(made)
        made.until(lambda: made.kinds()["turn"] == 20, "all calls running")
        for count in range(2, 22):
            trigger.touch()
            made.until(lambda wanted=count: len(lives(opened)) == wanted, f"life {count}")  # type: ignore[misc]
        first, last = lives(opened)[2], lives(opened)[-1]
        print("first", first, "last", last)
        assert last[1] <= first[1] + 10, "descriptors"
        assert last[2] <= first[2] + 10, "threads"
        made.until(lambda: len(made.outcomes_of()) == 20, "every outcome")
        assert_each_once(made)


def test_process_mode_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with world(tmp_path / "w") as made:
        made.ask(1)
        start(made, "process")
        assert made.job is not None
        job = made.job
        made.until(lambda: "set python.execution-mode: thread" in _everything(made), "the refusal")
        assert made.kinds()["post"] == 0
        job.kill()


def _everything(made: World) -> str:
    texts = [
        path.read_text(errors="replace")
        for path in (made.folder / "checkpoints").rglob("*")
        if path.suffix in (".log", ".out")
    ]
    assert made.job is not None
    return "\n".join([made.job.text(), *texts])
