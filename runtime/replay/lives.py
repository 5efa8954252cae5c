"""How the lives of one call hang together: looked up among its recorded states, without replaying a step.

The first entry that an incarnation makes of a call carries the record that it started from. If that is
the latest state, the call was taken over; if it is an older one, an older checkpoint was restored, and
what came after that state never happened as far as the job knows.
"""

from collections.abc import Collection
from dataclasses import dataclass

from reattach.models.errors import Corrupt
from reattach.models.events import Requested
from reattach.models.journal import Basis, JournalEntry
from reattach.runtime.driver import state_digest


@dataclass(frozen=True, slots=True)
class Restore:
    """A life that did not go on where the one before had ended.

    Args:
        back_to: number of the entry whose state it started from; 0 for before the call began.
        undone: how many entries came after that one.
    """

    back_to: int
    undone: int


@dataclass(frozen=True, slots=True)
class Link:
    """How a life hangs together with the one before.

    Args:
        note: in words, "" where it is the first.
        taken_over: it went on from the latest state.
        gap: entries are missing before it.
    """

    note: str = ""
    taken_over: bool = False
    restore: Restore | None = None
    gap: bool = False


class Lives:
    """Follows one call, entry by entry.

    Args:
        states: digests of all the call's entries, for lives whose clocks put them in the wrong order.
    """

    def __init__(self, states: Collection[bytes] = frozenset()) -> None:
        self._seen: dict[bytes, int] = {}
        self._states = states
        self.latest: JournalEntry | None = None
        self.number = 0

    def link(self, entry: JournalEntry, basis: Basis) -> Link:
        """Say where the life of the next entry comes from.

        Raises:
            Corrupt: the entry contradicts itself.
        """
        if entry.before is None:
            if not isinstance(entry.event, Requested):
                raise Corrupt("contradicts itself: a call begins with a request")
            return self._begun(entry)
        if entry.before is not basis.record.leaf:
            raise Corrupt("contradicts itself: its basis is in another leaf")
        return self._found(state_digest(basis.record))

    def follow(self, entry: JournalEntry) -> None:
        """Go on behind the next entry."""
        self.number += 1
        self._seen[entry.state] = self.number
        self.latest = entry

    def _begun(self, entry: JournalEntry) -> Link:
        latest = self.latest
        if latest is None:
            return Link()
        if latest.generation < entry.generation:
            return Link(f"generation {entry.generation} begins")
        if latest.after.terminal and latest.incarnation == entry.incarnation:
            return Link("asked for again after it had been forgotten")
        restore = Restore(0, self.number)
        return Link(f"restored to before it began: {_entries(restore.undone)} undone", restore=restore)

    def _found(self, state: bytes) -> Link:
        latest = self.latest
        if latest is not None and latest.state == state:
            return Link("taken over by a new incarnation", taken_over=True)
        back_to = self._seen.get(state)
        if back_to is None and state in self._states:
            return Link("goes on from a state further down: the host's clock ran backwards")
        if back_to is None:
            missing = latest is not None
            older = "that is not in this journal" if missing else "older than this journal"
            return Link(f"goes on from a state {older}", gap=missing)
        restore = Restore(back_to, self.number - back_to)
        note = f"restored from an older checkpoint: back to entry {back_to}, {_entries(restore.undone)} undone"
        return Link(note, restore=restore)


def _entries(count: int) -> str:
    return f"{count} entry" if count == 1 else f"{count} entries"
