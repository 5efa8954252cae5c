"""Start the agent server as a process of its own, as demos and end-to-end tests do."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Served:
    """A running server process; `kill` is SIGKILL."""

    def __init__(self, log: Path, *arguments: str, port: int = 0) -> None:
        self.log = log
        command = [sys.executable, "-m", "reattach.runtime.agent", "--log", str(log), "--port", str(port), *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening on http://127.0.0.1:"), line
        self.url = line.split()[-1]
        self.port = int(self.url.rsplit(":", 1)[1])

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self._reap()

    def stop(self) -> int:
        self.process.terminate()
        return self._reap()

    def _reap(self) -> int:
        code = self.process.wait(10)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def control(self, order: str, value: Any) -> Any:
        request = urllib.request.Request(f"{self.url}/control/{order}", json.dumps(value).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)


@contextmanager
def serving(log: Path, *arguments: str, port: int = 0) -> Iterator[Served]:
    served = Served(log, *arguments, port=port)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.kill()
