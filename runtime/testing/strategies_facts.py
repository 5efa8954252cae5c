"""Strategies for what a remote answers and what a call is told: answers and events."""

from dataclasses import fields
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from reattach.models import answers, events
from reattach.runtime.testing.strategies_basic import counts, failures, ids, json_bytes, requests, texts, times


def _fields_of_answer() -> dict[str, SearchStrategy[Any]]:
    return {
        "after": st.none() | texts(),
        "handle": texts(),
        "result": st.none() | json_bytes(),
        "failure": st.none() | failures(),
        "question_id": texts(),
        "question": st.just(b"") | json_bytes(),
        "cause": texts(),
        "final": st.booleans(),
        "phase": st.sampled_from(answers.Phase),
        "retry_after_ms": times(),
        "value": json_bytes(),
    }


def _answer(cls: type[Any]) -> SearchStrategy[Any]:
    known = _fields_of_answer()
    if cls is answers.Refused:
        known["failure"] = failures()
    return st.builds(cls, **{field.name: known[field.name] for field in fields(cls)})


def _one_of(*classes: type[Any]) -> SearchStrategy[Any]:
    return st.one_of([_answer(cls) for cls in classes])


def probe_answers() -> SearchStrategy[answers.ProbeAnswer]:
    return _one_of(answers.Absent, answers.Present, answers.Unknown)


def submit_answers() -> SearchStrategy[answers.SubmitAnswer]:
    """Answers to a submit, and to a response."""
    return _one_of(answers.Accepted, answers.Occupied, answers.Refused, answers.NotSent, answers.Unresolved)


def fetch_answers() -> SearchStrategy[answers.FetchAnswer]:
    return _one_of(answers.Result, answers.NotReady, answers.Gone, answers.Unknown)


def fence_answers() -> SearchStrategy[answers.FenceAnswer]:
    return _one_of(answers.Fenced, answers.Occupied, answers.Unknown)


def cancel_answers() -> SearchStrategy[answers.CancelAnswer]:
    return _one_of(answers.Confirmed, answers.Taken, answers.Unknown)


def progress() -> SearchStrategy[answers.Progress]:
    return st.builds(answers.Progress, json_bytes(), cursor=texts())


def idents() -> SearchStrategy[events.Ident]:
    return st.builds(events.Ident, ids(), ids(), counts(1), counts())


def answered() -> SearchStrategy[events.Answered]:
    """Every event that answers an order."""
    ident = idents()
    items = st.lists(progress(), max_size=3).map(tuple)
    return st.one_of(
        st.builds(events.ProbeAnswered, ident, probe_answers()),
        st.builds(events.SubmitAnswered, ident, submit_answers()),
        st.builds(events.HandleLearned, ident, texts()),
        st.builds(events.Progressed, ident, items),
        st.builds(events.WatchEnded, ident, texts()),
        st.builds(events.FetchAnswered, ident, fetch_answers()),
        st.builds(events.FenceAnswered, ident, fence_answers()),
        st.builds(events.CancelAnswered, ident, cancel_answers()),
        st.builds(events.RespondAnswered, ident, submit_answers()),
        st.builds(events.CheckpointCompleted, ident),
    )


def ordered() -> SearchStrategy[events.Ordered]:
    """Every order that people and other systems give."""
    call = ids(), counts(1)
    return st.one_of(
        st.builds(events.CancelOrdered, *call),
        st.builds(events.AdoptOrdered, *call, texts()),
        st.builds(events.ResubmitOrdered, *call, times()),
        st.builds(events.AbandonOrdered, *call),
        st.builds(events.ResponseGiven, *call, ids(), texts(), json_bytes()),
    )


def step_events() -> SearchStrategy[events.Event]:
    """Every event that `fsm.step` takes."""
    return st.just(events.Restored()) | st.just(events.TimeReached()) | answered() | ordered()


def thread_events() -> SearchStrategy[events.ThreadEvent]:
    """Every event that a thread takes: `step_events` and requests."""
    return step_events() | st.builds(events.Requested, requests())
