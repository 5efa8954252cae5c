"""Asks `check_cluster` about some configurations: `python -m tests.cluster.asking`, one JSON array of what it said."""

import json
from typing import Final

from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment

from reattach.adapters.contract import AgentConfig
from reattach.models.errors import ConfigError
from reattach.models.policy import Policy
from reattach.runtime.flink.cluster import check_cluster

THREAD: Final = {"python.execution-mode": "thread", "rest.port": "1"}
EVERY: Final = {**THREAD, "execution.checkpointing.interval": "1s"}
WHOLE: Final = {**EVERY, "execution.checkpointing.dir": "file:///anywhere", "heartbeat.timeout": "3s"}
ASKED: Final[tuple[dict[str, str], ...]] = (
    {},
    THREAD,
    EVERY,
    {**WHOLE, "heartbeat.interval": "2s"},
    {**WHOLE, "heartbeat.interval": "500ms"},
)


def agents(overlap_ms: int) -> dict[str, AgentConfig]:
    policy = Policy(retention_ms=86_400_000, overlap_ms=overlap_ms)
    return {"echo": AgentConfig(name="echo", protocol="thread", url="http://127.0.0.1:9", policy=policy)}


def main() -> None:
    said = []
    for settings in ASKED:
        configuration = Configuration()
        for key, value in settings.items():
            configuration.set_string(key, value)
        environment = StreamExecutionEnvironment.get_execution_environment(configuration)
        try:
            said.append("; ".join(check_cluster(environment, agents(4_000))))
        except ConfigError as error:
            said.append(f"refused: {error}")
    print(json.dumps(said))


if __name__ == "__main__":
    main()
