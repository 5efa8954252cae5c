"""What is read from a remote is JSON, and stays JSON when it is written again."""

import json
from typing import Any

import httpx
import pytest

from reattach.adapters.body import MISSING, event_json, find, is_json, is_page, read_object, read_value, to_json
from reattach.adapters.http import Reply
from reattach.models.answers import Unknown


def reply(body: bytes, **more: Any) -> Reply:
    return Reply(200, httpx.Headers({"content-type": "application/json"}), body, **more)


def strict(text: bytes) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


class TestNumbers:
    @pytest.mark.parametrize("number", ["1e400", "-1e400", "1E+999999", "NaN", "Infinity", "-Infinity"])
    def test_what_json_cannot_hold_is_no_json(self, number: str) -> None:
        assert read_value(reply(f'{{"result": [{number}]}}'.encode())) == Unknown("the answer is not JSON")
        assert read_object(reply(f'{{"result": {number}}}'.encode())) == Unknown("the answer is not JSON")

    @pytest.mark.parametrize("number", ["1e308", "-0.0", "1e-400", "12345678901234567890123", "0.1"])
    def test_every_other_number_is_read_and_written(self, number: str) -> None:
        value = read_value(reply(number.encode()))
        assert strict(to_json(value)) == json.loads(number)

    @pytest.mark.parametrize("number", ["1e400", "NaN", "[Infinity]"])
    def test_an_event_with_such_a_number_is_a_text(self, number: str) -> None:
        assert strict(event_json(number)) == number

    def test_of_a_cut_answer_the_members_before_such_a_number_are_kept(self) -> None:
        cut = reply(b'{"status": "completed", "result": 1e400, "more": "', fault="too long", over=True)
        assert read_object(cut) == {"status": "completed"}


@pytest.mark.parametrize(
    ("key", "found"),
    [("0", "a"), ("1", "b"), ("-1", "b"), ("-2", "a"), ("2", MISSING), ("-3", MISSING), ("x", MISSING),
     ("--1", MISSING), ("\u0661", MISSING), ("1" * 20, MISSING)],
)  # fmt: skip
def test_a_place_in_a_list_is_counted_from_either_end(key: str, found: Any) -> None:
    assert find(["a", "b"], (key,)) is found or find(["a", "b"], (key,)) == found
    assert find({"k": ["a", "b"]}, ("k", key)) == find(["a", "b"], (key,))


@pytest.mark.parametrize(
    ("kind", "json_", "page"),
    [("application/json; charset=utf-8", True, False), ("Application/Problem+JSON", True, False),
     ("text/html", False, True), ("application/xhtml+xml;x", False, True), ("text/plain", False, False),
     ("", False, False)],
)  # fmt: skip
def test_what_an_answer_calls_itself(kind: str, json_: bool, page: bool) -> None:
    told = Reply(200, httpx.Headers({"content-type": kind}), b"")
    assert (is_json(told), is_page(told)) == (json_, page)
