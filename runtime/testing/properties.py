"""What must hold, whatever happens: the account of what was said and of what the remote has really done.

It sits beside the job and the remote, and believes neither: what was accepted is counted at the
remote, and what was said is kept over every crash.
"""

import re
from typing import Final

from reattach.models.effects import Submit
from reattach.models.identity import marker_of
from reattach.models.invocation import check_invocation
from reattach.models.lifecycle import Status
from reattach.models.outcomes import FailureCode, NoticeKind, Outcome, RemoteFate
from reattach.models.request import Request
from reattach.models.thread import ThreadState, check_thread
from reattach.runtime.driver import Applied
from reattach.runtime.invariants import no_wake_up, rank_fell
from reattach.runtime.testing.life import Life
from reattach.runtime.testing.remote import RemoteUnderTest

_CREDENTIAL: Final = re.compile(rb"(?i)\bbearer\s+\S{8}|\bauthorization['\"]?\s*[:=]")


class Wrong(Exception):
    """A property does not hold."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name, self.text = name, text


class Account:
    """What one example has shown so far.

    Attributes:
        requests: by the name of the call, as first asked for.
        markers: every marker under which a POST may have gone out.
        released: calls whose runs may go on beside others, as a notice or an operator has said.
    """

    def __init__(self, remote: RemoteUnderTest) -> None:
        self.remote = remote
        self.requests: dict[str, Request] = {}
        self.markers: dict[str, None] = {}
        self.released: set[str] = set()
        self.said: list[Outcome] = []
        self._secrets = tuple(secret.encode() for secret in remote.secrets)

    def stepped(self, life: Life, before: ThreadState | None, after: ThreadState | None, applied: Applied) -> None:
        """Check one step of one life.

        Raises:
            Wrong: it breaks a property.
        """
        if after is not None:
            _check_state(after)
        fell = "" if before is None or after is None else rank_fell(before.active, after.active)
        if fell:
            raise Wrong("rank fell", fell)
        for effect, inv in applied.orders:
            if isinstance(effect, Submit):
                self.markers[marker_of(inv.id, inv.generation)] = None
        for notice in applied.notices:
            if notice.kind is NoticeKind.DRAIN_EXPIRED:
                self.released.add(notice.invocation_id)
        self._check_secrets(applied)

    def emitted(self, life: Life, outcome: Outcome, now_ms: int) -> None:
        """Check what a life says about the end of a call, and remember it.

        Raises:
            Wrong: it breaks a property.
        """
        name = outcome.invocation_id
        ttl_ms = self.remote.terms.policy.tombstone_ttl_ms
        for old in life.emitted:
            if old.invocation_id == name and now_ms < old.finished_at_ms + ttl_ms:
                raise Wrong("two outcomes", f"{life.name} ends {name} a second time: {_words(outcome)}")
        for old in self.said:
            if old.invocation_id == name and _contradict(old, outcome):
                raise Wrong("outcomes differ", f"{name}: {_words(outcome)}, but before: {_words(old)}")
        self._check_truth(life, outcome)
        self.said.append(outcome)

    def _check_truth(self, life: Life, outcome: Outcome) -> None:
        name, generation = outcome.invocation_id, outcome.generation
        marker = marker_of(name, generation)
        failure = outcome.failure
        if outcome.status is Status.COMPLETED:
            if not self.remote.accepted(marker):
                raise Wrong("wrong turn", f"{name} completed, and the remote never accepted {marker}")
            if outcome.result is not None and not self.remote.owns(outcome.result, self.requests[name], generation):
                raise Wrong("wrong turn", f"{name} was given a result that is not its own: {outcome.result[:80]!r}")
        if failure is None or life.superseded:
            return
        if failure.remote is RemoteFate.NONE and self.remote.accepted(marker):
            raise Wrong("false fate", f"{name}: the outcome says that {marker} was not accepted, and it was")
        if (failure.code, failure.remote) == (FailureCode.LOST, RemoteFate.UNKNOWN) and self.remote.remembers(marker):
            raise Wrong("false fate", f"{name} is lost, says the outcome; the remote shows {marker}")

    def check(self, host: Life) -> None:
        """Check what the remote has really done.

        Raises:
            Wrong: a property does not hold.
        """
        for marker in self.markers:
            count = self.remote.accepted(marker)
            if count > 1:
                raise Wrong("accepted twice", f"the remote has started {count} runs of {marker}")
        for name, text in self.remote.wrongs(self.released):
            raise Wrong(name, text)
        for outcome in host.emitted:
            if outcome.failure is not None and outcome.failure.remote is RemoteFate.NONE:
                marker = marker_of(outcome.invocation_id, outcome.generation)
                if self.remote.accepted(marker):
                    raise Wrong("false fate", f"{marker} was accepted after its outcome said that it was not")

    def _check_secrets(self, applied: Applied) -> None:
        said = repr((applied.outcomes, applied.notices, applied.reports, applied.journal)).encode()
        for place, text in (("what is stored", applied.stored or b""), ("what is said", said)):
            found = _CREDENTIAL.search(text)
            if found is not None or any(secret in text for secret in self._secrets):
                raise Wrong("credential", f"{place} holds something like a credential")


def _check_state(state: ThreadState) -> None:
    wrong = check_thread(state)
    if wrong:
        raise Wrong("bad record", wrong)
    if state.active is not None:
        wrong = check_invocation(state.active)
        if wrong:
            raise Wrong("bad record", f"{state.active.id} in {state.active.leaf.value}: {wrong}")
    asleep = no_wake_up(state)
    if asleep:
        raise Wrong("no wake-up", asleep)


def _contradict(one: Outcome, other: Outcome) -> bool:
    """One run has one end, whoever tells it."""
    if one.generation != other.generation:
        return False
    ends = [o for o in (one, other) if o.status is Status.COMPLETED or _code(o) is FailureCode.REMOTE_FAILED]
    return len(ends) == 2 and (one.status, one.result, _code(one)) != (other.status, other.result, _code(other))


def _code(outcome: Outcome) -> FailureCode | None:
    return outcome.failure.code if outcome.failure is not None else None


def _words(outcome: Outcome) -> str:
    failure = outcome.failure
    if failure is None:
        return f"COMPLETED {(outcome.result or b'')[:60]!r}"
    return f"FAILED {failure.code.value}, remote {failure.remote.value}"
