"""`reattach explore`."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from reattach.models.errors import ConfigError

COLUMNS = ("remote", "turns", "crashes", "checkpoints", "losses", "zombies", "also", "states", "edges", "seconds", "")

WIDTH = 120


def command(
    remote: Annotated[str, typer.Option(help="Explore this model remote only.")] = "",
    turns: Annotated[int, typer.Option(min=1, max=3, help="Calls on one thread; needs --remote.")] = 1,
    crashes: Annotated[int, typer.Option(min=0, max=4, help="Needs --remote, like the next three.")] = 2,
    checkpoints: Annotated[int, typer.Option(min=0, max=4)] = 2,
    losses: Annotated[int, typer.Option(min=0, max=4)] = 2,
    zombies: Annotated[int, typer.Option(min=0, max=2)] = 0,
    also: Annotated[str, typer.Option(help="What else may happen: cancel, questions, ...; needs --remote.")] = "",
    states_max: Annotated[int, typer.Option(min=1, help="Give a run up beyond so many states.")] = 20_000_000,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the results here.", metavar="FILE")
    ] = None,
) -> int:
    """Search every interleaving of crashes, checkpoints, losses and zombies over the shipped code.

    Exits with 1 on any violation or stuck state, and prints the shortest way there.

    Example: `reattach explore --remote status-only --crashes 1 --checkpoints 1 --losses 1`
    """
    from reattach.runtime.explore.also import ALSO
    from reattach.runtime.explore.default import DEFAULT, REMOTES, Bounds, Explored, rows, run_all

    if remote and remote not in REMOTES:
        raise ConfigError(f"--remote {remote}: no such model remote (known: {', '.join(REMOTES)})")
    if also not in ALSO:
        raise ConfigError(f"--also {also}: not known (known: {', '.join(name for name in ALSO if name)})")
    runs = (Bounds(remote, turns, crashes, checkpoints, losses, zombies, also),) if remote else DEFAULT
    console = Console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("exploring", total=len(runs))

        def done(result: Explored) -> None:
            progress.advance(task)
            if not console.is_terminal:
                console.print(" ".join(next(rows([result]))), markup=False, highlight=False, soft_wrap=True)

        def seen(states: int) -> None:
            progress.update(task, description=f"exploring, {states:,} states")

        results = run_all(runs, done, states_max, seen)
    table = Table(title="Every reachable world")
    for name in COLUMNS:
        # A number may be broken, never cut.
        table.add_column(name, overflow="fold")
    for row in rows(results):
        table.add_row(*row)
    if not console.is_terminal:
        console.width = WIDTH
    console.print(table)
    states = sum(one.states for one in results)
    console.print(
        f"{states:,} states, {sum(one.violations for one in results)} violations, "
        f"{sum(one.stuck for one in results)} stuck",
        highlight=False,
    )
    for one in results:
        for text in one.counterexamples:
            console.print(text, markup=False, highlight=False, soft_wrap=True)
    if json_file is not None:
        json_file.write_text(json.dumps([one.to_json() for one in results], indent=1) + "\n", encoding="utf-8")
    return 0 if all(one.good for one in results) else 1
