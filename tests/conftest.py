"""What every test has in common: seeds that are printed, and one of the harness's profiles for Hypothesis."""

import os

import pytest

from reattach.runtime.testing.profiles import load_profile

PROFILE = load_profile()


def pytest_report_header(config: pytest.Config) -> str:
    seed = os.environ.get("REATTACH_SEED", "0")
    return (
        f"REATTACH_SEED={seed} (shifts every seeded test; a failing one names its own seed), "
        f"REATTACH_PROFILE={PROFILE} (how long Hypothesis searches: dev, ci or deep)"
    )


# Before xdist, which reads the groups in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run what starts Flink last; with xdist first and on one worker, so that jobs never compete with each other.

    The other files stay whole, since a file may share a server.
    """
    shared = hasattr(config, "workerinput")
    items.sort(key=_flink, reverse=shared)
    for item in items:
        item.add_marker(pytest.mark.xdist_group("flink" if _flink(item) else str(item.path)))


def _flink(item: pytest.Item) -> bool:
    return item.get_closest_marker("flink") is not None
