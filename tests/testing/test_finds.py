"""The harness finds: faults of the shipped code, and remotes that do not keep what they declare."""

from collections.abc import Callable

import pytest

from reattach.models.answers import FetchAnswer, Result, SubmitAnswer, Unknown
from reattach.models.effects import Probe, RemoteEffect
from reattach.models.events import ProbeAnswered
from reattach.models.invocation import Invocation
from reattach.models.policy import Capabilities, Deduplication
from reattach.runtime.mutants.catalogue import MUTANTS
from reattach.runtime.simulation.remotes import MARKER_LIST, Memory, Remote
from reattach.runtime.testing.remote import Facts
from reattach.testing import ModelRemote, PropertyBroken
from tests.testing.making import model, search

# Each shows as one property or another, by what the examples come to first; docs/mutants.md names the one it is for.
FOUND = (
    ("no-probe", "marker-list"),
    ("no-quiet-time", "marker-list"),
    ("admission-bound-ignored", "marker-list"),
    ("own-sends-ignored", "marker-list"),
    ("unresolved-is-not-sent", "marker-list"),
    ("taken-slot-left-open", "fenceable"),
    ("intent-not-held", "handle-only"),
    ("restored-intent-believed-unsent", "handle-only"),
    ("absence-while-running-resubmits", "marker-list"),
    ("terminal-not-absorbing", "marker-list"),
    ("tombstone-forgotten", "marker-list"),
    ("no-wake-up", "marker-list"),
    ("drain-without-wake-up", "marker-list"),
    ("fate-too-sure", "marker-list"),
    ("refusal-of-a-resend-believed", "deduplicating"),
    ("status-only-thread-reused", "status-only"),
)


def broken_by(make: Callable[[], ModelRemote]) -> PropertyBroken:
    with pytest.raises(PropertyBroken) as found:
        search(make)
    return found.value


@pytest.mark.parametrize(("name", "remote"), FOUND, ids=[name for name, _ in FOUND])
def test_a_fault_of_the_shipped_code_is_found(name: str, remote: str) -> None:
    with MUTANTS[name].apply():
        found = broken_by(lambda: model(remote))
    assert found.story


class NoDedup(Remote):
    """Declares that it deduplicates, and does not."""

    def submit(self, memory: Memory, inv: Invocation, hidden_until_ms: int) -> tuple[Memory, SubmitAnswer]:
        plain = Remote(self.name, Capabilities())
        return plain.submit(memory, inv, hidden_until_ms)


class OthersResult(Remote):
    """Answers every fetch with one and the same result."""

    def fetch(self, memory: Memory, inv: Invocation) -> FetchAnswer:
        found = super().fetch(memory, inv)
        return Result(b'"of another call"') if isinstance(found, Result) else found


class Blabbing(Remote):
    """Puts the credentials that it was sent into its results."""

    def fetch(self, memory: Memory, inv: Invocation) -> FetchAnswer:
        found = super().fetch(memory, inv)
        return Result(b'"authorization: bearer 0123456789"') if isinstance(found, Result) else found


class OnStrike(ModelRemote):
    """Takes calls, and then answers no question about them any more."""

    def carry(self, effect: RemoteEffect, inv: Invocation, *, step: int, by_ms: int) -> Facts | None:
        if self.runs and isinstance(effect, Probe):
            return (ProbeAnswered(effect.ident, Unknown("on strike")),)
        return super().carry(effect, inv, step=step, by_ms=by_ms)


KEYED = Capabilities(deduplication=Deduplication.KEY, key_lifetime_ms=10**9, admission_ms=1)
LIES: dict[str, tuple[Callable[[], ModelRemote], str]] = {
    "deduplicates, but does not": (lambda: ModelRemote(NoDedup("no dedup", KEYED)), "accepted twice"),
    "shows what it took later than declared": (lambda: ModelRemote(MARKER_LIST, shows_within_ms=40), "accepted twice"),
    "hands out results of others": (
        lambda: ModelRemote(OthersResult("mixed up", MARKER_LIST.capabilities)),
        "wrong turn",
    ),
    "repeats credentials": (lambda: ModelRemote(Blabbing("blabbing", MARKER_LIST.capabilities)), "credential"),
    "stops to answer": (lambda: OnStrike(MARKER_LIST), "stuck"),
}


@pytest.mark.parametrize(("make", "breaks"), LIES.values(), ids=LIES)
def test_a_remote_that_lies_is_found(make: Callable[[], ModelRemote], breaks: str) -> None:
    assert broken_by(make).name == breaks


def test_the_failure_tells_the_property_and_the_story() -> None:
    text = str(broken_by(LIES["deduplicates, but does not"][0]))
    first, _, story = text.partition("\n\n")
    assert first.startswith("accepted twice: the remote has started 2 runs of call-")
    assert "What happened:\n  t=0     input: Requested call-1" in story
    assert story.count("reaches the remote: Submit call-") >= 2
    assert "Where it stands:\n  life-" in story
    assert "accepted at the remote: call-" in story
