"""A headless Chromium that looks at a page: no network, every complaint kept."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.packaging.layers import ROOT

# As root there is no sandbox, and a browser that looks for updates waits for a network that is not there.
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


def executable() -> tuple[Path, dict[str, str]]:
    """The browser, and the environment that it needs."""
    named = os.environ.get("CHROMIUM")
    if named:
        return Path(named), {}
    folder = ROOT / os.environ.get("BROWSER", ".browser")
    assert (folder / "chromium").is_file(), f"no browser in {folder}: run `make browser`"
    return folder / "chromium", {"LD_LIBRARY_PATH": str(folder / "lib")}


@contextmanager
def browser() -> Iterator[Browser]:
    path, more = executable()
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=path, args=list(FLAGS), env={**os.environ, **more})
        try:
            yield made
        finally:
            made.close()


@dataclass(slots=True)
class Looked:
    """A page that is open.

    Args:
        complaints: what its console and its errors said.
        asked_for: addresses that it wanted, its own left out.
    """

    page: Page
    complaints: list[str] = field(default_factory=list)
    asked_for: list[str] = field(default_factory=list)

    def settled(self) -> None:
        """Wait until what was asked for is drawn."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
        self.settled()

    def names(self) -> list[str]:
        """The calls that have a row now, from top to bottom."""
        found: list[str] = self.page.evaluate(
            "() => [...document.querySelectorAll('.row')].filter((row) => !row.hidden)"
            ".map((row) => [Number(row.getAttribute('aria-posinset')), row.querySelector('.id').textContent])"
            ".sort((a, b) => a[0] - b[0]).map(([, name]) => name)"
        )
        return found

    def chosen(self) -> str:
        """The call that assistive technology is told to be chosen."""
        found: str = self.page.evaluate(
            "() => document.getElementById(document.getElementById('lanes')"
            ".getAttribute('aria-activedescendant')).querySelector('.id').textContent"
        )
        return found

    def facts(self, of: str = "facts") -> dict[str, str]:
        """A list of the details."""
        found: dict[str, str] = self.page.evaluate(
            "(id) => Object.fromEntries([...document.querySelectorAll(`#${id} dt`)]"
            ".map((name) => [name.textContent, name.nextElementSibling.textContent]))",
            of,
        )
        return found

    def color(self, x: float, y: float) -> tuple[int, int, int, int]:
        """What is painted at a place of the lanes, in pixels from their upper left corner."""
        found: list[int] = self.page.evaluate(
            "([x, y]) => [...document.getElementById('paint').getContext('2d').getImageData(x, y, 1, 1).data]", [x, y]
        )
        return (found[0], found[1], found[2], found[3])

    def variable(self, name: str) -> tuple[int, int, int]:
        """A color of the style."""
        text: str = self.page.evaluate(
            "(name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()", name
        )
        return (int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16))

    def width(self) -> float:
        found: float = self.page.evaluate("() => document.getElementById('paint').clientWidth")
        return found


@contextmanager
def looking(at: Browser, file: Path, **context: Any) -> Iterator[Looked]:
    """Open a page from the disk."""
    opened = at.new_context(offline=True, viewport=context.pop("viewport", {"width": 1400, "height": 800}), **context)
    try:
        looked = Looked(opened.new_page())
        # Reading what is painted is the tests' own doing.
        looked.page.on(
            "console", lambda said: None if "getImageData" in said.text else looked.complaints.append(said.text)
        )
        looked.page.on("pageerror", lambda error: looked.complaints.append(str(error)))
        looked.page.on("request", lambda request: looked.asked_for.append(request.url))
        looked.page.goto(file.as_uri())
        looked.settled()
        looked.asked_for.remove(file.as_uri())
        yield looked
        assert (looked.complaints, looked.asked_for) == ([], [])
    finally:
        opened.close()
