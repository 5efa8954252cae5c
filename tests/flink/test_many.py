"""Ten thousand calls in flight in one job: stable, cheap while they wait, nothing twice or lost.

The figures are printed, not asserted:

    make test-only ARGS='tests/flink/test_many.py -s'
    make test-only ARGS='tests/flink/test_many.py -s -m release'
"""

import time
from pathlib import Path

import pytest

from reattach.runtime.processes import cpu_s, pss_mb
from tests.e2e.harness import World, assert_each_once, world

pytestmark = pytest.mark.flink
CALLS = 10_000
WINDOW_S = 10.0


def session(made: World) -> int:
    assert made.job is not None
    return made.job.child.pid


def share(made: World) -> float:
    before, started = cpu_s(session(made)), time.monotonic()
    time.sleep(WINDOW_S)
    return 100 * (cpu_s(session(made)) - before) / (time.monotonic() - started)


def test_ten_thousand_calls_wait_in_one_job(tmp_path: Path) -> None:
    policy = {
        "watch": False,
        "poll_ms": 60_000,
        "poll_max_ms": 60_000,
        "watch_silence_ms": 60_000,
        "submit_validity_ms": 5_000,
        "submit_timeout_ms": 10_000,
        "probe_timeout_ms": 10_000,
    }
    job = {"checkpoint_interval_ms": 2_000, "concurrency_max": 256}
    with world(tmp_path / "w", latency="95s-105s", policy=policy, job=job) as made:
        made.ask(1, "warm-up")
        made.start()
        made.until(lambda: made.kinds()["turn"] == 1, "the first call")
        quiet_mb, quiet = pss_mb(session(made)), share(made)
        started = time.monotonic()
        made.ask(CALLS, "many")
        made.until(lambda: made.kinds()["turn"] == CALLS + 1, "all of them in flight", 400)
        submitting_s = time.monotonic() - started
        time.sleep(5)
        waiting, waiting_mb = share(made), pss_mb(session(made))
        print(
            f"\n{CALLS} calls submitted in {submitting_s:.1f} s; CPU waiting {waiting:.1f} % of a core "
            f"(one call: {quiet:.1f} %); {(waiting_mb - quiet_mb) * 1024 / CALLS:.2f} kB per call in flight, "
            "JVM heap included"
        )
        made.finish(600)
        assert_each_once(made)
        assert made.seen().posts == CALLS + 1


@pytest.mark.release
def test_an_idle_pump_beside_none(tmp_path: Path) -> None:
    """One open stream keeps the pump going though nothing comes; a call that is polled lets it stop."""
    shares = {}
    for watch in (False, True):
        policy = {"watch": watch, "poll_ms": 60_000, "poll_max_ms": 60_000, "watch_silence_ms": 60_000}
        with world(tmp_path / str(watch), latency="45s", policy=policy, job={"checkpoint_interval_ms": 60_000}) as made:
            made.ask(1)
            made.start()
            made.until(lambda made=made: made.kinds()["turn"] == 1, "the call")  # type: ignore[misc]
            time.sleep(5)
            shares[watch] = share(made)
            made.finish()
            assert_each_once(made)
    print(f"\nCPU with the pump idle {shares[True]:.1f} %, without a pump {shares[False]:.1f} % of a core")
