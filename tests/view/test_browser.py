"""The page in a real browser: what it shows, what it lets in, how it is moved through."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from reattach.models.lifecycle import Leaf
from reattach.runtime.view.lanes import Lane, timeline
from reattach.runtime.view.page import page
from tests.view.browsing import Looked, browser, looking
from tests.view.making import BEGAN, HOSTILE, hostile, lane, many

ROW = 26
NAME = "(one) => one.ariaLabel || (one.labels?.length ? one.labels[0].textContent : one.textContent)"
FOCUS = """() => {
  const one = document.activeElement;
  const style = getComputedStyle(one);
  return [one.id || one.dataset.status, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0];
}"""
INTRUDE = """() => {
  const one = document.createElement("div");
  document.body.append(one);
  one.innerHTML = '<img src="https://example.com/x.png" onerror="window.hurt = 1">';
  const two = document.createElement("script");
  two.textContent = "window.hurt = 2";
  document.body.append(two);
}"""
Open = Callable[..., AbstractContextManager[Looked]]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as made:
        yield made


@pytest.fixture
def opened(chromium: Browser, tmp_path: Path) -> Open:
    """Write lanes as a page, and open it."""

    def write(lanes: list[Lane], **context: Any) -> AbstractContextManager[Looked]:
        file = tmp_path / "timeline.html"
        file.write_text(page(timeline(lanes)), encoding="utf-8")
        return looking(chromium, file, **context)

    return write


def middle(lane: Lane, step: int, until: int, looked: Looked, whole_ms: int) -> float:
    """Where on the canvas the middle between two steps is drawn, with everything on the screen."""
    at = (lane.steps[step].at_ms + lane.steps[until].at_ms) / 2 - BEGAN
    return (at / whole_ms + 0.01) / 1.02 * (looked.width() - 12)


def test_a_call_is_shown_with_its_states_as_colors(opened: Open) -> None:
    call = lane("order-17")
    with opened([call]) as looked:
        assert looked.names() == ["order-17"]
        assert "1 call, 2 lives of the host, 2025-11-29 07:06:40 to 2025-11-29 07:06:42 UTC" in looked.page.inner_text(
            "#summary"
        )
        whole_ms = call.steps[-1].at_ms - BEGAN
        assert looked.color(middle(call, 3, 4, looked, whole_ms), 12)[:3] == looked.variable("running")
        assert looked.color(middle(call, 3, 4, looked, whole_ms), 3)[3] == 0, "nothing stands above a span"
        assert looked.color(middle(call, 7, 7, looked, whole_ms), 13)[:3] == looked.variable("completed")
        looked.press("f", "+", "+", "+", "+", "Home")
        looked.page.get_by_label("Zoom in").click()
        looked.press("0")
        assert looked.color(middle(call, 3, 4, looked, whole_ms), 12)[:3] == looked.variable("running")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_by_day_and_by_night(opened: Open, scheme: str) -> None:
    with opened(many(40), color_scheme=scheme) as looked:
        paper = looked.variable("paper")
        assert (sum(paper) > 600) is (scheme == "light")
        background = looked.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert tuple(int(one) for one in re.findall(r"\d+", background)) == paper
        for name in ("ink", "soft"):
            assert contrast(looked.variable(name), paper) >= 4.5
            assert contrast(looked.variable(name), looked.variable("raised")) >= 4.5
        for name in ("not_started", "submitted", "running", "completed", "failed", "mark", "focus"):
            assert contrast(looked.variable(name), paper) >= 2.5 + 0.5 * (name in ("mark", "focus")), name


def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """As WCAG 2 defines it."""

    def light(color: tuple[int, int, int]) -> float:
        red, green, blue = (
            part / 255 / 12.92 if part / 255 <= 0.04045 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in color
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_when_night_falls_the_lanes_are_drawn_anew(opened: Open) -> None:
    call = lane("order-17")
    with opened([call], color_scheme="light") as looked:
        x = middle(call, 3, 4, looked, call.steps[-1].at_ms - BEGAN)
        day = looked.color(x, 12)
        looked.press("Enter")
        looked.page.emulate_media(color_scheme="dark")
        looked.press("Escape")
        night = looked.color(x, 12)
        assert (day[:3], night[:3]) == ((0x2F, 0x6F, 0xDB), looked.variable("running"))
        assert day != night


def test_names_from_the_journal_stay_text(opened: Open) -> None:
    lanes = hostile()
    with opened(lanes) as looked:
        looked.page.select_option("#order", "began")
        looked.settled()
        assert looked.names() == list(HOSTILE)
        for name in HOSTILE:
            looked.press("Enter")
            facts, step = looked.facts(), looked.facts("step")
            assert (facts["agent"], facts["thread"]) == (name, name)
            assert looked.page.text_content("#name") == name
            assert step["fact"].endswith(f": {name}")
            assert looked.page.locator(".step .what").first.text_content() == name
            looked.press("Escape", "ArrowRight")
            assert name in (looked.page.text_content("#hint") or "")
            looked.press("ArrowDown")
        elements = looked.page.evaluate("() => [...document.querySelectorAll('img, svg, script, iframe, b, i')].length")
        assert elements == 2, "the data and the script, and nothing that a name has made"
        assert looked.page.evaluate("() => window.hurt") is None
        assert looked.page.title() == "reattach timeline"
        looked.page.fill("#find", "ONERROR=")
        looked.settled()
        assert looked.names() == [HOSTILE[0]]


def test_the_page_would_not_run_what_gets_in_and_loads_nothing(opened: Open) -> None:
    with opened([lane("order-17")]) as looked:
        looked.page.evaluate(INTRUDE)
        looked.settled()
        assert looked.page.evaluate("() => window.hurt") is None
        assert len(looked.complaints) >= 2
        assert all("Content Security Policy" in one for one in looked.complaints)
        assert [one for one in looked.complaints if "img-src" in one or "default-src" in one] != []
        looked.complaints.clear()
        looked.asked_for.clear()


def test_of_five_thousand_calls_only_those_on_the_screen_are_drawn(opened: Open) -> None:
    with opened(many(5_000)) as looked:
        looked.page.select_option("#order", "began")
        looked.settled()
        high = looked.page.evaluate("() => document.getElementById('lanes').clientHeight")
        fit = high // ROW + 2
        assert looked.page.evaluate("() => document.getElementById('space').clientHeight") == 5_000 * ROW
        assert looked.names() == [f"order-{number}" for number in range(len(looked.names()))]
        looked.press("End")
        assert looked.names()[-1] == looked.chosen() == "order-4999"
        looked.page.evaluate("() => { document.getElementById('lanes').scrollTop = 26 * 2500; }")
        looked.settled()
        assert looked.names()[0] == "order-2500"
        for _ in range(30):
            looked.page.mouse.move(300, 400)
            looked.page.mouse.wheel(0, 900)
        looked.settled()
        assert 10 < len(looked.names()) <= fit
        assert looked.page.locator(".row").count() <= fit, "rows are used again"
        size = looked.page.evaluate("() => { const one = document.getElementById('paint'); return one.height; }")
        assert size <= high + 1, "the canvas is as high as the screen"


def test_filters_narrow_what_is_shown(opened: Open) -> None:
    with opened(many(70)) as looked:

        def count() -> str:
            return looked.page.inner_text("#count")

        assert count() == "70 calls"
        looked.page.select_option("#order", "began")
        looked.page.click("#statuses [data-status=completed]")
        looked.settled()
        assert looked.names() == [f"order-{number}" for number in range(0, 70, 7) if 1 + number % 8 != 8]
        assert looked.page.get_attribute("#statuses [data-status=completed]", "aria-pressed") == "false"
        looked.page.select_option("#agent", "reader")
        looked.settled()
        assert {int(name[6:]) % 2 for name in looked.names()} == {1}
        looked.page.fill("#thread", "Thread-2")
        looked.settled()
        assert looked.names() == ["order-21"]
        looked.page.fill("#find", "nowhere")
        looked.settled()
        assert (looked.names(), count()) == ([], "0 of 70 calls")
        looked.press("Enter", "ArrowRight", "f")
        assert looked.page.is_hidden("#detail")
        looked.page.click("text=Show all calls")
        looked.settled()
        assert count() == "70 calls"
        looked.page.click("#statuses [data-status=completed]")
        looked.page.click("#statuses [data-status=completed]")
        looked.page.fill("#find", "RUNNING.probing")
        looked.settled()
        assert len(looked.names()) == int(count().split()[0]) > 0


def test_a_chosen_call_stays_chosen_while_it_is_shown(opened: Open) -> None:
    with opened(many(70)) as looked:
        looked.page.select_option("#order", "began")
        looked.press("Tab")
        looked.page.focus("#lanes")
        looked.press(*["ArrowDown"] * 21, "Enter")
        looked.page.select_option("#agent", "reader")
        looked.settled()
        assert (looked.chosen(), looked.facts()["agent"]) == ("order-21", "reader")
        looked.page.select_option("#agent", "writer")
        looked.settled()
        assert looked.page.is_hidden("#detail")
        assert looked.chosen() == looked.names()[0]


def test_calls_that_wait_come_first_the_longest_before_the_others(opened: Open) -> None:
    with opened(many(30)) as looked:
        names = looked.names()
        going_on = [name for name in names if int(name[6:]) % 7 == 0 and int(name[6:]) % 8 != 7]
        assert names[: len(going_on)] == going_on
        assert names[len(going_on)] == "order-29", "then what ended last"


def test_it_is_moved_through_by_keys(opened: Open) -> None:
    with opened(many(100)) as looked:
        looked.page.select_option("#order", "began")
        looked.page.focus("#lanes")
        looked.press("ArrowDown", "ArrowDown", "ArrowUp")
        assert looked.chosen() == "order-1"
        looked.press("End", "PageUp", "PageUp", "PageDown")
        assert looked.chosen() != "order-99"
        assert looked.chosen() in looked.names()
        looked.press("Home", "ArrowUp", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight")
        assert (looked.page.text_content("#hint") or "").startswith(
            "07:06:40.107, entry 3: it came (submitted.sending)"
        )
        looked.press("Enter")
        assert looked.page.is_visible("#detail")
        assert looked.page.evaluate("() => document.activeElement.id") == "steps"
        assert looked.facts("step")["entry"] == "3"
        looked.press("ArrowDown", "ArrowDown")
        assert looked.facts("step")["entry"] == "5"
        assert looked.facts("step")["life"].startswith("life-2, opened 2025-11-29 07:06:40.8")
        looked.press("End", "ArrowRight")
        assert looked.facts("step")["to"] == "completed"
        looked.press("Home", "ArrowUp", "PageDown", "PageUp")
        assert (looked.facts("step")["entry"], looked.facts("step")["from"]) == ("1", "(nothing)")
        looked.press("Escape")
        assert looked.page.is_hidden("#detail")
        assert looked.page.evaluate("() => document.activeElement.id") == "lanes"
        looked.press("/")
        assert looked.page.evaluate("() => document.activeElement.id") == "find"
        looked.page.keyboard.type("+0f/")
        assert looked.page.input_value("#find") == "+0f/", "keys are text in a field"


def test_a_click_opens_the_step_that_is_there(opened: Open) -> None:
    call = lane("order-17")
    with opened([call]) as looked:
        names = looked.page.evaluate("() => document.getElementById('count').offsetWidth")
        x = names + middle(call, 4, 4, looked, call.steps[-1].at_ms - BEGAN)
        looked.page.hover("#lanes", position={"x": x, "y": 13})
        assert "entry 5" in (looked.page.text_content("#hint") or "")
        looked.page.click("#lanes", position={"x": x, "y": 13})
        looked.settled()
        assert looked.facts("step")["entry"] == "5"
        assert looked.facts("step")["fact"] == "restored: it came"
        looked.page.click("#steps .step >> nth=1")
        looked.settled()
        assert looked.facts("step")["entry"] == "2"
        assert looked.page.get_attribute("#step-1", "aria-selected") == "true"
        looked.page.click("#close")
        looked.page.click("#lanes", position={"x": 60, "y": 13})
        looked.settled()
        assert looked.facts("step")["entry"] == "8", "on its name the latest"
        looked.page.click("#lanes", position={"x": 60, "y": 300})
        assert looked.page.is_visible("#detail"), "below the last call is nothing to open"


def test_zoom_and_the_time_since_each_call_began(opened: Open) -> None:
    calls = many(200)
    with opened(calls) as looked:
        looked.page.select_option("#order", "began")
        looked.page.focus("#lanes")
        looked.press("ArrowDown", "f")
        left = looked.color(looked.width() * 0.03, ROW + 12)
        assert left[3] == 0 or left[:3] != looked.variable("running"), "before it began"
        at = (0.05 + (500 / 2050)) / 1.1 * (looked.width() - 12)
        assert looked.color(at, ROW + 12)[:3] == looked.variable("running")
        looked.page.keyboard.down("Shift")
        looked.page.mouse.move(800, 300)
        looked.page.mouse.wheel(0, 20_000)
        looked.page.keyboard.up("Shift")
        looked.settled()
        assert looked.color(at, ROW + 12)[:3] != looked.variable("running"), "moved aside"
        looked.page.select_option("#axis-mode", "own")
        looked.settled()
        columns = [looked.color(looked.width() * 0.02, row * ROW + 12)[:3] for row in (1, 2, 3)]
        assert len(set(columns)) == 1, "all begin at the same place"
        looked.page.keyboard.down("Control")
        looked.page.mouse.wheel(0, -300)
        looked.page.keyboard.up("Control")
        looked.press("-", "-", "-", "-")
        assert [looked.color(looked.width() * 0.02, row * ROW + 12)[:3] for row in (1, 2, 3)] == columns
        looked.page.click("#zoom-call")
        looked.page.click("#zoom-out")
        looked.page.click("#zoom-all")


def test_what_was_undone_is_pale_and_told(opened: Open) -> None:
    call = lane("order-17")
    steps = [replace(step, undone=step.number in (3, 4)) for step in call.steps]
    steps[4] = replace(steps[4], restored=True, gap=True, note="restored from an older checkpoint: back to entry 2")
    undone = replace(call, steps=tuple(steps))
    with opened([undone]) as looked:
        x = middle(call, 3, 4, looked, call.steps[-1].at_ms - BEGAN)
        assert 0 < looked.color(x, 9)[3] < 200
        looked.press("Enter", "Home", "ArrowDown", "ArrowDown")
        assert looked.facts("step")["undone"] == "a later life went back behind this entry"
        assert looked.page.locator(".step.undone").count() == 2
        looked.press("ArrowDown", "ArrowDown")
        step = looked.facts("step")
        assert step["note"].startswith("restored from an older checkpoint")
        assert step["missing"] == "entries before this one are not in the journal"
        assert looked.page.locator(".step.life").count() == 1


def test_waiting_for_people_is_hatched(opened: Open) -> None:
    call = lane("order-17", steps=4)
    parked = replace(call.steps[-1], after=Leaf.SU_PARKED)
    other = lane("order-18", BEGAN + 500)
    with opened([replace(call, steps=(*call.steps[:3], parked), cause="the answer was lost"), other]) as looked:
        looked.press("Enter")
        assert looked.facts()["why"] == "the answer was lost"
        assert re.search(r"submitted\.parked, since .* \(2\.4 s\)", looked.facts()["state"])
        looked.press("Escape")
        x = int(middle(call, 3, 3, looked, 2_550)) + 100
        colors = {looked.color(x + more, 13)[:3] for more in range(12)}
        assert {looked.variable("submitted"), looked.variable("paper")} <= colors


def test_a_call_of_thousands_of_steps_shows_those_around_the_chosen_one(opened: Open) -> None:
    call = lane("order-17")
    first = call.steps[3]
    more = tuple(replace(first, number=4 + extra, at_ms=first.at_ms + extra) for extra in range(5_000))
    with opened([replace(call, steps=(*call.steps[:3], *more))]) as looked:
        looked.press("Enter")
        assert looked.page.locator(".step").count() == 300
        assert looked.page.text_content(".more") == "4703 steps before"
        looked.press("Home")
        assert looked.page.text_content(".more") == "4703 steps after"
        assert looked.facts("step")["entry"] == "1"


def test_everything_that_can_be_used_has_a_name_and_shows_its_focus(opened: Open) -> None:
    with opened(many(20)) as looked:
        for role in ("button", "combobox", "searchbox", "listbox"):
            for one in looked.page.get_by_role(role).all():
                assert one.evaluate(NAME).strip(), one.evaluate("(one) => one.outerHTML")
        looked.page.focus("#statuses button")
        looked.press("Shift+Tab", "Tab")
        stops: dict[str, bool] = {}
        while (at := looked.page.evaluate(FOCUS))[0] not in (None, *stops):
            stops[at[0]] = at[1]
            looked.press("Tab")
        assert [name for name, shown in stops.items() if not shown] == []
        assert {"completed", "agent", "thread", "find", "order", "axis-mode", "zoom-in", "lanes"} <= stops.keys()
        rows = looked.page.get_by_role("option", selected=True).all()
        assert len(rows) >= 1
        assert looked.page.get_attribute("html", "lang") == "en"


@pytest.mark.parametrize("wide", [360, 700, 1000])
def test_a_narrow_screen_does_not_scroll_sideways(opened: Open, wide: int) -> None:
    with opened([*hostile(), *many(30)], viewport={"width": wide, "height": 700}) as looked:
        looked.press("Enter")
        assert looked.page.evaluate("() => document.documentElement.scrollWidth") <= wide
        box = looked.page.locator("#detail").bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= wide
        assert looked.page.evaluate("() => document.getElementById('lanes').clientHeight") > 2 * ROW
