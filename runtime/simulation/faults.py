"""What may go wrong in a simulated world. Everything is off unless it is named."""

from dataclasses import dataclass, fields, replace
from typing import Final

from reattach.models.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Probabilities in `[0, 1]`, but for times in milliseconds; 0 is off.

    The windows that they open, by who is to blame:

    Args:
        lose: a request or its answer is lost on the way; after a POST nobody knows which.
        delay: a message takes up to its whole time limit, so that messages overtake each other.
        duplicate: an answer is delivered a second time, when its order is long over.
        unsent: a connection is refused before anything is sent.
        crash_every_ms: mean time between crashes of the host.
        zombie: the old host goes on for its overlap, beside its successor.
        crash_again: the new host dies while it takes its calls over.
        older: a restore goes back further than the newest checkpoint, or to nothing at all.
        lost_checkpoint: a checkpoint never completes.
        late_checkpoint: a checkpoint completes only after the next one was triggered.
        untold: a checkpoint completes, but the job is not told before the next one.
        outage: a restart takes longer than the remote remembers.
        skew: the clock of a new host differs from that of the input.
        hide: what was accepted shows only at its admission bound.
        linger: a POST whose sender is gone lands just before its bound.
        refuse: the remote is too busy to take a POST.
        fail: a run fails, retryable or not.
        stuck: a run never ends.
        forget: a run or a fence is forgotten when its retention is over.
        reexecute: the worker of a run dies, and the remote begins the same run again.
        ask: a run asks a person a question.
        repeat: the input holds a request twice.
        repeat_orders: the input holds an order of people twice.
        cancel: a call is cancelled by order.
        hurry: a call has a deadline that it can hardly keep.
    """

    lose: float = 0
    delay: float = 0
    duplicate: float = 0
    unsent: float = 0
    crash_every_ms: int = 0
    zombie: float = 0
    crash_again: float = 0
    older: float = 0
    lost_checkpoint: float = 0
    late_checkpoint: float = 0
    untold: float = 0
    outage: float = 0
    skew: float = 0
    hide: float = 0
    linger: float = 0
    refuse: float = 0
    fail: float = 0
    stuck: float = 0
    forget: float = 0
    reexecute: float = 0
    ask: float = 0
    repeat: float = 0
    repeat_orders: float = 0
    cancel: float = 0
    hurry: float = 0


MS_MAX: Final = 10**12
NONE: Final = Faults()
ALL: Final = Faults(
    lose=0.05, delay=0.05, duplicate=0.02, unsent=0.02,
    crash_every_ms=3_000, zombie=0.4, crash_again=0.2, older=0.05,
    lost_checkpoint=0.1, late_checkpoint=0.1, untold=0.1, outage=0.01, skew=0.3,
    hide=0.2, linger=0.5, refuse=0.03, fail=0.03, stuck=0.005, forget=0.5, reexecute=0.03, ask=0.03,
    repeat=0.02, repeat_orders=0.2, cancel=0.02, hurry=0.03,
)  # fmt: skip


def faults_of(names: str) -> Faults:
    """Read a list like `crash_every_ms,zombie,lose=0.2`: names as in `ALL`, or with a number of their own.

    Raises:
        ConfigError: a name that is not known, or a number that cannot be.
    """
    if names in ("", "none"):
        return NONE
    if names == "all":
        return ALL
    known = {field.name: getattr(ALL, field.name) for field in fields(Faults)}
    chosen: dict[str, float] = {}
    for item in names.split(","):
        name, given, number = item.strip().partition("=")
        if name in ("all", "none"):
            raise ConfigError(f"--faults {names}: {name} stands alone")
        if name not in known:
            raise ConfigError(f"--faults {name}: no such fault (known: all, none, {', '.join(sorted(known))})")
        if name in chosen:
            raise ConfigError(f"--faults {name}: named twice")
        chosen[name] = _number(name, number) if given else known[name]
    return replace(NONE, **chosen)  # type: ignore[arg-type]


def table() -> str:
    """The faults for the documentation, as a table in Markdown: the text of each is that of `Faults`."""
    text = (Faults.__doc__ or "").partition("Args:")[2]
    said = dict(line.strip().split(": ", 1) for line in text.splitlines() if ": " in line)
    rows = [f"| `{each.name}` | {getattr(ALL, each.name):g} | {said[each.name]} |" for each in fields(Faults)]
    return "\n".join(("| fault | in `all` | what goes wrong |", "|---|---|---|", *rows, ""))


def _number(name: str, text: str) -> float:
    try:
        number = int(text) if name.endswith("_ms") else float(text)
    except ValueError:
        number = -1
    # Written so that "nan" fails it, which is neither below nor above anything.
    if not 0 <= number <= (MS_MAX if name.endswith("_ms") else 1):
        raise ConfigError(f"--faults {name}={text}: a probability from 0 to 1, or a number of milliseconds")
    return number
