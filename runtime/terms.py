"""Each agent's policy, checked against what its adapter can do."""

from collections.abc import Mapping

from reattach.adapters.contract import AgentConfig
from reattach.models.errors import ConfigError
from reattach.models.policy import Capabilities, Terms


def terms_of(agents: Mapping[str, AgentConfig], capabilities: Mapping[str, Capabilities]) -> dict[str, Terms]:
    """Check every agent.

    Raises:
        ConfigError: names the agent and the key.
    """
    terms = {}
    for name, agent in agents.items():
        try:
            terms[name] = Terms(capabilities[name], agent.policy)
        except ConfigError as error:
            raise ConfigError(f"agents.{name}.policy.{error}") from None
    return terms
