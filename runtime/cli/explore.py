"""`reattach explore`."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from reattach.models.errors import ConfigError
from reattach.runtime.cli.files import check_writable, write_text

if TYPE_CHECKING:
    from reattach.runtime.explore.default import Bounds, Explored

BOUNDS = ("turns", "crashes", "checkpoints", "losses", "zombies", "also")
COLUMNS = ("remote", *BOUNDS, "states", "edges", "seconds", "verdict")


def command(
    remote: Annotated[
        str | None, typer.Option(help="Explore this model remote only, under the bounds of the next six.")
    ] = None,
    turns: Annotated[int | None, typer.Option(min=1, max=3, help="Calls on one thread; without: 1.")] = None,
    crashes: Annotated[int | None, typer.Option(min=0, max=4, help="Without: 2.")] = None,
    checkpoints: Annotated[int | None, typer.Option(min=0, max=4, help="Without: 2.")] = None,
    losses: Annotated[int | None, typer.Option(min=0, max=4, help="Without: 2.")] = None,
    zombies: Annotated[int | None, typer.Option(min=0, max=2, help="Without: 0.")] = None,
    also: Annotated[
        str | None, typer.Option(help="What else may happen: cancel, questions, ...; without: nothing.")
    ] = None,
    states_max: Annotated[int, typer.Option(min=1, help="Give a run up beyond so many states.")] = 20_000_000,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the results here.", metavar="FILE")
    ] = None,
) -> int:
    """Search every interleaving of crashes, checkpoints, losses and zombies over the shipped code.

    Exits with 1 on any violation or stuck state, and prints the shortest way there; 1 also when a run was
    cut off (--states-max).

    Example: `reattach explore --remote status-only --crashes 1 --checkpoints 1 --losses 1`
    """
    from reattach.runtime.explore.default import DEFAULT, Explored, rows, run_all

    asked = zip(BOUNDS, (turns, crashes, checkpoints, losses, zombies, also), strict=True)
    given = {name: value for name, value in asked if value is not None}
    runs = DEFAULT if remote is None and not given else (_bounds(remote, given),)
    check_writable("--json", json_file)
    console = Console()
    if not console.is_terminal:
        typer.echo(" ".join(COLUMNS))
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
    if console.is_terminal:
        console.print(_table(rows(results)))
    for one in results:
        for text in one.counterexamples:
            console.print(text, markup=False, highlight=False, soft_wrap=True)
    console.print(_summary(results), highlight=False)
    if json_file is not None:
        write_text("--json", json_file, json.dumps([one.to_json() for one in results], indent=1) + "\n")
    return 0 if all(one.good for one in results) else 1


def _bounds(remote: str | None, given: dict[str, Any]) -> "Bounds":
    from reattach.runtime.explore.also import ALSO
    from reattach.runtime.explore.default import REMOTES, Bounds

    if remote is None:
        raise ConfigError(f"--{next(iter(given))}: needs --remote")
    if remote not in REMOTES:
        raise ConfigError(f"--remote {remote or repr(remote)}: no such model remote (known: {', '.join(REMOTES)})")
    if given.get("also", "") not in ALSO:
        raise ConfigError(f"--also {given['also']}: not known (known: {', '.join(name for name in ALSO if name)})")
    return Bounds(remote, **given)


def _table(rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table(title="Every reachable world")
    for name in COLUMNS:
        # A number may be broken, never cut.
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _summary(results: "Sequence[Explored]") -> str:
    from reattach.runtime.explore.default import CUT_OFF

    states, violations, stuck = (
        sum(getattr(one, name) for one in results) for name in ("states", "violations", "stuck")
    )
    cut_off = sum(one.verdict == CUT_OFF for one in results)
    return f"{states:,} states, {violations} violations, {stuck} stuck{f', {cut_off} cut off' * bool(cut_off)}"
