"""What has happened so far, one line each, and the failure that shows it."""

from collections import deque
from typing import Final

FIRST_MAX: Final = 200
LAST_MAX: Final = 80


class PropertyBroken(AssertionError):
    """A property does not hold. The text names it, says of what, and tells how it came to that.

    Args:
        name: the property, as docs/testing.md lists it.
        text: what is wrong, in one line.
        story: everything that happened, one line each.
    """

    def __init__(self, name: str, text: str, story: str) -> None:
        super().__init__(f"{name}: {text}\n\nWhat happened:\n{story}")
        self.name = name
        self.text = text
        self.story = story


class Story:
    """A timeline, for people.

    Args:
        start_ms: the instant that is called t=0.
    """

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self._first: list[str] = []
        self._last: deque[str] = deque(maxlen=LAST_MAX)
        self._told = 0

    def tell(self, now_ms: int, text: str) -> None:
        """Add a line; of a story that is too long the middle is left out."""
        line = f"  t={now_ms - self.start_ms:<5d} {text}"
        self._told += 1
        (self._first if len(self._first) < FIRST_MAX else self._last).append(line)

    def text(self) -> str:
        left_out = self._told - len(self._first) - len(self._last)
        gap = [f"  ({left_out} lines are left out)"] if left_out else []
        return "\n".join((*self._first, *gap, *self._last))


def short(value: object) -> str:
    """Name an event, an answer or an order in few words."""
    answer = getattr(value, "answer", None)
    if answer is not None:
        return f"{type(value).__name__} {_with_detail(answer)}"
    return _with_detail(value)


def _with_detail(value: object) -> str:
    name = type(value).__name__
    request = getattr(value, "request", None)
    if request is not None:
        thread = f" on {request.thread_id}" if request.thread_id else ""
        return f"{name} {request.invocation_id}{thread}"
    phase = getattr(value, "phase", None)
    shown = [] if phase is None else [phase.value]
    for field in ("handle", "after", "cause", "question_id", "response_id"):
        content = getattr(value, field, None)
        if content:
            shown.append(f"{field}={content}"[:80])
    return f"{name}({', '.join(shown)})" if shown else name
