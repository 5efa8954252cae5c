"""`reattach simulate`."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reattach.models.errors import ConfigError
from reattach.runtime.cli.files import check_writable, write_text

if TYPE_CHECKING:
    from reattach.runtime.simulation.many import Plan
    from reattach.runtime.simulation.report import Report

SAFETY, LIVENESS, CRASH = 1, 3, 4
FAILURES_SHOWN = 3
NAMES_SHOWN = 5


def command(
    seed: Annotated[int, typer.Option(min=0, help="Fixes everything that happens.")] = 1,
    calls: Annotated[int, typer.Option(min=1, max=100_000_000, help="Calls to simulate.")] = 10_000,
    faults: Annotated[
        str, typer.Option(help="`all`, `none`, or a list like `crash_every_ms,lose=0.2`.", metavar="NAMES")
    ] = "none",
    remote: Annotated[
        list[str] | None, typer.Option(help="Only these kinds of model remote; all without.", metavar="NAME")
    ] = None,
    jobs: Annotated[int, typer.Option(min=0, max=256, help="Processes; 0 for one for each core.")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the figures here.", metavar="FILE")
    ] = None,
    journal: Annotated[
        Path | None, typer.Option(help="Also write the journal here, for `reattach replay`.", metavar="FILE")
    ] = None,
) -> int:
    """Run whole histories of a job in a simulated world: seeded faults, virtual time, the code that ships.

    Every failure is shown with the command that reproduces it alone. Exit codes: 0 all calls came to an end,
    1 safety (something happened twice, or was told wrongly), 3 liveness (a call never ends),
    4 crash (an exception in the code), 2 wrong usage.

    Example: `reattach simulate --seed 1 --calls 10000 --faults all`
    """
    from reattach.runtime.simulation.many import Plan, check, run_all
    from reattach.runtime.simulation.report import total

    names = tuple(dict.fromkeys(name for text in remote or () for name in text.split(",") if name))
    plan = Plan(seed, calls, faults, names)
    check(plan)
    check_writable("--json", json_file)
    jobs = jobs or os.cpu_count() or 1
    began = time.perf_counter()
    with _bar(len(list(plan.worlds()))) as advance:
        reports = _journalled(plan, journal) if journal is not None else run_all(plan, jobs, advance)
    seconds = time.perf_counter() - began
    whole = total(reports)
    for line in _failures(plan, reports):
        typer.echo(line)
    for line in _figures(whole, seconds, len(reports)):
        typer.echo(line)
    if json_file is not None:
        write_text("--json", json_file, json.dumps(_as_json(plan, whole, seconds, jobs), indent=1) + "\n")
    return SAFETY if whole.violations else CRASH if whole.crash else LIVENESS if whole.stuck else 0


@contextmanager
def _bar(worlds: int) -> "Iterator[Callable[[Report], None]]":
    """Show how many worlds are done, where somebody looks and there is something to wait for."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    hidden = not console.is_terminal or worlds == 1
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("simulating worlds", total=worlds)
        failed = 0

        def advance(report: "Report") -> None:
            nonlocal failed
            failed += not report.good
            progress.update(task, advance=1, description=f"simulating worlds{f', {failed} failed' * bool(failed)}")

        yield advance


def _journalled(plan: "Plan", file: Path) -> "list[Report]":
    from reattach.runtime.simulation.history import write_journal
    from reattach.runtime.simulation.many import WORLD_CALLS_MAX

    if plan.calls > WORLD_CALLS_MAX:
        raise ConfigError(f"--journal: a journal is of one world; use --calls {WORLD_CALLS_MAX} at most")
    check_writable("--journal", file)
    try:
        return [write_journal(plan, file)]
    except OSError as error:
        raise ConfigError(f"--journal: {file}: cannot be written: {error.strerror}") from None


def _failures(plan: "Plan", reports: "list[Report]") -> Iterator[str]:
    """What went wrong, each with its history and the command that brings it back."""
    from reattach.runtime.simulation.history import history_of

    failed = [(world, report) for world, report in zip(plan.worlds(), reports, strict=True) if not report.good]
    for world, report in failed[:FAILURES_SHOWN]:
        for text in report.violations:
            yield f"safety: {text}"
        if report.crash:
            yield f"crash: {report.crash}"
        if report.stuck:
            yield f"liveness: {report.stuck} calls never end: {', '.join(report.broken[:NAMES_SHOWN])}"
        for name in report.broken[:1]:
            yield from history_of(world, name)
        yield f"reproduce: {world.command}"
        yield ""
    for world, _ in failed[FAILURES_SHOWN:]:
        yield f"also: {world.command}"


def _figures(whole: "Report", seconds: float, worlds: int) -> Iterator[str]:
    ended = ", ".join(f"{count:,} {how}" for how, count in whole.ended.items()) or "none ended"
    yield f"{whole.calls:,} calls in {worlds:,} worlds: {ended}; people decided on {whole.parked:,}"
    yield (
        f"{whole.crashes:,} crashes, {whole.checkpoints:,} checkpoints, {whole.steps:,} steps, "
        f"{whole.simulated_ms / 3_600_000:,.1f} simulated hours"
    )
    if whole.happened:
        yield f"faults: {', '.join(f'{name} {count:,}' for name, count in whole.happened.items())}"
    yield (
        f"{len(whole.violations)} violations, {whole.stuck} stuck; "
        f"{seconds:.1f} s, {whole.calls / seconds:,.0f} simulated calls/s"
    )


def _as_json(plan: "Plan", whole: "Report", seconds: float, jobs: int) -> dict[str, Any]:
    return {
        "seed": plan.seed,
        "calls": plan.calls,
        "faults": plan.faults,
        "remotes": list(plan.remotes),
        "crashes": whole.crashes,
        "checkpoints": whole.checkpoints,
        "steps": whole.steps,
        "violations": len(whole.violations),
        "stuck": whole.stuck,
        "exceptions": whole.exceptions,
        "parked": whole.parked,
        "ended": whole.ended,
        "happened": whole.happened,
        "simulated_ms": whole.simulated_ms,
        "jobs": jobs,
        "seconds": round(seconds, 3),
        "calls_per_second": round(whole.calls / seconds, 1),
    }
