"""One line of the control input: an order of a person or of another system about one call.

An order names its agent, its call and the generation that it is about, so that it can be given again, by
whoever delivers it twice, without happening twice: what the call has outgrown is not obeyed. Nothing in it is
filled in from a clock or at random, since after a crash the same line has to be the same order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reattach.models.errors import InvalidRequest
from reattach.models.events import (
    AbandonOrdered,
    AdoptOrdered,
    CancelOrdered,
    Ordered,
    ResponseGiven,
    ResubmitOrdered,
)
from reattach.models.identity import request_key
from reattach.models.record import record
from reattach.models.request import (
    TIME_MS_MAX,
    TURN_MAX,
    Request,
    canonical_json,
    number_field,
    read_object,
    refuse_unknown,
    text_field,
)

# Of a remote's own names: for its runs and for its questions.
HANDLE_CHARS_MAX: Final = 2_048

#: The fields that each order has besides the ones of all.
ORDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "cancel": (),
    "adopt": ("handle",),
    "resubmit": ("ordered_at_ms",),
    "abandon": (),
    "respond": ("response_id", "question_id", "payload"),
}
_COMMON: Final = ("order", "agent", "invocation_id", "generation", "thread_id")


@record
@dataclass(frozen=True, slots=True)
class Order:
    """A checked order, and the thread that it is for.

    Args:
        agent: a name from the configuration.
        thread: the second half of the stream's key, as `identity.request_key` gives it for the call's request.
    """

    agent: str
    thread: str
    event: Ordered


def parse_order(line: bytes | str, *, payload_bytes_max: int) -> Order:
    """Read one JSON line of the control input.

    Args:
        line: one JSON object, UTF-8.
        payload_bytes_max: limit for the canonical encoding of a response's payload, in bytes.

    Raises:
        InvalidRequest: names the field and what is wrong with it.
    """
    value = read_object(line, payload_bytes_max)
    kind = text_field(value, "order")
    if kind not in ORDERS:
        raise InvalidRequest(f"order: no such order (known: {', '.join(ORDERS)})")
    refuse_unknown(value, (*_COMMON, *ORDERS[kind]))
    invocation_id, generation = text_field(value, "invocation_id"), number_field(value, "generation", 1, TURN_MAX)
    event = _event(kind, value, invocation_id, generation)
    if isinstance(event, ResponseGiven) and len(event.payload) > payload_bytes_max:
        raise InvalidRequest(f"payload: {len(event.payload)} bytes, the limit is {payload_bytes_max}")
    thread_id = "" if value.get("thread_id") is None else text_field(value, "thread_id")
    agent, thread = request_key(Request(event.invocation_id, text_field(value, "agent"), b"null", 1, thread_id))
    return Order(agent, thread, event)


def _event(kind: str, value: Mapping[str, Any], invocation_id: str, generation: int) -> Ordered:
    match kind:
        case "cancel":
            return CancelOrdered(invocation_id, generation)
        case "adopt":
            return AdoptOrdered(invocation_id, generation, text_field(value, "handle", HANDLE_CHARS_MAX))
        case "resubmit":
            # The remote's memory of the new run is counted from here, so it cannot be the time of a delivery.
            return ResubmitOrdered(invocation_id, generation, number_field(value, "ordered_at_ms", 1, TIME_MS_MAX))
        case "abandon":
            return AbandonOrdered(invocation_id, generation)
        case _:
            response_id, question_id = (
                text_field(value, "response_id"),
                text_field(value, "question_id", HANDLE_CHARS_MAX),
            )
            if "payload" not in value:
                raise InvalidRequest("payload: required")
            return ResponseGiven(invocation_id, generation, response_id, question_id, _payload(value["payload"]))


def _payload(value: object) -> bytes:
    try:
        return canonical_json(value)
    except InvalidRequest as error:
        raise InvalidRequest(f"payload: {error}") from None
