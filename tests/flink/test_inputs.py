"""What comes into a host as a request, and what does not."""

import json

import pytest

from reattach.adapters.contract import AgentConfig
from reattach.models.policy import Policy
from reattach.models.request import Request
from reattach.runtime.flink.function import UNREADABLE, request_key_of
from reattach.runtime.flink.inputs import read_request

AGENTS = {"a": AgentConfig("a", "thread", "http://a", policy=Policy(retention_ms=1_000, message_bytes_max=1_000))}
LINE = json.dumps({"invocation_id": "1", "agent": "a", "message": "hello", "requested_at_ms": 1})


def test_the_key_and_the_host_read_a_line_alike() -> None:
    request = read_request(LINE, AGENTS)
    assert isinstance(request, Request)
    assert request_key_of(LINE) == request_key_of(LINE.encode()) == request_key_of(request) != UNREADABLE


@pytest.mark.parametrize("length", [4 * 1_000 + 64 * 1024, 4 * 1_000 + 64 * 1024 + 1])
def test_a_line_longer_than_any_message_is_refused_whatever_it_holds(length: int) -> None:
    """The agents' limits count, and not the one under which its key was read."""
    read = read_request(LINE.ljust(length), AGENTS)
    most = 4 * 1_000 + 64 * 1024
    assert (read == f"line of {length} bytes is longer than any message that is allowed") == (length > most)


def test_what_is_no_line_is_told() -> None:
    assert read_request(7, AGENTS) == "neither a line of JSON nor a Request: int"
    assert request_key_of(7) == UNREADABLE
