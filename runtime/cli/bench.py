"""`reattach bench`."""

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from reattach.models.errors import ConfigError
from reattach.runtime.bench.peers.catalogue import PEERS
from reattach.runtime.bench.peers.catalogue import systems as peer_systems
from reattach.runtime.bench.systems import SYSTEMS, System
from reattach.runtime.cli.files import check_writable

CALLS = 2_000


def command(
    calls: Annotated[
        int | None,
        typer.Option(min=1, max=1_000_000, help="How many calls. Default: 2000; 20 with --own."),
    ] = None,
    run_ms: Annotated[int, typer.Option(min=1, max=60_000, help="How long the agent takes for each, in ms.")] = 200,
    concurrency: Annotated[int, typer.Option(min=1, max=4_096, help="Requests in flight at most.")] = 256,
    rounds: Annotated[int, typer.Option(min=1, max=99, help="Rounds of each system; medians are shown.")] = 3,
    system: Annotated[
        list[str] | None, typer.Option(help=f"One of {', '.join(SYSTEMS)}; may be repeated. Default: all.")
    ] = None,
    peers: Annotated[
        Path | None,
        typer.Option(
            help=f"Also measure other systems, in the environments that `make peers` made here: {', '.join(PEERS)}.",
            metavar="FOLDER",
        ),
    ] = None,
    micro: Annotated[
        bool, typer.Option("--micro", help="Measure a step and what is stored instead, without any process.")
    ] = False,
    growth: Annotated[
        bool,
        typer.Option(
            "--growth", help="Measure this engine alone: what calls cost that wait, long messages, RocksDB. Minutes."
        ),
    ] = False,
    waiting: Annotated[
        list[int] | None,
        typer.Option(
            min=1, max=1_000_000, help="With --growth: only calls that wait, so many; may be repeated.", metavar="CALLS"
        ),
    ] = None,
    own: Annotated[
        Path | None,
        typer.Option(
            help="Measure an agent of your own instead: a job's file as for `reattach run`. The calls are real ones.",
            metavar="CONFIG",
        ),
    ] = None,
    agent: Annotated[str, typer.Option(help="With --own: which of its agents.", metavar="NAME")] = "",
    message: Annotated[str, typer.Option(help="With --own: what each call says, as JSON.", metavar="JSON")] = "",
    kill: Annotated[bool, typer.Option(help="Also kill each one in the middle, and count duplicates.")] = True,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures here.", metavar="FILE")] = None,
    chart: Annotated[Path | None, typer.Option(help="Draw them here, as PNG.", metavar="FILE")] = None,
    page: Annotated[
        Path | None, typer.Option(help="Put the table between the marks of this page of documentation.", metavar="FILE")
    ] = None,
) -> int:
    """Measure calls per second, CPU, memory and added latency: this engine, the floor under it, a naive job.

    Example: `reattach bench --calls 1000 --rounds 1 --json figures.json`
    """
    from reattach.runtime.bench.compare import compare
    from reattach.runtime.bench.report import draw, markdown, table, write_into, write_json

    check_writable("--json", json_file)
    check_writable("--chart", chart)
    if micro:
        return _micro(json_file)
    if own is not None:
        return _own(own, agent, message, calls, json_file)
    calls = calls or CALLS
    console = Console(stderr=True)
    if growth:
        return _growth(calls, waiting, console, json_file, page)
    systems = _chosen(system, peers, lambda line: console.print(line, highlight=False, soft_wrap=True))
    with tempfile.TemporaryDirectory(prefix="reattach-bench-") as folder:
        results = compare(
            systems,
            Path(folder),
            calls=calls,
            concurrency=concurrency,
            run_ms=run_ms,
            rounds=rounds,
            kill=kill,
            say=lambda line: console.print(line, highlight=False),
        )
    head, *rows = table(results)
    shown = Table(*head)
    for row in rows:
        shown.add_row(*row)
    Console().print(shown)
    if json_file is not None:
        write_json(json_file, results)
    if chart is not None:
        draw(chart, results)
    if page is not None:
        write_into(page, markdown(results, "reattach bench " + " ".join(_asked(calls, run_ms, concurrency, rounds))))
    return 0


def _own(config: Path, agent: str, message: str, calls: int | None, json_file: Path | None) -> int:
    from reattach.runtime.bench.own import OWN_CALLS, measure

    if not agent or not message:
        raise ConfigError("--own: needs --agent and --message, since its calls are real ones")
    with tempfile.TemporaryDirectory(prefix="reattach-bench-") as folder:
        found = measure(config, agent, message, calls or OWN_CALLS, Path(folder) / "own")
    values = found.as_json()
    shown = Table("what", "", show_header=False)
    for name, value in values.items():
        if value is not None:
            shown.add_row(name.replace("_", " "), f"{value}")
    Console().print(shown)
    if json_file is not None:
        json_file.write_text(json.dumps([values], indent=1) + "\n", encoding="utf-8")
    return 0


def _growth(calls: int, waiting: list[int] | None, console: Console, json_file: Path | None, page: Path | None) -> int:
    from reattach.runtime.bench import growth
    from reattach.runtime.bench.report import write_into

    with tempfile.TemporaryDirectory(prefix="reattach-bench-") as folder:
        found = growth.cases(
            Path(folder),
            calls=calls,
            waiting=waiting or (),
            say=lambda line: console.print(line, highlight=False),
        )
    shown = Table(*growth.HEADS)
    for case in found:
        shown.add_row(*case.cells())
    Console().print(shown)
    if json_file is not None:
        growth.write_json(json_file, found)
    if page is not None:
        write_into(page, growth.markdown(found), part="growth")
    return 0


def _chosen(names: list[str] | None, peers: Path | None, say: Callable[[str], None]) -> list[System]:
    """The systems that can be measured; says which of the others were asked for."""
    known: dict[str, System | str] = {**SYSTEMS, **(peer_systems(peers) if peers is not None else {})}
    for one in names or ():
        if one not in known:
            hint = "; it is one of the peers, which --peers adds" if one in PEERS else ""
            raise ConfigError(f"--system {one}: no such system; known: {', '.join(known)}{hint}")
    chosen = []
    for one in dict.fromkeys(names or known):
        found = known[one]
        if isinstance(found, System):
            chosen.append(found)
        else:
            say(found)
    if not chosen:
        raise ConfigError("nothing is left to measure")
    return chosen


def _micro(json_file: Path | None) -> int:
    from reattach.runtime.bench.micro import figures

    found = list(figures())
    shown = Table("what", "", "", show_header=False)
    for one in found:
        shown.add_row(one.name, f"{one.value:.1f}" if one.unit == "µs" else f"{one.value:.0f}", one.unit)
    Console().print(shown)
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", encoding="utf-8")
    return 0


def _asked(calls: int, run_ms: int, concurrency: int, rounds: int) -> list[str]:
    """The options that make these figures again."""
    return [f"--calls {calls}", f"--run-ms {run_ms}", f"--concurrency {concurrency}", f"--rounds {rounds}"]
