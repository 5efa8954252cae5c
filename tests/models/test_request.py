"""Every way in which a line of input can be wrong is named by its field."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach.models.errors import InvalidRequest
from reattach.models.request import Request, canonical_json, parse_request, request_from_mapping
from reattach.runtime.testing import strategies as made

MAX = 1024
GOOD = {
    "invocation_id": "call-1",
    "agent": "research",
    "message": {"b": 1, "a": "ü"},
    "requested_at_ms": 1_700_000_000_000,
}


def parse(**changes: Any) -> Request:
    value = {name: part for name, part in (GOOD | changes).items() if part is not ...}
    return parse_request(json.dumps(value), message_bytes_max=MAX)


def test_a_line_with_only_what_is_required() -> None:
    assert parse() == Request("call-1", "research", '{"a":"ü","b":1}'.encode(), 1_700_000_000_000)


def test_a_line_with_everything() -> None:
    request = parse(thread_id="t", deadline_ms=5, turn=2, generation=3, metadata={"k": [1]})
    assert (request.thread_id, request.deadline_ms, request.turn, request.generation) == ("t", 5, 2, 3)
    assert request.metadata == b'{"k":[1]}'


def test_null_stands_for_left_out() -> None:
    assert parse(thread_id=None, deadline_ms=None, turn=None, generation=None) == parse()


@given(made.requests())
def test_every_request_of_the_strategies_can_come_from_a_line(request: Request) -> None:
    value = {
        "invocation_id": request.invocation_id,
        "agent": request.agent,
        "message": json.loads(request.message),
        "requested_at_ms": request.requested_at_ms,
        "thread_id": request.thread_id or None,
        "deadline_ms": request.deadline_ms or None,
        "turn": request.turn or None,
        "generation": request.generation,
        "metadata": json.loads(request.metadata),
    }
    assert parse_request(json.dumps(value).encode(), message_bytes_max=10**6) == request
    assert request_from_mapping(value, message_bytes_max=10**6) == request


@pytest.mark.parametrize("field", ["invocation_id", "agent", "message", "requested_at_ms"])
def test_required(field: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^{field}: required$"):
        parse(**{field: ...})


@pytest.mark.parametrize("field", ["invocation_id", "agent", "requested_at_ms"])
def test_null_is_not_enough(field: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^{field}: required$"):
        parse(**{field: None})


@pytest.mark.parametrize("field", ["invocation_id", "agent", "thread_id"])
@pytest.mark.parametrize(
    "bad", ["", "x" * 257, 7, True, ["x"], {"x": 1}, "a\nb", "a\x00b", "\ud800", "a\u202eb", "\u2028"]
)
def test_names(field: str, bad: Any) -> None:
    with pytest.raises(InvalidRequest, match=f"^{field}: "):
        parse(**{field: bad})


@pytest.mark.parametrize("field", ["requested_at_ms", "deadline_ms", "turn", "generation"])
@pytest.mark.parametrize("bad", [0, -1, 2**53 + 1, 10**30, 1.0, 1.5, True, "1", [1]])
def test_numbers(field: str, bad: Any) -> None:
    with pytest.raises(InvalidRequest, match=f"^{field}: must be a whole number from 1 to "):
        parse(**{field: bad})


@pytest.mark.parametrize("bad", [[], "x", 1, None])
def test_metadata_must_be_an_object(bad: Any) -> None:
    with pytest.raises(InvalidRequest, match="^metadata: must be an object"):
        parse(metadata=bad)


def test_sizes() -> None:
    assert len(parse(message="x" * (MAX - 2)).message) == MAX
    with pytest.raises(InvalidRequest, match=f"^message: {MAX + 1} bytes, the limit is {MAX}$"):
        parse(message="x" * (MAX - 1))
    with pytest.raises(InvalidRequest, match="^metadata: 16393 bytes, the limit is 16384$"):
        parse(metadata={"k": "x" * 16385})
    with pytest.raises(InvalidRequest, match="longer than any message"):
        parse_request(b" " * (4 * MAX + 64 * 1024 + 1), message_bytes_max=MAX)


def test_an_unknown_field_is_named_and_clipped() -> None:
    with pytest.raises(InvalidRequest, match=r"^thread: no such field \(known: agent, .*thread_id, turn\)$"):
        parse(thread="t")
    with pytest.raises(InvalidRequest, match=f"^{'y' * 40}: no such field"):
        parse(**{"y" * 1000: 1})


@pytest.mark.parametrize(
    "line",
    ["", "{", "nope", b"\xff\xfe", b"\x80", '{"a":NaN}', '{"a":Infinity}', "[" * 100_000, '{"a":1} {}', "9" * 5000],
)
def test_not_json(line: bytes | str) -> None:
    with pytest.raises(InvalidRequest, match="^not JSON: "):
        parse_request(line, message_bytes_max=10**6)


@pytest.mark.parametrize("line", ["[]", "1", "null", '"x"', "true"])
def test_not_an_object(line: str) -> None:
    with pytest.raises(InvalidRequest, match="^not a JSON object$"):
        parse_request(line, message_bytes_max=MAX)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", object(), {1, 2}, b"x"])
def test_not_plain_json(value: object) -> None:
    with pytest.raises(InvalidRequest, match="^not plain JSON: "):
        canonical_json(value)


def test_a_message_nested_too_deep_is_refused() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InvalidRequest, match="not plain JSON"):
        canonical_json(value)


@given(st.text() | st.binary())
def test_any_line_gives_a_request_or_the_reason(line: str | bytes) -> None:
    with pytest.raises(InvalidRequest):
        parse_request(line, message_bytes_max=MAX)


@given(st.dictionaries(st.sampled_from([*GOOD, "turn", "thread_id", "deadline_ms", "metadata"]), made.json_values()))
def test_any_values_give_a_request_or_name_a_field(changes: dict[str, Any]) -> None:
    try:
        request = request_from_mapping(GOOD | changes, message_bytes_max=MAX)
    except InvalidRequest as error:
        assert str(error).partition(":")[0] in {*GOOD, "turn", "thread_id", "deadline_ms", "metadata"}
    else:
        assert isinstance(request, Request)


@given(made.json_values())
def test_canonical_json_does_not_depend_on_the_order_of_keys(value: Any) -> None:
    def turned(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: turned(part[name]) for name in reversed(part)}
        return [turned(each) for each in part] if isinstance(part, list) else part

    assert canonical_json(turned(value)) == canonical_json(value)
    assert json.loads(canonical_json(value)) == value
