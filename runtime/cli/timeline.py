"""`reattach timeline`."""

import json
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from reattach.models.errors import ConfigError
from reattach.models.lifecycle import Status
from reattach.runtime.cli.files import check_writable, write_text
from reattach.runtime.cli.journals import open_journal, tell_damages

StatusName = Enum("StatusName", {status.name: status.name.lower() for status in Status}, type=str)  # type: ignore[misc]


def command(
    journal: Annotated[
        list[Path],
        typer.Argument(
            help="Journal files, or folders of *.journal files.", metavar="JOURNAL", exists=True, readable=True
        ),
    ],
    html: Annotated[
        Path | None,
        typer.Option(help="Write a page to look at in a browser; it needs no network.", metavar="FILE", dir_okay=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table: all calls.")] = False,
    status: Annotated[
        list[StatusName] | None, typer.Option(help="Only calls that are in this status; may be given several times.")
    ] = None,
    agent: Annotated[str, typer.Option(help="Only this agent's calls.", metavar="NAME")] = "",
    thread: Annotated[str, typer.Option(help="Only this thread's calls.", metavar="THREAD")] = "",
    find: Annotated[
        str, typer.Option(help="Only calls with this text in a name, their state or its cause.", metavar="TEXT")
    ] = "",
    limit: Annotated[int, typer.Option(min=1, help="Rows of the table at most.", metavar="N")] = 40,
) -> int:
    """Show a journal's calls over time: where each stands and since when, its POSTs, the crashes it went through.

    Calls that go on come first, the longest in their state before the others. Exit codes: 0 shown, 2 the journal is
    damaged (what can be read is shown), no call fits, or wrong usage.

    Example: `reattach timeline journal/ --html timeline.html`
    """
    from rich.console import Console

    from reattach.runtime.replay.progress import Progress
    from reattach.runtime.view import terminal
    from reattach.runtime.view.lanes import select, timeline, timeline_of, waiting_first
    from reattach.runtime.view.page import page

    check_writable("--html", html)
    read = open_journal(journal)
    with Progress() as progress:
        whole = timeline_of(read, progress.replaying(read.entries))
    wanted = [Status[one.name] for one in status or ()]
    lanes = select(whole.lanes, statuses=wanted, agent=agent, thread=thread, text=find)
    if not lanes:
        raise ConfigError(
            f"none of the {len(whole.lanes):,} calls in this journal fits --status, --agent, --thread and --find; "
            "leave one of them out"
        )
    shown = timeline(lanes)
    if html is not None:
        write_text("--html", html, page(shown))
    if as_json:
        sys.stdout.write(json.dumps(terminal.as_data(waiting_first(lanes), shown), indent=1) + "\n")
        return tell_damages(read.damages)
    console = Console()
    if not console.is_terminal:
        console = Console(width=terminal.PLAIN_COLUMNS)
    console.print(terminal.figures(shown), markup=False, highlight=False, soft_wrap=True)
    console.print(terminal.legend())
    console.print(terminal.table(waiting_first(lanes)[:limit], shown, console))
    if len(lanes) > limit:
        more = "--limit, --status, --agent, --thread and --find choose, --html shows all"
        console.print(f"and {len(lanes) - limit:,} more: {more}", markup=False, highlight=False, soft_wrap=True)
    if html is not None:
        console.print(f"wrote {html}", markup=False, highlight=False, soft_wrap=True)
    return tell_damages(read.damages)
