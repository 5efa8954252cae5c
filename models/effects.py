"""Imperatives: the output of a step, for a host to carry out.

Remote effects carry the `Ident` under which their answer must come back. They are orders, not
facts: a host may lose them (a crash), and every record has a wake-up for that case.
"""

from dataclasses import dataclass

from reattach.models.answers import Progress
from reattach.models.events import Ident
from reattach.models.outcomes import Notice, Outcome
from reattach.models.record import record


@record
@dataclass(frozen=True, slots=True)
class Probe:
    """Ask whether the remote knows this invocation. May be repeated at will."""

    ident: Ident


@record
@dataclass(frozen=True, slots=True)
class Submit:
    """Send the POST, once, unless `not_after_ms` has passed: then answer `NotSent`."""

    ident: Ident
    not_after_ms: int


@record
@dataclass(frozen=True, slots=True)
class Watch:
    """Open the stream, after `cursor` where it has cursors."""

    ident: Ident
    cursor: str


@record
@dataclass(frozen=True, slots=True)
class Fetch:
    """Read the saved result."""

    ident: Ident


@record
@dataclass(frozen=True, slots=True)
class Fence:
    """Close the slot, so that no late POST can land in it."""

    ident: Ident


@record
@dataclass(frozen=True, slots=True)
class Cancel:
    """Ask the remote to end the run."""

    ident: Ident


@record
@dataclass(frozen=True, slots=True)
class Respond:
    """Send `invocation.response`, once, unless `not_after_ms` has passed."""

    ident: Ident
    not_after_ms: int


@record
@dataclass(frozen=True, slots=True)
class Hold:
    """Say `CheckpointCompleted` when a checkpoint that contains this record has completed."""

    ident: Ident


@record
@dataclass(frozen=True, slots=True)
class Emit:
    """The call has ended."""

    outcome: Outcome


@record
@dataclass(frozen=True, slots=True)
class Report:
    """Stream events, for the progress output."""

    invocation_id: str
    generation: int
    items: tuple[Progress, ...]


@record
@dataclass(frozen=True, slots=True)
class Notify:
    notice: Notice


@record
@dataclass(frozen=True, slots=True)
class Count:
    """Something worth a counter: `stale_answer`, `late_fact`, `duplicate_request`, `ignored`."""

    name: str


RemoteEffect = Probe | Submit | Watch | Fetch | Fence | Cancel | Respond
Effect = RemoteEffect | Hold | Emit | Report | Notify | Count
