"""Free ports on loopback, the same in each life of a run: what a server has written down names them."""

import contextlib
import json
import socket
from pathlib import Path

HOST = "127.0.0.1"


def kept(file: Path, *names: str) -> dict[str, int]:
    """A port for each name, as the file has them; written there by the first life."""
    if not file.exists():
        with contextlib.ExitStack() as stack:
            probes = {name: stack.enter_context(socket.socket()) for name in names}
            for probe in probes.values():
                probe.bind((HOST, 0))
            ports = {name: probe.getsockname()[1] for name, probe in probes.items()}
        part = file.with_suffix(".part")
        part.write_text(json.dumps(ports))
        part.replace(file)
    found: dict[str, int] = json.loads(file.read_text())
    return found
