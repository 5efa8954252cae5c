"""The journal of a simulated world: as a file for `reattach replay`, and as lines for people."""

import binascii
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from reattach.models.codec import encode_entry
from reattach.models.journal import JournalEntry
from reattach.runtime.replay.reading import read
from reattach.runtime.replay.report import Row, replay
from reattach.runtime.replay.telling import row_line
from reattach.runtime.simulation.many import Plan, world_of
from reattach.runtime.simulation.report import Report

ENTRIES_SHOWN: Final = 40


def write_journal(plan: Plan, file: Path, call: str = "") -> Report:
    """Run one world and write its journal.

    Args:
        call: only this call's entries; "" for all.

    Raises:
        OSError: the file cannot be written.
    """
    lines: list[bytes] = []

    def keep(entry: JournalEntry) -> None:
        if call in ("", entry.invocation_id):
            lines.append(binascii.b2a_base64(encode_entry(entry)))

    # Written behind the world: an error of the disk would look like one of the code that runs in it.
    report = world_of(plan, keep).run()
    file.write_bytes(b"".join(lines))
    return report


def history_of(plan: Plan, call: str) -> Iterator[str]:
    """Run one world again, and tell the last part of what happened to one call."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "world.journal"
        write_journal(plan, file, call)
        replay(read([file]), on_row=rows.append)
    yield f"history of {call}:"
    if not rows:
        yield "  (no step of it was made)"
        return
    if len(rows) > ENTRIES_SHOWN:
        yield f"  ({len(rows) - ENTRIES_SHOWN} entries before)"
    shown = rows[-ENTRIES_SHOWN:]
    for row in shown:
        yield row_line(row, shown[0].entry.at_ms)
