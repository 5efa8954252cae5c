"""What a status answer of the reference protocol says, and what it proves about one message.

Two steps, both pure: `parse_status` reads hostile bytes into a `Status`, `judge` decides. Foreign text
gets into a cause only shortened, printable and without the token.
"""

from dataclasses import dataclass
from typing import Any, Final

from reattach.adapters.body import MISSING, Path, error_text, find, read_object, to_json
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.http import Reply
from reattach.adapters.words import FAILURE_CHARS_MAX
from reattach.models.answers import Absent, Phase, Present, ProbeAnswer, Unknown
from reattach.models.identity import marker_of
from reattach.models.invocation import Invocation
from reattach.models.outcomes import Failure, FailureCode, RemoteFate

MARKER_CHARS_MAX: Final = 512

_PHASES: Final = {
    "running": Phase.RUNNING,
    "completed": Phase.COMPLETED,
    "failed": Phase.FAILED,
}
_NAMES: Final = frozenset({"not_started", "started", *_PHASES})
_DONE: Final = frozenset({"completed", "failed"})

Marker = str | int | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Status:
    """A status answer that makes sense.

    Args:
        name: one of the protocol's words.
        marker: id of the newest message, number of turns, all ids oldest first; None for none.
        marked: a marker is configured.
        result: JSON bytes, for `completed`.
        error: one line, for `failed`.
        cut: why only the beginning of the answer was read; "" for a whole one.
    """

    name: str
    marker: Marker = None
    marked: bool = False
    result: bytes | None = None
    error: str = ""
    cut: str = ""


def parse_status(reply: Reply, path: Path, thread_id: str, endpoint: Endpoint) -> Status | Unknown:
    """Read a status answer; anything odd is `Unknown` with its reason.

    Args:
        path: where the marker is, () for none.
        thread_id: the thread that was asked about.
    """
    if not (200 <= reply.status < 300 or reply.status == 404):
        return Unknown(f"HTTP {reply.status}")
    value = read_object(reply)
    if isinstance(value, Unknown):
        return value
    if reply.status == 404:
        return Status("not_started", marked=bool(path), cut=reply.fault)
    name = value.get("status")
    if not isinstance(name, str) or name not in _NAMES:
        return Unknown(f"unknown status {endpoint.clean(repr(name), 40)}")
    if value.get("thread_id", thread_id) != thread_id:
        return Unknown("the answer is about another thread")
    marker = _marker(value, path)
    if isinstance(marker, Unknown):
        return marker
    result = None
    if name == "completed" and reply.over:
        # Longer than any result that is allowed, which is all that is asked of it.
        result = reply.body
    elif name == "completed":
        try:
            result = to_json(value.get("result"))
        except RecursionError:
            return Unknown("the result is nested too deep")
    error = endpoint.clean(error_text(value.get("error")), FAILURE_CHARS_MAX) if name == "failed" else ""
    return Status(name, marker, bool(path), result, error, reply.fault)


def _marker(value: Any, path: Path) -> Marker | Unknown:
    value = find(value, path)
    if not path or value is None or value is MISSING:
        return None
    if isinstance(value, bool):
        return Unknown("the marker is neither an id, a count nor a list of ids")
    if isinstance(value, int):
        return value if value >= 0 else Unknown("the marker is a negative count")
    if isinstance(value, str):
        return value if _is_id(value) else Unknown("the marker is not an id")
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    return Unknown("the marker is neither an id, a count nor a list of ids")


def _is_id(text: str) -> bool:
    return len(text) <= MARKER_CHARS_MAX and text.isprintable()


def judge(status: Status, inv: Invocation) -> ProbeAnswer:
    """Decide what a status proves about the message of `inv`.

    Guarantee: never claims another turn's run or result (tests/adapters/test_judge.py).
    """
    answer = _judge(status, inv)
    if status.cut and not isinstance(answer, Present):
        # What is missing might have shown this message.
        return Unknown(status.cut)
    return answer


def _judge(status: Status, inv: Invocation) -> ProbeAnswer:
    if status.name == "started":
        return Unknown("'started' is not an answer to a status request")
    derived = not inv.request.thread_id
    if status.marker is None:
        return _unmarked(status, derived)
    match status.marker:
        case int(count):
            return _by_count(status, count, inv, derived)
        case str(last):
            ids: tuple[str, ...] = (last,) if last else ()
            return _by_ids(status, ids, inv, whole=False)
        case ids:
            return _by_ids(status, ids, inv, whole=True)


def _unmarked(status: Status, derived: bool) -> ProbeAnswer:
    if status.name == "not_started":
        return Absent(None if derived else "")
    if derived:
        return _ours(status)
    return Unknown(f"the thread is {status.name}, but its answer holds no marker")


def _by_ids(status: Status, ids: tuple[str, ...], inv: Invocation, *, whole: bool) -> ProbeAnswer:
    mine = marker_of(inv.id, inv.generation)
    if ids and ids[-1] == mine:
        return _ours(status)
    if mine in ids:
        return Present(Phase.COMPLETED)
    if status.name == "running":
        return Unknown("a turn is running, and the answer does not say that it is this one")
    if whole:
        return Absent(None)
    return Absent(ids[-1] if ids else "")


def _by_count(status: Status, count: int, inv: Invocation, derived: bool) -> ProbeAnswer:
    turn = 1 if derived else inv.request.turn
    if not turn:
        return Unknown("the thread counts its turns, but the input gives no 'turn'", True)
    if not derived and inv.generation > 1:
        return Unknown("a count of turns does not tell the generations of a call apart", True)
    if count == turn:
        return _ours(status)
    if count > turn:
        return Present(Phase.COMPLETED)
    if status.name == "running":
        return Unknown("a turn is running that the count does not include yet")
    if count == turn - 1:
        return Absent(None)
    return Unknown(f"the thread has {count} turns, this is turn {turn}: an earlier one is missing", True)


def _ours(status: Status) -> Present:
    # The marker alone proves acceptance, so "not_started" means that the run has yet to begin.
    phase = _PHASES.get(status.name, Phase.RUNNING)
    if phase is Phase.FAILED:
        return Present(phase, failure=Failure(FailureCode.REMOTE_FAILED, status.error, RemoteFate.ENDED, False))
    return Present(phase, result=status.result)
