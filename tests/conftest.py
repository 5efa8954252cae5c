"""What every test has in common: seeds that are printed, and one of the harness's profiles for Hypothesis."""

import os
from typing import Any

import pytest

from reattach.runtime.testing.profiles import load_profile

PROFILE = load_profile()
# Folders of tests that start jobs.
WITH_FLINK = frozenset({"bench", "cli", "cluster", "e2e", "examples", "flink", "kafka"})


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
    items.sort(key=lambda item: item.get_closest_marker("flink") is not None, reverse=hasattr(config, "workerinput"))
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep jobs from competing with each other: all folders that start some are one worker's.

    Every other file stays whole, as it may share a server. The controller knows no markers, hence the folders.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return "flink" if path.split("/")[1] in WITH_FLINK else path

    return ByFile(config, log)
