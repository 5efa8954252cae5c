"""The words of the lifecycle: statuses, leaves, and how they rank.

A *status* is what the world outside sees; a *leaf* is the status together with what the
invocation waits for. The transitions between leaves are declared in `reattach.fsm.lifecycle`;
this module only names them, so that what is stored can be read without the statechart.
"""

from enum import Enum, IntEnum


class Status(IntEnum):
    """The public lifecycle. The number is the rank, which never falls within a generation."""

    NOT_STARTED = 0
    SUBMITTED = 1
    RUNNING = 2
    COMPLETED = 3
    FAILED = 4

    @property
    def terminal(self) -> bool:
        return self >= Status.COMPLETED

    @property
    def rank(self) -> int:
        """Order of progress; COMPLETED and FAILED stand level, neither follows the other."""
        return min(int(self), 3)


class Leaf(Enum):
    """A state of the chart. The value is `status.what_it_waits_for`."""

    NS_QUIET = "not_started.quiet"
    NS_PROBING = "not_started.probing"
    NS_BACKING_OFF = "not_started.backing_off"
    SU_HOLDING = "submitted.holding"
    SU_SENDING = "submitted.sending"
    SU_PROBING = "submitted.probing"
    SU_QUIET = "submitted.quiet"
    SU_FENCING = "submitted.fencing"
    SU_BACKING_OFF = "submitted.backing_off"
    SU_PARKED = "submitted.parked"
    RU_WATCHING = "running.watching"
    RU_PROBING = "running.probing"
    RU_FETCHING = "running.fetching"
    RU_AWAITING_INPUT = "running.awaiting_input"
    RU_RESPONDING_SENDING = "running.responding.sending"
    RU_RESPONDING_PROBING = "running.responding.probing"
    RU_RESPONDING_QUIET = "running.responding.quiet"
    RU_CANCELLING = "running.cancelling"
    COMPLETED = "completed"
    FAILED = "failed"

    # Set once per member, since every step and every read of a record asks for them.
    status: Status
    terminal: bool

    # A member is only ever equal to itself, and the hash of its name would be computed on every look-up.
    __hash__ = object.__hash__

    def __init__(self, path: str) -> None:
        self.status = Status[path.split(".", 1)[0].upper()]
        self.terminal = self.status.terminal
