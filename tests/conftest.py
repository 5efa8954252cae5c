"""What every test has in common: seeds that are printed, and one of the harness's profiles for Hypothesis."""

import os
from typing import Any

import pytest

from reattach.runtime.testing.profiles import load_profile

PROFILE = load_profile()
# Folders of tests that start jobs: those that one worker is given first, and those that whoever is free takes at last.
JOBS_FIRST = frozenset({"cluster", "e2e", "flink", "kafka"})
JOBS_AT_LAST = frozenset({"bench", "cli", "examples"})


def pytest_report_header(config: pytest.Config) -> str:
    seed = os.environ.get("REATTACH_SEED", "0")
    return (
        f"REATTACH_SEED={seed} (shifts every seeded test; a failing one names its own seed), "
        f"REATTACH_PROFILE={PROFILE} (how long Hypothesis searches: dev, ci or deep)"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run what starts Flink last, and with several workers first: one of them has its hands full with it.

    At the very end comes what needs the machine for itself; the other workers have run out of tests by then.
    """
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: {"jobs": 0, "jobs at last": 2}.get(_scope(item.nodeid), 1))
    items.sort(key=lambda item: item.get_closest_marker("flink") is not None and not hasattr(config, "workerinput"))
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


def _scope(nodeid: str) -> str:
    path = nodeid.partition("::")[0]
    folder = path.split("/")[1]
    return "jobs" if folder in JOBS_FIRST else "jobs at last" if folder in JOBS_AT_LAST else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep jobs from competing with each other: all folders that start some are one worker's, or two at the end.

    Every other file stays whole, as it may share a server. The controller knows no markers, hence the folders.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return _scope(nodeid)

    return ByFile(config, log)
