"""Pictures of the statechart, drawn from the compiled table: nothing here is written by hand twice."""

from collections.abc import Iterator
from itertools import groupby

from reattach.fsm.table import EVENT_NAMES, TABLE
from reattach.models.lifecycle import Leaf, Status


def moves() -> Iterator[tuple[Leaf, Leaf, str]]:
    """Every line of the table that leads somewhere: from, to, on which event."""
    for leaf, rows in TABLE.items():
        for event, lines in rows.items():
            for line in lines:
                if line.target is not None:
                    yield leaf, line.target, event


def overview() -> str:
    """The five statuses and the events that lead from one to another, as Mermaid."""
    edges: dict[tuple[Status, Status], set[str]] = {}
    for source, target, event in moves():
        if source.status is not target.status:
            edges.setdefault((source.status, target.status), set()).add(event)
    lines = ["stateDiagram-v2", "    direction LR", "    [*] --> NOT_STARTED"]
    for (old, new), events in sorted(edges.items()):
        lines.append(f"    {old.name} --> {new.name} : {_label(events, 3)}")
    lines += ["    COMPLETED --> [*]", "    FAILED --> [*]"]
    return "\n".join(lines) + "\n"


def mermaid() -> str:
    """Every leaf and every move, as Mermaid; events with the same ends share an arrow."""
    lines = ["stateDiagram-v2", "    [*] --> NOT_STARTED"]
    for status, leaves in groupby(Leaf, key=lambda leaf: leaf.status):
        members = list(leaves)
        if status.terminal:
            continue
        lines.append(f"    state {status.name} {{")
        lines += [f"        {leaf.name} : {leaf.value.split('.', 1)[1]}" for leaf in members]
        lines.append("    }")
    edges: dict[tuple[str, str], set[str]] = {}
    for source, target, event in moves():
        edges.setdefault((source.name, target.name), set()).add(event)
    for (source_name, target_name), events in edges.items():
        lines.append(f"    {source_name} --> {target_name} : {_label(events, 4)}")
    lines += ["    COMPLETED --> [*]", "    FAILED --> [*]"]
    return "\n".join(lines) + "\n"


def _label(events: set[str], most: int) -> str:
    names = sorted(events)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def table_markdown() -> str:
    """Every line of the table: one section per leaf, first match wins."""
    parts = []
    for leaf, rows in TABLE.items():
        parts.append(f"### `{leaf.value}`\n")
        if not rows:
            parts.append("Final. Whatever comes is counted and dropped.\n")
            continue
        parts.append("| event | if | then | notes |\n|---|---|---|---|")
        for event, lines in sorted(rows.items()):
            for line in lines:
                guards = " and ".join(name if wanted else f"not {name}" for name, wanted in line.guards)
                target = "stay" if line.target is None else f"`{line.target.value}`"
                parts.append(f"| {event} | {guards or 'always'} | {target} | {', '.join(line.notes)} |")
        missing = [event for event in EVENT_NAMES if event not in rows]
        parts.append(f"\nIllegal here, since no order of this leaf can bring it: {', '.join(missing)}.\n")
    return "\n".join(parts)


def document() -> str:
    """The page docs/lifecycle.md."""
    return (
        "# Lifecycle\n\n"
        "Generated from `fsm/lifecycle.py` by `reattach diagram document`; do not edit.\n\n"
        "[![Statuses, their leaves and the events between them](lifecycle.svg)](lifecycle.svg)\n\n"
        "`reattach diagram overview` and `reattach diagram leaves` draw the same as Mermaid.\n\n"
        "## Transitions\n\nFirst match wins. On entering a leaf its order is given "
        "(`fsm/orders.py`).\n\n" + table_markdown()
    )
