"""What recorded facts prove about the remote: which POSTs it accepted, which not, and which are in doubt.

An answer, a status, a stream or a result proves that a POST was accepted; a definite no, or an
absence that the job could trust, that it was not. What was ordered and neither is in doubt: it may
have arrived, or may still be under way.

A remote does not forget what it has promised to remember: a run that was known stays known here,
even where the recorded one lost it too early.
"""

from dataclasses import dataclass, replace
from enum import Enum

from reattach.fsm.thread import ThreadStep, Transition
from reattach.models import events as e
from reattach.models.answers import Absent, Accepted, Confirmed, Fenced, NotSent, Phase, Present, Refused, Result
from reattach.models.effects import Notify, Submit
from reattach.models.identity import marker_of
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf
from reattach.models.outcomes import Failure, NoticeKind, RemoteFate
from reattach.models.policy import Terms
from reattach.models.thread import Drain

Name = tuple[str, int]


class Fate(Enum):
    """Whether the remote has accepted a POST."""

    NO = "no"
    DOUBT = "in doubt"
    YES = "yes"


@dataclass(frozen=True, slots=True)
class Run:
    """What is known of the POST of one generation of a call.

    Args:
        record: for which it was ordered.
        bound_ms: it lands before this time, or never; it is shown by then, too. 0 once it was shown.
        failure: how it failed.
        before: what was known before the latest POST.
    """

    record: Invocation
    fate: Fate
    bound_ms: int = 0
    phase: Phase = Phase.RUNNING
    failure: Failure | None = None
    before: Fate = Fate.NO

    @property
    def marker(self) -> str:
        return marker_of(self.record.id, self.record.generation)


class Knowledge:
    """Everything that is known of one remote thread.

    Args:
        runs: by marker and slot, in the order of their first POSTs.
        fenced: records whose slots are closed.
        released: calls whose run may still act beside later turns, as people were told.
    """

    def __init__(self) -> None:
        self.runs: dict[Name, Run] = {}
        self.fenced: list[Invocation] = []
        self.released: set[str] = set()

    def begin(self, record: Invocation) -> None:
        """Take what a record alone tells, where nothing older is recorded."""
        name = _name_of(record)
        if name not in self.runs and (record.attempts or record.handle):
            known = record.handle or record.tenure.known_at_ms
            self.runs[name] = Run(record, Fate.YES if known else Fate.DOUBT, record.tenure.sends_end_ms)

    def learn(self, made: Transition, terms: Terms, at_ms: int) -> None:
        """Take what a step's fact proves, and then the POST that the step has ordered."""
        if made.before is not None:
            self._fact(made, made.before, at_ms + terms.admission_ms)
        for effect in made.effects:
            if isinstance(effect, Submit):
                self._post(made.after, effect.not_after_ms + terms.policy.submit_timeout_ms + terms.admission_ms)

    def drained(self, drain: Drain, released: bool, result: ThreadStep) -> None:
        """Take what the end of a drain proves."""
        if not released:
            return
        told = any(
            isinstance(effect, Notify) and effect.notice.kind is NoticeKind.DRAIN_EXPIRED
            for effect, _ in result.effects
        )
        if told:
            self.released.add(drain.invocation.id)
        elif isinstance(getattr(result.transitions[0].event, "answer", None), Absent):
            self._refute(_name_of(drain.invocation))

    def _post(self, record: Invocation, bound_ms: int) -> None:
        name = _name_of(record)
        run = self.runs.get(name)
        if run is None or run.fate is not Fate.YES:
            self.runs[name] = Run(record, Fate.DOUBT, bound_ms, before=Fate.NO if run is None else run.fate)

    def _fact(self, made: Transition, before: Invocation, shown_ms: int) -> None:
        event, after = made.event, made.after
        ident = getattr(event, "ident", None)
        generation = before.generation if ident is None else ident.generation
        name = (marker_of(before.id, generation), before.slot)
        answer = getattr(event, "answer", None)
        if isinstance(event, e.FenceAnswered) and isinstance(answer, Fenced):
            self.fenced.append(before)
        elif _proves(event):
            shown_ms = shown_ms if isinstance(event, e.SubmitAnswered | e.HandleLearned) else 0
            self._prove(name, before, event, shown_ms)
        elif isinstance(event, e.SubmitAnswered) and isinstance(answer, NotSent | Refused):
            run = self.runs.get(name)
            # A no to an older order comes back as a stale answer, which is only counted.
            if run is not None and before.leaf is Leaf.SU_SENDING and before.epoch == event.ident.epoch:
                self.runs[name] = replace(run, fate=run.before)
        elif isinstance(event, e.ProbeAnswered) and isinstance(answer, Absent) and _believed(after, made):
            self._refute(name)

    def _prove(self, name: Name, record: Invocation, event: e.ThreadEvent, shown_ms: int) -> None:
        run = self.runs.get(name) or Run(record, Fate.YES)
        answer = getattr(event, "answer", None)
        failure = answer.failure if isinstance(answer, Present) else run.failure
        phase, shown_ms = _phase(event, answer) or run.phase, min(run.bound_ms, shown_ms)
        self.runs[name] = replace(run, fate=Fate.YES, bound_ms=shown_ms, phase=phase, failure=failure)

    def _refute(self, name: Name) -> None:
        run = self.runs.get(name)
        if run is not None and run.fate is Fate.DOUBT:
            self.runs[name] = replace(run, fate=Fate.NO)


def _name_of(record: Invocation) -> Name:
    return marker_of(record.id, record.generation), record.slot


def _proves(event: e.ThreadEvent) -> bool:
    """The remote has accepted what the event is about."""
    answer = getattr(event, "answer", None)
    if isinstance(event, e.HandleLearned | e.Progressed | e.AdoptOrdered):
        return True
    if isinstance(event, e.SubmitAnswered | e.RespondAnswered):
        return isinstance(answer, Accepted)
    return isinstance(answer, Present | Result | Confirmed)


def _phase(event: e.ThreadEvent, answer: object) -> Phase | None:
    """Where the run stands by this fact; None when it does not say."""
    if isinstance(answer, Present | Accepted):
        return answer.phase
    if isinstance(event, e.FetchAnswered):
        return Phase.COMPLETED
    return Phase.CANCELLED if isinstance(answer, Confirmed) else None


def _believed(after: Invocation, made: Transition) -> bool:
    """The job took this absence for a proof."""
    if after.failure is not None:
        return after.failure.remote is RemoteFate.NONE
    posts = any(isinstance(effect, Submit) for effect in made.effects)
    return (posts or after.tenure.permit) and not after.resend
