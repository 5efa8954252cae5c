"""`reattach explain`."""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reattach.models.errors import ConfigError
from reattach.runtime.cli.journals import open_journal, tell_damages

if TYPE_CHECKING:
    from reattach.runtime.replay.reading import Call


def command(
    invocation: Annotated[str, typer.Argument(help="The call's invocation_id.", metavar="INVOCATION")],
    journal: Annotated[
        list[Path],
        typer.Option(
            help="A journal file, or a folder of *.journal files; may be given several times.",
            metavar="JOURNAL",
            exists=True,
            readable=True,
        ),
    ],
    config: Annotated[
        str, typer.Option(help="The job's TOML file, for the commands that are shown.", metavar="CONFIG")
    ] = "job.toml",
    steps: Annotated[int, typer.Option(min=0, help="Show the latest N steps; 0 for all.", metavar="N")] = 40,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: a list, mostly of one call.")] = False,
) -> int:
    """Tell one call in words: what happened, what it waits for, what was sent and how that is known, what may be done.

    Exit codes: 0 told, 2 the journal is damaged (what can be read is told), no such call, or wrong usage.

    Example: `reattach explain order-17 --journal journal/`
    """
    from rich.console import Console

    from reattach.runtime.view import words
    from reattach.runtime.view.account import account_of

    calls = _find(invocation, journal)
    # Other turns of the same threads tell what a POST of this one has met.
    whole = open_journal(journal, threads={call[:2] for call in calls})
    now_ms = time.time_ns() // 1_000_000
    accounts = [account_of(call, whole, now_ms=now_ms, config=config) for call in calls]
    if as_json:
        sys.stdout.write(json.dumps([words.as_data(account) for account in accounts], indent=1) + "\n")
        return tell_damages(whole.damages)
    console = Console()
    for number, account in enumerate(accounts):
        if number:
            console.print()
        for line in words.lines(account, steps):
            # Where nobody looks, a line stays one line.
            console.print(line, highlight=False, soft_wrap=not console.is_terminal)
    return tell_damages(whole.damages)


def _find(invocation: str, paths: list[Path]) -> "list[Call]":
    from reattach.runtime.run.inbox import one_line
    from reattach.runtime.view.account import near_names

    found = open_journal(paths, invocation=invocation)
    if found.calls:
        return list(found.calls)
    every = open_journal(paths)
    tell_damages(every.damages)
    near = ", ".join(one_line(name, 80) for name in near_names(invocation, every.calls))
    raise ConfigError(
        f"{one_line(invocation, 80)!r} is none of the {len(every.calls):,} calls in this journal"
        + (f"; near it: {near}" if near else "; a turn that still waits for its thread has no entry yet")
    )
