"""The pictures and the page are drawn from the table; the committed page is today's."""

from pathlib import Path

from reattach.fsm.diagram import document, mermaid, overview
from reattach.models.lifecycle import Leaf, Status


def test_the_committed_page_is_todays() -> None:
    page = Path(__file__).parents[2] / "docs" / "lifecycle.md"
    assert page.read_text() == document(), "run: reattach diagram document > docs/lifecycle.md"


def test_every_leaf_and_status_is_drawn() -> None:
    assert all(leaf.name in mermaid() for leaf in Leaf)
    assert all(status.name in overview() for status in Status)
