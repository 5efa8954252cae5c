"""Both halves of the demonstration, and the table at its end."""

import json
import sys
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from reattach.runtime.demo.trial import Counts, Trial

COMMANDS = {
    "reattach": [sys.executable, "-m", "reattach", "run"],
    "naive": [sys.executable, "-m", "reattach.runtime.demo.naive"],
}


ROWS = {
    "calls": "calls",
    "posts": "POSTs that the server received",
    "turns": "runs that it started",
    "duplicates": "duplicates: runs started again",
    "lost": "lost: calls without a run or an outcome",
    "reattached": "re-attached: going on at the crash, joined without a POST",
    "read_after_crash": "results of earlier runs read after the crash",
    "seconds": "seconds",
}


def compare(*, calls: int, seed: int, json_file: Path | None, keep: Path | None, console: Console) -> bool:
    """Run both jobs through the same crash and print what the server saw.

    Returns:
        True when the job with reattach has no duplicate and no loss.

    Raises:
        TrialError: one of the processes did not do its part.
    """
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="reattach-demo-", ignore_cleanup_errors=True) as scratch:
        counts = _both(keep or Path(scratch), calls, seed, console)
    seconds = round(time.monotonic() - begun, 1)
    console.print(table(counts))
    if json_file is not None:
        whole = {name: asdict(one) for name, one in counts.items()} | {"calls": calls, "seed": seed, "seconds": seconds}
        json_file.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    return counts["reattach"].duplicates == 0 and counts["reattach"].lost == 0


def _both(folder: Path, calls: int, seed: int, console: Console) -> dict[str, Counts]:
    """Run both trials side by side: each mostly waits."""
    stop = threading.Event()
    with ThreadPoolExecutor(len(COMMANDS)) as pool:
        running: dict[str, Future[Counts]] = {}
        for name, command in COMMANDS.items():

            def say(line: str, name: str = name) -> None:
                console.print(f"[bold]{name:8}[/] {line}", highlight=False, soft_wrap=True)

            trial = Trial(folder, name, command, calls=calls, seed=seed, say=say, stop=stop)
            running[name] = pool.submit(trial.run)
        try:
            return {name: future.result() for name, future in running.items()}
        finally:
            stop.set()


def table(counts: dict[str, Counts]) -> Table:
    """One column per job."""
    shown = Table(title="One kill -9 in the middle, counted from the server's log")
    shown.add_column("")
    for name in counts:
        shown.add_column(name, justify="right")
    for field, title in ROWS.items():
        values = [getattr(one, field) for one in counts.values()]
        bad = field in ("duplicates", "lost")
        shown.add_row(title, *(f"[{'red' if value else 'green'}]{value}[/]" if bad else str(value) for value in values))
    return shown
