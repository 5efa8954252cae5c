"""Messages for the agents of `tests.servers`, and what their effects say of a call."""

from typing import Any

from reattach.testing import Target
from tests.servers.running import Running

WORDS = {"quick": "", "slow": " @1500ms", "failing": " !fail", "asking": " ?ask"}


def target(server: Running, protocol: str, *, failing: str = WORDS["failing"], **more: Any) -> Target:
    """A target that counts in the server's effects.

    Args:
        failing: what lets a run fail.
    """
    words = {**WORDS, "failing": failing}

    def executions(call_id: str) -> int:
        return sum(one["text"].partition(" ")[0] == call_id for one in server.executions())

    def answers(call_id: str) -> int:
        return sum(one["text"] == f"answer of {call_id}" for one in server.executions("answer"))

    given: dict[str, Any] = {
        "url": server.url,
        "executions": executions,
        "answers": answers,
        "message": lambda call_id, kind: call_id + words[kind],
        "owns": lambda result, call_id: call_id.encode() in result,
    }
    return Target(protocol=protocol, **{**given, **more})
