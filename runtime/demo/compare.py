"""Both halves of the demonstration, and the table at its end."""

import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from reattach.runtime.demo.trial import Counts, Trial

COMMANDS = {
    "reattach": [sys.executable, "-m", "reattach", "run"],
    "naive": [sys.executable, "-m", "reattach.runtime.demo.naive"],
}


def compare(*, calls: int, seed: int, json_file: Path | None, keep: Path | None, console: Console) -> bool:
    """Run both jobs through the same crash and print what the server saw.

    Returns:
        True when the job with reattach has no duplicate and no loss.

    Raises:
        TrialError: one of the processes did not do its part.
    """
    begun = time.monotonic()
    counts: dict[str, Counts] = {}
    with tempfile.TemporaryDirectory(prefix="reattach-demo-", ignore_cleanup_errors=True) as scratch:
        folder = keep if keep is not None else Path(scratch)
        for name, command in COMMANDS.items():

            def say(line: str, name: str = name) -> None:
                console.print(f"[bold]{name}[/]: {line}", highlight=False, soft_wrap=True)

            counts[name] = Trial(folder, name, command, calls=calls, seed=seed, say=say).run()
    seconds = round(time.monotonic() - begun, 1)
    console.print(table(counts))
    console.print(
        "Counted from the server's log. Re-attached: runs that were going on at the crash and were joined "
        "without a new POST.",
        style="dim",
        soft_wrap=True,
    )
    if json_file is not None:
        whole = {name: asdict(one) for name, one in counts.items()} | {"calls": calls, "seed": seed, "seconds": seconds}
        json_file.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
    return counts["reattach"].duplicates == 0 and counts["reattach"].lost == 0


def table(counts: dict[str, Counts]) -> Table:
    """One row per job."""
    shown = Table(title="One crash in the middle")
    shown.add_column("")
    columns = {
        "calls": "calls",
        "posts": "POSTs",
        "turns": "turns",
        "duplicates": "duplicates",
        "lost": "lost",
        "reattached": "re-attached",
        "read_after_crash": "read after crash",
        "seconds": "seconds",
    }
    for title in columns.values():
        shown.add_column(title, justify="right")
    for name, one in counts.items():
        bad = one.duplicates + one.lost
        shown.add_row(name, *(str(getattr(one, column)) for column in columns), style="red" if bad else "green")
    return shown
