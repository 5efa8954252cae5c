"""A live server behind a real adapter: the code that runs in a job, against the code that runs over there."""

import asyncio
import os
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from reattach.adapters import registry
from reattach.adapters.contract import Adapter, AgentConfig
from reattach.adapters.http import open_client
from reattach.models.effects import RemoteEffect, Watch
from reattach.models.errors import ConfigError
from reattach.models.events import Answered, WatchEnded
from reattach.models.invocation import Invocation
from reattach.models.policy import Terms
from reattach.models.request import Request
from reattach.runtime.calls import perform
from reattach.runtime.streams import follow
from reattach.runtime.testing.remote import Facts, RemoteUnderTest

QUIET_MS_MAX: Final = 10_000
CONNECTIONS_MAX: Final = 16
T = TypeVar("T")


class LiveRemote(RemoteUnderTest):
    """A server that runs, and the adapter that speaks to it.

    The job's clock is virtual, and real time follows it: where the machine lets a second pass, a
    second is slept. So the policy must name small times, yet true ones: what it says of the server
    (`admission_ms`) is what is relied on.

    Args:
        config: the agent, as in a job's configuration.
        accepted: counts, on the server's side, the runs that it has started for a marker.
        adapter: the class to test, when it is not registered under `config.protocol`.
        owns: whether a result belongs to this request, by what the server puts into results.
        whims: what the server can be told to do, by name: switch a fault on, restart, hang up.
        calm: switches all faults off and lets every run come to its end.

    Raises:
        ConfigError: the adapter refuses its configuration, or the policy's times are too long to wait for.
    """

    unsteady = True
    patience_ms = QUIET_MS_MAX

    def __init__(
        self,
        config: AgentConfig,
        accepted: Callable[[str], int],
        *,
        adapter: type[Adapter] | None = None,
        owns: Callable[[bytes, Request], bool] | None = None,
        whims: Mapping[str, Callable[[], object]] | None = None,
        calm: Callable[[], object] = lambda: None,
    ) -> None:
        self.prefix = f"{uuid.uuid4().hex[:8]}-"
        self.whims = dict(whims or {})
        self._config = config
        self._count, self._owns, self._calm = accepted, owns, calm
        token = os.environ.get(config.token_env, "") if config.token_env else ""
        self.secrets = (token,) if token else ()
        self._loop = asyncio.new_event_loop()
        try:
            kind = adapter or registry.find(config.protocol, name=config.name)
            self._client = self._run(_open())
            self._adapter = kind.configure(config, self._client)
            self.terms = Terms(self._adapter.capabilities, config.policy)
            _check_times(self.terms)
        except BaseException:
            self._loop.close()
            raise

    def carry(self, effect: RemoteEffect, inv: Invocation, *, step: int, by_ms: int) -> Facts | None:
        return tuple(self._run(self._exchange(effect, inv)))

    def accepted(self, marker: str) -> int:
        return self._count(marker)

    def owns(self, result: bytes, request: Request, generation: int) -> bool:
        return self._owns is None or self._owns(result, request)

    def pass_time(self, from_ms: int, to_ms: int) -> None:
        time.sleep((to_ms - from_ms) / 1000)

    def calm(self) -> None:
        self._calm()

    def close(self) -> None:
        if not self._loop.is_closed():
            self._run(self._client.aclose())
            self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    async def _exchange(self, effect: RemoteEffect, inv: Invocation) -> list[Answered]:
        told: list[Answered] = []
        if not isinstance(effect, Watch):
            answer = await perform(self._adapter, effect, inv, self._config.policy, told.append)
            return [*told, answer]
        watch = partial(self._adapter.watch, inv, effect.cursor)
        try:
            async with asyncio.timeout(self._config.policy.watch_silence_ms / 1000):
                await follow(watch, effect.ident, told.append)
        except TimeoutError:
            told.append(WatchEnded(effect.ident, "nobody listened any longer"))
        return told


async def _open() -> Any:
    return open_client(connections_max=CONNECTIONS_MAX)


def _check_times(terms: Terms) -> None:
    quiet_ms = terms.settle_ms + terms.policy.overlap_ms
    if quiet_ms > QUIET_MS_MAX:
        raise ConfigError(
            f"after each crash {quiet_ms} ms of real time would pass (submit_validity_ms + submit_timeout_ms + "
            f"admission_ms + overlap_ms); a live test needs at most {QUIET_MS_MAX}: set smaller times in its policy"
        )
