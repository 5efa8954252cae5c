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


def command(part: Annotated[Part, typer.Argument(help="Which picture.")] = Part.OVERVIEW) -> int:
    """Print the lifecycle, drawn from the code that runs: Mermaid diagrams, or the transition table.

    Example: `reattach diagram leaves > lifecycle.mmd`
    """
    from reattach.fsm import diagram

    draw = {
        Part.OVERVIEW: diagram.overview,
        Part.LEAVES: diagram.mermaid,
        Part.TABLE: diagram.table_markdown,
        Part.DOCUMENT: diagram.document,
    }
    typer.echo(draw[part](), nl=False)
    return 0
