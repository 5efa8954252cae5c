"""The options of `openai_responses`: a wrong one is one line with its key, and what is set is what is sent."""

import asyncio
import datetime
import json
from typing import Any

import pytest

from reattach.adapters import http, registry
from reattach.adapters.describe import needs_of, requests_of
from reattach.adapters.openai_responses import OpenAIResponsesAdapter
from reattach.adapters.openai_responses_options import body_of, read_options
from reattach.models.errors import ConfigError
from reattach.models.identity import dedup_key_of
from reattach.models.policy import Absence, CancelKind, Evidence, StreamKind
from tests.adapters import wire
from tests.adapters.responses import config

WRONG = [
    ({}, "options.model: required"),
    ({"model": ""}, "options.model: required"),
    ({"model": 5}, "options.model: must be a string"),
    ({"model": "m\nn"}, "options.model: must be a string"),
    ({"model": "m", "instructions": 5}, "options.instructions: must be a string"),
    ({"model": "m", "instructions": "x" * 70_000}, "options.instructions: must be a string of at most 65536"),
    ({"model": "m", "stream": "yes"}, "options.stream: must be true or false"),
    ({"model": "m", "temperature": 1}, r"options.temperature: no such option \(known: extra, instructions, model"),
    ({"model": "m", "token_header": "X-Key"}, "options.token_header: must be one of 'Authorization', 'api-key'"),
    ({"model": "m", "extra": 5}, "options.extra: must be a table"),
    ({"model": "m", "extra": {"at": datetime.date(2026, 1, 1)}}, "options.extra: must hold what JSON can hold"),
    ({"model": "m", "extra": {"top_p": float("inf")}}, "options.extra: must hold what JSON can hold"),
    *[
        ({"model": "m", "extra": {key: True}}, rf"options.extra.{key}: is set by the adapter")
        for key in ("model", "input", "instructions", "background", "store", "stream", "metadata")
    ],
]


@pytest.mark.parametrize(("given", "says"), WRONG)
def test_what_is_wrong_is_named(given: dict[str, Any], says: str) -> None:
    async def work() -> None:
        async with http.open_client() as client:
            registry.create(config(given), client)

    with pytest.raises(ConfigError, match=rf"^agents\.demo\.{says}") as caught:
        asyncio.run(work())
    assert "\n" not in str(caught.value)


def sent(given: dict[str, Any], **call: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(body_of(read_options("x", given), wire.invocation(**call)))
    return body


def test_what_is_sent() -> None:
    extra = {"reasoning": {"effort": "low"}, "tools": [{"type": "web_search"}]}
    given = {"model": "m", "instructions": 'Say "ü"\nonce.', "extra": extra}
    body = sent(given, invocation_id='call "7"', generation=2, message='"hä?"'.encode())
    assert body == {
        "model": "m",
        "instructions": 'Say "ü"\nonce.',
        "reasoning": {"effort": "low"},
        "tools": [{"type": "web_search"}],
        "background": True,
        "store": True,
        "stream": True,
        "metadata": {"reattach_call": 'call "7"#2'},
        "input": "hä?",
    }
    assert sent({"model": "m", "stream": False})["stream"] is False


@pytest.mark.parametrize(
    ("message", "given"),
    [
        ('"say \\"hi\\""', 'say "hi"'),
        ('[{"role":"user","content":"hi"}]', [{"role": "user", "content": "hi"}]),
        ('{"role":"user","content":"hi"}', [{"role": "user", "content": "hi"}]),
        ("5", "5"),
        ("-1.5e+300", "-1.5e+300"),
        ("null", "null"),
        ("true", "true"),
    ],
)
def test_a_message_becomes_the_input(message: str, given: Any) -> None:
    assert sent({"model": "m"}, message=message.encode())["input"] == given


def test_a_name_that_is_too_long_for_metadata_gives_way_to_one_that_fits() -> None:
    inv = wire.invocation("界" * 256)
    body = sent({"model": "m"}, invocation_id="界" * 256)
    assert body["metadata"] == {"reattach_call": dedup_key_of(inv.request, 1)}
    body = sent({"model": "m"}, invocation_id="x" * 256, generation=12)
    assert body["metadata"] == {"reattach_call": "x" * 256 + "#12"}


def test_what_it_can_promise() -> None:
    streamed, polled = OpenAIResponsesAdapter.variants
    for variant in (streamed, polled):
        able = variant.capabilities
        assert (able.evidence, able.absence) == (Evidence.HANDLE_ONLY, Absence.NEVER)
        assert able.cancel is CancelKind.CONFIRMED and able.retention_ms == 30 * 86_400_000 and not able.responds
        assert able.blind and needs_of(variant) == [f"options.{name}" for name in variant.options]
    assert (streamed.capabilities.stream, polled.capabilities.stream) == (StreamKind.CURSOR, StreamKind.NONE)
    assert (requests_of(streamed), requests_of(polled)) == (3, 2)


def test_a_repr_shows_neither_the_token_nor_the_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REATTACH_TEST_TOKEN", "tok-3f9a1c77e0")

    async def work() -> str:
        async with http.open_client() as client:
            given = {"model": "m", "instructions": "be secret"}
            return repr(OpenAIResponsesAdapter.configure(config(given, token_env="REATTACH_TEST_TOKEN"), client))

    shown = asyncio.run(work())
    assert shown == "OpenAIResponsesAdapter(Endpoint('http://127.0.0.1:9/v1'), stream=True)"
