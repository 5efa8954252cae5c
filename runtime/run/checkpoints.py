"""The checkpoints folder: the job's memory between two runs, and the lock that keeps them apart.

Flink writes `<job id>/chk-<n>/` and, last of all, the file `_metadata` in it. A folder without that
file was being written when the job died, and is no checkpoint.
"""

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from reattach.models.errors import ConfigError

LIVES_MAX: Final = 3
"""Runs whose checkpoints are kept; each keeps its newest three."""
LOCK_NAME: Final = "lock"
TEMPORARY: Final = "tmp"
METADATA: Final = "_metadata"
LOOKS_MAX: Final = 1_000


def latest(folder: Path) -> Path | None:
    """Find the newest completed checkpoint, None when there is none yet."""
    found = completed(folder)
    return found[-1] if found else None


def completed(folder: Path) -> list[Path]:
    """List the completed checkpoints, oldest first."""
    for _ in range(LOOKS_MAX):
        # A running job removes old ones, also between a look at a folder and one at what is in it.
        with contextlib.suppress(FileNotFoundError):
            found = [(path.stat().st_mtime_ns, path.parent) for path in folder.glob(f"*/chk-*/{METADATA}")]
            return [path for _, path in sorted(found)]
    return []


def check_checkpoint(path: Path) -> Path:
    """Return the absolute path of a checkpoint that was asked for.

    Raises:
        ConfigError: there is no completed checkpoint.
    """
    path = path.absolute()
    if not (path / METADATA).is_file():
        raise ConfigError(f"{path}: holds no completed checkpoint (no {METADATA} in it)")
    return path


def prune(folder: Path, keep: Path | None) -> None:
    """Remove what runs before the last `LIVES_MAX` left behind.

    Flink removes checkpoints of its own run only. Runs do not share files, as each begins with a
    full checkpoint of its own.

    Args:
        keep: a checkpoint whose run is kept in any case.
    """
    runs: dict[Path, int] = {}
    for metadata in folder.glob(f"*/chk-*/{METADATA}"):
        run = metadata.parent.parent
        runs[run] = max(runs.get(run, 0), metadata.stat().st_mtime_ns)
    for run in sorted(runs, key=runs.__getitem__, reverse=True)[LIVES_MAX:]:
        if keep is None or run not in keep.parents:
            shutil.rmtree(run, ignore_errors=True)


class Lock:
    """Holds the checkpoints folder for one job, for as long as any of its processes lives.

    The descriptor is handed down to the JVM. So when the client is killed and the JVM is not dead
    yet, the next start waits for it: two jobs never drive the same calls.
    """

    def __init__(self, folder: Path, *, wait_s: float = 15.0, say: Callable[[str], None] = lambda _line: None) -> None:
        """Take the lock.

        Args:
            say: is told when there is something to wait for.

        Raises:
            ConfigError: another job holds it and still does so after `wait_s` seconds.
        """
        self.path = folder / LOCK_NAME
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        until = time.monotonic() + wait_s
        told = False
        while not self._taken():
            owner = self.path.read_text(encoding="utf-8").strip() or "unknown process"
            if time.monotonic() >= until:
                os.close(self._fd)
                raise ConfigError(
                    f"job.checkpoints: {folder} is in use by another reattach run ({owner}); "
                    "end it first, or give this job a folder of its own"
                )
            if not told:
                say(f"waiting for another reattach run to end ({owner})")
                told = True
            time.sleep(0.1)
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"pid {os.getpid()}\n".encode(), 0)

    def fileno(self) -> int:
        return self._fd

    def release(self) -> None:
        """Let go of it; a JVM that still lives keeps it."""
        with contextlib.suppress(OSError):
            os.close(self._fd)

    def _taken(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
