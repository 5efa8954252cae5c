"""The parts of the documentation that are drawn from the code: `python -m tests.packaging.generated --write`."""

import re
import sys
from pathlib import Path

from reattach.adapters import describe
from reattach.fsm import diagram
from reattach.runtime.flink import dashboard, metrics
from reattach.runtime.pictures import lifecycle, windows
from reattach.runtime.simulation import faults
from tests.packaging.layers import ROOT
from tests.view import seeing

README = ROOT / "README.md"
LIFECYCLE = ROOT / "docs" / "lifecycle.md"
PROTOCOLS = ROOT / "docs" / "protocols.md"
DASHBOARD = ROOT / "deploy" / "grafana.json"
METRICS = ROOT / "docs" / "metrics.md"
SIMULATION = ROOT / "docs" / "simulation.md"
SEE = ROOT / "docs" / "see.md"
CONCEPTS = ROOT / "docs" / "concepts.md"
LIFECYCLE_PICTURE = ROOT / "docs" / "lifecycle.svg"
WINDOWS_PICTURE = ROOT / "docs" / "windows.svg"


def expected() -> dict[Path, str]:
    """What each file should hold, given what the code draws today."""
    return {
        SIMULATION: _with_part(SIMULATION, "faults", faults.table()),
        LIFECYCLE: diagram.document(),
        PROTOCOLS: describe.document(),
        METRICS: metrics.document(),
        DASHBOARD: dashboard.document(),
        SEE: _with_part(SEE, "explain", seeing.example()),
        CONCEPTS: _with_part(CONCEPTS, "windows", windows.table()),
        LIFECYCLE_PICTURE: lifecycle.lifecycle(),
        WINDOWS_PICTURE: windows.windows(),
    }


def _with_part(path: Path, name: str, drawn: str) -> str:
    """The text of a file with what is drawn between the two marks of that name."""
    part = re.compile(rf"(<!-- {name}:begin[^\n]*-->\n).*?(<!-- {name}:end -->)", re.DOTALL)
    text, found = part.subn(lambda marks: marks[1] + drawn + marks[2], path.read_text(encoding="utf-8"))
    assert found == 1, f"{path.name} has lost its marks for {name}"
    return text


def main() -> int:
    stale = [path for path, text in expected().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is out of date")
        if "--write" in sys.argv:
            path.write_text(expected()[path], encoding="utf-8")
    return 0 if "--write" in sys.argv or not stale else 1


if __name__ == "__main__":
    sys.exit(main())
