"""A `make_remote` that returns no remote is told so, and what to do."""

from typing import Any

import pytest

from reattach.runtime.simulation.remotes import MARKER_LIST
from reattach.testing import ModelRemote
from tests.testing.making import machine


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (MARKER_LIST, r"^make_remote returned a Remote: wrap it, ModelRemote\(remote\)$"),
        (None, r"^make_remote returned None: return a ModelRemote, a LiveRemote or another RemoteUnderTest$"),
        ("marker-list", r"^make_remote returned 'marker-list' \(str\): return a ModelRemote"),
        (ModelRemote, r"^make_remote returned <class .* \(type\): return a ModelRemote"),
    ],
)
def test_what_is_no_remote_under_test(made: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        machine(lambda: made)()


@pytest.mark.parametrize("given", ["marker-list", None, MARKER_LIST.capabilities, ModelRemote(MARKER_LIST)])
def test_a_model_remote_of_something_else(given: Any) -> None:
    with pytest.raises(TypeError, match=r"^ModelRemote takes a Remote, such as .*MARKER_LIST, not .* \(\w+\)$"):
        ModelRemote(given)
