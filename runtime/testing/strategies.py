"""Hypothesis strategies for every record of `reattach.models`.

Each strategy draws only what the library itself could hold: requests that `parse_request` accepts,
invocations that pass `check_invocation`, thread states that pass `check_thread`, terms that
construct. Answers, events and effects are any that an adapter or a host may form.

    from hypothesis import given
    from reattach.testing import strategies

    @given(strategies.thread_states())
    def test_something(state): ...

Numbers shrink towards 0 or 1, texts and tuples towards empty ones, optional parts towards None.
"""

from reattach.runtime.testing.strategies_basic import (
    counts,
    failures,
    ids,
    json_bytes,
    json_objects,
    json_values,
    requests,
    texts,
    times,
)
from reattach.runtime.testing.strategies_facts import (
    answered,
    cancel_answers,
    fence_answers,
    fetch_answers,
    idents,
    ordered,
    probe_answers,
    progress,
    step_events,
    submit_answers,
    thread_events,
)
from reattach.runtime.testing.strategies_records import (
    drains,
    invocations,
    journal_entries,
    notices,
    outcomes,
    responses,
    step_effects,
    tenures,
    thread_states,
    tombstones,
)
from reattach.runtime.testing.strategies_terms import capabilities, policies, terms

__all__ = [
    "answered",
    "cancel_answers",
    "capabilities",
    "counts",
    "drains",
    "failures",
    "fence_answers",
    "fetch_answers",
    "idents",
    "ids",
    "invocations",
    "journal_entries",
    "json_bytes",
    "json_objects",
    "json_values",
    "notices",
    "ordered",
    "outcomes",
    "policies",
    "probe_answers",
    "progress",
    "requests",
    "responses",
    "step_effects",
    "step_events",
    "submit_answers",
    "tenures",
    "terms",
    "texts",
    "thread_events",
    "thread_states",
    "times",
    "tombstones",
]
