"""What a host counts, and that Flink shows it under the names of docs/metrics.md."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from reattach.models.effects import Probe, Submit
from reattach.models.events import Ident
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import Failure, FailureCode, Notice, NoticeKind, Outcome
from reattach.runtime.driver import Applied
from reattach.runtime.flink.dashboard import PREFIX
from reattach.runtime.flink.metrics import CATALOGUE, LEVELS, Metrics
from tests.e2e.harness import Process, until, world
from tests.flink.stage import JavaGroup, JavaHistogram

IDENT = Ident("life-1", "call-1", 1, 1)
ROOT = Path(__file__).parents[2]
STILL = dict.fromkeys(LEVELS, 0)


def applied(leaf: Leaf | None = None, **more: Any) -> Applied:
    nothing: dict[str, Any] = dict.fromkeys(("orders", "outcomes", "reports", "notices", "counts", "journal"), ())
    return Applied(**{**nothing, "stored": b"", "changed": False, "wake_at_ms": 0, "leaf": leaf, "queued": 0, **more})


def outcome(status: Status, failure: Failure | None = None) -> Outcome:
    return Outcome("call-1", "a", "t", 1, status, None, failure, "", 1, 1, (5, 6, 7), 1)


@pytest.fixture
def group() -> JavaGroup:
    return JavaGroup()


@pytest.fixture
def metrics(group: JavaGroup) -> Metrics:
    return Metrics(group, lambda window: JavaHistogram())


def test_every_name_of_the_catalogue_is_registered_once(metrics: Metrics, group: JavaGroup) -> None:
    assert [name for name, _, _ in CATALOGUE] == list(dict.fromkeys(name for name, _, _ in CATALOGUE))
    assert {*group.counters, *group.histograms} == {name for name, _, _ in CATALOGUE}


def test_calls_are_counted_where_they_are_and_where_they_go(metrics: Metrics, group: JavaGroup) -> None:
    metrics.applied("k", applied(Leaf.NS_PROBING, orders=((Probe(IDENT), None),)))
    metrics.applied("l", applied(Leaf.NS_PROBING, orders=((Probe(IDENT), None),)))
    metrics.applied("k", applied(Leaf.SU_SENDING, orders=((Submit(IDENT, 1), None),)))
    metrics.hand_over(0, STILL)
    assert group.counts() == {
        "steps": 3, "probes": 2, "submits": 1, "live_not_started_probing": 1, "live_submitted_sending": 1,
    }  # fmt: skip
    metrics.applied("k", applied(outcomes=(outcome(Status.COMPLETED),)))
    failure = Failure(FailureCode.LOST, "gone")
    metrics.applied("l", applied(outcomes=(outcome(Status.FAILED, failure),), counts=("late_fact",)))
    notice = Notice(NoticeKind.PARKED, "call-1", 1, "why")
    metrics.applied("m", applied(Leaf.SU_PARKED, notices=(notice,)))
    metrics.hand_over(0, {**STILL, "in_flight": 4})
    assert group.counts() == {
        "steps": 6, "probes": 2, "submits": 1, "outcomes_completed": 1, "outcomes_failed": 1, "failures_lost": 1,
        "ignored_late_fact": 1, "notices_parked": 1, "live_submitted_parked": 1, "in_flight": 4,
    }  # fmt: skip
    assert {name: one.values for name, one in group.histograms.items() if one.values} == {
        "not_started_ms": [5, 5], "submitted_ms": [6, 6], "running_ms": [7, 7], "call_ms": [18, 18],
    }  # fmt: skip
    metrics.hand_over(0, STILL)
    assert "in_flight" not in group.counts() and group.counts()["steps"] == 6


def test_turns_that_wait_are_counted_over_all_threads(metrics: Metrics, group: JavaGroup) -> None:
    counts = []
    for key, queued in [("k", 2), ("l", 1), ("k", 1), ("m", 0), ("l", 0), ("k", 0)]:
        metrics.applied(key, applied(Leaf.NS_PROBING, queued=queued))
        metrics.hand_over(0, STILL)
        counts.append(group.counts().get("turns_waiting", 0))
    assert counts == [2, 3, 2, 2, 1, 0]


def test_how_long_answers_waited_is_kept(metrics: Metrics, group: JavaGroup) -> None:
    metrics.answered(0.0126)
    metrics.hand_over(0, STILL)
    assert group.histograms["answer_wait_ms"].values == [13]


def test_counts_are_handed_over_now_and_then(metrics: Metrics) -> None:
    metrics.hand_over(1_000, STILL)
    assert not metrics.due(1_199) and metrics.due(1_200)


def test_the_dashboard_asks_for_what_there_is_and_leaves_nothing_out() -> None:
    page = json.loads((ROOT / "deploy" / "grafana.json").read_text())
    asked = " ".join(target["expr"] for panel in page["panels"] for target in panel["targets"])
    shown = set(re.findall(rf"{PREFIX}(\w+)", asked))
    assert shown == {name for name, _, _ in CATALOGUE} - {"responds", "holds"}
    for name, kind, _ in CATALOGUE:
        rated = re.search(rf"rate\({PREFIX}{name}\{{", asked) is not None
        assert rated == (kind == "counter" and name in shown), name


@pytest.mark.flink
@pytest.mark.slow
def test_flink_shows_them(tmp_path: Path) -> None:
    with world(tmp_path / "w", latency="300ms") as made:
        made.ask(5)
        run = Process([sys.executable, "-m", "tests.flink.metering", str(made.config), "5"], tmp_path / "job.out")
        try:
            until(lambda: run.child.poll() is not None, "the job's end")
        finally:
            run.kill()
        text = run.text()
        assert run.child.returncode == 0, text[-3_000:]
    (line,) = [one for one in text.splitlines() if one.startswith("METRICS ")]
    found = json.loads(line.partition(" ")[2])
    assert set(found) == {name for name, _, _ in CATALOGUE}
    assert found["submits"] == found["outcomes_completed"] == 5 and found["probes"] >= 10
    assert all(value == 0 for name, value in found.items() if name.startswith(("live_", "failures_")))
    assert found["running_ms"] >= 200 and found["in_flight"] == 0
