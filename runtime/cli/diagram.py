"""`reattach diagram`."""

from enum import StrEnum
from typing import Annotated

import typer


class Part(StrEnum):
    """What to print."""

    OVERVIEW = "overview"
    LEAVES = "leaves"
    TABLE = "table"
    DOCUMENT = "document"
    LIFECYCLE = "lifecycle"
    WINDOWS = "windows"


def command(part: Annotated[Part, typer.Argument(help="Which picture.")] = Part.OVERVIEW) -> int:
    """Print the lifecycle, drawn from the code that runs: Mermaid diagrams, the transition table, or a picture as SVG.

    `windows` is the picture of where a crash may fall.

    Example: `reattach diagram lifecycle > lifecycle.svg`
    """
    from reattach.fsm import diagram
    from reattach.runtime.pictures.lifecycle import lifecycle
    from reattach.runtime.pictures.windows import windows

    draw = {
        Part.OVERVIEW: diagram.overview,
        Part.LEAVES: diagram.mermaid,
        Part.TABLE: diagram.table_markdown,
        Part.DOCUMENT: diagram.document,
        Part.LIFECYCLE: lifecycle,
        Part.WINDOWS: windows,
    }
    typer.echo(draw[part](), nl=False)
    return 0
