"""Programs in sessions of their own: started, killed as a whole, and (on Linux) found and weighed by /proc."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

# To weigh a JVM takes the kernel some milliseconds.
LOOKS_PER_WEIGHING: Final = 8
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def in_session(command: Sequence[str], output: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a command whose output is appended to a file, and kill what is left of it."""
    with output.open("ab") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process
    finally:
        kill_all(process)


def kill_all(process: "subprocess.Popen[bytes]") -> None:
    """SIGKILL the whole session. Its leader may have ended while others of it live."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def members(session: int) -> list[int]:
    """The living processes of a session, and what they started: PostgreSQL gives each of its own another session."""
    parents, found = {}, set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                state, parent, _, its_session = _fields(int(entry.name))[:4]
                if state != "Z":
                    parents[int(entry.name)] = int(parent)
                    if int(its_session) == session:
                        found.add(int(entry.name))
    size = -1
    while len(found) > size:
        size = len(found)
        found |= {pid for pid, parent in parents.items() if parent in found}
    return sorted(found)


def cpu_s(session: int) -> float:
    """CPU seconds of a session's living processes so far, with those of their children that have ended."""
    ticks = 0
    for pid in members(session):
        with contextlib.suppress(OSError, ValueError):
            ticks += sum(map(int, _fields(pid)[11:15]))
    return ticks / _TICKS_PER_S


def pss_mb(session: int) -> float:
    """Memory of a session's processes, what they share counted once."""
    kilobytes = 0
    for pid in members(session):
        with contextlib.suppress(OSError, ValueError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    kilobytes += int(line.split()[1])
    return kilobytes / 1024


class Scale:
    """Weighs a session again and again: its CPU seconds so far, and its memory at its most."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._looks = 0
        self.used_s = self.most_mb = 0.0

    def look(self) -> None:
        self.used_s = max(self.used_s, cpu_s(self._session))
        if self._looks % LOOKS_PER_WEIGHING == 0:
            self.most_mb = max(self.most_mb, pss_mb(self._session))
        self._looks += 1


def last_line(output: Path) -> str:
    """What a program has said last."""
    lines = output.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no output"


def _fields(pid: int) -> list[str]:
    """Of /proc/<pid>/stat, those behind the name, which may hold blanks."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
