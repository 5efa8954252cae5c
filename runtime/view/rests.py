"""What "never run twice" rests on for one call: the terms in force, and what is known of this very call."""

from reattach.models.identity import marker_of
from reattach.models.invocation import Invocation
from reattach.models.policy import Absence, Deduplication, Evidence, Terms
from reattach.runtime.view.saying import cut, moment, span


def rests_on(record: Invocation, terms: Terms, *, lineage: bool, now_ms: int) -> list[str]:
    """Say it in sentences, what the remote promises first.

    Args:
        lineage: the latest life was restored from the job's own latest checkpoint.
        now_ms: the reader's time.
    """
    return [
        *_evidence(record, terms),
        *_absence(terms),
        *_memory(record, terms, now_ms),
        *_write_ahead(terms, lineage),
        *_held(record),
        "the input brings the same request again after a restore, and no other job uses this thread",
    ]


def _evidence(record: Invocation, terms: Terms) -> list[str]:
    match terms.capabilities.evidence:
        case Evidence.MARKER:
            marker = cut(marker_of(record.id, record.generation))
            found = [f"the remote shows every POST that it has accepted: this one carries the marker {marker}"]
        case Evidence.CONTAINER:
            found = [
                "the remote shows every POST that it has accepted, by the status of a thread that is this call's own"
            ]
        case Evidence.HANDLE_ONLY:
            found = [
                "the remote can be asked about a run only by the name that it gave it: "
                + (f"{cut(record.handle)}, which is known" if record.handle else "none is known, so it cannot be asked")
            ]
    if terms.capabilities.deduplication is Deduplication.KEY:
        assert terms.capabilities.key_lifetime_ms is not None
        until = moment(record.asked_at_ms + terms.capabilities.key_lifetime_ms)
        found.append(f"the remote takes a second POST under the same key for the first one, until {until}")
    return found


def _absence(terms: Terms) -> list[str]:
    policy = terms.policy
    parts = f"{span(policy.submit_validity_ms)} to leave, {span(policy.submit_timeout_ms)} to be answered"
    settle = (
        f"a POST is accepted within {span(terms.settle_ms)} of its order or never ({parts}, "
        f"{span(terms.admission_ms)} to be shown)"
    )
    overlap = f"a superseded task dies within {span(policy.overlap_ms)}" if policy.overlap_ms else ""
    match terms.capabilities.absence:
        case Absence.AFTER_QUIET:
            believed = '"I do not know it" counts only if it was asked for after that time'
        case Absence.BY_FENCE:
            believed = '"I do not know it" counts only once the remote has closed the slot'
        case Absence.NEVER:
            believed = "that the remote does not know the call never proves anything"
    return [one for one in (settle, overlap, believed) if one]


def _memory(record: Invocation, terms: Terms, now_ms: int) -> list[str]:
    if terms.capabilities.absence is Absence.NEVER:
        return []
    until_ms = record.asked_at_ms + terms.memory_ms - terms.settle_ms - terms.policy.skew_max_ms
    if until_ms <= now_ms:
        return [f"the remote's memory, or the job's, reached until {moment(until_ms)}: an absence proves nothing now"]
    return [f"the remote remembers runs for long enough: an absence counts until {moment(until_ms)}"]


def _write_ahead(terms: Terms, lineage: bool) -> list[str]:
    if not terms.writes_ahead:
        return []
    restored = "this life was restored from the job's own latest checkpoint, so what is not started was never sent"
    if not lineage:
        restored = "this life may not be restored from the job's own latest checkpoint: an earlier one may have sent it"
    return ["a POST is held until a completed checkpoint contains the intention to send it", restored]


def _held(record: Invocation) -> list[str]:
    if record.tenure.permit:
        return [f"the right to POST is held by the life {cut(record.tenure.incarnation)} alone, and dies with it"]
    if record.resend and not record.leaf.terminal:
        return ["an earlier POST is unresolved, so a refusal of a later one would say nothing about it"]
    return []
