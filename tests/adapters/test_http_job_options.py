"""Options of `http_job`: what is wrong is refused at load and named; what they promise is what is declared."""

import datetime
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import given as generated
from hypothesis import strategies as st

from reattach.adapters.contract import variants_of
from reattach.adapters.http_job import HttpJobAdapter
from reattach.adapters.http_job_checks import read_options
from reattach.adapters.registry import create
from reattach.models.errors import ConfigError
from reattach.models.policy import (
    Absence,
    CancelKind,
    Capabilities,
    Deduplication,
    Evidence,
    StreamKind,
    SubmitAfter,
)
from reattach.runtime.config import check_agents
from tests.adapters import jobs
from tests.adapters.jobs import BY_HANDLE, BY_ID, BY_LIST, BY_THREAD, WITH_KEY, options

KEYED = {"lifetime_ms": 5}

WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "submit: required, such as '/jobs'"),
    (options(BY_ID, sumbit="/x"), "sumbit: no such option (known: absent, body,"),
    (options(BY_ID, submit="jobs"), "submit: must be a path below the agent's url that begins with '/'"),
    (options(BY_ID, submit=7), "submit: must be a path below"),
    (options(BY_ID, submit="/" + "x" * 3000), "submit: must be a path below"),
    (options(BY_ID, submit="//evil.example/x"), "submit: must have no empty part"),
    (options(BY_ID, submit="/a/../b"), "submit: must have no empty part and no '.' or '..'"),
    (options(BY_ID, submit="/a/.."), "submit: must have no empty part and no '.' or '..'"),
    (options(BY_ID, submit="/jobs#x"), "submit: must be printable ASCII"),
    (options(BY_ID, submit="/jöbs"), "submit: must be printable ASCII"),
    (options(BY_ID, submit="/jobs/{handle}"), "submit: no placeholder {handle} here (known: {key}, {marker}, {thr"),
    (options(BY_ID, submit="/jobs/{"), "submit: has a brace that belongs to no placeholder"),
    (options(BY_ID, status="/jobs/{job_id}"), "status: no placeholder {job_id} here (known: {handle},"),
    ({"submit": "/jobs", "status_map": {"done": "completed"}}, "status: required, such as '/jobs/{handle}'"),
    (options(BY_ID, status="/jobs"), "status: must say which job"),
    (options(BY_ID, body={"x": "{message}"}), "status: asks by {marker}, which neither 'submit' nor 'body' sends"),
    (options(BY_THREAD, submit="/jobs"), "status: asks by {thread}, which neither"),
    (options(BY_ID, status="/jobs/{key}"), "status: asks by {key}, which neither"),
    (options(BY_ID, status_map={}), "status_map: required, and one of its words must mean 'completed'"),
    (options(BY_ID, status_map={"done": "finished"}), "status_map.done: must be one of 'running',"),
    (options(BY_ID, status_map={"done": 1}), "status_map.done: must be one of"),
    (options(BY_ID, status_map={"done": ["completed"]}), "status_map.done: must be one of"),
    (options(BY_ID, status_map="done"), "status_map: must be a table, write [agents.demo.options.status_map]"),
    (options(BY_ID, status_map={"x": "running"}), "status_map: required, and one of"),
    (options(BY_ID, methods={"submit": "GET"}), "methods.submit: must be one of 'POST', 'PUT'"),
    (options(BY_ID, methods={"status": "GET"}), "methods.status: no such option (known: cancel, submit)"),
    (options(BY_ID, methods={"cancel": "POST"}), "methods.cancel: means nothing without 'cancel'"),
    (options(BY_ID, body=[1]), "body: must be a table"),
    (options(BY_ID, body={"id": "{marker}"}), "body: must hold the message: write a member such as input"),
    (options(BY_ID, body={"a": [{"b": "{mesage}"}]}), "body: a.0.b: no placeholder {mesage} here (known: {key},"),
    (options(BY_ID, body={"a\nb": "{handle}"}), "body: a b: no placeholder {handle} here"),
    (options(BY_ID, body={"a" * 900: "{handle}"}), "body: aaaa"),
    (options(BY_ID, status="/jobs/{" + "x" * 900 + "}"), "status: no placeholder {xxx"),
    (options(BY_ID, body={"a": "x{message}"}), "body: a: {message} and {metadata} are JSON values and must stand"),
    (options(BY_ID, body={"a": float("nan")}), "body: a: JSON has no float like this"),
    (options(BY_ID, body={"a": object()}), "body: a: JSON has no object like this"),
    (options(BY_ID, paths={"handel": "x"}), "paths.handel: no such option (known: error, handle,"),
    (options(BY_ID, paths={"status": "a..b"}), "paths.status: must be a path in the answer"),
    (options(BY_ID, paths={"status": 3}), "paths.status: must be a path in the answer"),
    (options(BY_ID, paths={"status": ""}), "paths.status: must name a member"),
    (options(BY_THREAD, body={"m": "{message}"}, paths={"marker": "ref"}), "paths.marker: can be compared with"),
    (options(BY_ID, paths={"question": "q"}), "paths.question: means nothing: no word of status_map means"),
    (options(BY_ID, absent={"code": [404]}), "absent.code: no such option (known: http, path, value)"),
    (options(BY_ID, absent={"http": 404}), "absent.http: must be a list of HTTP status codes from 400 to 499"),
    (options(BY_ID, absent={"http": [500]}), "absent.http: must be a list of HTTP status codes from 400 to 499"),
    (options(BY_ID, absent={"path": "code"}), "absent.value: required: path and value belong together"),
    (options(BY_ID, absent={"value": "none"}), "absent.path: required: path and value belong together"),
    (options(BY_ID, idempotency={}), "idempotency.lifetime_ms: required, a whole number from 1 to"),
    (options(BY_ID, idempotency={"lifetime_ms": 0}), "idempotency.lifetime_ms: required, a whole number"),
    (options(BY_ID, idempotency={"lifetime_ms": True}), "idempotency.lifetime_ms: required, a whole number"),
    (options(BY_ID, idempotency={**KEYED, "header": "Host"}), "idempotency.header: must be the name of a header"),
    (options(BY_ID, idempotency={**KEYED, "header": "a b"}), "idempotency.header: must be the name of a header"),
    (options(BY_ID, idempotency={**KEYED, "key": "x"}), "idempotency.key: no such option"),
    (
        options(BY_THREAD, idempotency={**KEYED, "header": ""}, body={"m": "{message}"}),
        "idempotency.header: '' means that the service knows an id again: send {key} or {marker}",
    ),
    (options(BY_ID, handle_header="Authorization"), "handle_header: must be the name of a header"),
    (options(BY_ID, handle_header=["Location"]), "handle_header: must be a string of at most 256"),
    (options(BY_ID, conflict="ignore"), "conflict: must be one of 'occupied', 'accepted', 'refused'"),
    (
        options(BY_THREAD, conflict="accepted", body={"m": "{message}"}),
        "conflict: 'accepted' needs an id that only this call sends",
    ),
    (options(BY_ID, list="/jobs?ref={marker}"), "list: not needed: 'status' finds the job by an id of ours"),
    (options(BY_LIST, paths={}), "paths.marker: required with 'list'"),
    (options(BY_LIST, body={"m": "{message}"}, list="/jobs"), "list: finds jobs by an id that neither"),
    (options(BY_LIST, list="/jobs?ref={key}"), "list: filters by {key}, which neither"),
    (options(BY_LIST, list="/jobs"), "list: may be cut, and then proves no absence: filter by {marker}, or set"),
    (options(BY_LIST, list_next="/jobs?page={page}"), "list_next: needs {page} in it, and paths.next"),
    (options(BY_LIST, list_next="/jobs", paths={"marker": "r", "next": "n"}), "list_next: needs {page} in it"),
    (
        options(BY_LIST, list_next="/jobs?k={key}&p={page}", paths={"marker": "r", "next": "n"}),
        "list_next: filters by {key}, which neither",
    ),
    (options(BY_LIST, list_whole="yes", list="/jobs"), "list_whole: must be true or false"),
    (options(BY_ID, list_oldest_first=True), "list_oldest_first: means nothing without 'list'"),
    (options(BY_LIST, status_map={"x": "absent", "d": "completed"}), ""),
    (options(BY_ID, result="/result"), "result: must say which job"),
    (options(BY_ID, result="/jobs/{key}"), "result: asks by {key}, which neither"),
    (options(BY_ID, submit="/jobs/{thread}", cancel="/{thread}"), "cancel: a thread may hold several jobs: say which"),
    (options(BY_ID, cancel_confirms=True), "cancel_confirms: means nothing without 'cancel'"),
    (options(BY_ID, stream_resumes=True), "stream_resumes: means nothing without 'stream'"),
    (options(BY_ID, stream_end="x"), "stream_end: means nothing without 'stream'"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "says"), WRONG)
def test_what_is_wrong_is_one_line_that_names_the_key(given: dict[str, Any], says: str) -> None:
    if not says:
        read_options("agents.demo.options", given)
        return
    with pytest.raises(ConfigError) as caught:
        create(jobs.config(given), httpx.AsyncClient())
    message = str(caught.value)
    assert message.startswith(f"agents.demo.options.{says}"), message
    assert message.isprintable() and len(message) < 400


def test_a_job_that_is_only_listed_cannot_be_absent() -> None:
    given = {name: value for name, value in BY_LIST.items() if name != "status"}
    with pytest.raises(ConfigError, match="options.status_map: a job that is listed cannot be 'absent'"):
        read_options("agents.demo.options", given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (BY_ID, Capabilities(evidence=Evidence.MARKER, admission_ms=2_000)),
        (BY_THREAD, Capabilities(evidence=Evidence.CONTAINER, admission_ms=2_000)),
        (BY_LIST, Capabilities(evidence=Evidence.MARKER, admission_ms=2_000)),
        (BY_HANDLE, Capabilities(evidence=Evidence.HANDLE_ONLY, absence=Absence.NEVER, admission_ms=2_000)),
        (
            WITH_KEY,
            Capabilities(
                deduplication=Deduplication.KEY,
                evidence=Evidence.HANDLE_ONLY,
                absence=Absence.NEVER,
                admission_ms=2_000,
                key_lifetime_ms=86_400_000,
            ),
        ),
        (
            options(BY_ID, stream="/jobs/{marker}/events", cancel="/jobs/{marker}", stream_resumes=True),
            Capabilities(
                evidence=Evidence.MARKER,
                admission_ms=2_000,
                stream=StreamKind.CURSOR,
                cancel=CancelKind.BEST_EFFORT,
            ),
        ),
        (
            options(BY_ID, stream="/e/{marker}", cancel="/jobs/{handle}", cancel_confirms=True),
            Capabilities(
                evidence=Evidence.MARKER, admission_ms=2_000, stream=StreamKind.LIVE, cancel=CancelKind.CONFIRMED
            ),
        ),
    ],
)
def test_the_options_decide_what_the_remote_can_do(given: dict[str, Any], expected: Capabilities) -> None:
    assert create(jobs.config(given), httpx.AsyncClient()).capabilities == expected


def test_a_handle_alone_needs_a_checkpoint_before_the_post() -> None:
    probed = jobs.config(BY_HANDLE)
    probed = replace(probed, policy=replace(probed.policy, submit_after=SubmitAfter.PROBE))
    with pytest.raises(ConfigError, match=r"agents.demo.policy.submit_after: .* set submit_after = 'checkpoint'"):
        check_agents({"demo": probed})
    assert check_agents({"demo": jobs.config(BY_HANDLE)})["demo"].writes_ahead
    assert check_agents({"demo": jobs.config(WITH_KEY)})["demo"].memory_ms == 1_000


@pytest.mark.parametrize("variant", variants_of(HttpJobAdapter), ids=lambda variant: variant.name)
def test_each_variant_is_what_its_options_give(variant: Any) -> None:
    assert create(jobs.config(dict(variant.options)), httpx.AsyncClient()).capabilities == variant.capabilities


def test_a_dedup_by_an_id_of_ours_needs_no_header() -> None:
    read = read_options("x", options(BY_ID, submit="/jobs/{key}", idempotency={**KEYED, "header": ""}))
    assert (read.key_header, read.capabilities.deduplication) == ("", Deduplication.KEY)


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.just(datetime.date(2026, 11, 29))
    | st.sampled_from(["/jobs", "/jobs/{marker}", "/{handle}", "{message}", "{key}", "completed", "absent", "", "a.b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
FULL = options(
    BY_LIST,
    list_next="/jobs?p={page}",
    result="/jobs/{handle}/r",
    cancel="/jobs/{handle}",
    stream="/e/{handle}",
    paths={"marker": "ref", "next": "next", "handle": "id", "question": "q"},
    methods={"submit": "PUT", "cancel": "DELETE"},
    absent={"http": [404], "path": "code", "value": "none"},
    idempotency={"header": "X-Key", "lifetime_ms": 1_000},
    status_map={"done": "completed", "asks": "awaiting_input"},
    body={"in": "{message}", "ref": ["{marker}"]},
    handle_header="Location",
    conflict="accepted",
)


def places(value: dict[str, Any], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, inner in value.items():
        yield (*before, key)
        if isinstance(inner, dict):
            yield from places(inner, (*before, key))


@generated(st.lists(st.tuples(st.sampled_from(list(places(FULL))), JUNK), min_size=1, max_size=3), st.text(max_size=5))
def test_whatever_stands_in_the_options_is_read_or_refused_in_one_line(
    changes: list[tuple[tuple[str, ...], Any]], word: str
) -> None:
    assert read_options("agents.demo.options", FULL).capabilities.cancel is CancelKind.BEST_EFFORT
    given = options(FULL)
    for (*tables, last), junk in changes:
        table: Any = given
        for name in tables:
            table = table.get(name) if isinstance(table, dict) else None
        if isinstance(table, dict):
            table[last] = junk
            table.setdefault(word, junk)
    try:
        read_options("agents.demo.options", given)
    except ConfigError as error:
        text = str(error)
        assert text.startswith("agents.demo.options.") and text.isprintable(), text
        assert ": " in text and len(text) < 500
