"""Strategies for what every record is made of: ids, texts, times, JSON, requests, failures."""

import string
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from reattach.models.outcomes import Failure, FailureCode, RemoteFate
from reattach.models.request import ID_CHARS_MAX, TIME_MS_MAX, TURN_MAX, Request, canonical_json

_PRINTABLE = st.characters(codec="utf-8", exclude_categories=["C", "Z"])


def ids() -> SearchStrategy[str]:
    """What a request may name itself: 1 to 256 printable characters, often plain ones."""
    plain = st.text(string.ascii_lowercase + string.digits + "-_", min_size=1, max_size=24)
    return plain | st.text(_PRINTABLE, min_size=1, max_size=ID_CHARS_MAX)


def texts(max_size: int = 40) -> SearchStrategy[str]:
    """What a remote may say: any text, half surrogate pairs included."""
    return st.text(st.characters(), max_size=max_size)


def times() -> SearchStrategy[int]:
    """Milliseconds since the epoch, 0 included."""
    return st.integers(0, TIME_MS_MAX)


def counts(least: int = 0) -> SearchStrategy[int]:
    """Small numbers, and now and then one that no longer fits 32 bits."""
    return st.integers(least, 100) | st.integers(least, 2**40)


def json_values() -> SearchStrategy[Any]:
    """Any JSON value, at most a few levels deep."""
    text = st.text(st.characters(codec="utf-8"), max_size=20)
    leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
        max_leaves=8,
    )


def json_bytes() -> SearchStrategy[bytes]:
    """The canonical encoding of any JSON value."""
    return json_values().map(canonical_json)


def json_objects() -> SearchStrategy[bytes]:
    """The canonical encoding of any JSON object."""
    return st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=10), json_values(), max_size=3).map(
        canonical_json
    )


def requests() -> SearchStrategy[Request]:
    """Requests as `parse_request` makes them."""
    return st.builds(
        Request,
        invocation_id=ids(),
        agent=ids(),
        message=json_bytes(),
        requested_at_ms=st.integers(1, TIME_MS_MAX),
        thread_id=st.just("") | ids(),
        deadline_ms=st.just(0) | st.integers(1, TIME_MS_MAX),
        turn=st.just(0) | st.integers(1, TURN_MAX),
        generation=st.just(1) | st.integers(1, TURN_MAX),
        metadata=st.just(b"{}") | json_objects(),
    )


def failures() -> SearchStrategy[Failure]:
    return st.builds(
        Failure, st.sampled_from(FailureCode), texts(), remote=st.sampled_from(RemoteFate), retryable=st.booleans()
    )
