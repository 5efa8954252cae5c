"""A journal as lanes: for every call, where it stood from when to when, and what happened to it.

Entries are taken as they were recorded, so that a journal of another release is shown as well. Only why a
call waits, or has failed, is not in its entries: for calls that have not completed, the latest life is
replayed, and nothing is said where today's code comes to another state.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from reattach.models.codec import decode_entry
from reattach.models.errors import CodecError
from reattach.models.invocation import Invocation
from reattach.models.journal import JournalEntry
from reattach.models.lifecycle import Leaf, Status
from reattach.models.policy import Terms
from reattach.models.terms import terms_of
from reattach.runtime.replay.fold import Checked, Fold
from reattach.runtime.replay.lives import Link, Lives
from reattach.runtime.replay.reading import Call, Held, Journal
from reattach.runtime.replay.report import event_of
from reattach.runtime.view.saying import cut, fact, orders

POSTS: Final = frozenset({"Submit"})
PROBES: Final = frozenset({"Probe"})


@dataclass(frozen=True, slots=True)
class Step:
    """One entry of a call.

    Args:
        number: 1-based, within the call.
        event: the chart's name of the fact.
        says: the fact in words.
        does: what was ordered because of it, in words.
        begins_life: the first entry of a new incarnation.
        note: how that life hangs together with the one before, "" within a life.
        restored: that life went back to an older state.
        undone: a later life went back behind this entry.
        gap: entries are missing before it.
        times: how many facts of a stream in a row this step stands for.
    """

    number: int
    at_ms: int
    incarnation: str
    opened_ms: int
    generation: int
    before: Leaf | None
    after: Leaf
    event: str
    effects: tuple[str, ...]
    says: str
    does: str
    begins_life: bool = False
    note: str = ""
    restored: bool = False
    undone: bool = False
    gap: bool = False
    times: int = 1


@dataclass(frozen=True, slots=True)
class Lane:
    """One call.

    Args:
        steps: in the order in which they were made; never empty.
        since_ms: when it came to the state that it is in.
        cause: why it waits there, or why it has failed; "" where that is not known.
    """

    agent: str
    thread_id: str
    invocation_id: str
    steps: tuple[Step, ...]
    since_ms: int
    cause: str = ""

    @property
    def leaf(self) -> Leaf:
        return self.steps[-1].after

    @property
    def status(self) -> Status:
        return self.leaf.status

    @property
    def generation(self) -> int:
        return self.steps[-1].generation

    @property
    def began_ms(self) -> int:
        return self.steps[0].at_ms

    @property
    def posts(self) -> int:
        """POSTs that were ordered, also by lives that were undone."""
        return sum(not POSTS.isdisjoint(step.effects) for step in self.steps)

    @property
    def probes(self) -> int:
        return sum(not PROBES.isdisjoint(step.effects) for step in self.steps)

    @property
    def lives(self) -> int:
        return len({step.incarnation for step in self.steps})


@dataclass(frozen=True, slots=True)
class Timeline:
    """All lanes.

    Args:
        lanes: in the order in which the calls began.
        from_ms, until_ms: of the first and the last entry.
        lives: when each incarnation opened, the oldest first.
    """

    lanes: tuple[Lane, ...]
    from_ms: int
    until_ms: int
    lives: tuple[tuple[str, int], ...]


def timeline_of(journal: Journal, on_entry: Callable[[int], None] | None = None) -> Timeline:
    """Lay out every call of a journal, which must hold an entry at least.

    Args:
        on_entry: told how many entries have been laid out since it was last told.
    """
    terms = lru_cache(maxsize=256)(terms_of)
    lanes = []
    for call, held in journal.calls.items():
        entries = [decode_entry(one.data) for one in held]
        lanes.append(_lane(call, entries, held, terms))
        if on_entry is not None:
            on_entry(len(entries))
    lanes.sort(key=lambda lane: (lane.began_ms, lane.agent, lane.thread_id, lane.invocation_id))
    return timeline(lanes)


def timeline(lanes: Sequence[Lane]) -> Timeline:
    """A timeline of some lanes: its times are theirs."""
    steps = [step for lane in lanes for step in lane.steps]
    lives = {step.incarnation: step.opened_ms for step in steps}
    ordered = sorted(lives.items(), key=lambda one: (one[1], one[0]))
    times = [step.at_ms for step in steps]
    return Timeline(tuple(lanes), min(times), max(times), tuple(ordered))


def select(
    lanes: Iterable[Lane], *, statuses: Iterable[Status] = (), agent: str = "", thread: str = "", text: str = ""
) -> list[Lane]:
    """Keep the lanes that fit everything that is asked for; what is empty asks for nothing.

    Args:
        text: in a name, a state or a cause, in any case.
    """
    wanted, text = frozenset(statuses), text.casefold()
    return [
        lane
        for lane in lanes
        if (not wanted or lane.status in wanted)
        and agent in ("", lane.agent)
        and thread in ("", lane.thread_id)
        and text in "\n".join((lane.invocation_id, lane.agent, lane.thread_id, lane.leaf.value, lane.cause)).casefold()
    ]


def waiting_first(lanes: Iterable[Lane]) -> list[Lane]:
    """Calls that go on, the longest in their state first; then those that have ended, the latest first."""
    return sorted(lanes, key=lambda one: (one.leaf.terminal, -one.since_ms if one.leaf.terminal else one.since_ms))


def steps_of(entries: Sequence[JournalEntry], states: Iterable[bytes]) -> list[Step]:
    """The entries of one call as steps, facts of a stream that change nothing taken together."""
    lives = Lives(frozenset(states))
    steps: list[Step] = []
    for number, entry in enumerate(entries, 1):
        link = _link(lives, entry)
        lives.follow(entry)
        if link.restore is not None:
            _undo(steps, link.restore.back_to)
        _append(steps, _step(number, entry, link))
    return steps


def _link(lives: Lives, entry: JournalEntry) -> Link:
    if entry.basis is None:
        latest = lives.latest
        # A life of which the first entry is not there began before the journal does, or its entry is missing.
        return Link(gap=latest is not None and latest.incarnation != entry.incarnation)
    try:
        return lives.link(entry, entry.basis)
    except CodecError as error:
        return Link(note=str(error), gap=True)


def _step(number: int, entry: JournalEntry, link: Link) -> Step:
    return Step(
        number, entry.at_ms, entry.incarnation, entry.opened_ms, entry.generation, entry.before, entry.after,
        event_of(entry), entry.effects, fact(entry), orders(entry),
        begins_life=entry.basis is not None,
        note=link.note, restored=link.restore is not None, gap=link.gap,
    )  # fmt: skip


def _append(steps: list[Step], step: Step) -> None:
    latest = steps[-1] if steps else None
    if (
        latest is not None
        and step.event == latest.event == "progressed"
        and (step.incarnation, step.after, step.effects) == (latest.incarnation, latest.after, latest.effects)
        and not (step.begins_life or step.gap or latest.undone)
    ):
        times = latest.times + 1
        steps[-1] = replace(latest, times=times, says=f"stream events, {times} times")
        return
    steps.append(step)


def _undo(steps: list[Step], back_to: int) -> None:
    for index in range(len(steps) - 1, -1, -1):
        if steps[index].number <= back_to:
            return
        steps[index] = replace(steps[index], undone=True)


def _lane(call: Call, entries: Sequence[JournalEntry], held: Sequence[Held], terms: Callable[[str], Terms]) -> Lane:
    steps = steps_of(entries, (one.state for one in held))
    cause = "" if steps[-1].after is Leaf.COMPLETED else cause_of(latest_record(entries, terms))
    return Lane(*call, tuple(steps), since_of(steps), cause)


def since_of(steps: Sequence[Step]) -> int:
    """When a call came to the state that its latest step left it in."""
    since = latest = steps[-1]
    for step in reversed(steps):
        if step.undone:
            continue
        if (step.after, step.generation) != (latest.after, latest.generation):
            break
        since = step
    return since.at_ms


def latest_record(entries: Sequence[JournalEntry], terms: Callable[[str], Terms] = terms_of) -> Invocation | None:
    """The call behind its latest entry, by replaying its latest life; None where today's code comes to another."""
    first = next((at for at in range(len(entries) - 1, -1, -1) if entries[at].basis is not None), None)
    if first is None:
        return None
    fold = Fold(terms)
    try:
        for entry in entries[first:]:
            verdict = fold.add(entry)
            if not isinstance(verdict, Checked) or verdict.mismatch is not None:
                return None
    except CodecError:
        return None
    return fold.record


def cause_of(record: Invocation | None) -> str:
    """Why a call waits, or how it has failed."""
    if record is None:
        return ""
    if record.failure is not None:
        return cut(f"{record.failure.code.value}: {record.failure.message}")
    return cut(record.cause)
