"""What comes into a host: requests as lines or as records, each checked against the agents that there are."""

from collections.abc import Mapping

from reattach.adapters.contract import AgentConfig
from reattach.models.errors import InvalidRequest
from reattach.models.request import Request, parse_request


def read_request(value: object, agents: Mapping[str, AgentConfig]) -> Request | str:
    """Take one request; or say in one line why it is none."""
    if isinstance(value, Request):
        request = value
    elif isinstance(value, str | bytes):
        most = max(agent.policy.message_bytes_max for agent in agents.values())
        try:
            request = parse_request(value, message_bytes_max=most)
        except InvalidRequest as error:
            return str(error)
    else:
        return f"neither a line of JSON nor a Request: {type(value).__name__}"
    agent = agents.get(request.agent)
    if agent is None:
        return f"agent: no agent named {request.agent!r} is configured (known: {', '.join(agents)})"
    if len(request.message) > agent.policy.message_bytes_max:
        return f"message: {len(request.message)} bytes, the limit is {agent.policy.message_bytes_max}"
    return request
