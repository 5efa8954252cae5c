"""Tests in several processes: what starts Flink is one worker's."""

from tests.conftest import JOBS_AT_LAST, JOBS_FIRST
from tests.packaging.layers import ROOT

MARK = "mark." + "flink"


def test_whatever_starts_a_job_lies_in_a_folder_that_one_worker_has() -> None:
    tests = ROOT / "tests"
    found = {path.relative_to(tests).parts[0] for path in tests.rglob("test_*.py") if MARK in path.read_text()}
    assert found == JOBS_FIRST | JOBS_AT_LAST
