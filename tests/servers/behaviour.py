"""What the agents of the test servers do: no model, only what a message's own text asks for.

- `@300ms` or `@2s`: work that long, telling of it every 100 ms; 100 ms without it.
- `!fail`: raise. `!failed`: end as failed, with a reason (A2A). `!reject`: refuse the task (A2A).
- `!message`: answer without a task (A2A).
- `!chunks`: tell of the work by parts of one artifact instead of states (A2A).
- `?ask`: ask a question, and end when it is answered. `?auth`: the same with a demand for credentials (A2A).

Each execution is one line of the effects file, which is what the tests count.
"""

import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

EFFECTS: Final = "REATTACH_TEST_EFFECTS"
TICK_S: Final = 0.1
QUESTION: Final = "which one?"
FAILURE: Final = "the message asked for a failure"
_UNITS_S: Final = {"ms": 0.001, "s": 1.0}


@dataclass(frozen=True, slots=True)
class Wish:
    """What a message asks the agent to do."""

    text: str
    ticks: int
    modes: frozenset[str]


def wish(text: str) -> Wish:
    """Read what a message asks for."""
    latency_s = sum(float(number) * _UNITS_S[unit] for number, unit in re.findall(r"@(\d+)(ms|s)\b", text))
    return Wish(text, max(1, round(latency_s / TICK_S)), frozenset(re.findall(r"[!?][a-z]+", text)))


def record(kind: str, text: str, *, thread: str, turn: int, message: str | None = None) -> None:
    """Tell that an agent really did something: one line, in one write, so that lines never mix.

    Args:
        kind: `message` for a turn, `answer` for the answer to a question.
        thread: the thread or context.
        turn: the number of messages which that thread has seen, this one included.
        message: the message's own id, if it has one.
    """
    line = {"kind": kind, "text": text, "thread": thread, "turn": turn, "message": message, "at_ms": _now_ms()}
    with Path(os.environ[EFFECTS]).open("a") as file:
        file.write(json.dumps(line) + "\n")


def reply(turn: int, text: str, answer: str | None = None) -> str:
    """The result: what was asked, in which turn, and the answer if there was a question."""
    return f"turn {turn}: {text}" + ("" if answer is None else f" -> {answer}")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
