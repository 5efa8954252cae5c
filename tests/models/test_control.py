"""Every order that a line can give, and every way in which one can be wrong, named by its field."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach.models.control import HANDLE_CHARS_MAX, ORDERS, Order, parse_order
from reattach.models.errors import InvalidRequest
from reattach.models.events import AbandonOrdered, AdoptOrdered, CancelOrdered, ResponseGiven, ResubmitOrdered
from reattach.models.identity import request_key
from reattach.models.request import Request

MAX = 1024
MORE: dict[str, dict[str, Any]] = {
    "cancel": {},
    "adopt": {"handle": "run-7"},
    "resubmit": {"ordered_at_ms": 1_700_000_000_000},
    "abandon": {},
    "respond": {"response_id": "r1", "question_id": "q1", "payload": {"b": 1, "a": "ü"}},
}
EVENTS = {
    "cancel": CancelOrdered("call-1", 1),
    "adopt": AdoptOrdered("call-1", 1, "run-7"),
    "resubmit": ResubmitOrdered("call-1", 1, 1_700_000_000_000),
    "abandon": AbandonOrdered("call-1", 1),
    "respond": ResponseGiven("call-1", 1, "r1", "q1", '{"a":"ü","b":1}'.encode()),
}


def parse(order: str = "cancel", /, **changes: Any) -> Order:
    value = {"order": order, "agent": "research", "invocation_id": "call-1", "generation": 1}
    value |= MORE.get(order, {}) | changes
    return parse_order(json.dumps({k: v for k, v in value.items() if v is not ...}), payload_bytes_max=MAX)


def test_every_order_is_tried_here() -> None:
    assert set(MORE) == set(EVENTS) == set(ORDERS)


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_says_what_it_says(order: str) -> None:
    assert parse(order).event == EVENTS[order]
    assert parse(order, generation=3).event.generation == 3


@pytest.mark.parametrize("thread_id", ["", "t"])
def test_it_goes_where_the_request_of_the_call_went(thread_id: str) -> None:
    request = Request("call-1", "research", b'"hello"', 1_700_000_000_000, thread_id, generation=2, turn=4)
    order = parse(generation=2, thread_id=thread_id or ...)
    assert (order.agent, order.thread) == request_key(request)
    assert thread_id or parse(thread_id=None) == parse()


@pytest.mark.parametrize("order", ORDERS)
def test_every_field_is_required_but_the_thread(order: str) -> None:
    for field in ("order", "agent", "invocation_id", "generation", *MORE[order]):
        with pytest.raises(InvalidRequest, match=f"^{field}: required"):
            parse(order, **{field: ...})


@pytest.mark.parametrize(
    ("order", "changes", "message"),
    [
        ("cancel", {"order": "kill"}, "order: no such order (known: cancel, adopt, resubmit, abandon, respond)"),
        ("cancel", {"order": 7}, "order: must be a string"),
        (
            "cancel",
            {"handle": "x"},
            "handle: no such field (known: agent, generation, invocation_id, order, thread_id)",
        ),
        ("cancel", {"ordered_at_ms": 1}, "ordered_at_ms: no such field"),
        ("cancel", {"generation": 0}, "generation: must be a whole number from 1"),
        ("cancel", {"generation": True}, "generation: must be a whole number"),
        ("cancel", {"thread_id": ""}, "thread_id: must be a string of 1 to 256"),
        ("cancel", {"invocation_id": "a\nb"}, "invocation_id: holds a character"),
        ("adopt", {"handle": "x" * (HANDLE_CHARS_MAX + 1)}, "handle: must be a string of 1 to 2048"),
        ("resubmit", {"ordered_at_ms": "now"}, "ordered_at_ms: must be a whole number"),
        ("respond", {"question_id": 3}, "question_id: must be a string"),
        ("respond", {"payload": "x" * MAX}, f"payload: {MAX + 2} bytes, the limit is {MAX}"),
        ("respond", {"payload": "\ud800"}, "payload: not plain JSON"),
    ],
)
def test_what_is_wrong_is_named_by_its_field(order: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(order, **changes)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("payload", [None, False, 0, "", [], {}])
def test_any_json_is_a_payload(payload: Any) -> None:
    event = parse("respond", payload=payload).event
    assert isinstance(event, ResponseGiven)
    assert json.loads(event.payload) == payload


@given(line=st.binary(max_size=200) | st.text(max_size=200))
def test_no_line_does_anything_but_parse_or_be_refused(line: bytes | str) -> None:
    with pytest.raises(InvalidRequest):
        parse_order(line, payload_bytes_max=MAX)
