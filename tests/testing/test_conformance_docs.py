"""docs/conformance.md: its example runs as it stands, and it names every check, field and fault."""

import re
from dataclasses import fields

import pytest

from reattach.runtime.proxy.faults import Fault
from reattach.testing import AdapterConformance, Target, faults
from tests.packaging.layers import ROOT
from tests.testing.test_docs import run

PAGE = (ROOT / "docs" / "conformance.md").read_text()


@pytest.mark.slow
def test_the_example_runs_as_it_stands(tmp_path_factory: pytest.TempPathFactory) -> None:
    (block,) = re.findall(r"<!-- example: conformance -->\n```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    said = run(tmp_path_factory.mktemp("example"), block)
    assert re.search(r"\d{3} passed, \d+ skipped", said), said


def test_every_check_is_explained() -> None:
    checks = {name for name in dir(AdapterConformance) if name.startswith("test_")}
    assert set(re.findall(r"^\| `(test_\w+)`", PAGE, re.MULTILINE)) == checks


def test_every_field_is_explained() -> None:
    table = PAGE.partition("| field |")[2].partition("\n\n")[0]
    first = "".join(row.split("|")[1] for row in table.splitlines()[2:])
    assert set(re.findall(r"`(\w+)", first)) == {field.name for field in fields(Target)}


def test_every_fault_is_named_and_offered() -> None:
    for kind in Fault.__args__:
        assert f"`{kind.__name__}`" in PAGE
        assert getattr(faults, kind.__name__) is kind
