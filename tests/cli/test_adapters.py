"""`reattach adapters`: what is registered and what it can do, for people, for programs and as a page."""

import json
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import httpx
import pytest

from reattach.adapters import describe, registry
from reattach.adapters.contract import AgentConfig, Variant, variants_of
from reattach.adapters.http_job_checks import LONELY, read_options
from reattach.adapters.http_job_options import METHODS, OTHERS, PATHS, URLS
from reattach.models.policy import (
    Absence,
    Capabilities,
    Deduplication,
    Evidence,
    Policy,
    StreamKind,
    Terms,
)
from reattach.runtime.cli.main import main
from tests.adapters import jobs

ROOT = Path(__file__).parents[2]
ALL = [one for one in describe.described() if one.protocol in registry.built_in()]


def test_it_prints_a_table_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["adapters"]) == 0
    table = capsys.readouterr().out
    assert main(["adapters", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["adapters"]
    for protocol in registry.built_in():
        assert f"{protocol}" in table
        assert [one["protocol"] for one in told].count(protocol) == len(variants_of(registry.find(protocol)))
    (key,) = [one for one in told if one["protocol"] == "http_job" and one["variant"] == "with a key"]
    assert key["capabilities"]["deduplication"] == "key" and key["requests"] == 2
    assert key["lost_answer"] == "sent again under the same key"
    assert key["adapter"] == "reattach.adapters.http_job:HttpJobAdapter"
    read_options("x", key["options"])


def test_the_page_is_the_one_in_the_repository(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["adapters", "--document"]) == 0
    assert capsys.readouterr().out == (ROOT / "docs" / "protocols.md").read_text()


def test_every_adapter_of_this_package_declares_what_it_can_do() -> None:
    assert {one.protocol for one in ALL} == set(registry.built_in())
    assert all(one.variant is not None and not one.problem for one in ALL)


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.title)
def test_what_is_declared_is_what_a_configuration_gets(one: describe.Described) -> None:
    assert one.variant is not None
    config = AgentConfig("demo", one.protocol, "http://127.0.0.1:9", options=one.variant.options)
    adapter = registry.create(config, httpx.AsyncClient())
    assert adapter.capabilities == one.variant.capabilities


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.title)
def test_with_the_settings_that_are_named_the_terms_hold(one: describe.Described) -> None:
    assert one.variant is not None
    needs = describe.needs_of(one.variant)
    terms = Terms(one.variant.capabilities, Policy(retention_ms=1_000 if "policy.retention_ms" in needs else None))
    assert terms.writes_ahead == one.variant.capabilities.blind


def test_the_words_follow_the_capabilities() -> None:
    quiet = Capabilities()
    fence = Capabilities(absence=Absence.BY_FENCE)
    blind = Capabilities(absence=Absence.NEVER, evidence=Evidence.HANDLE_ONLY)
    key = Capabilities(deduplication=Deduplication.KEY, key_lifetime_ms=1, absence=Absence.NEVER)
    assert len({describe.promise(able).guarantee for able in (quiet, fence, blind, key)}) == 4
    assert "parked" in describe.promise(blind).lost_answer and "same key" in describe.promise(key).lost_answer
    assert "slot" in describe.promise(fence).lost_answer and "quiet time" in describe.promise(quiet).lost_answer
    assert [describe.requests(able) for able in (quiet, fence, blind, key)] == [3, 3, 2, 2]
    assert describe.requests(Capabilities(stream=StreamKind.LIVE)) == 4


def test_others_adapters_are_listed_and_a_broken_one_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    points = (
        EntryPoint("broken", "reattach.no_such_module:X", registry.GROUP),
        EntryPoint("silent", f"{__name__}:Silent", registry.GROUP),
    )
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    assert main(["adapters", "--json"]) == 1
    told = {one["protocol"]: one for one in json.loads(capsys.readouterr().out)["adapters"]}
    assert "cannot be loaded" in told["broken"]["problem"]
    assert told["silent"] == {"protocol": "silent", "adapter": f"{__name__}:Silent", "problem": ""}
    assert main(["adapters"]) == 1
    assert "declares" in capsys.readouterr().out
    assert "silent" not in describe.document()


class Silent:
    variants = ("not a variant",)


def test_only_variants_are_declarations() -> None:
    class Odd:
        variants = (Variant("a", Capabilities()), "b")

    class Odder:
        variants = 3

    assert [one.name for one in variants_of(Odd)] == ["a"]
    assert variants_of(Odder) == variants_of(Silent) == ()


def test_it_opens_no_connection_and_needs_no_flink() -> None:
    code = (
        "import sys, socket; socket.socket.connect = None\n"
        "from reattach.runtime.cli.main import main; code = main(['adapters'])\n"
        "assert not {'pyflink', 'py4j'} & sys.modules.keys(); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_option_of_http_job_is_on_its_page() -> None:
    page = (ROOT / "docs" / "http_job.md").read_text()
    rows = set(re.findall(r"`([\w.]+)`", "".join(re.findall(r"^\|([^|]*)\|", page, re.MULTILINE))))
    tables = {
        "methods": METHODS,
        "paths": PATHS,
        "absent": ("http", "path", "value"),
        "idempotency": ("header", "lifetime_ms"),
    }
    expected = set(URLS) | {name for name in OTHERS if name not in tables}
    expected |= {f"{table}.{name}" for table, names in tables.items() for name in names}
    assert rows == expected
    assert {option for option, _ in LONELY} <= rows
    for name, default in PATHS.items():
        shown = "none" if default is None else f"`{default}`"
        assert re.search(rf"^\| .*`paths\.{name}`.* \| {re.escape(shown)} \|", page, re.MULTILINE), name


def test_the_examples_of_the_page_can_be_read() -> None:
    import tomllib

    blocks = re.findall(r"^```toml\n(.*?)^```", (ROOT / "docs" / "protocols.md").read_text(), re.MULTILINE | re.DOTALL)
    read = [tomllib.loads(block)["options"] for block in blocks]
    assert len(read) == sum(1 for one in ALL if one.variant is not None and one.variant.options)
    assert [jobs.config(given).options for given in read if "submit" in given]
