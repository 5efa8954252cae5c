"""What a LangGraph server shows of one call: its runs on a thread, and the checkpoint of a run. Pure.

A call is one run, and one more for each answer to a question of it. All of them carry the call's marker in
their metadata, the answers carry their own id besides. A checkpoint tells what the status of a run does
not: a run that stopped to ask is a `success` there, as is one that came to its end.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from reattach.adapters.body import MISSING, find, read_value, to_json
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.http import Reply
from reattach.adapters.langgraph_options import Options
from reattach.adapters.words import remote_failure
from reattach.models.answers import Phase, Present, Unknown

CALL: Final = "reattach_call"
RESPONSE: Final = "reattach_response"
FENCE: Final = "reattach_fence"

_RUN_ID: Final = re.compile(r"[0-9A-Za-z-]{1,64}")
_ALIVE: Final = frozenset({"pending", "running"})


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a thread.

    Args:
        status: one of the server's words.
        created_at: when it was created, as text that sorts by time; of a delayed run, when it is to start.
        call, response, fence: the markers that it carries, "" for none.
    """

    run_id: str
    status: str
    created_at: str = ""
    call: str = ""
    response: str = ""
    fence: str = ""

    @property
    def alive(self) -> bool:
        return self.status in _ALIVE

    @property
    def fencing(self) -> bool:
        """It keeps every later run from the thread. One that was cancelled does not."""
        return self.status == "pending" and self.fence != ""


def run_id_of(value: Any, endpoint: Endpoint) -> str:
    """Take the id of a run or of a stream's event; "" for what cannot be one, such as our own token."""
    return value if isinstance(value, str) and _RUN_ID.fullmatch(value) and endpoint.clean(value) == value else ""


def read_run(value: Any, endpoint: Endpoint) -> Run | None:
    """Read one run; None for what is none, and so may hide the one that is looked for."""
    if not isinstance(value, dict):
        return None
    metadata, status, run_id = (
        value.get("metadata") or {},
        value.get("status"),
        run_id_of(value.get("run_id"), endpoint),
    )
    if not run_id or not isinstance(status, str) or not isinstance(metadata, dict):
        return None
    marks = [mark if isinstance(mark := metadata.get(name), str) else "" for name in (CALL, RESPONSE, FENCE)]
    created = value.get("created_at")
    return Run(run_id, status, created if isinstance(created, str) else "", *marks)


def read_runs(reply: Reply, endpoint: Endpoint) -> list[Run] | Unknown:
    """Read one page of a thread's runs."""
    value = read_value(reply)
    if isinstance(value, Unknown):
        return value
    if not isinstance(value, list):
        return Unknown("the answer is not a list of runs")
    runs = [run for one in value if (run := read_run(one, endpoint)) is not None]
    return runs if len(runs) == len(value) else Unknown("the list holds a run that makes no sense")


def runs_of(runs: list[Run], marker: str) -> list[Run]:
    """Pick the runs of one call, oldest first: the one that began it, then its answers.

    Of several that began it the oldest counts, whatever brought the others about.
    """
    mine = sorted((run for run in runs if run.call == marker), key=lambda run: (run.created_at, run.run_id))
    begun = [run for run in mine if not run.response]
    return begun[:1] + [run for run in mine if run.response]


def judge_ended(run: Run, snapshot: Any, endpoint: Endpoint) -> Present | Unknown:
    """Judge a run that is over and was no success.

    Args:
        snapshot: its newest checkpoint, or whatever was read in its stead.
    """
    if run.status == "interrupted":
        return Present(Phase.CANCELLED, run.run_id)
    if run.status == "timeout":
        said = "the run took longer than the server allows"
    elif run.status != "error":
        return Unknown(f"unknown status {endpoint.clean(repr(run.status), 40)}")
    else:
        errors = [task.get("error") for task in _tasks(snapshot)]
        told = [error for error in errors if isinstance(error, str) and error]
        said = "; ".join(told) or "the remote run failed"
    return Present(Phase.FAILED, run.run_id, failure=remote_failure(said, endpoint))


def judge_checkpoint(run_id: str, snapshot: Any, options: Options) -> Present | Unknown:
    """Judge the newest checkpoint of a call whose newest run was a success: a question, or the result."""
    following = snapshot.get("next") if isinstance(snapshot, dict) else None
    if not isinstance(following, list):
        return Unknown("the checkpoint does not say what comes next")
    try:
        if following:
            asked = [one for task in _tasks(snapshot) for one in _list(task.get("interrupts"))]
            # A run asks once, and the answer to it is another run: its id names the question.
            return Present(Phase.AWAITING_INPUT, run_id, question_id=run_id, question=to_json(asked))
        result = find(snapshot, ("values", *options.result))
        if result is MISSING:
            return Unknown(f"there is no result at {'.'.join(('values', *options.result))!r}")
        return Present(Phase.COMPLETED, run_id, to_json(result))
    except RecursionError:
        return Unknown("the state is nested too deep")


def read_snapshot(reply: Reply, run_id: str) -> Any:
    """Read the newest checkpoint of a run: `MISSING` when there is none."""
    value = read_value(reply)
    if isinstance(value, Unknown):
        return value
    if not isinstance(value, list) or len(value) > 1:
        return Unknown("the answer is not the newest checkpoint")
    written_by = find(value, ("0", "metadata", "run_id"))
    if written_by not in (MISSING, run_id):
        return Unknown("the checkpoint is another run's: the server does not filter its history")
    return value[0] if value else MISSING


def _tasks(snapshot: Any) -> list[dict[str, Any]]:
    tasks = snapshot.get("tasks") if isinstance(snapshot, dict) else None
    return [task for task in _list(tasks) if isinstance(task, dict)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
