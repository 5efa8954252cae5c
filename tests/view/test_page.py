"""The page's data, and that nothing in it can end its script element; no browser is needed."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from reattach.models.lifecycle import Leaf
from reattach.runtime.view.lanes import timeline
from reattach.runtime.view.page import MARKS, data, embedded, marks, page
from tests.packaging.layers import ROOT
from tests.view.making import BEGAN, HOSTILE, hostile, lane, many


class Parsed(HTMLParser):
    """Every element of a page, and what its scripts and styles hold."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.raw: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag in ("script", "style"):
            self.raw.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem is not None:
            self.raw[-1] += data


def test_the_data_holds_each_text_once() -> None:
    told = data(timeline(many(100)))
    assert len(told["texts"]) == len(set(told["texts"]))
    assert (told["from_ms"], len(told["calls"]), told["lives"][0][1]) == (BEGAN, 100, -100)
    agent, thread, name, generation, leaf, since, cause, steps = told["calls"][13]
    words = [told["texts"][number] for number in (agent, thread, name, cause)]
    assert words == ["reader", "thread-1", "order-13", ""]
    assert (generation, told["leaves"][leaf], since) == (1, "completed", 13 * 37 + 2_050)
    assert [step[2] - 13 * 37 for step in steps] == [0, 40, 70, 120, 900, 950, 2_000, 2_050]
    assert [step[5] for step in steps][:2] == [-1, list(Leaf).index(Leaf.NS_QUIET)]
    assert len(json.dumps(told)) < 60_000


def test_what_happened_in_a_step_is_told_by_bits() -> None:
    call = lane("order-17")
    assert [marks(step) for step in call.steps] == [4, 2, 1, 0, 6, 0, 2, 0]
    other = replace(call.steps[3], undone=True, restored=True, gap=True, effects=("Respond", "Cancel", "Emit"))
    assert marks(other) == sum(MARKS[name] for name in ("UNDONE", "RESTORED", "GAP", "RESPOND", "CANCEL"))
    assert len(set(MARKS.values())) == len(MARKS)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_ends_the_element_that_holds_it(name: str) -> None:
    text = embedded({"name": name, name: [name]})
    assert json.loads(text) == {"name": name, name: [name]}
    assert "<" not in text
    assert text.isascii() and text.isprintable()


def test_hostile_names_make_no_element_and_no_attribute() -> None:
    plain, parsed = Parsed(page(timeline([lane("order-17")]))), Parsed(page(timeline(hostile())))
    assert parsed.tags == plain.tags
    assert [one for one in parsed.attributes if one not in plain.attributes] == []
    assert [name for name, _ in parsed.attributes if name.startswith("on")] == []
    told = json.loads(parsed.raw[1])
    assert set(HOSTILE) <= set(told["texts"])


def test_nothing_is_loaded_and_only_its_own_script_may_run() -> None:
    text = page(timeline([lane("order-17")]))
    parsed = Parsed(text)
    assert [value for name, value in parsed.attributes if name in ("src", "href", "action", "style")] == []
    assert re.findall(r"https?:|@import|url\(", text) == []
    policy = next(value for name, value in parsed.attributes if name == "content" and "default-src" in (value or ""))
    assert policy is not None and "default-src 'none'" in policy
    style, told, script = parsed.raw
    for kind, held in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(held.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert json.loads(told)["made_by"].startswith("reattach ")


def test_the_script_puts_text_on_the_page_as_text() -> None:
    folder = ROOT / "runtime" / "view"
    script = "".join(path.read_text() for path in sorted(folder.glob("*.js")))
    ways = re.findall(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|setTimeout|DOMParser|\.href|\.src\b",
        script,
    )
    assert ways == []
    named = set(re.findall(r'has\(step, "(\w+)"\)', script))
    assert named <= MARKS.keys()
    assert {path.name for path in folder.glob("page_*.js")} == {
        f"page_{name}.js" for name in ("base", "lanes", "filters", "people")
    }
