"""What an answer of the Responses API says about one response: pure, and never more than it says.

A status word that is not the API's own is `Unknown`; so is a completed response without an output,
and any answer about another response. Foreign text gets into a cause only shortened, printable and
without the token.
"""

import json
import re
from dataclasses import replace
from typing import Any, Final, NamedTuple

from httpx_sse import ServerSentEvent

from reattach.adapters.body import read_object, to_json
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.http import Reply
from reattach.adapters.openai_responses_options import METADATA_KEY
from reattach.adapters.verdict import refused, turned_down
from reattach.adapters.words import FAILURE_CHARS_MAX, handle_of
from reattach.models.answers import (
    Absent,
    CancelAnswer,
    Confirmed,
    Phase,
    Present,
    ProbeAnswer,
    Refused,
    Taken,
    Unknown,
    Unresolved,
)
from reattach.models.outcomes import Failure, FailureCode, RemoteFate

NUMBER_MAX: Final = 2**53
ENDED: Final = frozenset({"completed", "failed", "incomplete", "cancelled"})
# The API has no event for a cancelled response; some of its clones do.
LAST_EVENTS: Final = frozenset(f"response.{word}" for word in ENDED)
_GOING_ON: Final = frozenset({"queued", "in_progress"})
_OTHER: Final = "the answer is about another response"


class Event(NamedTuple):
    """One event of a stream.

    Args:
        number: its sequence number, None where it has none.
        response: the response that it shows, None where it shows none.
        code: of an `error`, "" where it has none.
    """

    name: str
    number: int | None
    response: dict[str, Any] | None
    code: str


def read_event(event: ServerSentEvent) -> Event:
    """Read what an event's JSON says; one that is not JSON has a name at most."""
    try:
        value = json.loads(event.data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return Event(event.event, None, None, "")
    name, number, response = value.get("type"), value.get("sequence_number"), value.get("response")
    whole = isinstance(number, int) and not isinstance(number, bool) and 0 <= number < NUMBER_MAX
    return Event(
        name if isinstance(name, str) else event.event,
        number if whole else None,
        response if isinstance(response, dict) else None,
        _code(value),
    )


def number_of(cursor: str) -> int:
    """Read a cursor; -1 for none, and for what no cursor of ours looks like."""
    return int(cursor) if re.fullmatch(r"[0-9]{1,16}", cursor, re.ASCII) else -1


def created(response: dict[str, Any], marker: str, endpoint: Endpoint) -> str | Unresolved:
    """Take the id of the response that a POST has created.

    Args:
        marker: the call's own, as it was sent in the metadata.
    """
    if _is_foreign(response, marker):
        # A gateway that answers from a cache: whose run that was says nothing about ours.
        return Unresolved(_OTHER)
    name = response.get("id")
    handle = handle_of(name, endpoint) if isinstance(name, str) else ""
    return handle or Unresolved("the answer holds no id that could be read")


def judge_created(reply: Reply, marker: str, endpoint: Endpoint) -> str | Refused | Unresolved:
    """Read an answer to a POST that is no stream: the id, or what became of the POST."""
    if not 200 <= reply.status < 300:
        judged: Refused | Unresolved = turned_down(reply)
        code = _error_code(reply, endpoint)
        if reply.status == 429 and code and isinstance(judged, Unresolved):
            # In the API's own words: no gateway counts tokens or looks into an account.
            judged = refused("HTTP 429: too many requests", retryable=True)
        if isinstance(judged, Unresolved) and code:
            return Unresolved(f"{judged.cause} ({code})")
        if isinstance(judged, Refused) and code:
            failure = replace(judged.failure, message=f"{judged.failure.message} ({code})")
            return replace(judged, failure=failure)
        return judged
    # Of an answer that was cut, the beginning is as true as the whole: it may hold the id.
    response = read_object(replace(reply, over=True) if reply.fault else reply)
    if isinstance(response, Unknown):
        return Unresolved(f"HTTP {reply.status}, but {response.cause}")
    return created(response, marker, endpoint)


def judge(reply: Reply, handle: str, marker: str, endpoint: Endpoint) -> ProbeAnswer:
    """Read an answer to a GET of the response `handle`."""
    if reply.status == 404:
        return _absence(reply)
    response = _own(reply, handle, marker)
    if isinstance(response, Unknown):
        return response
    word = _word(response)
    if word in _GOING_ON:
        return Present(Phase.RUNNING, handle)
    if word == "cancelled":
        return Present(Phase.CANCELLED, handle)
    if word in ("failed", "incomplete"):
        said = endpoint.clean(_why(response, word), FAILURE_CHARS_MAX)
        failure = Failure(FailureCode.REMOTE_FAILED, said, RemoteFate.ENDED, False)
        return Present(Phase.FAILED, handle, failure=failure)
    if word == "completed":
        result = reply.body if reply.over else _result(response)
        return result if isinstance(result, Unknown) else Present(Phase.COMPLETED, handle, result)
    if reply.over and not word:
        return Unknown(f"HTTP {reply.status}, {reply.fault}")
    return Unknown(f"unknown status {endpoint.clean(repr(word), 40) if word else 'none that could be read'}")


def judge_cancel(reply: Reply, handle: str, marker: str) -> CancelAnswer:
    """Read an answer to a cancel."""
    if reply.status in (400, 409):
        # What has ended cannot be cancelled; what it came to, only a probe can tell.
        return Taken()
    if not 200 <= reply.status < 300:
        return Unknown(f"HTTP {reply.status}")
    response = _own(reply, handle, marker)
    ended = isinstance(response, dict) and _word(response) in ENDED
    return Confirmed() if ended else Taken()


def _absence(reply: Reply) -> ProbeAnswer:
    value = Unknown(f"HTTP 404, {reply.fault}") if reply.over else read_object(reply)
    if isinstance(value, Unknown):
        return value
    if not isinstance(value.get("error"), dict):
        return Unknown("HTTP 404, but not the API's own: is the URL right?")
    return Absent(None)


def _own(reply: Reply, handle: str, marker: str) -> dict[str, Any] | Unknown:
    if not 200 <= reply.status < 300:
        return Unknown(f"HTTP {reply.status}")
    response = read_object(reply)
    if isinstance(response, Unknown):
        return response
    return Unknown(_OTHER) if response.get("id") != handle or _is_foreign(response, marker) else response


def _word(response: dict[str, Any]) -> str:
    word = response.get("status")
    return word if isinstance(word, str) else ""


def _is_foreign(response: dict[str, Any], marker: str) -> bool:
    """The response shows the name of another call; clones that do not show metadata are believed."""
    metadata = response.get("metadata")
    return isinstance(metadata, dict) and metadata.get(METADATA_KEY, marker) != marker


def _result(response: dict[str, Any]) -> bytes | Unknown:
    output = response.get("output")
    if not isinstance(output, list):
        return Unknown("the response is completed, but shows no output")
    value = {
        "id": response["id"],
        "model": response.get("model"),
        "output_text": "".join(_texts(output)),
        "output": output,
        "usage": response.get("usage"),
    }
    try:
        return to_json(value)
    except RecursionError:
        return Unknown("the output is nested too deep")


def _texts(output: list[Any]) -> list[str]:
    messages = [item["content"] for item in output if isinstance(item, dict) and isinstance(item.get("content"), list)]
    parts = [part for content in messages for part in content if isinstance(part, dict)]
    return [part["text"] for part in parts if part.get("type") == "output_text" and isinstance(part.get("text"), str)]


def _why(response: dict[str, Any], word: str) -> str:
    if word == "incomplete":
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        told = reason if isinstance(reason, str) and reason else "no reason given"
        return f"incomplete: {told}; what there is of it can be read by its id"
    error = response.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    text = message if isinstance(message, str) and message else "the response failed"
    code = _code(error) if isinstance(error, dict) else ""
    return f"{code}: {text}" if code else text


def _error_code(reply: Reply, endpoint: Endpoint) -> str:
    value = read_object(reply)
    error = value.get("error") if isinstance(value, dict) else None
    code = _code(error) if isinstance(error, dict) else ""
    return code if endpoint.clean(code) == code else ""


def _code(error: dict[str, Any]) -> str:
    """Take an error's code, which is one word; its message may repeat what was sent."""
    code = error.get("code")
    return code if isinstance(code, str) and re.fullmatch(r"\w{1,64}", code, re.ASCII) else ""
