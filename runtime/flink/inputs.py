"""What comes into a host: requests as lines or as records, each checked against the agents that there are."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from reattach.adapters.contract import AgentConfig
from reattach.models.errors import InvalidRequest
from reattach.models.request import Request, parse_request, refuse_long

LINE_BYTES_MAX: Final = 64 * 1024 * 1024
SHORT_MAX: Final = 4_096


def parsed(value: object) -> Request | str:
    """Take what came in as a request; or say in one line why it is none."""
    if isinstance(value, Request):
        return value
    if not isinstance(value, str | bytes):
        return f"neither a line of JSON nor a Request: {type(value).__name__}"
    return _parsed_once(value) if len(value) <= SHORT_MAX else _parsed(value)


def _parsed(line: str | bytes) -> Request | str:
    try:
        return parse_request(line, message_bytes_max=LINE_BYTES_MAX)
    except InvalidRequest as error:
        return str(error)


# The same line is read for its key first, and then by the host, often in the same process.
_parsed_once = lru_cache(maxsize=8_192)(_parsed)


def read_request(value: object, agents: Mapping[str, AgentConfig]) -> Request | str:
    """Take one request; or say in one line why it is none."""
    try:
        if isinstance(value, str | bytes):
            refuse_long(value, max(agent.policy.message_bytes_max for agent in agents.values()))
    except InvalidRequest as error:
        return str(error)
    request = parsed(value)
    if isinstance(request, str):
        return request
    agent = agents.get(request.agent)
    if agent is None:
        return f"agent: no agent named {request.agent!r} is configured (known: {', '.join(agents)})"
    if len(request.message) > agent.policy.message_bytes_max:
        return f"message: {len(request.message)} bytes, the limit is {agent.policy.message_bytes_max}"
    return request
