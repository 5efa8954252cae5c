"""What came of supposed crashes, as lines for people and as data for machines."""

from collections.abc import Iterator
from typing import Any

from reattach.models.codec import decode_entry
from reattach.runtime.replay.reading import Journal
from reattach.runtime.replay.report import CONTEXT_ENTRIES, event_of
from reattach.runtime.replay.supposing import Findings, Supposed
from reattach.runtime.replay.telling import counted, entry_line, named
from reattach.runtime.replay.whatif import Continued


def story_lines(journal: Journal, supposed: Supposed, only_broken: bool = False) -> Iterator[str]:
    """What was recorded up to a crash, each of its worlds as a timeline, and a table of them.

    Args:
        only_broken: leave out the timelines of worlds in which every property holds.
    """
    held = journal.calls[supposed.call]
    since_ms = decode_entry(held[0].data).at_ms
    yield f"what if the job had crashed behind entry {supposed.number} of {named(supposed.call)}"
    first = max(0, supposed.number - CONTEXT_ENTRIES)
    for number, one in enumerate(held[first : supposed.number], first + 1):
        entry = decode_entry(one.data)
        yield entry_line(entry, event_of(entry), number, since_ms)
    for world in supposed.broken if only_broken else supposed.worlds:
        yield ""
        yield from world_lines(supposed, world, since_ms)
    yield ""
    yield from table_lines(supposed)


def world_lines(supposed: Supposed, world: Continued, since_ms: int) -> Iterator[str]:
    """One world as a timeline."""
    crash_s = (world.crash_ms - since_ms) / 1000
    yield f"! crash {crash_s:>+9.3f} s  the checkpoint {world.checkpoint.value}; {world.arrival.value}"
    number = supposed.number
    for happened in world.story:
        entry = happened.entry
        if entry is None:
            yield f"{'':<8}{(happened.at_ms - since_ms) / 1000:>+9.3f} s  {'':<8}  -- {happened.text}"
            continue
        own = entry.invocation_id == supposed.call[2]
        number += own
        mark = " " if own else "~"
        yield entry_line(entry, event_of(entry), number if own else 0, since_ms, mark)
    yield f"  => {verdict(world)}"


def verdict(world: Continued) -> str:
    """How one world ended."""
    if world.broken:
        return f"BROKEN: {world.broken}"
    return f"{world.outcome}; {counted(world.posts, 'POST')} sent, accepted in all: {world.accepted}"


def table_lines(supposed: Supposed) -> Iterator[str]:
    """The worlds of one crash, a line each."""
    yield f"  {'the checkpoint':<23}  {'the POST in doubt':<32}  POSTs  accepted  outcome"
    for world in supposed.worlds:
        outcome = f"BROKEN: {world.broken}" if world.broken else world.outcome
        checkpoint, arrival = world.checkpoint.value, world.arrival.value
        yield f"  {checkpoint:<23}  {arrival:<32}  {world.posts:>5}  {world.accepted:>8}  {outcome}"


def summary_line(supposed: Supposed) -> str:
    """One crash as a line."""
    entry, worlds = supposed.entry, supposed.worlds
    where = f"{supposed.call[2][:40]:<16} {supposed.number:>4}  {event_of(entry)} -> {entry.after.value}"
    if not worlds:
        return f"{where:<72}  left out: what was stored then cannot be rebuilt"
    if supposed.broken:
        return f"{where:<72}  BROKEN in {len(supposed.broken)} of {counted(len(worlds), 'world')}"
    outcomes = ", ".join(sorted({world.outcome for world in worlds}))
    accepted = sorted({world.accepted for world in worlds})
    span = str(accepted[0]) if len(accepted) == 1 else f"{accepted[0]}-{accepted[-1]}"
    return f"{where:<72}  {counted(len(worlds), 'world')}: accepted {span}; {outcomes}"


def total_line(findings: Findings) -> str:
    """All crashes as one line."""
    broken = f"{counted(findings.broken, 'world')} broken" if findings.broken else "every property holds"
    left = f", {counted(findings.left_out, 'entry')} left out" if findings.left_out else ""
    return f"{counted(findings.crashes, 'crash')} in {counted(findings.worlds, 'world')}{left}: {broken}"


def as_data(supposed: Supposed) -> list[dict[str, Any]]:
    """The worlds of one crash for machines."""
    agent, thread, invocation = supposed.call
    return [
        {
            "agent": agent,
            "thread_id": thread,
            "invocation_id": invocation,
            "entry": supposed.number,
            "checkpoint": world.checkpoint.name.lower(),
            "arrival": world.arrival.name.lower(),
            "posts": world.posts,
            "accepted": world.accepted,
            "outcome": world.outcome,
            "broken": world.broken,
        }
        for world in supposed.worlds
    ]
