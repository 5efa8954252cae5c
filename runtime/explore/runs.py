"""The scenarios of the default run."""

from typing import Any

from reattach.models.events import Requested, ThreadEvent
from reattach.models.policy import Policy, Terms
from reattach.models.request import Request
from reattach.runtime.explore.scenario import START_MS, Scenario
from reattach.runtime.explore.world import Left
from reattach.runtime.simulation.remotes import REMOTES, Remote

FAR = 10**9
UNITS = Policy(
    submit_validity_ms=1,
    submit_timeout_ms=1,
    probe_timeout_ms=1,
    fetch_timeout_ms=1,
    slack_ms=0,
    overlap_ms=1,
    skew_max_ms=0,
    deadline_ms=FAR,
    drain_max_ms=4,
    watch=False,
    watch_silence_ms=1,
    poll_ms=1,
    poll_max_ms=1,
    park_probe_ms=1,
    backoff_ms=1,
    backoff_max_ms=1,
    submit_attempts_max=2,
    retention_ms=FAR,
    tombstone_ttl_ms=FAR,
)


def request(name: str, **more: Any) -> Requested:
    return Requested(Request(name, "agent", b'"hello"', START_MS, **more))


def scenario(
    remote: Remote,
    *,
    turns: int = 1,
    crashes: int = 2,
    checkpoints: int = 2,
    losses: int = 2,
    zombies: int = 1,
    policy: Policy = UNITS,
    script: tuple[ThreadEvent, ...] | None = None,
    then: tuple[ThreadEvent, ...] = (),
    **more: Any,
) -> Scenario:
    """One scenario with small numbers; `then` comes behind the requests."""
    if script is None:
        thread = {"thread_id": "T"} if turns > 1 else {}
        script = (*(request("abcdef"[n], turn=n + 1, **thread) for n in range(turns)), *then)
    return Scenario(
        f"{remote.name}/{turns}",
        remote,
        Terms(remote.capabilities, policy),
        script,
        Left(crashes, checkpoints, losses, zombies),
        **more,
    )


def named(name: str) -> Remote:
    return next(remote for remote in REMOTES if remote.name == name)
