"""Adapters by the name of their protocol: the built-in ones and those that other packages bring.

A package adds its own with an entry point in the group `reattach.adapters`, for example
`myproto = "my_package.adapter:MyAdapter"`. A built-in name cannot be taken over.
"""

from importlib.metadata import entry_points
from typing import Final

import httpx

from reattach.adapters.a2a import A2AAdapter
from reattach.adapters.contract import Adapter, AgentConfig
from reattach.adapters.http_job import HttpJobAdapter
from reattach.adapters.langgraph import LangGraphAdapter
from reattach.adapters.openai_responses import OpenAIResponsesAdapter
from reattach.adapters.thread import ThreadAdapter
from reattach.models.errors import ConfigError

GROUP: Final = "reattach.adapters"

_BUILT_IN: Final[dict[str, type[Adapter]]] = {
    A2AAdapter.protocol: A2AAdapter,
    HttpJobAdapter.protocol: HttpJobAdapter,
    LangGraphAdapter.protocol: LangGraphAdapter,
    OpenAIResponsesAdapter.protocol: OpenAIResponsesAdapter,
    ThreadAdapter.protocol: ThreadAdapter,
}


def built_in() -> tuple[str, ...]:
    """Name the protocols that this package brings, in order."""
    return tuple(sorted(_BUILT_IN))


def known() -> tuple[str, ...]:
    """Name every protocol that a configuration may use, in order."""
    return tuple(sorted(_BUILT_IN.keys() | {point.name for point in entry_points(group=GROUP)}))


def find(protocol: str, *, name: str = "") -> type[Adapter]:
    """Look an adapter up.

    Args:
        protocol: its name in the configuration.
        name: the agent's, for the error.

    Raises:
        ConfigError: no such protocol, or its package cannot be loaded.
    """
    where = f"agents.{name}.protocol" if name else "protocol"
    if protocol in _BUILT_IN:
        return _BUILT_IN[protocol]
    for point in entry_points(group=GROUP):
        if point.name == protocol:
            try:
                adapter: type[Adapter] = point.load()
            except Exception as error:
                raise ConfigError(
                    f"{where}: {protocol!r} is registered as {point.value!r}, which cannot be loaded: {error}"
                ) from error
            return adapter
    raise ConfigError(f"{where}: no protocol {protocol!r}; known: {', '.join(known())}")


def create(config: AgentConfig, client: httpx.AsyncClient) -> Adapter:
    """Build the adapter of one configured agent.

    Raises:
        ConfigError: names the key that is wrong.
    """
    return find(config.protocol, name=config.name).configure(config, client)
