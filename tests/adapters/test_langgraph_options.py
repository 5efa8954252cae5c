"""A wrong option of `langgraph` is one line that names the key; its page knows every one."""

import asyncio
import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from reattach.adapters import http
from reattach.adapters.langgraph import LangGraphAdapter
from reattach.adapters.langgraph_options import NAMES, read_options
from reattach.models.errors import ConfigError
from reattach.models.policy import Absence
from reattach.runtime.config import load_config
from tests.adapters import graphs

ROOT = Path(__file__).parents[2]
WHERE = "agents.demo.options"

WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "assistant: required"),
    ({"assistant": 1}, "assistant: must be a string"),
    ({"assistant": "a", "thread": "x"}, "thread: no such option"),
    ({"assistant": "a", "threads": "many"}, "threads: must be one of 'per_call', 'shared'"),
    ({"assistant": "a", "threads": "shared", "fence": False}, "fence: only threads of one call"),
    ({"assistant": "a", "fence": "yes"}, "fence: must be true or false"),
    ({"assistant": "a", "result": "a..b"}, "result: must be a path"),
    ({"assistant": "a", "result": "messages[-1].content"}, "result: must be a path"),
    ({"assistant": "a", "stream_modes": "values"}, "stream_modes: must be a list"),
    ({"assistant": "a", "stream_modes": ["nope"]}, "stream_modes: must be a list"),
    ({"assistant": "a", "stream_modes": []}, "stream_modes: must be a list"),
    ({"assistant": "a", "durability": "now"}, "durability: must be one of"),
    ({"assistant": "a", "config": 1}, "config: must be a table"),
    ({"assistant": "a", "context": {"day": date(2026, 1, 1)}}, "context: must hold JSON values only"),
    ({"assistant": "a", "token_header": "Cookie"}, "token_header: must be one of"),
]


@pytest.mark.parametrize(("given", "said"), WRONG, ids=[said for _, said in WRONG])
def test_each_mistake_names_its_key(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_options(WHERE, given)
    assert str(error.value).startswith(f"{WHERE}.{said}") and "\n" not in str(error.value)


def test_what_can_be_promised_follows_from_the_options() -> None:
    absences = [
        read_options(WHERE, {"assistant": "a", **more}).capabilities.absence
        for more in ({}, {"fence": True}, {"fence": False}, {"threads": "shared"})
    ]
    assert absences == [Absence.BY_FENCE, Absence.BY_FENCE, Absence.AFTER_QUIET, Absence.AFTER_QUIET]


def test_the_page_knows_every_option() -> None:
    page = (ROOT / "docs" / "langgraph.md").read_text()
    table = page.partition("## Options")[2].partition("\n\nA message")[0]
    rows = re.findall(r"`(\w+)`", "".join(re.findall(r"^\|([^|]*)\|", table, re.MULTILINE)))
    assert set(rows) == set(NAMES) and len(rows) == len(NAMES)


def test_the_example_is_a_configuration() -> None:
    agents = load_config(ROOT / "examples" / "langgraph" / "job.toml").agents
    assert {name: agent.protocol for name, agent in agents.items()} == {"once": "langgraph", "chat": "langgraph"}
    assert tomllib.loads((ROOT / "examples" / "langgraph" / "job.toml").read_text())["agents"].keys() == agents.keys()


def test_nothing_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "lsv2-secret")

    async def shown() -> str:
        async with http.open_client() as client:
            return repr(LangGraphAdapter.configure(graphs.config(graphs.PER_CALL, token_env="KEY"), client))

    assert asyncio.run(shown()) == "LangGraphAdapter(Endpoint('http://127.0.0.1:9'), assistant='agent')"
