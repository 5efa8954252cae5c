"""The pictures of the documents as a browser draws them: every text within its box, readable in light and in dark."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from reattach.runtime.pictures.lifecycle import lifecycle
from reattach.runtime.pictures.windows import windows
from tests.view.browsing import browser, looking

PICTURES = {"lifecycle": lifecycle, "windows": windows}
# Of each text: what it says, how far it ends beyond the smallest box that it begins in, and the contrast to that box.
MEASURE = """() => {
    const light = (color) => {
        const parts = color.match(/[\\d.]+/g).slice(0, 3).map((one) => one / 255)
            .map((one) => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const boxes = [...document.querySelectorAll("rect")].map((one) => [one, one.getBBox()]);
    return [...document.querySelectorAll("text")].map((text) => {
        const at = text.getBBox();
        const around = boxes.filter(([, box]) => at.x >= box.x && at.x <= box.x + box.width
            && at.y >= box.y - 1 && at.y <= box.y + box.height);
        around.sort(([, a], [, b]) => a.width * a.height - b.width * b.height);
        const [rect, box] = around[0];
        const tones = [light(getComputedStyle(text).fill), light(getComputedStyle(rect).fill)].sort((a, b) => b - a);
        return [text.textContent, Math.max(at.x + at.width - box.x - box.width, at.y + at.height - box.y - box.height),
            (tones[0] + 0.05) / (tones[1] + 0.05)];
    });
}"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as made:
        yield made


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PICTURES)
def test_every_text_is_within_its_box_and_can_be_read(
    chromium: Browser, tmp_path: Path, name: str, scheme: Any
) -> None:
    file = tmp_path / f"{name}.svg"
    file.write_text(PICTURES[name](), encoding="utf-8")
    with looking(chromium, file, color_scheme=scheme) as looked:
        measured = looked.page.evaluate(MEASURE)
    assert len(measured) > 40
    assert [text for text, beyond, _ in measured if beyond > 0] == []
    # What WCAG asks of small text.
    assert [text for text, _, contrast in measured if contrast < 4.5] == []
