"""`reattach adapters`."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from reattach.adapters import describe


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    document: Annotated[bool, typer.Option("--document", help="Print the page docs/protocols.md.")] = False,
) -> int:
    """List the protocols that an agent may speak, and what each can promise.

    Exits with 1 when the package of a registered adapter cannot be loaded.

    Example: `reattach adapters --json`
    """
    found = list(describe.described())
    if document:
        typer.echo(describe.document(), nl=False)
    elif as_json:
        typer.echo(json.dumps({"adapters": [one.to_json() for one in found]}, indent=1))
    else:
        first, *words = describe.WORDS
        # A protocol's name stays whole on the narrowest screen: it is what a configuration asks for.
        longest = max((len(one.protocol) for one in found), default=0) + 1
        named = Column(first, min_width=longest)
        caption = "requests of one call without faults"
        # Fits into 80 columns, as long as no name is longer than ours.
        table = Table(named, *words, caption=caption, box=None, padding=(0, 1, 0, 0), pad_edge=False)
        for one in found:
            table.add_row(*one.words())
        Console().print(table)
    return 1 if any(one.problem for one in found) else 0
