"""The harness stands alone: what ships works without Hypothesis, and the harness works without Flink."""

import subprocess
import sys

from tests.packaging.layers import LAYERS, ROOT, imports, sources

HARNESS = (ROOT / "runtime" / "testing", ROOT / "runtime" / "conformance")
FOREIGN = ("pyflink", "starlette", "uvicorn", "aiohttp", "tests")


def test_only_the_harness_imports_hypothesis() -> None:
    found = [
        str(path.relative_to(ROOT))
        for layer in LAYERS
        for path in sources(layer)
        if path.parent not in HARNESS
        for _, module in imports(path)
        if module.partition(".")[0] in ("hypothesis", "pytest") or module.startswith("reattach.runtime.testing")
    ]
    assert found == []


def test_the_core_install_and_the_extra_are_enough_for_the_harness() -> None:
    blocked = f"import sys\nfor name in {FOREIGN!r}: sys.modules[name] = None\nimport reattach.testing\n"
    subprocess.run([sys.executable, "-c", blocked], cwd=ROOT.parent, check=True, timeout=60)
