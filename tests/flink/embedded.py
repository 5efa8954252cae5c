"""A job with a function of its own around `Host`: `python -m tests.flink.embedded CONFIG TRIGGER`.

Whenever the trigger file exists (and it removes it), it raises in the middle of its work, or kills the loop
that carries requests out, if the file says so. It restarts in the same interpreter, and runs until it is
ended from outside.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyflink.common import Configuration, Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment

from reattach.runtime.config import load_config
from reattach.runtime.flink.function import request_key_of
from reattach.runtime.flink.gateway import start_jvm
from reattach.runtime.flink.host import JOURNAL, NOTICES, PROGRESS, REJECTS, Host
from reattach.runtime.flink.job import commit, flink_settings, request_lines


class Fragile(KeyedProcessFunction):
    """Embeds a host, and fails on demand."""

    def __init__(self, host: Host, trigger: str, lives: str) -> None:
        self.host = host
        self.trigger = trigger
        self.lives = lives

    def open(self, runtime_context: Any) -> None:
        self.host.open(runtime_context)
        with open(self.lives, "a") as file:
            file.write(f"{os.getpid()} {len(os.listdir('/proc/self/fd'))} {len(os.listdir('/proc/self/task'))}\n")

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield from self.host.process(value, ctx)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield from self.host.on_timer(timestamp, ctx)
        if os.path.exists(self.trigger):
            how = Path(self.trigger).read_text()
            os.unlink(self.trigger)
            if how == "loop":
                self.host._executor._loop.call_soon_threadsafe(sys.exit)
                return
            raise RuntimeError("the user's own code failed")


def main(config_path: str, trigger: str, mode: str = "thread") -> None:
    config = load_config(Path(config_path))
    _, write = os.pipe()
    start_jvm(config.job.logs, name="embedded", held=write)
    configuration = Configuration()
    for key, value in flink_settings(config, resume_from=None, rest_port=0).items():
        configuration.set_string(key, value)
    configuration.set_string("python.execution-mode", mode)
    configuration.set_string("restart-strategy.exponential-delay.attempts-before-reset-backoff", "50")
    configuration.set_string("restart-strategy.exponential-delay.max-backoff", "300ms")
    # Without it a local job runs "loopback", inside the client, whatever the mode.
    os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112 - its real name
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    calls = (
        request_lines(environment, config.job)
        .key_by(request_key_of, Types.STRING())
        .process(Fragile(Host(config.agents), trigger, trigger + ".lives"), Types.STRING())
        .uid("calls")
    )
    commit(calls, config.job.outcomes, "outcomes", ".jsonl")
    for tag in (JOURNAL, NOTICES, PROGRESS, REJECTS):
        calls.get_side_output(tag)
    environment.execute("embedded")


if __name__ == "__main__":
    main(*sys.argv[1:])
