"""The parts of the documentation that are drawn from the code: `python -m tests.packaging.generated --write`."""

import re
import sys
from pathlib import Path

from reattach.adapters import describe
from reattach.fsm import diagram
from tests.packaging.layers import ROOT

README = ROOT / "README.md"
LIFECYCLE = ROOT / "docs" / "lifecycle.md"
PROTOCOLS = ROOT / "docs" / "protocols.md"
_PART = re.compile(r"(<!-- lifecycle:begin[^\n]*-->\n).*?(<!-- lifecycle:end -->)", re.DOTALL)


def expected() -> dict[Path, str]:
    """What each file should hold, given what the code draws today."""
    readme = README.read_text(encoding="utf-8")
    assert len(_PART.findall(readme)) == 1, "README.md has lost its markers for the lifecycle"
    block = f"```mermaid\n{diagram.overview()}```\n"
    return {
        README: _PART.sub(lambda found: found[1] + block + found[2], readme),
        LIFECYCLE: diagram.document(),
        PROTOCOLS: describe.document(),
    }


def main() -> int:
    stale = [path for path, text in expected().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is out of date")
        if "--write" in sys.argv:
            path.write_text(expected()[path], encoding="utf-8")
    return 0 if "--write" in sys.argv or not stale else 1


if __name__ == "__main__":
    sys.exit(main())
