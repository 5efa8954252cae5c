"""What a host counts, in Flink's own metric groups, so that every reporter of Flink's shows it.

All of it lies below the group `reattach` of the operator. The objects are Java's: a Python gauge outlives its
interpreter when a task restarts, and takes the JVM with it. So a level, too, is a counter, which goes up and down;
after a restart it counts from nothing until each call has been taken over. Counts are gathered here and handed over
now and then, as every call into Java costs as much as a step.

docs/metrics.md is drawn from `CATALOGUE`, and the dashboard is checked against it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from reattach.models.effects import Cancel, Fence, Fetch, Hold, Probe, Respond, Submit, Watch
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import FailureCode, NoticeKind
from reattach.runtime.driver import Applied
from reattach.runtime.levels import GROUP, level_of

# Values that a histogram keeps, of the latest ones.
WINDOW: Final = 1_000
HAND_OVER_MS: Final = 200

_ORDERS: Final[Mapping[type, str]] = {
    Probe: "probes", Submit: "submits", Watch: "watches", Fetch: "fetches", Fence: "fences", Cancel: "cancels",
    Respond: "responds", Hold: "holds",
}  # fmt: skip
_IGNORED: Final = ("stale_answer", "late_fact", "early_timer", "duplicate_request", "duplicate_order")
LEVELS: Final = {
    "in_flight": "requests under way",
    "backlog": "orders that wait for a slot",
    "facts_waiting": "answers that the pump has not taken yet",
    "agents_down": "agents whose circuit breaker is open",
    "recoveries_waiting": "restored calls that have not been taken over yet",
}
QUEUED: Final = "turns_waiting"
HISTOGRAMS: Final = {
    "answer_wait_ms": "time from an answer's arrival to its step: the latency that the host adds",
    "pump_lag_ms": "how much later than planned the pump ran",
    **{f"{status.name.lower()}_ms": f"time of a finished call in {status.name}" for status in list(Status)[:3]},
    "call_ms": "time from a call's first step to its outcome",
}


def _catalogue() -> Iterator[tuple[str, str, str]]:
    yield "steps", "counter", "facts applied"
    for name in _ORDERS.values():
        yield name, "counter", f"{name} ordered"
    for status in (Status.COMPLETED, Status.FAILED):
        yield f"outcomes_{status.name.lower()}", "counter", f"calls that ended as {status.name}"
    for code in FailureCode:
        yield f"failures_{code.value}", "counter", f"calls that failed with `{code.value}`"
    for kind in NoticeKind:
        yield f"notices_{kind.value}", "counter", f"notices of the kind `{kind.value}`"
    for name in _IGNORED:
        yield f"ignored_{name}", "counter", f"facts without effect: {name.replace('_', ' ')}"
    yield "rejects", "counter", "lines that were no request"
    for leaf in Leaf:
        if not leaf.terminal:
            yield level_of(leaf), "level", f"calls in `{leaf.value}`"
    for name, meaning in LEVELS.items():
        yield name, "level", meaning
    yield QUEUED, "level", "later turns that wait for their thread"
    for name, meaning in HISTOGRAMS.items():
        yield name, "histogram", meaning


CATALOGUE: Final = tuple(_catalogue())


class Metrics:
    """Of one subtask.

    Args:
        group: the operator's Java metric group.
        histogram: makes a Java histogram over so many values.
    """

    def __init__(self, group: Any, histogram: Callable[[int], Any]) -> None:
        group = group.addGroup(GROUP)
        self._counters = {name: group.counter(name) for name, kind, _ in CATALOGUE if kind != "histogram"}
        self._histograms = {name: group.histogram(name, histogram(WINDOW)) for name in HISTOGRAMS}
        self._counts: Counter[str] = Counter()
        self._levels: Counter[str] = Counter()
        self._shown: Counter[str] = Counter()
        self._values: list[tuple[str, int]] = []
        self._leaves: dict[str, Leaf] = {}
        self._queues: dict[str, int] = {}
        self._handed_ms = 0

    def applied(self, key: str, applied: Applied) -> None:
        """Count what one fact led to."""
        counts = self._counts
        counts["steps"] += 1
        for effect, _ in applied.orders:
            counts[_ORDERS[type(effect)]] += 1
        for outcome in applied.outcomes:
            counts[f"outcomes_{outcome.status.name.lower()}"] += 1
            if outcome.failure is not None:
                counts[f"failures_{outcome.failure.code.value}"] += 1
            for status, spent_ms in zip(Status, outcome.spent_ms, strict=False):
                self._values.append((f"{status.name.lower()}_ms", spent_ms))
            self._values.append(("call_ms", sum(outcome.spent_ms)))
        for notice in applied.notices:
            counts[f"notices_{notice.kind.value}"] += 1
        for name in applied.counts:
            counts[f"ignored_{name}"] += 1
        self._moved(key, applied.leaf)
        if applied.queued or key in self._queues:
            self._levels[QUEUED] += applied.queued - self._queues.pop(key, 0)
            if applied.queued:
                self._queues[key] = applied.queued

    def answered(self, waited_s: float) -> None:
        self._values.append(("answer_wait_ms", round(waited_s * 1_000)))

    def _moved(self, key: str, leaf: Leaf | None) -> None:
        leaf = None if leaf is not None and leaf.terminal else leaf
        before = self._leaves.get(key)
        if before is leaf:
            return
        if before is not None:
            self._levels[level_of(before)] -= 1
        if leaf is None:
            del self._leaves[key]
        else:
            self._leaves[key] = leaf
            self._levels[level_of(leaf)] += 1

    def rejected(self) -> None:
        self._counts["rejects"] += 1

    def pumped(self, lag_ms: int) -> None:
        self._values.append(("pump_lag_ms", max(0, lag_ms)))

    def due(self, now_ms: int) -> bool:
        return now_ms - self._handed_ms >= HAND_OVER_MS

    def hand_over(self, now_ms: int, levels: Mapping[str, int]) -> None:
        """Give everything to Flink.

        Args:
            levels: a value for each of `LEVELS`.
        """
        self._handed_ms = now_ms
        for name, count in self._counts.items():
            self._counters[name].inc(count)
        self._counts.clear()
        self._levels.update({name: value - self._levels[name] for name, value in levels.items()})
        for name, value in self._levels.items():
            if difference := value - self._shown[name]:
                self._counters[name].inc(difference)
                self._shown[name] = value
        for name, value in self._values:
            self._histograms[name].update(value)
        self._values.clear()


def document() -> str:
    """Draw docs/metrics.md."""
    rows = "\n".join(f"| `{name}` | {kind} | {meaning} |" for name, kind, meaning in CATALOGUE)
    return _PAGE.format(group=GROUP, rows=rows, window=WINDOW)


_PAGE: Final = """\
# Metrics

What a host counts, below the group `{group}` of its operator, in each subtask: any of Flink's reporters shows it, for
Prometheus as `flink_taskmanager_job_task_operator_{group}_<name>`. This page is drawn from `runtime/flink/metrics.py`
(`make diagram`). [deploy/grafana.json](../deploy/grafana.json) is a dashboard over them for Grafana and Prometheus; it
is checked against these names, and was not tried in a Grafana.

A *level* goes up and down; it is a counter of Flink's, so show it as it is and never as a rate. After a restart it
begins with nothing, until each restored call has been taken over. A *histogram* keeps the latest {window} values, in
milliseconds. Numbers arrive up to 200 ms late.

| name | kind | meaning |
|---|---|---|
{rows}

What to watch, and what to do then, is in the [runbook](runbook.md#which-sign).
"""
