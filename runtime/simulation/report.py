"""What a run of a simulated world came to, as data that processes can hand over."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One world.

    Args:
        ended: calls by how they ended; parked: calls that people had to decide on.
        happened: how often each fault struck, by its name.
        violations: what was broken; a run stops at the first.
        crash: the traceback of an exception in the product or the world, "" for none; exceptions: how many.
        stuck: calls that did not end once nothing went wrong any more.
        broken: the calls that a violation, a crash or the liveness check is about.
        seconds: of real time.
    """

    seed: int
    calls: int
    crashes: int
    checkpoints: int
    steps: int
    ended: dict[str, int]
    parked: int
    happened: dict[str, int] = field(default_factory=dict)
    violations: tuple[str, ...] = ()
    crash: str = ""
    exceptions: int = 0
    stuck: int = 0
    broken: tuple[str, ...] = ()
    simulated_ms: int = 0
    seconds: float = 0

    @property
    def good(self) -> bool:
        return not (self.violations or self.crash or self.stuck)

    @property
    def calls_per_second(self) -> float:
        return round(self.calls / max(self.seconds, 1e-9), 1)


def total(reports: list[Report]) -> Report:
    """Many worlds as one; the seed is the first one's."""
    ended: Counter[str] = Counter()
    happened: Counter[str] = Counter()
    for one in reports:
        ended.update(one.ended)
        happened.update(one.happened)
    return Report(
        seed=reports[0].seed,
        calls=sum(one.calls for one in reports),
        crashes=sum(one.crashes for one in reports),
        checkpoints=sum(one.checkpoints for one in reports),
        steps=sum(one.steps for one in reports),
        ended=dict(sorted(ended.items())),
        parked=sum(one.parked for one in reports),
        happened=dict(sorted(happened.items())),
        violations=tuple(text for one in reports for text in one.violations),
        crash="\n".join(one.crash for one in reports if one.crash),
        exceptions=sum(one.exceptions for one in reports),
        stuck=sum(one.stuck for one in reports),
        broken=tuple(name for one in reports for name in one.broken),
        simulated_ms=sum(one.simulated_ms for one in reports),
        seconds=sum(one.seconds for one in reports),
    )
