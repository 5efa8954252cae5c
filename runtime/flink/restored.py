"""The function of the job that only reads: see `reattach.runtime.flink.reading`."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction
from pyflink.datastream.state import ValueStateDescriptor

from reattach.runtime.flink.host import STATE
from reattach.runtime.flink.keys import KeyedBackend


class Restored(KeyedProcessFunction):
    """Writes each restored key with its bytes as a line of JSON when it opens, and ignores what comes.

    Args:
        folder: gets a file for each subtask.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, runtime_context: Any) -> None:
        backend = KeyedBackend(runtime_context)
        state = runtime_context.get_state(ValueStateDescriptor(STATE, Types.PICKLED_BYTE_ARRAY()))
        path = Path(self._folder) / str(backend.place()[2])
        with path.open("w", encoding="utf-8") as file:
            for key in backend.keys(STATE):
                backend.switch_to(key)
                data = base64.b64encode(bytes(state.value())).decode("ascii")
                file.write(json.dumps([key, data]) + "\n")

    def process_element(self, value: str, ctx: Any) -> Iterator[str]:
        return iter(())

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[str]:
        """Timers are restored as well, and mean nothing here."""
        return iter(())
