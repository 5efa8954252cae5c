"""The job of `reattach run`: request lines in, outcomes out exactly once, one process.

    requests/*.jsonl -> FileSource -> lines -> key by (agent, thread) -> ReattachFunction -> FileSink
    control/*.jsonl -> FileSource -> lines -> key by (agent, thread) ----┘       └ journal -> text, FileSink

With a control folder the function has two inputs. The sources never end by themselves: a bounded one
would drop the pending timers when it does. Lines travel as bytes, since decoding would turn bytes that
are not UTF-8 into text that nobody wrote.
"""

import base64
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pyflink.common import Configuration, Duration, Encoder, JobClient, Types, WatermarkStrategy
from pyflink.datastream import DataStream, FlatMapFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)

from reattach.runtime.config import ROCKSDB, JobConfig, RunConfig
from reattach.runtime.flink.function import ControlledFunction, ReattachFunction, order_key_of, request_key_of
from reattach.runtime.flink.host import JOURNAL, NOTICES, PROGRESS, REJECTS
from reattach.runtime.run.checkpoints import TEMPORARY

DISCOVERY_MS: Final = 250
CHECKPOINTS_RETAINED: Final = 3
RESTARTS_MAX: Final = 12
_SEPARATORS: Final = ",:|"


def submit(config: RunConfig, *, resume_from: Path | None, rest_port: int, lineage: bool) -> JobClient:
    """Build the job and start it in this process's JVM.

    Args:
        resume_from: folder of a completed checkpoint.
        rest_port: a free port on the loopback interface.
        lineage: see `Host`.
    """
    settings = flink_settings(config, resume_from=resume_from, rest_port=rest_port)
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    # Thread mode has no worker processes; without this, PyFlink starts a server for them in the client.
    os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112 - PyFlink named it
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    build(environment, config, lineage=lineage)
    return environment.execute_async(config.job.name)


def flink_settings(config: RunConfig, *, resume_from: Path | None, rest_port: int) -> dict[str, str]:
    """Flink's own settings for a job that must survive its process."""
    job = config.job
    settings = {
        "python.execution-mode": "thread",
        "python.executable": sys.executable,
        "parallelism.default": str(job.parallelism),
        "rest.port": str(rest_port),
        "rest.bind-address": "127.0.0.1",
        # How old an answer may be, which a call that is written ahead waits for.
        "web.refresh-interval": "200",
        "metrics.fetcher.update-interval": "1000",
        "execution.checkpointing.interval": f"{job.checkpoint_interval_ms}ms",
        "execution.checkpointing.dir": uri_of(job.checkpoints),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.checkpointing.num-retained": str(CHECKPOINTS_RETAINED),
        # A checkpoint that fails while the disk is full is not a reason to stop calls in flight.
        "execution.checkpointing.tolerable-failed-checkpoints": "10",
        "restart-strategy.type": "exponential-delay",
        "restart-strategy.exponential-delay.initial-backoff": "200ms",
        "restart-strategy.exponential-delay.max-backoff": "10s",
        "restart-strategy.exponential-delay.backoff-multiplier": "2.0",
        "restart-strategy.exponential-delay.reset-backoff-threshold": "1min",
        "restart-strategy.exponential-delay.attempts-before-reset-backoff": str(RESTARTS_MAX),
    }
    if job.state_backend == ROCKSDB:
        settings |= {"state.backend.type": ROCKSDB, "execution.checkpointing.incremental": "true"}
    temporary = str(job.checkpoints / TEMPORARY)
    if not set(temporary) & set(_SEPARATORS):
        # What a killed JVM leaves behind is then found, and removed, at the next start.
        settings["io.tmp.dirs"] = temporary
    if resume_from is not None:
        settings["execution.state-recovery.path"] = uri_of(resume_from)
    return settings


def uri_of(path: Path) -> str:
    """Name a file to Flink, which takes what follows the scheme as it is: "%20" means "%20" there."""
    return f"file://{path}"


def build(environment: StreamExecutionEnvironment, config: RunConfig, *, lineage: bool) -> None:
    """Add the job's operators; their uids tie them to what a checkpoint holds."""
    job = config.job
    settings = host_settings(job, lineage=lineage)
    requests = request_lines(environment, job)
    if job.control is None:
        keyed = requests.key_by(request_key_of, Types.STRING())
        calls = keyed.process(ReattachFunction(config.agents, **settings), Types.STRING())
    else:
        orders = watched_lines(environment, job.control, "control", "control-lines")
        both = requests.connect(orders).key_by(request_key_of, order_key_of, Types.STRING())
        calls = both.process(ControlledFunction(config.agents, **settings), Types.STRING())
    calls.uid("calls").name("calls")
    commit(calls, job.outcomes, "outcomes", ".jsonl")
    # PyFlink fails the job on a value for a side output that nobody asked for.
    side = {tag: calls.get_side_output(tag) for tag in (JOURNAL, NOTICES, PROGRESS, REJECTS)}
    if job.journal is not None:
        commit(journal_lines(side[JOURNAL]), job.journal, "journal", ".journal")
    if job.notices is not None:
        commit(side[NOTICES], job.notices, "notices", ".jsonl")
    if job.progress is not None:
        commit(side[PROGRESS], job.progress, "progress", ".jsonl")


def host_settings(job: JobConfig, *, lineage: bool) -> dict[str, Any]:
    """What the job's file says about its hosts: see `Host`."""
    return {
        "concurrency_max": job.concurrency_max,
        "backlog_max": job.backlog_max,
        # It is half of what a step costs.
        "journal": job.journal is not None,
        "lineage": lineage,
    }


def request_lines(environment: StreamExecutionEnvironment, job: JobConfig) -> DataStream:
    """Watch the requests folder; give each line as bytes."""
    return watched_lines(environment, job.requests, "requests", "lines")


def watched_lines(environment: StreamExecutionEnvironment, folder: Path, uid: str, lines_uid: str) -> DataStream:
    """Watch a folder; give each line of its files as bytes."""
    source = (
        FileSource.for_record_stream_format(StreamFormat.text_line_format("ISO-8859-1"), uri_of(folder))
        .monitor_continuously(Duration.of_millis(DISCOVERY_MS))
        .build()
    )
    lines = environment.from_source(source, WatermarkStrategy.no_watermarks(), uid, Types.STRING())
    return lines.uid(uid).flat_map(Lines(), Types.PICKLED_BYTE_ARRAY()).uid(lines_uid).name(lines_uid)


class Lines(FlatMapFunction):
    """Gives back the bytes that the source made text of, without blank lines."""

    def flat_map(self, value: str) -> Iterator[bytes]:
        if value and not value.isspace():
            yield value.encode("latin-1")


def journal_lines(entries: DataStream) -> DataStream:
    """Make a line of text of each journal entry."""
    return entries.map(_as_text, Types.STRING()).uid("journal-lines").name("journal-lines")


def _as_text(entry: bytes) -> str:
    return base64.b64encode(entry).decode("ascii")


def commit(stream: DataStream, folder: Path, name: str, suffix: str) -> None:
    """Write a stream of lines into files that appear when the checkpoint that holds them is complete."""
    sink = (
        FileSink.for_row_format(uri_of(folder), Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .with_output_file_config(OutputFileConfig.builder().with_part_prefix("part").with_part_suffix(suffix).build())
        .build()
    )
    stream.sink_to(sink).uid(name).name(name)
