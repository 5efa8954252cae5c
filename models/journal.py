"""The journal: one entry per step of one call, enough to replay it through today's `step`.

Payloads (messages, results, questions, responses, stream data) are replaced by their digests unless
they are asked for: a step never looks inside one, so the replay is the same.

A call can be replayed from its own entries alone. The first one that an incarnation makes of a call
carries its basis: the record as that incarnation found it, and the terms in force. So it does not
matter which checkpoint was restored, or whether older files of the journal have been deleted.
"""

import hashlib
import re
from dataclasses import dataclass, replace
from typing import Final

from reattach.models.answers import Present, Progress, Result
from reattach.models.events import (
    FetchAnswered,
    ProbeAnswered,
    Progressed,
    Requested,
    ResponseGiven,
    ThreadEvent,
)
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf
from reattach.models.record import NOTHING_KEPT, record
from reattach.models.request import Request

_REDACTED: Final = re.compile(rb'"sha256:[0-9a-f]{16}/[0-9]{1,10}"')


@record
@dataclass(frozen=True, slots=True)
class Basis:
    """What an incarnation started from with one call.

    Args:
        terms: see `models.terms`.
        record: before the step (after it, where the call has just begun), payloads redacted.
        until_ms: where the call drains, when its thread is released at the latest.
    """

    terms: str
    record: Invocation
    until_ms: int = 0


@record
@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One step.

    Args:
        agent, thread_id: the key of the stream.
        seq: the record's own count of steps after this one. It stays where a fact was dropped, rises
            by two where one was applied with a take-over, and falls where an older checkpoint was restored.
        at_ms, opened_ms, incarnation, lineage: the surroundings of the step.
        before: None when the call has just begun.
        effects: names of what was ordered.
        state: 8 bytes of the digest of the record after the step, payloads redacted.
        basis: on the first entry that an incarnation makes of a call, else None.
    """

    agent: str
    thread_id: str
    invocation_id: str
    generation: int
    seq: int
    at_ms: int
    opened_ms: int
    incarnation: str
    lineage: bool
    event: ThreadEvent
    before: Leaf | None
    after: Leaf
    effects: tuple[str, ...]
    state: bytes
    basis: Basis | None = None


def redacted(payload: bytes) -> bytes:
    """A JSON string that stands for a payload: its length and digest. Empty and redacted stay as they are."""
    # The whole form, not its beginning: a message may begin so and go on with what nobody may read.
    if not payload or _REDACTED.fullmatch(payload):
        return payload
    return f'"sha256:{hashlib.sha256(payload).hexdigest()[:16]}/{len(payload)}"'.encode()


def redact_request(request: Request) -> Request:
    """The same request without the words of people, or what only a later release can read; itself if it holds none."""
    message, metadata = redacted(request.message), redacted(request.metadata)
    if message is request.message and metadata is request.metadata and not request.kept:
        return request
    return replace(request, message=message, metadata=metadata, kept=NOTHING_KEPT)


def redact_record(invocation: Invocation) -> Invocation:
    """The same record without the words of people, and what only a later release can read."""
    request, response = redact_request(invocation.request), invocation.response
    if response is not None:
        response = replace(response, payload=redacted(response.payload))
    elif request is invocation.request and not invocation.kept:
        return invocation
    return replace(invocation, request=request, response=response, kept=NOTHING_KEPT)


def redact_event(event: ThreadEvent) -> ThreadEvent:
    """The same fact without the words of people or agents."""
    if isinstance(event, Requested):
        return Requested(redact_request(event.request))
    if isinstance(event, ProbeAnswered) and isinstance(event.answer, Present):
        answer = event.answer
        result = None if answer.result is None else redacted(answer.result)
        return replace(event, answer=replace(answer, result=result, question=redacted(answer.question)))
    if isinstance(event, FetchAnswered) and isinstance(event.answer, Result):
        return replace(event, answer=Result(redacted(event.answer.value)))
    if isinstance(event, Progressed):
        return replace(event, items=tuple(Progress(redacted(item.data), item.cursor) for item in event.items))
    if isinstance(event, ResponseGiven):
        return replace(event, payload=redacted(event.payload))
    return event
