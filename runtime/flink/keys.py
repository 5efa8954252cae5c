"""The two things a host needs that PyFlink's public API does not offer.

Switching the current key inside `on_timer` (so that one timer can serve all calls of a subtask) and
listing the keys that were restored. Both reach into PyFlink 2.3's thread mode; this class holds all
of it, checks that it is there, and says what to do when it is not.
"""

import json
from typing import Any

from reattach.models.errors import ConfigError

PROVEN = "2.3"


def key_of(agent: str, thread_id: str) -> str:
    """The Flink key of a thread: a JSON array, plain text for Java and for people."""
    return json.dumps([agent, thread_id], separators=(",", ":"), ensure_ascii=False)


def parts_of(key: str) -> tuple[str, str]:
    """The agent and the thread of a Flink key."""
    agent, thread_id = json.loads(key)
    return agent, thread_id


def require_thread_mode(context: Any) -> None:
    """Refuse a runtime context of process mode, where timers are lost on restore.

    Raises:
        ConfigError: says what to set.
    """
    if not hasattr(context, "get_keyed_state_backend"):
        raise ConfigError(
            "python.execution-mode: reattach needs thread mode (process mode loses timers when it restores); "
            "set python.execution-mode: thread, and use reattach's function on a keyed stream"
        )


class KeyedBackend:
    """Key switch and key listing of one subtask's keyed state.

    Raises:
        ConfigError: this PyFlink does not have what is needed.
    """

    def __init__(self, context: Any) -> None:
        require_thread_mode(context)
        try:
            from pemja import findClass

            self._backend = context.get_keyed_state_backend()._keyed_state_backend
            self._row = findClass("org.apache.flink.types.Row")
            self._namespace = findClass("org.apache.flink.runtime.state.VoidNamespace").INSTANCE
        except (ImportError, AttributeError, TypeError) as error:
            raise _unsupported(error) from None

    def switch_to(self, key: str) -> None:
        """Make `key` the current key; it must belong to this subtask."""
        row = self._row(1)
        row.setField(0, key)
        self._backend.setCurrentKey(row)

    def keys(self, state_name: str) -> list[str]:
        """Every key of this subtask that has a value in the named state."""
        try:
            iterator = self._backend.getKeys(state_name, self._namespace).iterator()
            found: list[str] = []
            while iterator.hasNext():
                key = iterator.next()
                found.append(key if isinstance(key, str) else _field(key))
        except AttributeError as error:
            raise _unsupported(error) from None
        return found


def _field(row: Any) -> str:
    return str(row.getField(0)) if hasattr(row, "getField") else str(row[0])


def _unsupported(error: Exception) -> ConfigError:
    import pyflink.version

    return ConfigError(
        f"apache-flink: version {pyflink.version.__version__} lacks what reattach uses of {PROVEN} "
        f"({type(error).__name__}: {error}); install apache-flink~={PROVEN}.0"
    )
