"""What `--what-if` was asked for, which entries that means, and all that came of it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from reattach.models.codec import decode_entry
from reattach.models.errors import ConfigError
from reattach.models.journal import JournalEntry
from reattach.runtime.replay.past import Moment, Past, past_of
from reattach.runtime.replay.reading import Call, Journal
from reattach.runtime.replay.whatif import Continued, continuations

EVERY: Final = 0
_FORM: Final = re.compile(r"crash@(?:(every|\*)|([0-9]{1,9}))")


@dataclass(frozen=True, slots=True)
class Supposed:
    """A crash behind one entry of one call.

    Args:
        number: 1-based, within the call.
        worlds: how each of them went on; () where the entry could not be rebuilt.
    """

    call: Call
    number: int
    entry: JournalEntry
    worlds: tuple[Continued, ...]

    @property
    def broken(self) -> tuple[Continued, ...]:
        return tuple(world for world in self.worlds if world.broken)


@dataclass(slots=True)
class Findings:
    """Everything that was supposed.

    Args:
        left_out: entries whose history is not whole, so that nothing can be continued from them.
        first: the first that breaks a property; of the others nothing is kept.
    """

    crashes: int = 0
    worlds: int = 0
    broken: int = 0
    left_out: int = 0
    first: Supposed | None = None

    def add(self, supposed: Supposed) -> None:
        self.crashes += 1
        self.worlds += len(supposed.worlds)
        self.broken += len(supposed.broken)
        self.left_out += not supposed.worlds
        if supposed.broken and self.first is None:
            self.first = supposed


def number_of(text: str) -> int:
    """Read `crash@N`, or `crash@every`.

    Returns:
        The number of the entry, `EVERY` for all of them.

    Raises:
        ConfigError: neither.
    """
    found = _FORM.fullmatch(text)
    if found is None or (found[2] is not None and int(found[2]) == 0):
        raise ConfigError(f"--what-if {text}: crash@N with the number of an entry (from 1), or crash@every")
    return EVERY if found[2] is None else int(found[2])


def crashes_in(journal: Journal, number: int, *, invocation: str = "", until: int = 0) -> int:
    """Say behind how many entries a crash is to be supposed.

    Raises:
        ConfigError: no call has so many entries.
    """
    lengths = [
        min(len(held), until or len(held)) for call, held in journal.calls.items() if invocation in ("", call[2])
    ]
    if number == EVERY:
        return sum(lengths)
    reached = sum(length >= number for length in lengths)
    if not reached:
        longest = max(lengths, default=0)
        raise ConfigError(f"--what-if crash@{number}: beyond the end, the longest call has {longest} entries")
    return reached


def suppose(
    journal: Journal,
    number: int,
    *,
    invocation: str = "",
    until: int = 0,
    on_crash: Callable[[int], None] | None = None,
) -> Iterator[Supposed]:
    """Let the job crash behind entry `number` of each call that has one, or behind every entry.

    Args:
        journal: whole threads; a call alone does not tell what came before it.
        invocation: only behind entries of this call; "" for all.
        until: the history ends after so many entries of each call; 0 for all.
        on_crash: told how many crashes have been tried since it was last told.
    """
    threads: dict[tuple[str, str], list[Call]] = {}
    for call in journal.calls:
        threads.setdefault((call[0], call[1]), []).append(call)
    for calls in threads.values():
        places: list[tuple[Call, int]] = []
        entries: list[JournalEntry] = []
        for call in calls:
            for place, held in enumerate(journal.calls[call][: until or None], 1):
                places.append((call, place))
                entries.append(decode_entry(held.data))
        past = past_of(entries)
        for at, (call, place) in enumerate(places):
            if number in (EVERY, place) and invocation in ("", call[2]):
                yield Supposed(call, place, entries[at], _worlds(past, past.moments.get(at), place))
                if on_crash is not None:
                    on_crash(1)


def _worlds(past: Past, moment: Moment | None, place: int) -> tuple[Continued, ...]:
    return () if moment is None else tuple(continuations(past, moment, place))
