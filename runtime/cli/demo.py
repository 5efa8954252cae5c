"""`reattach demo`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from reattach.models.errors import ConfigError
from reattach.runtime.cli.files import check_writable


def command(
    calls: Annotated[int, typer.Option(min=10, max=5_000, help="How many calls.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Decides the calls' latencies.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the counts here.", metavar="FILE")] = None,
    keep: Annotated[Path | None, typer.Option(help="Keep the demo's files in this folder.", metavar="FOLDER")] = None,
) -> int:
    """Kill a job in the middle and count what the server saw: with reattach, and with one naive callable.

    Example: `reattach demo --calls 400 --json counts.json`
    """
    from reattach.runtime.demo.compare import compare

    check_writable("--json", json_file)
    if keep is not None:
        if keep.exists() and any(keep.iterdir()):
            raise ConfigError(f"--keep: {keep} is not empty; name a new folder")
        keep.mkdir(parents=True, exist_ok=True)
    return 0 if compare(calls=calls, seed=seed, json_file=json_file, keep=keep, console=Console()) else 1
