"""Journals as commands take them that show what is in one: what can be read is shown, and what cannot is told."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from reattach.models.errors import ConfigError

if TYPE_CHECKING:
    from reattach.runtime.replay.reading import Damage, Journal, Thread

SHOWN_MAX: Final = 5
HINT: Final = 'name files that a job with `journal = "folder"` in its [job] table has written, or that folder'
LATER: Final = "a job writes its journal with its completed checkpoints, so look again after the next one"


def open_journal(
    paths: Sequence[Path], *, invocation: str = "", threads: "Collection[Thread] | None" = None
) -> "Journal":
    """Read journals, with a bar where that takes a while.

    Args:
        invocation, threads: as in `reading.read`.

    Raises:
        ConfigError: there is no entry that can be read; the message says what to do.
    """
    from reattach.runtime.replay.progress import Progress
    from reattach.runtime.replay.reading import files_of, read

    files, damages = files_of(paths)
    with Progress() as progress:
        journal = read(files, invocation=invocation, threads=threads, on_bytes=progress.reading(files))
    journal.damages[:0] = damages
    if journal.latest_ms == 0:
        names = ", ".join(str(path) for path in paths[:SHOWN_MAX])
        if not journal.damages:
            raise ConfigError(f"{names}: no entry in it yet; {LATER}")
        what = LATER if journal.damages[0].place is None else HINT
        raise ConfigError(f"{journal.damages[0]}; {what}")
    return journal


def tell_damages(damages: "Sequence[Damage]") -> int:
    """Say what could not be read.

    Returns:
        0 where that is at most a last line which is still being written, else 2.
    """
    from reattach.runtime.replay.reading import TRUNCATED

    code = 0
    for damage in damages[:SHOWN_MAX]:
        if damage.message == TRUNCATED:
            typer.echo(
                f"note: {damage}; all before it is shown. If a job is writing the file, look again later", err=True
            )
        else:
            typer.echo(f"error: {damage}; all before it and all other files are shown", err=True)
    if len(damages) > SHOWN_MAX:
        typer.echo(f"error: {len(damages) - SHOWN_MAX} more places that cannot be read", err=True)
    if any(damage.message != TRUNCATED for damage in damages):
        code = 2
    return code
