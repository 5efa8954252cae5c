"""Orders, checked against the agents that are configured: for the job, the runner and the command."""

from collections.abc import Mapping
from typing import Final

from reattach.models.control import Order, parse_order
from reattach.models.errors import InvalidRequest
from reattach.models.events import ResponseGiven
from reattach.models.policy import Policy

PAYLOAD_BYTES_MAX: Final = Policy().message_bytes_max


def read_order(value: object, limits: Mapping[str, int]) -> Order:
    """Check one order: a line of JSON, or one that is parsed already.

    Args:
        limits: by agent, its `message_bytes_max`, which holds for responses too.

    Raises:
        InvalidRequest: says what is wrong with it.
    """
    if not isinstance(value, str | bytes | Order):
        raise InvalidRequest(f"neither a line of JSON nor an Order: {type(value).__name__}")
    most = max(limits.values(), default=PAYLOAD_BYTES_MAX)
    order = value if isinstance(value, Order) else parse_order(value, payload_bytes_max=most)
    limit = limits.get(order.agent)
    if limit is None:
        raise InvalidRequest(f"agent: none named {order.agent!r} is configured ({', '.join(sorted(limits))})")
    if isinstance(order.event, ResponseGiven) and len(order.event.payload) > limit:
        raise InvalidRequest(f"payload: {len(order.event.payload)} bytes, the limit is {limit}")
    return order
