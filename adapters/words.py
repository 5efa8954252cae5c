"""Foreign words that become ours: handles and failures, bounded, printable and without the token."""

from typing import Any, Final

from reattach.adapters.endpoint import Endpoint
from reattach.models.outcomes import Failure, FailureCode, RemoteFate

HANDLE_CHARS_MAX: Final = 512
FAILURE_CHARS_MAX: Final = 1_000


def handle_of(value: Any, endpoint: Endpoint) -> str:
    """Take a name that a service gives as text; "" for what cannot be one, such as our own token."""
    name = "" if isinstance(value, bool) else word_of(value)
    return name if endpoint.clean(name, HANDLE_CHARS_MAX) == name else ""


def word_of(value: Any) -> str:
    """Take a text, a flag or a whole number as the word that options name it by; "" for all else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        # Longer ones are nobody's name, and Python refuses to write the longest.
        return str(value) if abs(value) < 10**40 else ""
    return value if isinstance(value, str) else ""


def remote_failure(said: str, endpoint: Endpoint) -> Failure:
    """The remote's own end of a run, in its words."""
    return Failure(FailureCode.REMOTE_FAILED, endpoint.clean(said, FAILURE_CHARS_MAX), RemoteFate.ENDED, False)
