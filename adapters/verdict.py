"""What an exchange says about a call, where a protocol does not say more: of a POST's fate, above all its status code.

A redirect by 307 or 308 asks for the request again and so has not taken it; other redirects may
follow an accepted POST and settle nothing. A 5xx comes from proxies too, after they have passed the
request on.
"""

from collections.abc import Mapping
from typing import Final

from reattach.adapters.http import Lost, Reply, Unsent
from reattach.models.answers import (
    FetchAnswer,
    NotReady,
    NotSent,
    Phase,
    Present,
    ProbeAnswer,
    Refused,
    Result,
    Unknown,
    Unresolved,
)
from reattach.models.outcomes import Failure, FailureCode, RemoteFate

RETRY_AFTER_S_MAX: Final = 24 * 3600

# A server that answers with one of these has looked at this very request and turned it down.
REFUSED: Final = frozenset({307, 308, 400, 401, 403, 404, 405, 406, 410, 411, 413, 414, 415, 422, 431})
_MEANING: Final = {
    307: "redirects to another URL: configure the final one",
    308: "redirects to another URL: configure the final one",
    401: "the credentials are missing or wrong",
    403: "the credentials do not allow it",
    404: "no such agent or path",
    413: "the message is too large for the remote",
}


def no_status(answer: Unsent | Lost) -> NotSent | Unresolved:
    """Judge a POST to which no status came back."""
    return NotSent(answer.cause) if isinstance(answer, Unsent) else Unresolved(answer.cause)


def turned_down(reply: Reply) -> Refused | Unresolved:
    """Judge an answer that is neither a 2xx nor a status with a meaning of its own in the protocol."""
    code = reply.status
    said = f"HTTP {code}: {_MEANING[code]}" if code in _MEANING else f"HTTP {code}"
    if code in REFUSED:
        return refused(said)
    pause = _retry_after_ms(reply.headers)
    if code == 429 and pause is not None:
        return refused("HTTP 429: too many requests", retryable=True, pause_ms=pause)
    return Unresolved(said)


def refused(message: str, *, retryable: bool = False, pause_ms: int = 0) -> Refused:
    return Refused(Failure(FailureCode.REJECTED, message, RemoteFate.NONE, retryable), pause_ms)


def fetched(probed: ProbeAnswer, *, without: FetchAnswer) -> FetchAnswer:
    """Read the result from a probe, for protocols whose status holds it.

    Args:
        without: what a run is that has completed and is shown without its result.
    """
    match probed:
        case Present(phase=Phase.COMPLETED, result=bytes(value)):
            return Result(value)
        case Present(phase=Phase.COMPLETED):
            return without
        case Unknown() as unknown:
            return unknown
    return NotReady()


def _retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """Read Retry-After in seconds; as a date it would need a clock, and only says "later"."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    return min(int(value), RETRY_AFTER_S_MAX) * 1000 if value.isascii() and value.isdecimal() and len(value) < 10 else 0
