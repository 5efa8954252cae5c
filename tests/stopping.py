"""A command of its own that shares its work among processes, and how it is stopped."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import pytest

STOPS: Final = ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL))


@contextmanager
def begun(arguments: Sequence[str], shown: bytes) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command on what looks like a terminal, until it has shown something."""
    environment = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "120"}
    with subprocess.Popen(
        [sys.executable, "-m", "reattach", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=_as_from_a_terminal,
    ) as process:
        try:
            assert process.stdout is not None
            output = b""
            while not re.search(shown, output):
                output += os.read(process.stdout.fileno(), 10_000) or pytest.fail(output.decode())
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _as_from_a_terminal() -> None:
    """A runner that was started in the background ignores Ctrl-C, and so would everything that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def ended(process: subprocess.Popen[bytes], code: int) -> None:
    """See that it ends with a code, and its workers with it, without a traceback."""
    # The workers write to the same pipe, which closes when the last one is gone.
    output, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert b"Traceback" not in output
