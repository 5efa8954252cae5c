"""The page of scenarios names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_scenario_names_a_test_that_exists() -> None:
    rows = [line for line in (ROOT / "docs/scenarios.md").read_text().splitlines() if line.startswith("| S")]
    assert len(rows) == 15
    for row in rows:
        named = re.findall(r"`(tests/[^`]+)`", row)
        assert named, row
        for name in named:
            path, *inside = name.split("::")
            text = (ROOT / path).read_text()
            assert all(re.search(rf"(class|def) {one}\b", text) for one in inside), name
