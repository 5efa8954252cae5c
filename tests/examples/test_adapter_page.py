"""docs/adapter.md: its adapter is registered as the page says, and carries a call through a crash."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from reattach.adapters import describe, registry
from reattach.adapters.contract import Adapter, AgentConfig
from reattach.models.lifecycle import Status
from reattach.models.request import Request
from tests.examples.host import POLICY, Life, now_ms
from tests.packaging.layers import ROOT
from tests.packaging.pages import blocks_of

PAGE = ROOT / "docs" / "adapter.md"
CODE, POINT = (block.text for block in blocks_of(PAGE))


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Adapter]:
    ((protocol, value),) = tomllib.loads(POINT)["project"]["entry-points"][registry.GROUP].items()
    (tmp_path / f"{value.partition(':')[0]}.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "entry_points", lambda group: (EntryPoint(protocol, value, group),))
    return registry.find(protocol)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    log = tmp_path / "log"
    command = [sys.executable, str(ROOT / "examples" / "http_job" / "server.py"), "--port", "0", "--log", str(log)]
    with subprocess.Popen([*command, "--seconds", "0.3", "--lose", "1"], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        yield child.stdout.readline().split()[-1], log
        child.kill()


def test_a_call_of_the_page_s_adapter_survives_a_crash(registered: type[Adapter], service: tuple[str, Path]) -> None:
    """The first POST's answer is lost, then the job: nothing is known but that the service can be asked."""
    url, log = service
    agents = {"mine": AgentConfig("mine", registered.protocol, url, policy=POLICY)}
    request = Request("order-17", "mine", b'"Summarise order 17"', now_ms())
    first = Life(agents, "first")
    first.ask(request)
    first.until(lambda: log.exists() and "started" in log.read_text(), "the job")
    second = Life(agents, "second")
    second.ask(request)
    second.until(lambda: bool(second.outcomes), "the outcome")
    (outcome,) = second.outcomes
    assert outcome.status is Status.COMPLETED and outcome.result is not None
    assert json.loads(outcome.result) == {"echo": "Summarise order 17"}
    assert sum('"started"' in line for line in log.read_text().splitlines()) == 1


def test_it_declares_what_the_table_of_protocols_needs(registered: type[Adapter]) -> None:
    (one,) = [one for one in describe.described() if one.protocol == registered.protocol]
    assert one.variant is not None and not one.problem


def test_every_method_and_every_answer_is_told_of() -> None:
    table = re.findall(r"^\| `(\w+)` \| ", PAGE.read_text(), re.MULTILINE)
    methods = {name for name in vars(Adapter) if not name.startswith("_") and name not in ("protocol", "capabilities")}
    assert methods <= set(table)
