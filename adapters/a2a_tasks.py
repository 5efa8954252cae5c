"""What an A2A task says about one call: pure, and no further than the protocol goes.

*Whose task.* A call's message carries its marker as `messageId`, and an agent keeps its messages in the task's
history. On a thread of its own (a context whose id is derived from this call) every task is the call's, whatever
its history shows. On a named thread a task whose history may lack its first message proves nothing, and so does a
list that may have been cut: both are `Unknown`, never `Absent`. A message that names another task is that task's,
whichever history shows it.

*Which question.* A task that waits for input is asked about by the time of its status, else by the id of its
status message (some agents make a new one each time they are asked), else by the number of messages that it was
sent. A status that still shows a question to which the history holds the answer is a task that runs.

*Result.* `{"artifacts": [...], "message": {...} | null}`: the task's artifacts and its last status message, as
the agent sent them. Where there are no artifacts, `"history": [...]` holds the agent's messages of this task.
"""

import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Final

from reattach.adapters.a2a_wire import INVALID, NO_METHOD, UNSUPPORTED, Answer, Fault
from reattach.adapters.body import to_json
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.words import FAILURE_CHARS_MAX, HANDLE_CHARS_MAX, word_of
from reattach.models.answers import Absent, Accepted, Phase, Present, ProbeAnswer, SubmitAnswer, Unknown, Unresolved
from reattach.models.identity import marker_of, thread_id_of
from reattach.models.invocation import Invocation
from reattach.models.outcomes import Failure, FailureCode, RemoteFate

PAGES_MAX: Final = 50
# How many messages of each history a list is asked for: more than a task should have, and, for agents that refuse
# as many, what every one gives. A history of that length may have lost the message that began it.
HISTORIES: Final = (1_000, 10)
# What stands for a run that left no task: no task may be called so.
MESSAGE: Final = "message:"
ONLY_A_MESSAGE: Final = "the agent answered with a message and keeps no task: its answer cannot be read again"
_SPACE: Final = uuid.UUID("0b7f5a0e-6a53-5d0c-9a39-6a1b1a3f4d52")
_STATES: Final = {
    "submitted": Phase.RUNNING,
    "working": Phase.RUNNING,
    "input-required": Phase.AWAITING_INPUT,
    "auth-required": Phase.AWAITING_INPUT,
    "completed": Phase.COMPLETED,
    "failed": Phase.FAILED,
    "rejected": Phase.FAILED,
    "canceled": Phase.CANCELLED,
}
# As 1.0 writes them, and as 0.3 does.
STATES: Final = {f"TASK_STATE_{word.upper().replace('-', '_')}": word for word in _STATES} | {w: w for w in _STATES}
_USER: Final = ("ROLE_USER", "user")

Read = Callable[[int, str], Awaitable[Answer]]


def response_marker(inv: Invocation, response_id: str) -> str:
    """The name that an answer to a question carries; no call's own marker can be the same."""
    return str(uuid.uuid5(_SPACE, f"{marker_of(inv.id, inv.generation)}\x00{response_id}"))


def task_id_of(task: dict[str, Any], endpoint: Endpoint) -> str:
    """Take the id that an agent gave its task; "" for what cannot be one, such as our own token."""
    name = task.get("id")
    if not isinstance(name, str) or name.startswith(MESSAGE):
        return ""
    return name if endpoint.clean(name, HANDLE_CHARS_MAX) == name else ""


def submitted(value: dict[str, Any], handle: str, endpoint: Endpoint, *, old: bool) -> SubmitAnswer:
    """Judge the answer to a message.

    Args:
        handle: the id of the task that the message was for, "" for a new one.
    """
    kind = value.get("kind", "task") if old else ""
    task = value if kind == "task" else value.get("task")
    if isinstance(task, dict):
        named = task_id_of(task, endpoint)
        if not named or named != (handle or named):
            return Unresolved("the answer is about another task" if named else "the task has no id that could be read")
        return Accepted(named)
    message = value if kind == "message" else value.get("message")
    if not isinstance(message, dict):
        return Unresolved("the answer holds neither a task nor a message")
    name = message.get("messageId")
    known = isinstance(name, str) and endpoint.clean(name) == name
    return Accepted(handle or (f"{MESSAGE}{name}" if known else MESSAGE))


def judge_task(
    task: dict[str, Any], inv: Invocation, handle: str, endpoint: Endpoint, cut: bytes | None = None
) -> Present | Unknown:
    """Judge one task as the agent shows it.

    Args:
        handle: its id.
        cut: the beginning of an answer that was too long to be read whole.
    """
    status = task.get("status")
    status = status if isinstance(status, dict) else {}
    state, message = status.get("state"), status.get("message")
    word = STATES.get(state) if isinstance(state, str) else None
    if word is None:
        shown = endpoint.clean(repr(state), 40) if isinstance(state, str) else "none that could be read"
        return Unknown(f"unknown task state: {shown}")
    message = message if isinstance(message, dict) else {}
    phase = _STATES[word]
    if phase is Phase.FAILED:
        said = endpoint.clean(_text(message), FAILURE_CHARS_MAX - 40) or "the agent gave no reason"
        refused = word == "rejected"
        code = FailureCode.REJECTED if refused else FailureCode.REMOTE_FAILED
        text = f"the agent rejected the task: {said}" if refused else said
        return Present(phase, handle, failure=Failure(code, text, RemoteFate.ENDED, False))
    try:
        if phase is Phase.AWAITING_INPUT:
            return _question(task, inv, handle, endpoint)
        if phase is Phase.COMPLETED:
            return _completed(task, message, handle, cut)
    except RecursionError:
        return Unknown("the task is nested too deep")
    return Present(phase, handle)


def _completed(task: dict[str, Any], message: dict[str, Any], handle: str, cut: bytes | None) -> Present | Unknown:
    if cut is not None:
        # Longer than any result that is allowed, which is all that is asked of it.
        return Present(Phase.COMPLETED, handle, cut)
    artifacts = task.get("artifacts", [])
    if not isinstance(artifacts, list):
        return Unknown("the task's artifacts are no list")
    result = {"artifacts": artifacts, "message": message or None}
    if not artifacts:
        result["history"] = [one for one in _messages(task) if one.get("role") not in _USER]
    return Present(Phase.COMPLETED, handle, to_json(result))


def _question(task: dict[str, Any], inv: Invocation, handle: str, endpoint: Endpoint) -> Present | Unknown:
    status = task["status"]
    message = status.get("message") if isinstance(status.get("message"), dict) else {}
    history = _history(task)
    name, time = message.get("messageId"), status.get("timestamp")
    if isinstance(time, str) and time:
        question = f"@{time}"
    elif isinstance(name, str) and name:
        question = name
    else:
        question = f"#{sum(mine for mine, _ in history)}"
    if endpoint.clean(question, HANDLE_CHARS_MAX) != question:
        return Unknown("the question has an id that cannot be one")
    if _answered(history, inv, question, name if message else None):
        return Present(Phase.RUNNING, handle)
    text = to_json(message or {"state": status["state"]})
    return Present(Phase.AWAITING_INPUT, handle, question_id=question, question=text)


def _answered(history: list[tuple[bool, str]], inv: Invocation, question: str, shown: Any) -> bool:
    """The status is older than the answer that the history holds already.

    Args:
        history: of each message whether it was sent to the agent, and its id.
        shown: the id of the status message, None where the status holds none.
    """
    response = inv.response
    known = inv.question_id if response is None else response.question_id
    if question == known:
        if response is not None and (True, response_marker(inv, response.response_id)) in history:
            return True
        if shown is None and sum(mine for mine, _ in history) > 1 and history[-1][0]:
            return True
    asks = known if shown is None else shown
    places = [place for place, (mine, name) in enumerate(history) if not mine and name == asks]
    return bool(places) and any(mine for mine, _ in history[places[-1] :])


def _messages(task: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages of this very task in its history."""
    found = task.get("history")
    messages = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return [one for one in messages if one.get("taskId") in (None, "", task.get("id"))]


def _history(task: dict[str, Any]) -> list[tuple[bool, str]]:
    """Of each message whether it was sent to the agent, and its id."""
    messages = [(one.get("role") in _USER, one.get("messageId")) for one in _messages(task)]
    return [(mine, name) for mine, name in messages if isinstance(name, str)]


def _text(message: dict[str, Any]) -> str:
    parts = message.get("parts")
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return " ".join(text for text in texts if isinstance(text, str))


async def search(read: Read, inv: Invocation, endpoint: Endpoint) -> ProbeAnswer:
    """Look for the call's task in the list of its context; of several that could be it, the one that rests longest.

    Args:
        read: fetches a page with so many messages of each history, by its token.
    """
    context = thread_id_of(inv.request, inv.generation, inv.slot)
    seen: dict[str, dict[str, Any]] = {}
    history, token, pages, total = HISTORIES[0], "", 0, 0
    while (token or not pages) and pages < PAGES_MAX:
        answer = await read(history, token)
        if isinstance(answer, Fault) and answer.code == INVALID and not pages:
            history = HISTORIES[1]
            answer = await read(history, token)
        page = _page(answer, endpoint)
        if isinstance(page, Unknown):
            return page
        tasks, token, total = page
        pages += 1
        seen |= {task_id_of(task, endpoint): task for task in tasks}
    found = _matching(list(seen.values()), inv, context)
    if found:
        return _found(found[-1], inv, endpoint)
    if token:
        return Unknown(f"the list of tasks has more than {PAGES_MAX} pages")
    if total > len(seen):
        return Unknown(f"the agent listed {len(seen)} of {total} tasks and named no further page")
    if pages > 1:
        # It is ordered by the latest change: a task that began to work meanwhile has gone from a page that was
        # not read yet to the first one.
        page = _page(await read(history, ""), endpoint)
        if isinstance(page, Unknown):
            return page
        if any(task_id_of(task, endpoint) not in seen for task in page[0]):
            return Unknown("the list of tasks changed while it was read")
    return _absence(list(seen.values()), context, history)


def _page(answer: Answer, endpoint: Endpoint) -> tuple[list[dict[str, Any]], str, int] | Unknown:
    """Read one page: its tasks, the token of the next one ("" for none), and how many there are in all."""
    if isinstance(answer, Unknown):
        return answer
    if isinstance(answer, Fault):
        if answer.code in (NO_METHOD, UNSUPPORTED):
            return Unknown("the agent has no ListTasks: set options.lists = false, and a lost answer is parked", True)
        return Unknown(f"the agent does not list its tasks: {answer.text}")
    if answer.cut is not None:
        return Unknown("the list of tasks is too long to be read")
    # Some leave an empty list out, but what has no page size either is the answer to something else.
    tasks = answer.value.get("tasks", [] if "pageSize" in answer.value else None)
    token = answer.value.get("nextPageToken", "")
    total = answer.value.get("totalSize", 0)
    if not isinstance(tasks, list) or not all(isinstance(task, dict) and task_id_of(task, endpoint) for task in tasks):
        return Unknown("the list holds something that is no task with an id")
    if not isinstance(token, str) or len(token) > 4 * HANDLE_CHARS_MAX:
        return Unknown("the next page's token makes no sense")
    return tasks, token, int(word) if (word := word_of(total)).isdecimal() else 0


def _matching(tasks: list[dict[str, Any]], inv: Invocation, context: str) -> list[dict[str, Any]]:
    """The tasks that hold the call's message; on a thread of its own, else, all that name that thread."""
    marker = marker_of(inv.id, inv.generation)
    marked = [task for task in tasks if _context(task) in (context, "") and (True, marker) in _history(task)]
    return marked or ([] if inv.request.thread_id else [task for task in tasks if _context(task) == context])


def _context(task: dict[str, Any]) -> str:
    """The thread that a task names; "" for none, which some agents write as such."""
    context = task.get("contextId")
    return context if isinstance(context, str) else ""


def strange(task: dict[str, Any], inv: Invocation) -> bool:
    """A task under our id that names another thread, and shows messages of others only."""
    sent = [name for mine, name in _history(task) if mine]
    elsewhere = _context(task) not in (thread_id_of(inv.request, inv.generation, inv.slot), "")
    return elsewhere and sent != [] and marker_of(inv.id, inv.generation) not in sent


def _found(task: dict[str, Any], inv: Invocation, endpoint: Endpoint) -> ProbeAnswer:
    handle = task_id_of(task, endpoint)
    judged = judge_task(task, inv, handle, endpoint)
    if not isinstance(judged, Present):
        # It is listed, so it was accepted: whatever it says now will be asked again by its id.
        return Present(Phase.RUNNING, handle)
    # A list leaves the artifacts out, so the result is still to be read.
    return Present(judged.phase, handle, None, judged.failure, judged.question_id, judged.question)


def _absence(tasks: list[dict[str, Any]], context: str, asked: int) -> ProbeAnswer:
    for task in tasks:
        if _context(task) not in (context, ""):
            continue
        history = task.get("history")
        if isinstance(history, list) and len(history) >= asked:
            return Unknown(f"a task of the thread shows {asked} messages: its first may have been cut off", True)
        if not any(mine for mine, _ in _history(task)):
            return Unknown("a task of the thread shows no message that it was sent: leave thread_id out", True)
    return Absent(None)
