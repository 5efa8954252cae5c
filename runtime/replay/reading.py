"""Journals as files: one entry per line, in base64, in any number of part files.

What cannot be read never hides what can: a file is read up to its first bad line, and that line is
told by file, line and offset. Entries are grouped by call and put in the order in which they were
made: lives of the host one after another, and within a life as its clock and the record's own count
of steps went. So it does not matter how files are named or in which order they are given.
"""

import binascii
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reattach.models.codec import decode_entry
from reattach.models.errors import CodecError
from reattach.models.journal import JournalEntry
from reattach.runtime.run.inbox import visible_files

SUFFIX: Final = ".journal"
TRUNCATED: Final = "truncated: the last line is not complete"
LINE_BYTES_MAX: Final = 16 * 1024 * 1024
ENTRIES_MAX: Final = 4_000_000

Call = tuple[str, str, str]
Thread = tuple[str, str]
Order = tuple[int, str, int, int, int]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entry stands.

    Args:
        line: 1-based.
        offset: of the line's first byte.
    """

    file: Path
    line: int
    offset: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line} (offset {self.offset})"


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in the input that could not be used.

    Args:
        place: None where a whole file or folder is meant, which `message` then names.
    """

    place: Place | None
    message: str

    def __str__(self) -> str:
        return self.message if self.place is None else f"{self.place}: {self.message}"


@dataclass(frozen=True, slots=True)
class Held:
    """An entry as bytes, which take a fifth of what the record takes.

    Args:
        state: the digest that the entry names.
    """

    order: Order
    place: Place
    state: bytes
    data: bytes


@dataclass(slots=True)
class Journal:
    """What has been read.

    Args:
        calls: by (agent, thread, invocation), in the order of their first entries in the files.
        repeated: entries left out because they were there before, byte by byte.
        latest_ms: when the latest entry was made, of all that could be read, also of calls that are not kept.
    """

    calls: dict[Call, list[Held]] = field(default_factory=dict)
    damages: list[Damage] = field(default_factory=list)
    entries: int = 0
    repeated: int = 0
    latest_ms: int = 0


def files_of(paths: Iterable[Path]) -> tuple[list[Path], list[Damage]]:
    """Find the journal files that are meant: files as given, and `*.journal` within folders."""
    found: dict[Path, Path] = {}
    damages = []
    for path in paths:
        if not path.is_dir():
            found.setdefault(path.resolve(), path)
            continue
        inside = sorted((one for one in visible_files(path) if one.suffix == SUFFIX), key=_natural)
        if not inside:
            damages.append(Damage(None, f"{path}: holds no *{SUFFIX} file"))
        for one in inside:
            found.setdefault(one.resolve(), one)
    return list(found.values()), damages


def read(
    files: Sequence[Path],
    *,
    invocation: str = "",
    threads: Collection[Thread] | None = None,
    on_bytes: Callable[[int], None] | None = None,
) -> Journal:
    """Read files as far as they can be read.

    Args:
        invocation: keep this call's entries only; "" for all.
        threads: keep entries of these threads only; None for all.
        on_bytes: told how many bytes have been read since it was last told.
    """
    journal = Journal()
    for file in files:
        try:
            for place, line in _lines(file):
                if not _take(journal, place, line, invocation, threads):
                    break
                if on_bytes is not None:
                    on_bytes(len(line))
        except OSError as error:
            journal.damages.append(Damage(None, f"{file}: cannot be read: {error.strerror or type(error).__name__}"))
    for call, held in journal.calls.items():
        held.sort(key=lambda one: one.order)
        once = list({one.data: one for one in held}.values())
        journal.repeated += len(held) - len(once)
        journal.calls[call] = once
    return journal


def _lines(file: Path) -> Iterator[tuple[Place, bytes]]:
    with file.open("rb") as stream:
        number, offset = 0, 0
        while line := stream.readline(LINE_BYTES_MAX + 1):
            number += 1
            if not line.isspace():
                yield Place(file, number, offset), line
            offset += len(line)


def _take(journal: Journal, place: Place, line: bytes, invocation: str, threads: Collection[Thread] | None) -> bool:
    """Add one line's entry; False when the line ends what can be read of its file."""
    if journal.entries >= ENTRIES_MAX:
        message = f"more than {ENTRIES_MAX} entries: replay some of the files, or one call, at a time"
        journal.damages.append(Damage(place, message))
        return False
    try:
        data = binascii.a2b_base64(line.rstrip(b"\r\n"), strict_mode=True)
        entry = decode_entry(data)
    except (binascii.Error, CodecError) as error:
        journal.damages.append(Damage(place, _why(line, error)))
        return False
    journal.latest_ms = max(journal.latest_ms, entry.at_ms)
    if invocation and entry.invocation_id != invocation:
        return True
    if threads is not None and (entry.agent, entry.thread_id) not in threads:
        return True
    journal.entries += 1
    call = entry.agent, entry.thread_id, entry.invocation_id
    journal.calls.setdefault(call, []).append(Held(_order(entry), place, entry.state, data))
    return True


def _why(line: bytes, error: Exception) -> str:
    if len(line) > LINE_BYTES_MAX:
        return f"a line of more than {LINE_BYTES_MAX} bytes is no journal entry"
    if not line.endswith(b"\n"):
        return TRUNCATED
    return f"no journal entry: {error if isinstance(error, CodecError) else 'not base64'}"


def _order(entry: JournalEntry) -> Order:
    return entry.opened_ms, entry.incarnation, entry.at_ms, entry.generation, entry.seq


def _natural(path: Path) -> list[tuple[int, str]]:
    """Names in the order of the numbers in them: part 10 comes after part 9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d{1,18})", str(path))]
