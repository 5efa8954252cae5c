"""What every test has in common: seeds that are printed, and Hypothesis without deadlines of its own."""

import os

import pytest
from hypothesis import HealthCheck, settings

# Shared machines are slow at odd moments: a deadline per example would fail for that alone.
settings.register_profile(
    "reattach",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)
settings.load_profile("reattach")


def pytest_report_header(config: pytest.Config) -> str:
    seed = os.environ.get("REATTACH_SEED", "0")
    return f"REATTACH_SEED={seed} (shifts every seeded test; a failing one names its own seed)"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what starts Flink last; with xdist on one worker, so that jobs never compete with each other."""
    items.sort(key=lambda item: item.get_closest_marker("flink") is not None)
    for item in items:
        if item.get_closest_marker("flink") is not None:
            item.add_marker(pytest.mark.xdist_group("flink"))
