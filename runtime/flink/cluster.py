"""What a job on a cluster needs that a job in one process does not: its settings, and checks before it is submitted.

The checks read the configuration that the client sees, which should be the cluster's own file, and ask the cluster
what it has.
"""

import json
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from reattach.adapters.contract import AgentConfig
from reattach.models.errors import ConfigError
from reattach.runtime.config import RunConfig
from reattach.runtime.flink.job import flink_settings
from reattach.runtime.flink.keys import require_thread_mode

_OURS: Final = ("python.execution-mode", "parallelism.default", "execution.checkpointing.")
_REST_S: Final = 5.0


def cluster_settings(config: RunConfig) -> dict[str, str]:
    """Those of Flink's settings that a configuration file says something about; all others are the cluster's own."""
    settings = flink_settings(config, resume_from=None, rest_port=0)
    return {key: value for key, value in settings.items() if key.startswith(_OURS)}


def check_cluster(environment: Any, agents: Mapping[str, AgentConfig]) -> list[str]:
    """Refuse what would lose or repeat calls on a cluster, and find what would only be slow.

    Args:
        environment: a `StreamExecutionEnvironment` for a cluster, before anything is submitted.

    Returns:
        Warnings, each with what to do.

    Raises:
        ConfigError: process mode, no checkpoints or no folder for them, or an `overlap_ms` that is too short.
    """
    require_thread_mode(environment)
    java = environment._j_stream_execution_environment
    settings = dict(java.getConfiguration().toMap())
    if not java.getCheckpointConfig().isCheckpointingEnabled():
        raise ConfigError("execution.checkpointing.interval: not set, and without checkpoints a restart knows no call")
    if not settings.get("execution.checkpointing.dir"):
        raise ConfigError(
            "execution.checkpointing.dir: not set, so checkpoints would lie in the JobManager's memory and die with "
            "it; name a folder that every machine reaches"
        )
    check_overlap(agents, _superseded_ms(java))
    return list(_cluster_warnings(settings, environment.get_parallelism()))


def check_overlap(agents: Mapping[str, AgentConfig], least_ms: int) -> None:
    """Refuse agents whose `overlap_ms` is shorter than a cluster may keep a superseded task going.

    Raises:
        ConfigError: names the agent and the least value.
    """
    for name, agent in agents.items():
        if agent.policy.overlap_ms < least_ms:
            raise ConfigError(
                f"agents.{name}.policy.overlap_ms = {agent.policy.overlap_ms}: a TaskManager that is cut off goes on "
                f"for heartbeat.timeout + heartbeat.interval = {least_ms} ms; set at least that, and better some "
                "seconds more"
            )


def _superseded_ms(java: Any) -> int:
    from pyflink.java_gateway import get_gateway

    options = get_gateway().jvm.org.apache.flink.configuration.HeartbeatManagerOptions
    spans = (options.HEARTBEAT_TIMEOUT, options.HEARTBEAT_INTERVAL)
    return sum(int(java.getConfiguration().get(span).toMillis()) for span in spans)


def _cluster_warnings(settings: Mapping[str, str], parallelism: int) -> Iterator[str]:
    scheme = "https" if settings.get("security.ssl.rest.enabled") == "true" else "http"
    host = settings.get("rest.address") or settings.get("jobmanager.rpc.address") or "localhost"
    yield from warnings_of(_workers(f"{scheme}://{host}:{settings.get('rest.port') or 8081}"), parallelism)


def warnings_of(workers: Sequence[Mapping[str, Any]] | None, parallelism: int) -> Iterator[str]:
    """Say what is slow or late about a cluster's workers.

    Args:
        workers: as `/taskmanagers` lists them; None when it could not be asked.
    """
    if workers is None:
        yield "the cluster's REST interface does not answer, so its slots were not looked at"
        return
    most = max((int(one["slotsNumber"]) for one in workers), default=1)
    if most > 1:
        yield (
            f"taskmanager.numberOfTaskSlots: a TaskManager has {most} slots, whose tasks share one Python interpreter "
            "and take turns; give each one slot, and start more of them"
        )
    slots = sum(int(one["slotsNumber"]) for one in workers)
    if parallelism > slots:
        yield (
            f"job.parallelism = {parallelism}: the cluster has {slots} slots now, and the job waits for the others; "
            f"start {parallelism - slots} more TaskManagers of one slot, or lower it"
        )


def _workers(url: str) -> list[Mapping[str, Any]] | None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/taskmanagers", timeout=_REST_S) as answer:
            return list(json.load(answer)["taskmanagers"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
