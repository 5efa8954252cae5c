"""A job that only uses `KeyedBackend`: `python -m tests.flink.switching CONFIG NOTES [CHECKPOINT]`.

Each element is a key of its own; what happens is noted in a file, one JSON object per line. Every
key stores itself. One timer of the subtask's own key then visits all keys, reads what each stored,
and sets a timer for it; `open` does the same for the keys that were restored.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyflink.common import Configuration, Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

from reattach.models.errors import ConfigError
from reattach.runtime.config import load_config
from reattach.runtime.flink.gateway import start_jvm
from reattach.runtime.flink.job import flink_settings, request_lines
from reattach.runtime.flink.keys import KeyedBackend, require_thread_mode

STATE = "visited"


class Visits(KeyedProcessFunction):
    def __init__(self, notes: str) -> None:
        self._notes = notes

    def open(self, runtime_context: Any) -> None:
        self._backend = KeyedBackend(runtime_context)
        self._state = runtime_context.get_state(ValueStateDescriptor(STATE, Types.PICKLED_BYTE_ARRAY()))
        self._own = self._backend.own_key("own key ")
        self._note("open", self._own, place=self._backend.place())
        self._keys = self._backend.keys(STATE)
        for key in self._keys:
            self._visit("restored", key)

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self._state.update(value)
        self._keys.append(ctx.get_current_key())
        self._backend.switch_to(self._own)
        self._backend.timers.register_processing_time_timer(ctx.timer_service().current_processing_time() + 1_000)
        self._backend.switch_to(ctx.get_current_key())
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        mine = ctx.get_current_key()
        if mine != self._own:
            stored = self._state.value()
            self._note("fired", mine, stored=stored.decode() if stored else None)
        else:
            for key in self._keys:
                self._visit("visited", key)
            self._keys = []
        yield from ()

    def _visit(self, kind: str, key: str) -> None:
        self._backend.switch_to(key)
        stored = self._state.value()
        self._note(kind, key, stored=stored.decode() if stored else None)
        self._backend.timers.register_processing_time_timer(1)

    def _note(self, kind: str, key: str, **more: Any) -> None:
        with open(self._notes, "a") as file:
            file.write(json.dumps({"kind": kind, "key": key, "pid": os.getpid(), **more}) + "\n")


def main(config_path: str, notes: str, resume_from: str = "") -> None:
    config = load_config(Path(config_path))
    _, write = os.pipe()
    start_jvm(config.job.logs, name="switching", held=write)
    configuration = Configuration()
    resume = Path(resume_from) if resume_from else None
    for key, value in flink_settings(config, resume_from=resume, rest_port=0).items():
        configuration.set_string(key, value)
    configuration.set_string("parallelism.default", "2")
    os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112 - its real name
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    require_thread_mode(environment)
    try:
        require_thread_mode(StreamExecutionEnvironment.get_execution_environment(Configuration()))
    except ConfigError as error:
        print(error, flush=True)
    keyed = request_lines(environment, config.job).key_by(lambda line: line.decode(), Types.STRING())
    keyed.process(Visits(notes), Types.STRING()).uid("visits").print()
    environment.execute("switching")


if __name__ == "__main__":
    main(*sys.argv[1:])
