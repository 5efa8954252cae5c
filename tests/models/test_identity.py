"""Names that running jobs and remotes already know: these values never change."""

import subprocess
import sys
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reattach.models.identity import dedup_key_of, digest_of, marker_of, request_key, thread_id_of, uuid_of
from reattach.models.request import Request
from reattach.runtime.testing import strategies as made

CALL = Request("call-1", "research", b'"hello"', 1_700_000_000_000)
TALK = replace(CALL, thread_id="talk-9")


def test_names_are_what_they_have_always_been() -> None:
    assert thread_id_of(CALL, 1) == "27794b23-a2e4-52ca-a738-767c72c6c19c"
    assert thread_id_of(CALL, 2) == "85a77385-3639-5e59-be01-41aebc655f3f"
    assert thread_id_of(CALL, 1, slot=2) == "c813daab-16b4-5c53-8298-55e27230b811"
    assert thread_id_of(replace(CALL, invocation_id="grüße/\u2192"), 1) == "e4a8fcf5-0a6d-52d2-be0c-92bd372b2622"
    assert dedup_key_of(CALL, 1) == "9de4185f-f268-5ce5-861e-820eebb744ad"
    assert dedup_key_of(CALL, 2) == "56f3189a-0c81-5f89-824d-1071711a5532"
    assert digest_of(CALL).hex() == "225344a2deeea13d45fc9f9c19fe1012"
    assert (
        digest_of(replace(TALK, turn=3, deadline_ms=9, metadata=b'{"a":1}')).hex() == "2597b8e43fc10b5800d62591e912268b"
    )


def test_markers() -> None:
    assert marker_of("call-1", 1) == "call-1"
    assert marker_of("call-1", 2) == "call-1#2"
    assert marker_of("call-1#2", 1) == "call-1#2#1"
    assert marker_of("call #2b", 1) == "call #2b"


IDS = st.text(st.sampled_from("a#12"), min_size=1, max_size=6) | st.text(min_size=1, max_size=6)


@given(st.tuples(IDS, st.integers(1, 30)), st.tuples(IDS, st.integers(1, 30)))
def test_no_two_calls_share_a_marker(one: tuple[str, int], other: tuple[str, int]) -> None:
    assert (marker_of(*one) == marker_of(*other)) == (one == other)


def test_a_named_thread_is_the_thread_of_every_generation() -> None:
    assert {thread_id_of(TALK, generation, slot) for generation in (1, 2) for slot in (1, 2)} == {"talk-9"}


def test_a_thread_on_a_remote_that_takes_uuids_only() -> None:
    own = "27794b23-a2e4-52ca-a738-767c72c6c19c"
    assert uuid_of(own) == own
    assert uuid_of("talk-9") == "ac988a53-ea10-50e8-aa4f-0ebf76a39a9a"
    # Another spelling is another thread here, and must not meet the first one there.
    for other in (own.upper(), own.replace("-", ""), f"{{{own}}}", own + "\n"):
        assert uuid_of(other) not in (own, uuid_of("talk-9")) and uuid_of(uuid_of(other)) == uuid_of(other)


@given(made.requests(), st.integers(2, 9))
def test_the_key_does_not_depend_on_the_generation(request: Request, generation: int) -> None:
    assert request_key(request) == request_key(replace(request, generation=generation))
    assert request_key(request) == (request.agent, thread_id_of(request, 1))


@given(made.requests(), st.integers(1, 9), st.integers(1, 9))
def test_every_attempt_has_a_thread_of_its_own(request: Request, generation: int, slot: int) -> None:
    own = replace(request, thread_id="")
    names = {thread_id_of(own, g, s) for g in (generation, generation + 1) for s in (slot, slot + 1)}
    assert len(names) == 4
    assert dedup_key_of(own, generation) not in names
    assert dedup_key_of(own, generation) != dedup_key_of(own, generation + 1)


@given(made.requests(), made.requests())
def test_another_content_has_another_digest(one: Request, other: Request) -> None:
    def content(request: Request) -> Request:
        return replace(request, requested_at_ms=1, generation=1)

    assert (digest_of(one) == digest_of(other)) == (content(one) == content(other))


def test_the_digest_tells_fields_apart() -> None:
    changed = [
        CALL,
        TALK,
        replace(CALL, agent="writer"),
        replace(CALL, invocation_id="call-2"),
        replace(CALL, message=b"1"),
        replace(CALL, deadline_ms=1),
        replace(CALL, turn=1),
        replace(CALL, metadata=b'{"a":1}'),
        replace(CALL, invocation_id="call-1r", agent="esearch"),
    ]
    assert len({digest_of(request) for request in changed}) == len(changed)


def test_a_redelivered_request_has_the_same_digest() -> None:
    assert digest_of(replace(CALL, requested_at_ms=5, generation=2)) == digest_of(CALL)


def test_names_do_not_depend_on_the_process() -> None:
    code = (
        "from reattach.models.identity import *; from reattach.models.request import Request;"
        "r = Request('call-1', 'research', b'\"hello\"', 1_700_000_000_000);"
        "print(thread_id_of(r, 1), dedup_key_of(r, 1), digest_of(r).hex())"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert told == [thread_id_of(CALL, 1), dedup_key_of(CALL, 1), digest_of(CALL).hex()]
