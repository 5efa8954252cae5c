"""What an answer of a job service says about one job: pure, and no further than its options tell.

A word that is in no `status_map` is `Unknown`; so is a completed job without its result, since a
result that was read as nothing is lost for good. Foreign text gets into a cause only shortened,
printable and without the token.
"""

from typing import Any, Final
from urllib.parse import unquote, urlsplit

from reattach.adapters.body import MISSING, error_text, find, read_object, read_value, to_json
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.http import Reply
from reattach.adapters.http_job_options import ABSENT, Options
from reattach.adapters.words import handle_of, remote_failure, word_of
from reattach.models.answers import Absent, FetchAnswer, Gone, NotReady, Phase, Present, ProbeAnswer, Result, Unknown

# What is asked has no name of its own in most services.
QUESTION: Final = "input"
_NOT_READY: Final = frozenset({202, 204, 404, 409, 425})


def judge_status(reply: Reply, options: Options, mine: frozenset[str], endpoint: Endpoint) -> ProbeAnswer:
    """Read an answer to `status`.

    Args:
        mine: the names that this call's job may carry as its marker.
    """
    if reply.status in options.absent_http:
        return _absence(reply, options)
    if not 200 <= reply.status < 300:
        return Unknown(f"HTTP {reply.status}")
    job = read_object(reply)
    if isinstance(job, Unknown):
        return job
    answer = judge_job(job, options, mine, endpoint, reply.body if reply.over else None)
    # What is missing of a cut answer might have shown the job.
    return Unknown(reply.fault) if reply.over and isinstance(answer, Absent) else answer


def _absence(reply: Reply, options: Options) -> ProbeAnswer:
    value = read_value(reply)
    if isinstance(value, Unknown):
        return value
    if options.absent_path is not None and word_of(find(value, options.absent_path)) != options.absent_value:
        return Unknown(f"HTTP {reply.status}, but not the one that says that there is no such job")
    return Absent(None)


def judge_job(
    job: Any, options: Options, mine: frozenset[str], endpoint: Endpoint, cut: bytes | None = None
) -> ProbeAnswer:
    """Judge one job as the service shows it.

    Args:
        cut: the beginning of an answer that was too long to be read whole.
    """
    word = word_of(find(job, options.paths["status"]))
    meaning = options.status_map.get(word)
    if meaning is None:
        shown = endpoint.clean(repr(word), 40) if word else "none that could be read"
        return Unknown(f"unknown status {shown}: the option status_map does not name it")
    if meaning == ABSENT:
        return Absent(None)
    if "marker" in options.paths and word_of(find(job, options.paths["marker"])) not in mine:
        return Unknown("the answer is about another job")
    handle, phase = handle_of(find(job, options.paths["handle"]), endpoint), Phase(meaning)
    if phase is Phase.FAILED:
        return Present(phase, handle, failure=remote_failure(error_text(_at(job, options, "error")), endpoint))
    if phase is Phase.AWAITING_INPUT:
        return _question(job, options, endpoint, handle)
    if phase is not Phase.COMPLETED or "result" in options.urls:
        return Present(phase, handle)
    result = cut if cut is not None else _result(job, options)
    return result if isinstance(result, Unknown) else Present(phase, handle, result)


def _question(job: Any, options: Options, endpoint: Endpoint, handle: str) -> ProbeAnswer:
    name = handle_of(_at(job, options, "question_id"), endpoint) or QUESTION
    try:
        text = b"" if (question := _at(job, options, "question")) is MISSING else to_json(question)
    except RecursionError:
        return Unknown("the question is nested too deep")
    return Present(Phase.AWAITING_INPUT, handle, question_id=name, question=text)


def _result(value: Any, options: Options) -> bytes | Unknown:
    found = find(value, options.paths["result"])
    if found is MISSING:
        return Unknown(f"there is no result at {'.'.join(options.paths['result'])!r}")
    try:
        return to_json(found)
    except RecursionError:
        return Unknown("the result is nested too deep")


def judge_result(reply: Reply, options: Options) -> FetchAnswer:
    """Read an answer to `result`."""
    if reply.status == 410:
        return Gone("HTTP 410")
    if reply.status in _NOT_READY:
        return NotReady()
    if not 200 <= reply.status < 300:
        return Unknown(f"HTTP {reply.status}")
    if reply.over:
        # Longer than any result that is allowed, which is all that is asked of it.
        return Result(reply.body)
    value = read_value(reply)
    if isinstance(value, Unknown):
        return value
    result = _result(value, options)
    return result if isinstance(result, Unknown) else Result(result)


def submitted_handle(reply: Reply, options: Options, mine: frozenset[str], endpoint: Endpoint) -> str | None:
    """Read the handle from the body of a submit's answer; "" for none, None when it is about another job."""
    job = read_object(reply)
    if isinstance(job, Unknown):
        return ""
    marker = MISSING if "marker" not in options.paths else find(job, options.paths["marker"])
    if marker is not MISSING and word_of(marker) not in mine:
        return None
    return handle_of(find(job, options.paths["handle"]), endpoint)


def header_handle(name: str, value: str, endpoint: Endpoint) -> str:
    """Read the handle from a header: of a URL its last segment, else the whole value."""
    if not name.lower().endswith("location"):
        return handle_of(value.strip(), endpoint)
    try:
        last = urlsplit(value.strip()).path.rstrip("/").rpartition("/")[2]
        return handle_of(unquote(last, errors="strict"), endpoint)
    except ValueError:
        return ""


def _at(job: Any, options: Options, name: str) -> Any:
    return find(job, options.paths[name]) if name in options.paths else MISSING
