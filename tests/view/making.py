"""Lanes and journals for tests of what is shown: many calls, and names that want to break out."""

from collections.abc import Sequence
from pathlib import Path

from reattach.models.lifecycle import Leaf
from reattach.runtime.replay.reading import Journal, read
from reattach.runtime.view.lanes import Lane, Step
from tests.replay.making import Host, lines_of

BEGAN = 1_764_400_000_000
HOSTILE = (
    "</script><img src=x onerror=window.hurt=1>",
    '"><svg/onload=window.hurt=2>',
    "<!--<script>window.hurt=3//",
    "'; window.hurt = 4; //",
    "${window.hurt=5}`\\u003c/script>",
    "@@DATA@@ &lt;b&gt; &#60;i&#62;",
    "שלום עולם \u202eוrevers\u202c 12-ארבע",
    "👩‍👩‍👧‍👦 🏳️‍🌈 order \u2028 line",
    "tab\tnew\nline \x1b[31mred\x1b[0m \x00 end",
    "long-" + "x" * 10_000,
)

_COURSE = (
    (0, None, Leaf.NS_QUIET, "requested", ()),
    (40, Leaf.NS_QUIET, Leaf.NS_PROBING, "time_reached", ("Probe",)),
    (70, Leaf.NS_PROBING, Leaf.SU_SENDING, "found_absent", ("Submit",)),
    (120, Leaf.SU_SENDING, Leaf.RU_WATCHING, "submit_accepted", ("Watch",)),
    (900, Leaf.RU_WATCHING, Leaf.RU_PROBING, "restored", ("Probe",)),
    (950, Leaf.RU_PROBING, Leaf.RU_WATCHING, "found_running", ("Watch",)),
    (2_000, Leaf.RU_WATCHING, Leaf.RU_PROBING, "watch_ended", ("Probe",)),
    (2_050, Leaf.RU_PROBING, Leaf.COMPLETED, "found_completed", ("Emit",)),
)


def lane(
    name: str, at_ms: int = BEGAN, *, steps: int = 8, agent: str = "writer", thread: str = "", says: str = "it came",
    cause: str = "",
) -> Lane:  # fmt: skip
    """A call up to one of its steps; a new life of the host begins with the fifth."""
    made = tuple(
        Step(
            number, at_ms + after_ms, f"life-{1 + (number > 4)}", BEGAN - 100 + 900 * (number > 4), 1, before, after,
            event, effects, says, "", begins_life=number in (1, 5),
        )
        for number, (after_ms, before, after, event, effects) in enumerate(_COURSE[:steps], 1)
    )  # fmt: skip
    return Lane(agent, thread or f"thread-of-{name}", name, made, made[-1].at_ms, cause)


def many(count: int) -> list[Lane]:
    """Calls one after another, of two agents and threads of ten turns; each seventh goes on, at another step."""
    return [
        lane(
            f"order-{number}", BEGAN + number * 37, steps=8 if number % 7 else 1 + number % 8,
            agent=("writer", "reader")[number % 2], thread=f"thread-{number // 10}",
        )
        for number in range(count)
    ]  # fmt: skip


def hostile() -> list[Lane]:
    """Each name as an id, an agent, a thread, a text and a cause."""
    return [
        lane(name, BEGAN + 100 * number, agent=name, thread=name, says=name, cause=name, steps=4 + number % 5)
        for number, name in enumerate(HOSTILE)
    ]


def journal_of(folder: Path, *hosts: Host) -> Path:
    """A file with what hosts have written down."""
    file = folder / "part-0.journal"
    entries: Sequence[bytes] = [lines_of(host.entries) for host in hosts]
    file.write_bytes(b"".join(entries))
    return file


def journal(folder: Path, *hosts: Host) -> Journal:
    return read([journal_of(folder, *hosts)])
