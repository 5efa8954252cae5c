"""`reattach watch`."""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from reattach.models.errors import ConfigError

if TYPE_CHECKING:
    from reattach.runtime.run.rest import Rest
    from reattach.runtime.view.watching import Source

# Tests put what happens between two looks here.
wait = time.sleep


def command(
    journal: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Journal files, or folders of *.journal files.", metavar="JOURNAL", exists=True, readable=True
        ),
    ] = None,
    rest: Annotated[
        str, typer.Option(help="Flink's REST interface instead of a journal: counts only.", metavar="URL")
    ] = "",
    job: Annotated[str, typer.Option(help="With --rest: which job, if several run there.", metavar="ID")] = "",
    once: Annotated[bool, typer.Option("--once", help="Look once.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: an object, or one a line.")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.", metavar="S")] = 1.0,
    config: Annotated[
        str, typer.Option(help="The job's TOML file, for the commands that are shown.", metavar="CONFIG")
    ] = "job.toml",
) -> int:
    """Watch a running job: calls by state, the longest in theirs, outcomes per second, and what waits for people.

    Ctrl-C ends it. Where the output is no terminal there is a line whenever something has changed. Exit codes: 0 shown,
    or the job has ended, 2 no journal, no such job, or wrong usage, 130 stopped.

    Example: `reattach watch journal/`
    """
    from reattach.runtime.view import glance
    from reattach.runtime.view.terminal import PLAIN_COLUMNS
    from reattach.runtime.view.watching import Asker, Follower

    if bool(journal) == bool(rest):
        raise ConfigError("name a JOURNAL or --rest URL, one of the two")
    if job and not rest:
        raise ConfigError("--job belongs to --rest")
    source: Source = Asker(_job(rest.rstrip("/"), job)) if rest else Follower(journal or [], config)
    console = Console()
    if once:
        look = source.look()
        if journal and not look.until_ms:
            raise ConfigError(f"{look.notes[0]}; look again after the next one")
        if as_json:
            sys.stdout.write(json.dumps(glance.as_data(look), indent=1) + "\n")
            return 0
        if not console.is_terminal:
            console = Console(width=PLAIN_COLUMNS)
        console.print(glance.table(look), soft_wrap=not console.is_terminal)
        return 0
    if as_json:
        return _lines(source, every, as_json=True)
    return _live(source, every, console) if console.is_terminal else _lines(source, every, as_json=False)


def _live(source: "Source", every: float, console: Console) -> int:
    from rich.live import Live

    from reattach.runtime.view import glance
    from reattach.runtime.view.watching import ENDED

    look = source.look()
    with Live(glance.table(look), console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        while look.state not in ENDED:
            wait(every)
            look = source.look()
            live.update(glance.table(look), refresh=True)
    return 0


def _lines(source: "Source", every: float, *, as_json: bool) -> int:
    from reattach.runtime.view import glance
    from reattach.runtime.view.watching import ENDED

    plain = glance.Lines()
    while True:
        look = source.look()
        lines = [json.dumps(glance.as_data(look))] if as_json else list(plain.of(look))
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
        if look.state in ENDED:
            return 0
        wait(every)


def _job(url: str, job: str) -> "Rest":
    """Find the job that is meant.

    Raises:
        ConfigError: nobody answers there, or it cannot be told which job is meant.
    """
    from reattach.runtime.run.rest import Rest, jobs_at
    from reattach.runtime.view.watching import ENDED

    try:
        jobs = jobs_at(url)
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = getattr(error, "reason", "") or str(error) or type(error).__name__
        raise ConfigError(
            f"--rest {url}: no answer of Flink's REST interface ({why}); name its address, such as http://127.0.0.1:8081"
        ) from None
    wanted = [one for one in jobs if one[0] == job] if job else [one for one in jobs if one[2] not in ENDED]
    known = ", ".join(f"{number} ({name}, {state})" for number, name, state in jobs) or "none"
    if not wanted:
        what = f"no job {job}" if job else "no job that runs"
        raise ConfigError(f"--rest {url}: {what} there; there are: {known}")
    if len(wanted) > 1:
        raise ConfigError(f"--rest {url}: several jobs run there; name one with --job: {known}")
    return Rest(0, wanted[0][0], url)
