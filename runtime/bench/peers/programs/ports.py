"""Free ports on loopback, the same in each life of a run: what a server has written down names them.

They lie below those that the system gives to whoever connects somewhere, who might hold one when it is needed again.
"""

import contextlib
import json
import random
import socket
from pathlib import Path

HOST = "127.0.0.1"
PORTS = range(20_000, 32_000)


def kept(file: Path, *names: str) -> dict[str, int]:
    """A port for each name, as the file has them; written there by the first life."""
    if not file.exists():
        part = file.with_suffix(".part")
        part.write_text(json.dumps(dict(zip(names, _free(len(names)), strict=True))))
        part.replace(file)
    found: dict[str, int] = json.loads(file.read_text())
    return found


def _free(count: int) -> list[int]:
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        if len(found) == count:
            break
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind((HOST, port))
            found.append(port)
    return found
