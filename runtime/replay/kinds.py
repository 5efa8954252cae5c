"""Which model remote a journal is about."""

from dataclasses import replace

from reattach.models.policy import Absence, Deduplication, Evidence, Terms
from reattach.runtime.replay.past import Past
from reattach.runtime.simulation.remotes import (
    DEDUPLICATING,
    FENCEABLE,
    HANDLE_ONLY,
    MARKER_LAST,
    MARKER_LIST,
    STATUS_ONLY,
    Remote,
)


def remote_of(terms: Terms, past: Past) -> Remote:
    """The model remote of these capabilities."""
    able = terms.capabilities
    if able.absence is Absence.BY_FENCE:
        kind = FENCEABLE
    elif able.evidence is Evidence.HANDLE_ONLY:
        kind = HANDLE_ONLY
    elif able.evidence is Evidence.CONTAINER:
        kind = STATUS_ONLY
    elif past.newest_only:
        kind = MARKER_LAST
    else:
        kind = DEDUPLICATING if able.deduplication is Deduplication.KEY else MARKER_LIST
    return replace(kind, capabilities=able)
