"""Compares what an adapter says with what the server has really done."""

from reattach.models.answers import Absent, Accepted, Fenced, NotSent, Occupied, Present, Refused, Unknown, Unresolved
from reattach.models.policy import Absence, Deduplication
from reattach.runtime.conformance.rig import Rig
from reattach.runtime.conformance.said import Call, Said
from reattach.runtime.proxy.faults import Answer, Cut, Exchange, Where

# A server may start what it took a little later than its answer; a probe of a loaded machine takes a while.
LEAST_S = 1.0
NOT_TAKEN = (404, 409)


def submits_of(rig: Rig, said: Said) -> list[Exchange]:
    """Those of an answer's requests that start a run."""
    return [one for one in said.requests if rig.target.submits(one)]


def judge_submit(rig: Rig, call: Call, said: Said, name: str) -> None:
    """Hold the answer of a submit under a fault against what the server has done.

    Args:
        name: the fault's, for the failure's text.
    """
    sent_once(rig, said, name)
    match said.answer:
        case NotSent():
            if submits_of(rig, said):
                rig.fail(f"{name}: the adapter says NotSent, but its request arrived at the proxy", str(said))
            none_started(rig, call, said, name)
        case Refused():
            none_started(rig, call, said, name)
        case Accepted():
            one_started(rig, call, said, name)
        case Unresolved() | Occupied():
            if said.learned:
                one_started(rig, call, said, name)
            for one in submits_of(rig, said):
                rig.proxy.wait(one, rig.target.patience_s)
            after_doubt(rig, call, truth(rig, call, said), name)
        case other:
            rig.fail(f"{name}: {other!r} is no answer to a submit")


def sent_once(rig: Rig, said: Said, name: str) -> None:
    """One submit sends one request at most that may not be repeated."""
    # Another may follow one that was not taken, as when its thread is still to be made.
    seen = submits_of(rig, said)
    if not all(_refused(one) for one in seen[:-1]):
        rig.fail(f"{name}: one submit sent {len(seen)} requests that may not be repeated", str(said))


def _refused(exchange: Exchange) -> bool:
    """The client was told that this request found nothing there, or something in its way: it was not taken."""
    match exchange.fault:
        case Answer(status=status, forward=False):
            told = [status]
        case None | Cut(Where.BODY):
            told = exchange.statuses
        case _:
            told = []
    return bool(told) and all(status in NOT_TAKEN for status in told)


def _turned_down(exchange: Exchange) -> bool:
    return bool(exchange.statuses) and all(400 <= status < 500 for status in exchange.statuses)


def one_started(rig: Rig, call: Call, said: Said, name: str) -> None:
    """The adapter claims that the run was accepted."""
    rig.soon(lambda: rig.executions(call), rig.target.patience_s)
    found = rig.executions(call)
    if found != 1:
        rig.fail(f"{name}: the adapter claims an accepted run, but the server has started {found}: {said}")
    call.expected, call.why = 1, f"{name}: the adapter said {said.answer!r}"


def none_started(rig: Rig, call: Call, said: Said, name: str) -> None:
    """The adapter claims that nothing was accepted."""
    found = truth(rig, call, said)
    if found:
        rig.fail(f"{name}: the adapter claims that nothing was accepted, but the server has started {found}: {said}")
    call.expected, call.why = 0, f"{name}: the adapter said {said.answer!r}"


def truth(rig: Rig, call: Call, said: Said) -> int:
    """How many runs the server has started: at once where it cannot have had the request, else after a wait."""
    whole = [one for one in submits_of(rig, said) if one.forwarded and not _turned_down(one)]
    taken = any(200 <= status < 300 for one in whole for status in one.statuses)
    if whole:
        patience_s = rig.target.patience_s if taken else max(LEAST_S, rig.admission_s)
        rig.soon(lambda: rig.executions(call), patience_s)
    return rig.executions(call)


def after_doubt(rig: Rig, call: Call, started: int, name: str) -> None:
    """The way out of the doubt that the adapter's capabilities promise, with nothing going wrong any more."""
    able = rig.able
    if able.deduplication is Deduplication.KEY:
        resent(rig, call, name)
    elif able.absence is Absence.NEVER:
        never_absent(rig, call, started, name)
    else:
        if able.absence is Absence.BY_FENCE:
            fenced(rig, call, name)
        sees(rig, call, started, name)


def resent(rig: Rig, call: Call, name: str) -> None:
    """Send again under the same key: one run in all."""
    said = rig.submit(call)
    if not isinstance(said.answer, Accepted):
        rig.fail(f"{name}: sent again under the same key, without a fault: {said}")
    one_started(rig, call, said, f"{name}, sent again under the same key")


def fenced(rig: Rig, call: Call, name: str) -> bool:
    """Close the slot; says whether the adapter claims that it did."""
    said = rig.fence(call)
    if not isinstance(said.answer, Fenced | Occupied):
        rig.fail(f"{name}: the fence without a fault: {said}")
    return isinstance(said.answer, Fenced)


def sees(rig: Rig, call: Call, started: int, name: str) -> None:
    """A probe shows exactly what is the case, within the admission bound at the latest."""
    last: list[Said] = []

    def right() -> bool:
        last[:] = [rig.probe(call)]
        answer = last[0].answer
        if isinstance(answer, Present) and not started:
            rig.fail(f"{name}: the probe shows a run, but the server has started none: {last[0]}")
        return isinstance(answer, Present if started else Absent)

    if not rig.soon(right, max(LEAST_S, rig.admission_s)):
        has = "has started it" if started else "has not started it"
        rig.fail(f"{name}: the server {has}, but after the admission bound the probe says {last[0]}")
    call.expected, call.why = started, f"{name}: the probe said {last[0].answer!r}"


def never_absent(rig: Rig, call: Call, started: int, name: str) -> None:
    """Where absence is never known, nothing is claimed that is not so."""
    said = rig.probe(call)
    match said.answer:
        case Absent():
            rig.fail(f"{name}: the adapter declares that absence is never known, and says {said}")
        case Present() if not started:
            rig.fail(f"{name}: the probe shows a run, but the server has started none: {said}")
        case Unknown() if started and call.inv.handle:
            rig.fail(f"{name}: the run's name {call.inv.handle!r} was learned, but the probe says {said}")
