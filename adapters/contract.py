"""What an adapter is: the one door between this library and a remote protocol.

An adapter is stateless. It is told an invocation and answers with a value from
`reattach.models.answers`; it never raises for what a remote or a network may do, never retries,
never sleeps, and never decides what the answer means for the call. `fsm.step` does that.

Identity comes from `reattach.models.identity`: `thread_id_of(inv.request, inv.generation, inv.slot)`
names the remote thread, `marker_of(inv.id, inv.generation)` the message.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol, Self

import httpx

from reattach.models.answers import (
    CancelAnswer,
    FenceAnswer,
    FetchAnswer,
    ProbeAnswer,
    Progress,
    SubmitAnswer,
)
from reattach.models.errors import ConfigError
from reattach.models.invocation import Invocation
from reattach.models.policy import Capabilities, Policy

LIMIT_MAX: Final = 1_000_000
BREAKER_OPEN_MS_MAX: Final = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of one agent's remote a worker may take at the same time. 0 is no limit of its own.

    Args:
        concurrency_max: requests in flight; streams are not among them.
        streams_max: streams open.
        requests_per_second: requests begun, opened streams among them.
        breaker_failures: orders in a row that found the remote down (no status, or one of 500 and above) until
            nothing more is sent to it for a while; 0 for never.
        breaker_open_ms: how long that while is, 1 to 3600000; then one order at a time tries again.

    Raises:
        ConfigError: a number out of its range; the message names the key.
    """

    concurrency_max: int = 0
    streams_max: int = 0
    requests_per_second: int = 0
    breaker_failures: int = 10
    breaker_open_ms: int = 5_000

    def __post_init__(self) -> None:
        for name in Limits.__slots__:
            value = getattr(self, name)
            least, most = (1, BREAKER_OPEN_MS_MAX) if name == "breaker_open_ms" else (0, LIMIT_MAX)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise ConfigError(f"{name} = {value!r}: must be a whole number from {least} to {most}")


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """One agent of the configuration. Holds no secret: `token_env` names where one is found.

    Args:
        name: what requests call it.
        protocol: a registered adapter's name.
        url: base URL; comes from the configuration only, never from a request.
        token_env: environment variable of a bearer token, "" for none.
        options: the protocol's own settings, checked by the adapter's `configure`.
        limits: kept by the worker, not by the adapter.
    """

    name: str
    protocol: str
    url: str
    token_env: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    policy: Policy = field(default_factory=lambda: Policy(retention_ms=7 * 86_400_000))
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to configure a protocol, and what it can do then.

    An adapter class lists its own in an attribute `variants`, so that they can be told without a
    remote. Where the options decide nothing, one is enough.

    Args:
        name: a few words, "" for the only one.
        capabilities: what `configure` gives with these options.
        options: the least that has to be set for it, as an example.
        more_requests: how many a call without faults takes beyond those that its capabilities imply.
    """

    name: str
    capabilities: Capabilities
    options: Mapping[str, Any] = field(default_factory=dict)
    more_requests: int = 0


def variants_of(adapter: type) -> tuple[Variant, ...]:
    """Read what an adapter class declares; () when it declares nothing."""
    declared = getattr(adapter, "variants", ())
    return tuple(one for one in declared if isinstance(one, Variant)) if isinstance(declared, tuple) else ()


class Learn(Protocol):
    """Called by `submit` as soon as the remote has named the run: it was accepted."""

    def __call__(self, handle: str) -> None: ...


class Adapter(Protocol):
    """See the module's text. One instance per agent and worker."""

    protocol: ClassVar[str]
    capabilities: Capabilities

    @classmethod
    def configure(cls, config: AgentConfig, client: httpx.AsyncClient) -> Self:
        """Check the options and build the adapter.

        Raises:
            ConfigError: names the key that is wrong and what to write.
        """
        ...

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        """Ask whether the remote knows this invocation. Safe to repeat."""
        ...

    async def submit(self, inv: Invocation, learn: Learn) -> SubmitAnswer:
        """Send at most one request that is not repeatable; never retried, never redirected."""
        ...

    def watch(self, inv: Invocation, cursor: str) -> AsyncIterator[Progress]:
        """Yield stream events until the stream ends, for whatever reason."""
        ...

    async def fetch(self, inv: Invocation) -> FetchAnswer:
        """Read the saved result of this very run."""
        ...

    async def cancel(self, inv: Invocation) -> CancelAnswer:
        """Ask the remote to end the run; `Unknown` where the protocol has no cancel."""
        ...

    async def fence(self, inv: Invocation) -> FenceAnswer:
        """Close the slot for good; `Unknown` where the protocol has no fence."""
        ...

    async def respond(self, inv: Invocation) -> SubmitAnswer:
        """Send `inv.response`; under the same rules as `submit`."""
        ...
