"""The agent server in a process of its own, for those who measure or demonstrate something."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reattach.models.errors import ReattachError


class NotServing(ReattachError):
    """The server did not start."""


@contextlib.contextmanager
def serving(log: Path, latency: str, rules: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Run it on a free port of the loopback interface; gives its URL.

    Raises:
        NotServing: it ends at once.
    """
    command = [
        sys.executable, "-m", "reattach.runtime.agent", "--port", "0", "--log", str(log),
        "--latency", latency, "--rules", json.dumps(rules or {}),
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            if not line.startswith("listening on "):
                raise NotServing("the agent server did not start: pip install 'reattach[agent]'")
            yield line.split()[-1]
        finally:
            server.terminate()
