"""Nothing that people or agents said is left in a redacted fact."""

import json
import re
from dataclasses import replace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from reattach.models.answers import Phase, Present, Progress, Result
from reattach.models.codec import encode_event
from reattach.models.events import (
    FetchAnswered,
    Ident,
    ProbeAnswered,
    Progressed,
    Requested,
    ResponseGiven,
    ThreadEvent,
)
from reattach.models.invocation import Invocation
from reattach.models.journal import redact_event, redact_record, redacted
from reattach.models.record import NOTHING_KEPT
from reattach.models.request import Request
from reattach.runtime.testing import strategies as made

SECRET = b'"what nobody else may read"'
IDENT = Ident("life-1", "call-1", 1, 1)
SPEAKING: list[ThreadEvent] = [
    Requested(Request("call-1", "research", SECRET, 1, metadata=SECRET)),
    ProbeAnswered(IDENT, Present(Phase.COMPLETED, result=SECRET)),
    ProbeAnswered(IDENT, Present(Phase.AWAITING_INPUT, question=SECRET)),
    FetchAnswered(IDENT, Result(SECRET)),
    Progressed(IDENT, (Progress(SECRET, "c"), Progress(SECRET))),
    ResponseGiven("call-1", 1, "r", "q", SECRET),
]


def test_payloads_are_gone() -> None:
    for event in SPEAKING:
        assert SECRET[1:-1] in encode_event(event)
        assert SECRET[1:-1] not in encode_event(redact_event(event)), event


@given(made.thread_events())
def test_a_redacted_fact_is_of_the_same_kind_and_stays_as_it_is(event: ThreadEvent) -> None:
    once = redact_event(event)
    assert type(once) is type(event)
    assert redact_event(once) == once


def _payloads(value: Any) -> list[bytes]:
    if isinstance(value, bytes):
        return [value]
    names = getattr(value, "__slots__", ())
    parts = value if isinstance(value, tuple) else [getattr(value, name) for name in names]
    return [] if isinstance(value, str) else [payload for part in parts for payload in _payloads(part)]


@given(made.thread_events())
def test_every_byte_string_of_a_redacted_fact_is_a_digest(event: ThreadEvent) -> None:
    for payload in _payloads(redact_event(event)):
        assert payload == b"" or re.fullmatch(rb'"sha256:[0-9a-f]{16}/[0-9]+"', payload)


@given(made.invocations())
def test_a_redacted_record_holds_digests_and_is_else_the_same(record: Invocation) -> None:
    once = redact_record(record)
    assert redact_record(once) is once or once.response is not None
    assert redact_record(once) == once
    for payload in _payloads(once):
        assert payload == b"" or re.fullmatch(rb'"sha256:[0-9a-f]{16}/[0-9]+"', payload)
    response = record.response and replace(record.response, payload=redacted(record.response.payload))
    assert once == replace(record, request=once.request, response=response, kept=NOTHING_KEPT)


@given(st.binary(min_size=1))
@example(b'"sha256:what nobody else may read"')
@example(redacted(SECRET) + SECRET)
def test_a_digest_is_json_and_tells_payloads_apart(payload: bytes) -> None:
    text = json.loads(redacted(payload))
    assert text.startswith("sha256:")
    assert text.endswith(f"/{len(payload)}")
    assert redacted(payload) != redacted(payload + b"x")


def test_nothing_stays_nothing() -> None:
    assert redacted(b"") == b""
