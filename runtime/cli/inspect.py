"""`reattach inspect`."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from reattach.models.errors import ConfigError
from reattach.models.lifecycle import Status
from reattach.runtime.cli.timeline import StatusName


def command(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            help="A checkpoint (chk-… folder), a savepoint, or a job's checkpoints folder: its latest.",
            metavar="CHECKPOINT_OR_SAVEPOINT",
            exists=True,
            readable=True,
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: all calls that fit.")] = False,
    status: Annotated[
        list[StatusName] | None, typer.Option(help="Only calls that are in this status; may be given several times.")
    ] = None,
    agent: Annotated[str, typer.Option(help="Only this agent's calls.", metavar="NAME")] = "",
    thread: Annotated[str, typer.Option(help="Only this thread's calls.", metavar="THREAD")] = "",
    limit: Annotated[int, typer.Option(min=1, help="Rows of the table at most.", metavar="N")] = 40,
    uid: Annotated[
        str, typer.Option(help="The uid of the operator that makes the calls, in a job of your own.", metavar="UID")
    ] = "calls",
) -> int:
    """Show the calls in a checkpoint or a savepoint: what a job that starts from it would go on with.

    A Flink without any agent reads it, in some seconds: nothing is sent, and the checkpoint stays as it is.
    Exit codes: 0 shown, 1 Flink cannot read it, 2 no checkpoint, one of another job or of a newer release, no call
    fits, or wrong usage.

    Example: `reattach inspect checkpoints/`
    """
    from rich.console import Console

    from reattach.runtime.flink.reading import read_stored
    from reattach.runtime.view import stored as view
    from reattach.runtime.view.terminal import PLAIN_COLUMNS

    stored = read_stored(checkpoint, uid=uid)
    every = view.rows_of(stored.threads)
    rows = view.select(every, statuses=[Status[one.name] for one in status or ()], agent=agent, thread=thread)
    if every and not rows:
        raise ConfigError(
            f"none of the {len(every):,} calls in {stored.folder} fits --status, --agent and --thread; "
            "leave one of them out"
        )
    if as_json:
        told = {
            "folder": str(stored.folder),
            "checkpoint": stored.number,
            "savepoint": stored.savepoint,
            "parallelism": stored.parallelism,
            "counts": view.counts(rows),
            "calls": view.as_data(rows),
        }
        sys.stdout.write(json.dumps(told, indent=1) + "\n")
        return 0
    now_ms = time.time_ns() // 1_000_000
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_COLUMNS)
    kind = "savepoint" if stored.savepoint else "checkpoint"
    lines = [f"{kind} {stored.number}, {stored.folder}", *view.figures(rows, now_ms)]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if rows:
        console.print(view.table(rows[:limit], now_ms, console))
    if len(rows) > limit:
        more = "--limit, --status, --agent and --thread choose, --json shows all"
        console.print(f"and {len(rows) - limit:,} more: {more}", markup=False, highlight=False, soft_wrap=True)
    return 0
