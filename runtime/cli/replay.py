"""`reattach replay`."""

import time
from pathlib import Path
from typing import Annotated

import typer

from reattach.models.errors import ConfigError


def command(
    journal: Annotated[
        list[Path],
        typer.Argument(
            help="Journal files, or folders of *.journal files.", metavar="JOURNAL", exists=True, readable=True
        ),
    ],
    invocation: Annotated[
        str, typer.Option(help="Replay this call only, and show each of its entries.", metavar="ID")
    ] = "",
    until: Annotated[
        int, typer.Option(min=0, help="Replay only the first N entries of each call; 0 for all.", metavar="N")
    ] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the findings here.", metavar="FILE", dir_okay=False)
    ] = None,
) -> int:
    """Fold a journal through today's step and compare every state, as a test before an upgrade.

    Exit codes: 0 every state is the same, 1 today's step comes to another one, 2 the journal is damaged or incomplete.

    Example: `reattach replay journal/ --json findings.json`
    """
    from reattach.runtime.replay.progress import Progress
    from reattach.runtime.replay.reading import files_of, read
    from reattach.runtime.replay.report import Row, replay
    from reattach.runtime.replay.telling import as_json, lines, row_line

    started_s = time.perf_counter()
    rows: list[Row] = []
    files, damages = files_of(journal)
    with Progress() as progress:
        held = read(files, invocation=invocation, on_bytes=progress.reading(files))
        held.damages[:0] = damages
        if invocation and not held.calls and not held.damages:
            raise ConfigError(f"--invocation: {invocation!r} is none of the calls in this journal")
        on_entry = progress.replaying(held.entries)
        report = replay(held, until=until, on_row=rows.append if invocation else None, on_entry=on_entry)
    seconds = time.perf_counter() - started_s
    for row in rows:
        typer.echo(row_line(row, rows[0].entry.at_ms))
    for line in lines(report, held, seconds):
        typer.echo(line)
    for damage in report.damages:
        typer.echo(f"error: {damage}", err=True)
    if json_file is not None:
        try:
            json_file.write_text(as_json(report, held, files, seconds))
        except OSError as error:
            raise ConfigError(f"--json: {json_file}: cannot be written: {error.strerror}") from None
    return report.code
