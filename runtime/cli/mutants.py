"""`reattach mutants`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from reattach.runtime.cli.files import check_writable, write_text

COLUMNS = ("name", "killed", "by", "depth", "seconds")


def command(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these; all without.")] = None,
    document: Annotated[bool, typer.Option("--document", help="Print the page docs/mutants.md.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the verdicts here.", metavar="FILE")
    ] = None,
) -> int:
    """Break the shipped code on purpose, fault by fault, and see that the explorer finds each.

    Exits with 1 when a mutant survives.

    Example: `reattach mutants no-probe no-quiet-time`
    """
    from reattach.runtime.mutants import running
    from reattach.runtime.mutants.mutant import Verdict

    chosen = running.chosen(names or ())
    check_writable("--json", json_file)
    # The page goes to standard output alone.
    console = Console(stderr=document)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("breaking", total=len(chosen))

        def done(_: Verdict) -> None:
            progress.advance(task)

        verdicts = running.try_all(chosen, done)
    survivors = [one.name for one in verdicts if not one.killed]
    if document:
        typer.echo(running.document(verdicts), nl=False)
    else:
        table = Table(*COLUMNS, title="Deliberate faults")
        for verdict in verdicts:
            table.add_row(*running.cells(verdict))
        console.print(table)
    console.print(f"{len(verdicts) - len(survivors)} of {len(verdicts)} killed", highlight=False)
    if json_file is not None:
        write_text("--json", json_file, json.dumps([asdict(one) for one in verdicts], indent=1) + "\n")
    return 1 if survivors else 0
