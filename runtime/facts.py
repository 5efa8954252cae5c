"""The facts that a sender is told when its exchange brings nothing: the same in a job and in every simulated world."""

from reattach.models.answers import NotSent, SubmitAnswer, Unknown, Unresolved
from reattach.models.effects import Cancel, Fence, Fetch, Probe, RemoteEffect, Respond, Submit, Watch
from reattach.models.events import (
    Answered,
    CancelAnswered,
    FenceAnswered,
    FetchAnswered,
    ProbeAnswered,
    RespondAnswered,
    SubmitAnswered,
    WatchEnded,
)


def send_answered(effect: Submit | Respond, answer: SubmitAnswer) -> Answered:
    """An answer to a send."""
    kind = SubmitAnswered if isinstance(effect, Submit) else RespondAnswered
    return kind(effect.ident, answer)


def not_sent(effect: Submit | Respond, cause: str) -> Answered:
    """Provably nothing of a send has left."""
    return send_answered(effect, NotSent(cause))


def doubt(effect: RemoteEffect, cause: str) -> Answered:
    """There is no answer, and the remote may have acted or not."""
    match effect:
        case Submit() | Respond():
            return send_answered(effect, Unresolved(cause))
        case Probe(ident):
            return ProbeAnswered(ident, Unknown(cause))
        case Fetch(ident):
            return FetchAnswered(ident, Unknown(cause))
        case Fence(ident):
            return FenceAnswered(ident, Unknown(cause))
        case Cancel(ident):
            return CancelAnswered(ident, Unknown(cause))
        case Watch(ident):
            return WatchEnded(ident, cause)
