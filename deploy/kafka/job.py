"""The job of `reattach run` over Kafka: requests from a topic, every output to a topic, exactly once.

    python job.py job.toml --connector flink-sql-connector-kafka-5.0.0-2.2.jar --client client.properties
    flink run -d -py job.py job.toml --connector flink-sql-connector-kafka-5.0.0-2.2.jar --client client.properties

The file is one of `reattach run`, whose folders stand for topics: the last part of `requests`, `outcomes`,
`rejects`, `journal`, `notices` and `progress` is the name of a topic; `checkpoints` stays a folder. The client's
properties are Kafka's own and need `bootstrap.servers`. Started with `python`, it is one process that resumes from
its latest checkpoint. docs/kafka.md has the rest: what holds, topics, time limits, operation.
"""

import argparse
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from pyflink.common import Configuration, SimpleStringSchema, Types, WatermarkStrategy
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from pyflink.java_gateway import get_gateway

from reattach.models.errors import ReattachError
from reattach.runtime.config import JobConfig, RunConfig, load_config
from reattach.runtime.flink.function import ReattachFunction, request_key_of
from reattach.runtime.flink.gateway import in_one_line, start_jvm
from reattach.runtime.flink.host import JOURNAL, NOTICES, PROGRESS, REJECTS
from reattach.runtime.flink.job import Lines, flink_settings, host_settings, journal_lines
from reattach.runtime.run.checkpoints import TEMPORARY, Lock, latest, prune
from reattach.runtime.run.rest import free_port

# The longest that a broker allows unless it is told otherwise. An outcome whose checkpoint is complete, and
# whose transaction is not, is lost when the job stays away for longer.
TRANSACTION_TIMEOUT_MS = "900000"


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a reattach job over Kafka.")
    parser.add_argument("config", type=Path, help="job.toml; the last part of each path is the name of a topic")
    parser.add_argument("--client", type=Path, required=True, help="client.properties with bootstrap.servers")
    parser.add_argument("--connector", type=Path, help="jar of the connector, unless Flink has it already")
    parser.add_argument("--lineage", action="store_true", help="it resumes from the last run's latest checkpoint")
    given = parser.parse_args()
    try:
        config, client = load_config(given.config), client_properties(given.client)
        # `flink run` has a JVM already, and is told there where to begin.
        if "PYFLINK_GATEWAY_PORT" in os.environ:
            run_on_cluster(config, client, given.connector, lineage=given.lineage)
        else:
            run_here(config, client, given.connector, lineage=given.lineage)
    except ReattachError as error:
        sys.exit(f"reattach: {error}")


def run_on_cluster(config: RunConfig, client: dict[str, str], connector: Path | None, *, lineage: bool) -> None:
    from reattach.runtime.flink.cluster import check_cluster, cluster_settings

    environment = environment_of(cluster_settings(config), connector)
    for warning in check_cluster(environment, config.agents):
        print(f"reattach: warning: {warning}", file=sys.stderr, flush=True)
    build(environment, config, client, lineage=lineage)
    environment.execute(config.job.name)


def run_here(config: RunConfig, client: dict[str, str], connector: Path | None, *, lineage: bool) -> None:
    """Run the whole job in this process's JVM, from its latest checkpoint, until it is ended or fails."""
    job = config.job
    job.checkpoints.mkdir(parents=True, exist_ok=True)
    # The JVM inherits the lock and dies with this process: two jobs never drive the same calls.
    lock = Lock(job.checkpoints, say=print)
    resume_from = latest(job.checkpoints)
    prune(job.checkpoints, resume_from)
    shutil.rmtree(job.checkpoints / TEMPORARY, ignore_errors=True)
    start_jvm(job.logs, name="reattach-kafka", held=lock.fileno())
    # Thread mode has no worker processes; without this, PyFlink starts a server for them in the client.
    os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112 - PyFlink named it
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: sys.exit(130))
    print(f"reattach: from {resume_from or 'the beginning'}", flush=True)
    with in_one_line("the job failed"):
        settings = flink_settings(config, resume_from=resume_from, rest_port=free_port())
        environment = environment_of(settings, connector)
        build(environment, config, client, lineage=lineage or resume_from is not None)
        environment.execute(job.name)


def environment_of(settings: dict[str, str], connector: Path | None) -> StreamExecutionEnvironment:
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    if connector is not None:
        environment.add_jars(connector.absolute().as_uri())
    return environment


def client_properties(path: Path) -> dict[str, str]:
    """Read Kafka's properties: `key=value`, one a line."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    found = {key.strip(): value.strip() for key, _, value in pairs}
    if not found.get("bootstrap.servers"):
        sys.exit(f"reattach: {path}: bootstrap.servers is required")
    return found


def build(environment: StreamExecutionEnvironment, config: RunConfig, client: dict[str, str], *, lineage: bool) -> None:
    """Add the job's operators; their uids tie them to what a checkpoint holds."""
    job = config.job
    function = ReattachFunction(config.agents, **host_settings(job, lineage=lineage))
    calls = (
        request_values(environment, job, client)
        .key_by(request_key_of, Types.STRING())
        .process(function, Types.STRING())
        .uid("calls")
        .name("calls")
    )
    # PyFlink fails the job on a value for a side output that nobody asked for.
    side = {tag: calls.get_side_output(tag) for tag in (JOURNAL, NOTICES, PROGRESS, REJECTS)}
    outputs = {
        "outcomes": (calls, job.outcomes),
        "rejects": (side[REJECTS], job.rejects),
        "journal": (side[JOURNAL], job.journal),
        "notices": (side[NOTICES], job.notices),
        "progress": (side[PROGRESS], job.progress),
    }
    for name, (stream, path) in outputs.items():
        if path is not None:
            stream = journal_lines(stream) if name == "journal" else stream
            stream.sink_to(topic_sink(job, client, path.name)).uid(name).name(name)


def request_values(environment: StreamExecutionEnvironment, job: JobConfig, client: dict[str, str]) -> DataStream:
    """Read the requests topic; give each record's value as the bytes that it is."""
    builder = (
        KafkaSource.builder()
        .set_topics(job.requests.name)
        .set_group_id(job.name)
        # Where a fresh job begins; a restored one goes on at its checkpoint's offsets.
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_properties({"isolation.level": "read_committed", **client})
    )
    builder._j_builder.setDeserializer(latin_values())
    values = environment.from_source(builder.build(), WatermarkStrategy.no_watermarks(), "requests", Types.STRING())
    return values.uid("requests").flat_map(Lines(), Types.PICKLED_BYTE_ARRAY()).uid("lines").name("lines")


def latin_values() -> Any:
    """One character for each byte, and back in `Lines`: what is not UTF-8 stays what it is.

    It is Kafka's own deserializer, as Flink's throws at a record without a value, and would again after each restart.
    """
    java = get_gateway().jvm
    name = "org.apache.flink.kafka.shaded.org.apache.kafka.common.serialization.StringDeserializer"
    deserializer = java.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
    schema = java.org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema
    return schema.valueOnly(deserializer, java.java.util.HashMap({"deserializer.encoding": "ISO-8859-1"}))


def topic_sink(job: JobConfig, client: dict[str, str], topic: str) -> KafkaSink:
    """Write a stream of texts into a topic; they are committed when the checkpoint that holds them is complete."""
    records = KafkaRecordSerializationSchema.builder().set_topic(topic)
    builder = (
        KafkaSink.builder()
        .set_bootstrap_servers(client["bootstrap.servers"])
        .set_record_serializer(records.set_value_serialization_schema(SimpleStringSchema()).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        # The same over all runs of this job, and no other job's: a new run ends what the last one left open.
        .set_transactional_id_prefix(f"{job.name}-{topic}")
    )
    # A few ids that are used again and again. Flink's default takes a new one for each checkpoint, and a broker
    # remembers every id for a week.
    naming = get_gateway().jvm.org.apache.flink.connector.kafka.sink.TransactionNamingStrategy
    builder._j_builder.setTransactionNamingStrategy(naming.POOLING)
    for key, value in {"transaction.timeout.ms": TRANSACTION_TIMEOUT_MS, **client}.items():
        builder.set_property(key, value)
    return builder.build()


if __name__ == "__main__":
    main()
