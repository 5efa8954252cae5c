"""What a host needs that PyFlink's public API does not offer: the one place that reaches into it.

Five things: to switch the current key inside `on_timer` (so that one timer serves all calls of a
subtask), to list the keys that were restored, to find a key that this subtask owns, to set timers
already in `open`, and to know which attempt of which task this is and whom to ask about its
checkpoints. All of it is PyFlink 2.3's thread mode; this class checks that it is there, and says what
to do when it is not. tests/flink/test_keys.py shows each on a running job.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

from reattach.models.errors import ConfigError
from reattach.runtime.flink.jobmanager import Task

PROVEN: Final = "2.3"
MODE: Final = "python.execution-mode"
_SET_THREAD: Final = f"set {MODE}: thread"
_OWN_KEY_TRIES_MAX: Final = 1_000_000


def key_of(agent: str, thread_id: str) -> str:
    """The Flink key of a thread: a JSON array, plain text for Java and for people."""
    return json.dumps([agent, thread_id], separators=(",", ":"), ensure_ascii=False)


# A call in flight is taken apart at every step.
@lru_cache(maxsize=16_384)
def parts_of(key: str) -> tuple[str, str]:
    """The agent and the thread of a Flink key."""
    agent, thread_id = json.loads(key)
    return agent, thread_id


def require_thread_mode(environment: Any) -> None:
    """Refuse a `StreamExecutionEnvironment` of process mode; for those who build jobs, before they start one.

    Raises:
        ConfigError: says what to set.
    """
    settings = environment._j_stream_execution_environment.getConfiguration().toMap()
    mode = settings.get(MODE) or "process"
    if mode != "thread":
        raise ConfigError(f"{MODE}: {mode!r} loses timers when it restores; {_SET_THREAD}")


class KeyedBackend:
    """The keyed state of one subtask, seen from `open` on.

    Raises:
        ConfigError: process mode, a stream that is not keyed, or another Flink than this was proven with.
    """

    def __init__(self, context: Any) -> None:
        if not hasattr(context, "get_keyed_state_backend"):
            raise ConfigError(
                f"{MODE}: reattach needs thread mode (process mode loses timers when it restores); {_SET_THREAD}"
            )
        if context.get_keyed_state_backend() is None:
            raise ConfigError("the stream is not keyed: put key_by(request_key_of, Types.STRING()) before reattach")
        with _reaching_in():
            from pemja import findClass

            version = findClass("org.apache.flink.runtime.util.EnvironmentInformation").getVersion()
            if not str(version).startswith(f"{PROVEN}."):
                raise ConfigError(f"Flink {version}: {_use_proven()}")
            self._context = context
            self._backend = context.get_keyed_state_backend()._keyed_state_backend
            self._row = findClass("org.apache.flink.types.Row")
            self._namespace = findClass("org.apache.flink.runtime.state.VoidNamespace").INSTANCE
            self._assignment = findClass("org.apache.flink.runtime.state.KeyGroupRangeAssignment")
            #: Sets timers for the current key.
            self.timers = context.get_keyed_state_backend()._function_context.timer_service()

    def switch_to(self, key: str) -> None:
        """Make `key` the current key; it must belong to this subtask."""
        self._backend.setCurrentKey(self._as_java(key))

    def keys(self, state_name: str) -> list[str]:
        """Every key of this subtask that has a value in the named state."""
        with _reaching_in():
            stream = self._backend.getKeys(state_name, self._namespace)
            iterator = stream.iterator()
            found: list[str] = []
            while iterator.hasNext():
                found.append(_field(iterator.next()))
            # RocksDB holds a native iterator until then.
            stream.close()
        return found

    def own_key(self, prefix: str) -> str:
        """The first of `prefix0`, `prefix1`, ... that belongs to this subtask."""
        with _reaching_in():
            owned = self._backend.getKeyGroupRange()
            groups = self._context._runtime_context.getTaskInfo().getMaxNumberOfParallelSubtasks()
            for number in range(_OWN_KEY_TRIES_MAX):
                key = f"{prefix}{number}"
                if owned.contains(self._assignment.assignToKeyGroup(self._as_java(key), groups)):
                    return key
        raise AssertionError("a subtask owns at least one key group")

    def place(self) -> tuple[str, str, int]:
        """Names of the job and the operator, and the index of the subtask."""
        with _reaching_in():
            java = self._context._runtime_context
            return (
                str(java.getJobInfo().getJobId().toString()),
                str(java.getOperatorUniqueID()),
                int(java.getTaskInfo().getIndexOfThisSubtask()),
            )

    def task(self) -> Task:
        """Which task this is, as the JobManager knows it."""
        with _reaching_in():
            job_id, operator_id, subtask = self.place()
            # Flink names a task by the first operator of its chain.
            attempt = int(self._context._runtime_context.getTaskInfo().getAttemptNumber())
            return Task(job_id, operator_id, subtask, attempt)

    def metric_group(self) -> Any:
        """The operator's metric group, which is Java's own."""
        with _reaching_in():
            return self._context._runtime_context.getMetricGroup()

    def histogram(self, window: int) -> Any:
        """Make a Java histogram over the latest `window` values."""
        with _reaching_in():
            from pemja import findClass

            return findClass("org.apache.flink.runtime.metrics.DescriptiveStatisticsHistogram")(window)

    def rest_url(self) -> str:
        """Where the JobManager's REST interface is by this worker's configuration; "" when that does not say."""
        with _reaching_in():
            manager = self._context._runtime_context.getTaskManagerRuntimeInfo()
            settings = dict(manager.getConfiguration().toMap())
        host = str(settings.get("rest.address") or settings.get("jobmanager.rpc.address") or "")
        port = str(settings.get("rest.port") or 8081)
        scheme = "https" if str(settings.get("security.ssl.rest.enabled")) == "true" else "http"
        return f"{scheme}://{host}:{port}" if host and port != "0" else ""

    def _as_java(self, key: str) -> Any:
        row = self._row(1)
        row.setField(0, key)
        return row


def _field(key: Any) -> str:
    if isinstance(key, str):
        return key
    return str(key.getField(0)) if hasattr(key, "getField") else str(key[0])


@contextmanager
def _reaching_in() -> Iterator[None]:
    try:
        yield
    except (ImportError, AttributeError, TypeError) as error:
        raise ConfigError(f"apache-flink: {type(error).__name__}: {error}; {_use_proven()}") from None


def _use_proven() -> str:
    return f"reattach reaches into Flink {PROVEN} and is proven with no other; install apache-flink~={PROVEN}.0"
