"""What people may order for a call, as commands that are ready to be given.

Nothing here knows the rules: each order is tried on the call as it stands, with the step that the job itself
would take, and left out where that refuses it.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reattach.fsm.env import Env
from reattach.fsm.step import step
from reattach.models.effects import Count, Notify
from reattach.models.events import (
    AbandonOrdered,
    AdoptOrdered,
    CancelOrdered,
    Ordered,
    ResponseGiven,
    ResubmitOrdered,
)
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf
from reattach.models.outcomes import NoticeKind
from reattach.models.policy import CancelKind, Terms
from reattach.runtime.view.saying import cut

HANDLE, ANSWER = "HANDLE", '"ANSWER"'
_RESUBMIT: Final = "start it anew under another name, although it may have run: only if running twice does no harm"
_ABANDON: Final = "fail it as ambiguous; what it may have started goes on"
_REFUSALS: Final = frozenset({NoticeKind.REFUSED, NoticeKind.LATE})


@dataclass(frozen=True, slots=True)
class Option:
    """An order that would be taken now.

    Args:
        command: a shell line; the words HANDLE and ANSWER in it are to be replaced.
        meaning: what it brings about, in words.
    """

    order: str
    command: str
    meaning: str


def options_of(record: Invocation, env: Env, config: str, handle: str = "") -> list[Option]:
    """List the orders that this call would obey.

    Args:
        handle: a name of its run that the journal shows, though the job has forgotten it; "" for none.
        env: of the life that has the call, at the reader's time.
        config: the job's file, for the commands.
    """
    name, generation, now_ms = record.id, record.generation, env.now_ms
    question = [("--question", record.question_id), ("--answer", ANSWER)]
    respond = ResponseGiven(name, generation, "reattach explain", record.question_id, b'""')
    tries: list[tuple[str, Ordered, list[tuple[str, str]], str]] = [
        ("cancel", CancelOrdered(name, generation), [], _cancel(env.terms)),
        *([("respond", respond, question, _respond(record))] if record.question_id else []),
        ("adopt", AdoptOrdered(name, generation, handle or HANDLE), [("--handle", handle or HANDLE)], _adopt(handle)),
        ("resubmit", ResubmitOrdered(name, generation, now_ms), [], _RESUBMIT),
        ("abandon", AbandonOrdered(name, generation), [], _ABANDON),
    ]
    return [
        Option(order, command(record, order, more, config), meaning)
        for order, event, more, meaning in tries
        if _taken(record, event, env)
    ]


def _cancel(terms: Terms) -> str:
    if terms.capabilities.cancel is CancelKind.NONE:
        return "end it; this protocol cannot end a run, so one that goes on is left to itself"
    return "end it, and its run at the remote"


def _adopt(handle: str) -> str:
    if handle:
        return f"follow the run {cut(handle)}, which an undone life has seen to be its own"
    return "its run is known to you: follow the one that the remote calls HANDLE"


def _respond(record: Invocation) -> str:
    if record.leaf is Leaf.RU_AWAITING_INPUT:
        return "answer the question that the run waits with; ANSWER is any JSON"
    return "answer the latest question that is known; it is sent only if the remote shows it still open"


def _taken(record: Invocation, event: Ordered, env: Env) -> bool:
    if record.leaf.terminal:
        return False
    effects = step(record, event, env).effects
    refused = any(isinstance(one, Notify) and one.notice.kind in _REFUSALS for one in effects)
    return not refused and not any(isinstance(one, Count) for one in effects)


def command(record: Invocation, order: str, more: Sequence[tuple[str, str]], config: str) -> str:
    """A line for a shell, which gives this order."""
    request = record.request
    thread = [("--thread", request.thread_id)] if request.thread_id else []
    given = [("--agent", request.agent), *thread, ("--generation", str(record.generation)), *more]
    options = [word for name, value in given for word in _option(name, value)]
    # A name that looks like an option comes last, behind the sign that none follow.
    tail = [*options, "--", record.id] if record.id.startswith("-") else [record.id, *options]
    return " ".join(_quoted(word) for word in ("reattach", "control", config, order, *tail))


def _option(name: str, value: str) -> list[str]:
    return [f"{name}={value}"] if value.startswith("-") else [name, value]


def _quoted(word: str) -> str:
    """A word as a shell takes it; one that holds what no terminal should show, in escapes."""
    if word.isprintable():
        return shlex.quote(word)
    inner = "".join(_escaped(char) for char in word)
    return f"$'{inner}'"


def _escaped(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    if char.isprintable():
        return char
    return "".join(f"\\x{byte:02x}" for byte in char.encode())
