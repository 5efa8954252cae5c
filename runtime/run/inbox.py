"""The watched folders, seen from outside: what was asked for, and what could not be read.

Flink's file source reads each file once, when it finds it. This module reads the same files by the
same rules (names that begin with "." or "_" are hidden, folders are walked, compressed files are
unpacked by their suffix, lines end with any of \\n, \\r, \\r\\n), and checks each line with the very
function that the job uses. So it knows the calls that must get an outcome, and it can name file and
line of those that never will: rejects are a pure function of the input, and any number of crashes
and restarts writes each of them once.
"""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from reattach.models.errors import InvalidRequest
from reattach.models.policy import Policy
from reattach.models.request import Request, parse_request
from reattach.runtime.orders import read_order

Call = tuple[str, str, str]
"""(agent, invocation id, thread id or "")."""

MESSAGE_BYTES_MAX: Final = Policy().message_bytes_max
REASON_CHARS_MAX: Final = 500

_UNPACK: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    ".gz": gzip.decompress,
    ".gzip": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".deflate": zlib.decompress,
}


def read_line(line: bytes, limits: Mapping[str, int]) -> Request:
    """Check one line against the configured agents.

    Args:
        limits: by agent, its `message_bytes_max`.

    Raises:
        InvalidRequest: says what is wrong with it.
    """
    request = parse_request(line, message_bytes_max=max(limits.values(), default=MESSAGE_BYTES_MAX))
    limit = limits.get(request.agent)
    if limit is None:
        raise InvalidRequest(f"agent: none named {request.agent!r} is configured ({', '.join(sorted(limits))})")
    if len(request.message) > limit:
        raise InvalidRequest(f"message: {len(request.message)} bytes, the limit is {limit}")
    return request


class Watched:
    """Reads a watched folder again and again; each file once.

    Args:
        rejects: file to append to; what it holds already is not written again.
        limits: by agent, its `message_bytes_max`.
    """

    def __init__(self, folder: Path, rejects: Path, limits: Mapping[str, int]) -> None:
        self._folder = folder
        self._rejects = rejects
        self._limits = limits
        self._read: dict[Path, int] = {}
        self._written: set[str] | None = None
        self.rejected = 0
        self.changed: list[Path] = []

    def look(self) -> None:
        """Read the files that are new.

        Files that grew after they were read stand in `changed`: Flink does not read them again either.
        """
        fresh = []
        for path in visible_files(self._folder):
            size = _size(path)
            if path not in self._read:
                fresh.append(path)
                self._read[path] = size
            elif self._read[path] != size and path not in self.changed:
                self.changed.append(path)
        rejects = [reject for path in fresh for reject in self._take(path)]
        self.rejected += len(rejects)
        self._write(rejects)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()

    def _line(self, line: bytes) -> None:
        raise NotImplementedError

    def _take(self, path: Path) -> Iterator[str]:
        name = self._name(path)
        try:
            lines = _UNPACK.get(path.suffix, bytes)(path.read_bytes()).splitlines()
        except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
            yield f"{name}:0: cannot be read: {error}"
            return
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                self._line(line)
            except InvalidRequest as error:
                yield f"{name}:{number}: {one_line(str(error), REASON_CHARS_MAX)}"

    def _write(self, rejects: list[str]) -> None:
        if not rejects:
            return
        if self._written is None:
            self._written = set()
            if self._rejects.exists():
                self._written.update(self._rejects.read_text(encoding="utf-8").splitlines())
        new = [reject for reject in rejects if reject not in self._written]
        if new:
            self._written.update(new)
            self._rejects.parent.mkdir(parents=True, exist_ok=True)
            with self._rejects.open("a", encoding="utf-8") as file:
                file.write("".join(reject + "\n" for reject in new))


class Inbox(Watched):
    """The requests folder."""

    def __init__(self, folder: Path, rejects: Path, limits: Mapping[str, int]) -> None:
        super().__init__(folder, rejects, limits)
        self.calls: set[Call] = set()
        self._asked: dict[Call, int] = {}

    def scan(self) -> dict[Call, int]:
        """Read the files that are new, as `look` does.

        Returns:
            The calls that they ask for, with the highest generation.
        """
        self._asked = {}
        self.look()
        self.calls.update(self._asked)
        return self._asked

    def _line(self, line: bytes) -> None:
        request = read_line(line, self._limits)
        call = request.agent, request.invocation_id, request.thread_id
        self._asked[call] = max(request.generation, self._asked.get(call, 1))


class Orders(Watched):
    """The control folder. Nothing waits for an order: what becomes of it is told by the job's notices."""

    def _name(self, path: Path) -> str:
        return f"control/{super()._name(path)}"

    def _line(self, line: bytes) -> None:
        read_order(line, self._limits)


def visible_files(folder: Path) -> Iterator[Path]:
    """Walk a folder as Flink's file source does, in the order of names."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            yield from visible_files(entry)
        else:
            yield entry


def one_line(text: str, chars_max: int) -> str:
    """Make any text fit on one printed line."""
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
