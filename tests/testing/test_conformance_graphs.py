"""The conformance kit finds lies about fences and questions, which only some servers have."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from reattach.testing import Target
from tests.conformance.test_langgraph import graph_server
from tests.testing.liars_jobs import Confident, Nameless, Repeating, Unlocked
from tests.testing.test_conformance import Check, assert_said, found

pytestmark = pytest.mark.slow

LIES: list[tuple[type[Any], Check, str]] = [
    (
        Unlocked,
        lambda kit, rig: kit.test_a_request_that_lands_after_its_sender_gave_up_is_found(rig, "held back"),
        "said Fenced and then Absent, and the late request was executed",
    ),
    (
        Confident,
        lambda kit, rig: kit.test_a_fence_says_no_more_than_is_true(rig, "503 in the server's stead"),
        "a request that landed after it was executed, and the adapter says Fenced",
    ),
    (Nameless, lambda kit, rig: kit.test_a_question_is_answered_once(rig), "a question without an id"),
    (
        Repeating,
        lambda kit, rig: kit.test_an_answer_to_a_question_says_no_more_than_is_true(rig, "answer lost by FIN"),
        "sent 2 requests that may not be repeated",
    ),
]


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with graph_server(tmp_path_factory.mktemp("graphs")) as target:
        yield target


@pytest.mark.parametrize("row", LIES, ids=lambda row: row[0].__name__)
def test_a_lie_of_a_graph_adapter_is_found(graphs: Target, row: tuple[type[Any], Check, str]) -> None:
    liar, check, text = row
    assert_said(found(replace(graphs, patience_s=5.0), liar, check), text)
