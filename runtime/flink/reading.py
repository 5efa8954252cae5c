"""Reads what a job remembers out of a checkpoint or a savepoint, and sends nothing.

Flink's own reader of keyed state, the State Processor API, is not in the Python package. So a small job in this process
restores the state of the operator with the calls, and nothing else: a function lists the keys when it opens and writes
each one's bytes to a file; that is all it does. It knows no agent and no adapter, so there is nothing that could send.
Its input ends at once, and the job with it; no checkpoint of it is ever made, and the one that is read keeps its owner.

What is in a checkpoint is looked up before that, in its own table of contents: of which job it is, and which of Flink's
state backends can read it.
"""

import base64
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reattach.models.codec import decode_thread
from reattach.models.errors import CodecError, ConfigError
from reattach.models.thread import ThreadState
from reattach.runtime.config import HASHMAP, ROCKSDB
from reattach.runtime.flink import gateway
from reattach.runtime.run.checkpoints import METADATA, latest
from reattach.runtime.run.inbox import one_line

UID: Final = "calls"
INCREMENTAL: Final = "Incremental"
NAMES_MAX: Final = 8
RECORDS: Final = "records"
# What Flink says when it restores with the backend that did not write a checkpoint.
_FOREIGN: Final = ("StateMigrationException", "Unexpected keyed state handle", "magic number", "backend")
_LOG4J: Final = """\
rootLogger.level = WARN
rootLogger.appenderRef.output.ref = Output
appender.output.type = Console
appender.output.name = Output
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """A checkpoint or a savepoint, and every thread in it.

    Args:
        number: as Flink counts the checkpoints of a job.
        parallelism: of the operator that wrote it.
        threads: by agent and thread, in that order.
    """

    folder: Path
    number: int
    savepoint: bool
    parallelism: int
    threads: tuple[tuple[str, str, ThreadState], ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """What the table of contents of a checkpoint says.

    Args:
        backends: state backends that may be able to read it, the likeliest first.
    """

    number: int
    savepoint: bool
    parallelism: int
    backends: tuple[str, ...]


def folder_of(path: Path) -> Path:
    """Find the checkpoint that is meant: the folder itself, or the latest in the folder of a job's checkpoints.

    Raises:
        ConfigError: there is none.
    """
    path = path.absolute()
    if path.name == METADATA:
        path = path.parent
    found = path if (path / METADATA).is_file() else latest(path)
    if found is None:
        raise ConfigError(
            f"{path}: holds no checkpoint or savepoint (no {METADATA} in it); name a chk-… folder, a savepoint, "
            "or the folder that [job] calls checkpoints, of which the latest is read"
        )
    return found


def read_stored(path: Path, *, uid: str = UID) -> Stored:
    """Read a checkpoint or savepoint on this machine; takes the seconds that Flink needs to start.

    Call it once in a process, on the main thread.

    Args:
        uid: of the operator that makes the calls.

    Raises:
        ConfigError: it is no checkpoint, one of another job, or one of a newer release.
        GatewayError: Flink cannot read it; says why.

    Guarantee: nothing is sent, and nothing below `path` changes (tests/e2e/test_inspect.py).
    """
    folder = folder_of(path)
    with tempfile.TemporaryDirectory(prefix="reattach-inspect-") as name, (Path(name) / "held").open("w") as held:
        work = Path(name)
        _log_to_output(work / "log4j2.properties")
        jvm = gateway.start_jvm(work / "log", name="inspect", held=held.fileno())
        try:
            contents = _contents(folder, uid)
            _restore(folder, contents, uid, work)
        finally:
            jvm.kill()
            jvm.wait()
        threads = tuple(sorted(threads_in(work / RECORDS, folder), key=lambda one: one[:2]))
    return Stored(folder, contents.number, contents.savepoint, contents.parallelism, threads)


def _log_to_output(properties: Path) -> None:
    """Let Flink's log go where the output of its process goes, which is thrown away."""
    properties.write_text(_LOG4J, encoding="utf-8")
    os.environ["LOG4J_PROPERTIES"] = str(properties)


def _contents(folder: Path, uid: str) -> Contents:
    """Read the table of contents.

    Raises:
        ConfigError: it cannot be read, or does not hold such an operator.
    """
    java = _java()
    metadata = folder / METADATA
    try:
        with gateway.in_one_line(f"{metadata}: Flink cannot read it"):
            loader = java.java.lang.Thread.currentThread().getContextClassLoader()
            stream = java.java.io.DataInputStream(java.java.io.FileInputStream(str(metadata)))
            read = java.org.apache.flink.runtime.checkpoint.Checkpoints.loadCheckpointMetadata
            whole = read(stream, loader, str(folder))
    except gateway.GatewayError as error:
        raise ConfigError(f"{error}; it is damaged, or no checkpoint of Flink's") from None
    operators = {_name(one): one for one in _each(whole.getOperatorStates())}
    if uid not in operators:
        raise ConfigError(
            f"{folder}: is of another job: it has no operator with the uid {uid!r} (but {_some(operators)}); "
            "--uid names the one that makes the calls"
        )
    handles = [handle for part in _each(operators[uid].getStates()) for handle in _each(part.getManagedKeyedState())]
    with gateway.in_one_line(f"{folder}: Flink cannot read the state of {uid!r}"):
        states = _state_names(java, loader, handles)
    if _state() not in states:
        held = f"only {_some(states)}" if states else "none"
        raise ConfigError(
            f"{folder}: is of another job: its operator {uid!r} holds no state of reattach's ({held}); "
            "--uid names the one that makes the calls"
        )
    kinds = {str(handle.getClass().getSimpleName()) for handle in handles}
    incremental = any(INCREMENTAL in kind for kind in kinds)
    return Contents(
        int(whole.getCheckpointId()),
        bool(whole.getCheckpointProperties() is not None and whole.getCheckpointProperties().isSavepoint()),
        int(operators[uid].getParallelism()),
        (ROCKSDB,) if incremental else (HASHMAP, ROCKSDB),
    )


def _state_names(java: Any, loader: Any, handles: list[Any]) -> list[str]:
    """The keyed states of an operator; each part has the same."""
    for handle in handles:
        incremental = INCREMENTAL in str(handle.getClass().getSimpleName())
        stream = (handle.getMetaDataStateHandle() if incremental else handle).openInputStream()
        try:
            view = java.org.apache.flink.core.memory.DataInputViewStreamWrapper(stream)
            proxy = java.org.apache.flink.runtime.state.KeyedBackendSerializationProxy(loader)
            proxy.read(view)
            return [str(one.getName()) for one in _each(proxy.getStateMetaInfoSnapshots())]
        finally:
            stream.close()
    return []


def _restore(folder: Path, contents: Contents, uid: str, work: Path) -> None:
    """Write the bytes of every key into files below `work`."""
    for backend in contents.backends:
        records = work / RECORDS
        records.mkdir(exist_ok=True)
        for old in records.iterdir():
            old.unlink()
        try:
            with gateway.in_one_line(f"{folder}: Flink cannot restore it"):
                _run(folder, backend, uid, records, work / "tmp")
            return
        except gateway.GatewayError as error:
            if not (folder / METADATA).is_file():
                raise ConfigError(
                    f"{folder}: was removed while it was read; its job goes on and keeps its newest ones: "
                    "read the latest again, or a savepoint"
                ) from None
            if backend == contents.backends[-1] or not any(sign in str(error) for sign in _FOREIGN):
                raise


def _run(folder: Path, backend: str, uid: str, records: Path, temporary: Path) -> None:
    from pyflink.common import Configuration, Types
    from pyflink.datastream import StreamExecutionEnvironment

    from reattach.runtime.flink.job import uri_of
    from reattach.runtime.flink.restored import Restored

    settings = {
        "python.execution-mode": "thread",
        "python.executable": sys.executable,
        # Whatever it was written with: one interpreter serves all subtasks of a process.
        "parallelism.default": "1",
        "rest.port": "0",
        "rest.bind-address": "127.0.0.1",
        "restart-strategy.type": "none",
        # All of it is one process, which may be made to stand still: nobody is to be given up for that.
        "heartbeat.timeout": "86400000",
        "state.backend.type": backend,
        "io.tmp.dirs": str(temporary),
        "execution.state-recovery.path": uri_of(folder),
        # Its files stay the other job's, which may go on.
        "execution.state-recovery.claim-mode": "NO_CLAIM",
        "execution.state-recovery.ignore-unclaimed-state": "true",
    }
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    # As in `job.submit`.
    os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112 - PyFlink named it
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    keyed = environment.from_collection([""], Types.STRING()).key_by(str, Types.STRING())
    keyed.process(Restored(str(records)), Types.STRING()).uid(uid).print()
    environment.execute("reattach inspect")


def threads_in(records: Path, folder: Path) -> Iterator[tuple[str, str, ThreadState]]:
    """Read what the job has written.

    Args:
        folder: where it comes from, for messages.

    Raises:
        ConfigError: it is no thread of ours, or of a newer release.
    """
    for path in records.iterdir():
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                key, data = json.loads(line)
                try:
                    agent, thread = json.loads(key)
                    yield agent, thread, decode_thread(base64.b64decode(data))
                except (CodecError, ValueError) as error:
                    raise ConfigError(f"{folder}: the thread {one_line(key, 80)}: {error}") from None


def _java() -> Any:
    from pyflink.java_gateway import get_gateway

    return get_gateway().jvm


def _state() -> str:
    from reattach.runtime.flink.host import STATE

    return STATE


def _name(operator: Any) -> str:
    """Its uid; where its job gave it none, its name."""
    uid = operator.getOperatorUid()
    name = operator.getOperatorName()
    return str(uid.get() if uid.isPresent() else name.orElse(""))


def _each(found: Any) -> Iterator[Any]:
    iterator = found.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _some(names: Any) -> str:
    shown = sorted(str(name) for name in names if name)
    more = f" and {len(shown) - NAMES_MAX} more" if len(shown) > NAMES_MAX else ""
    return ", ".join(shown[:NAMES_MAX]) + more if shown else "none with a name"
