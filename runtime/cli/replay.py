"""`reattach replay`."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reattach.models.errors import ConfigError
from reattach.runtime.cli.files import check_writable, write_text

if TYPE_CHECKING:
    from reattach.runtime.replay.reading import Journal


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
    what_if: Annotated[
        str,
        typer.Option(
            help="Also continue in the simulated world from a crash behind entry N of a call (crash@N), "
            "or behind every entry (crash@every).",
            metavar="CRASH",
        ),
    ] = "",
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the findings here.", metavar="FILE", dir_okay=False)
    ] = None,
) -> int:
    """Fold a journal through today's step and compare every state, as a test before an upgrade.

    Exit codes: 0 every state is the same (and no supposed crash breaks a property), 1 today's step comes to another
    one (or a property breaks), 2 the journal is damaged or incomplete, or wrong usage.

    Example: `reattach replay journal/ --json findings.json`
    """
    from reattach.runtime.replay.progress import Progress
    from reattach.runtime.replay.reading import files_of, read
    from reattach.runtime.replay.report import Row, replay
    from reattach.runtime.replay.supposing import number_of
    from reattach.runtime.replay.telling import as_json, lines, row_line

    number = number_of(what_if) if what_if else None
    check_writable("--json", json_file)
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
    if invocation and not held.calls:
        typer.echo(f"error: --invocation: {invocation!r} is none of the calls that could be read", err=True)
    more: dict[str, Any] = {}
    code = report.code
    if number is not None:
        # Other turns of the same thread belong to the world of this one.
        whole = read(files, threads={call[:2] for call in held.calls}) if invocation else held
        supposed, more["what_if"] = _suppose(whole, number, invocation, until, keep=json_file is not None)
        code = 1 if 1 in (supposed, code) else max(supposed, code)
    if json_file is not None:
        write_text("--json", json_file, as_json(report, held, files, seconds, **more))
    return code


def _suppose(
    journal: "Journal", number: int, invocation: str, until: int, keep: bool
) -> tuple[int, list[dict[str, Any]]]:
    """Try the crashes that were asked for, and show what comes of them.

    Args:
        keep: collect every world for machines.

    Returns:
        The exit code, and what was collected.
    """
    from reattach.runtime.replay.progress import Progress
    from reattach.runtime.replay.supposing import EVERY, Findings, crashes_in, suppose
    from reattach.runtime.replay.supposing_lines import as_data, story_lines, summary_line, total_line

    findings = Findings()
    data: list[dict[str, Any]] = []
    with Progress() as progress:
        on_crash = progress.supposing(crashes_in(journal, number, invocation=invocation, until=until))
        for supposed in suppose(journal, number, invocation=invocation, until=until, on_crash=on_crash):
            findings.add(supposed)
            data += as_data(supposed) if keep else ()
            for line in [summary_line(supposed)] if number == EVERY else story_lines(journal, supposed):
                # Unlike `echo`, this goes above the bar where both are on one terminal.
                sys.stdout.write(f"{line}\n")
    if number == EVERY and findings.first is not None:
        for line in story_lines(journal, findings.first, only_broken=True):
            typer.echo(line)
    if findings.worlds:
        typer.echo(total_line(findings))
    else:
        typer.echo("error: --what-if: nothing could be continued", err=True)
        return 2, data
    return int(findings.broken > 0), data
