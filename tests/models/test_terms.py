"""Terms as text: nothing is lost, little is written, and old texts keep their meaning."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given

from reattach.models import terms as module
from reattach.models.errors import Corrupt
from reattach.models.policy import Capabilities, Policy, StreamKind, Terms
from reattach.models.terms import ASSUMED, terms_of, terms_text
from reattach.runtime.testing import strategies as made

PLAIN = Terms(Capabilities(retention_ms=1), Policy())


@given(made.terms())
def test_what_is_written_is_read_alike(terms: Terms) -> None:
    assert terms_of(terms_text(terms)) == terms


def test_only_what_is_special_is_written() -> None:
    special = Terms(Capabilities(stream=StreamKind.LIVE), Policy(retention_ms=5))
    assert json.loads(terms_text(special)) == {"capabilities": {"stream": "live"}, "policy": {"retention_ms": 5}}


def test_a_text_keeps_its_meaning_when_a_default_changes() -> None:
    """What is assumed is a list of its own: today's defaults do not enter it."""
    old = terms_text(PLAIN)
    assert terms_of(old).policy == Policy()
    for name, value in ASSUMED["policy"].items():
        if isinstance(value, int) and not isinstance(value, bool) and name.endswith("_max"):
            other: Any = {name: value + 1}
            changed = replace(PLAIN, policy=replace(PLAIN.policy, **other))
            assert json.loads(terms_text(changed))["policy"] == {name: value + 1}


def test_a_setting_that_came_later_is_always_written(monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = {part: {k: v for k, v in values.items() if k != "watch"} for part, values in ASSUMED.items()}
    monkeypatch.setattr(module, "ASSUMED", earlier)
    assert json.loads(terms_text(PLAIN))["policy"] == {"watch": True}
    assert terms_of('{"capabilities":{"retention_ms":1},"policy":{}}') == PLAIN


def test_the_list_names_settings_that_exist() -> None:
    for part, cls in (("capabilities", Capabilities), ("policy", Policy)):
        assert set(ASSUMED[part]) <= {field.name for field in fields(cls)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "an object with capabilities and policy"),
        ('{"policy":{}}', "an object with capabilities and policy"),
        ('{"capabilities":[],"policy":{}}', "capabilities: an object"),
        ('{"capabilities":{"retention_ms":1},"policy":{"pol_ms":1}}', r"no setting policy.'pol_ms'"),
        ('{"capabilities":{"stream":"wide"},"policy":{}}', "capabilities.stream: such a value"),
        ('{"capabilities":{"stream":[]},"policy":{}}', "capabilities.stream: such a value"),
        ('{"capabilities":{"responds":1},"policy":{}}', "capabilities.responds: such a value"),
        ('{"capabilities":{"retention_ms":true},"policy":{}}', "capabilities.retention_ms: such a value"),
        ('{"capabilities":{"retention_ms":1},"policy":{"poll_ms":0}}', "poll_ms = 0"),
    ],
)
def test_a_foreign_text_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(Corrupt, match=message) as caught:
        terms_of(text)
    assert "\n" not in str(caught.value)
