"""The little of SVG that the pictures need: boxes, wrapped text and arrows, on a ground of their own.

Text stays text, so that it can be selected and searched. Colors are named by what they stand for and come in two sets,
of which the reader's browser takes one; a ground is painted in either, since the page around may have another one.
Nothing is measured: a character counts as a share of the font's size, with room to spare.
"""

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Final
from xml.sax.saxutils import escape, quoteattr

LINE: Final = 1.32
# Widths of an average character, in parts of the font's size.
PLAIN, BOLD, FIXED = 0.53, 0.6, 0.61

# Each color as it is on a light ground and on a dark one.
_COLORS: Final = {
    "ground": ("#ffffff", "#15191f"),
    "panel": ("#f4f6f8", "#1e242c"),
    "field": ("#ffffff", "#2a323c"),
    "edge": ("#c4ccd5", "#465260"),
    "ink": ("#1c2229", "#e8ecf1"),
    "soft": ("#56616d", "#a9b4c0"),
    "arrow": ("#6b7785", "#93a0ae"),
    "good": ("#e0f3e6", "#173a26"),
    "good-ink": ("#14602f", "#8fdcab"),
    "bad": ("#fde5e2", "#4a211d"),
    "bad-ink": ("#a0261a", "#ffada3"),
    "doubt": ("#fdf1d3", "#453613"),
    "doubt-ink": ("#7c5400", "#f2cf7c"),
}
_RULES: Final = """
text { font: 13px system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: var(--ink) }
.small { font-size: 11.5px; fill: var(--soft) }
.event { font: 11px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--soft) }
.head { font-size: 15px; font-weight: 600 }
.name { font-weight: 600 }
.title { font-size: 18px; font-weight: 600 }
.soft { fill: var(--soft) }
.ground { fill: var(--ground) }
.panel { fill: var(--panel); stroke: var(--edge) }
.field { fill: var(--field); stroke: var(--edge) }
.arrow { fill: none; stroke: var(--arrow); stroke-width: 1.4 }
.arrow:hover { stroke: var(--ink); stroke-width: 2.2 }
.tip { fill: var(--arrow) }
.rule { stroke: var(--edge) }
rect.good { fill: var(--good) } rect.bad { fill: var(--bad) } rect.doubt { fill: var(--doubt) }
text.good { fill: var(--good-ink) } text.bad { fill: var(--bad-ink) } text.doubt { fill: var(--doubt-ink) }
"""
_TIP: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="tip" d="M0 0.5 8 4 0 7.5z"/></marker></defs>'
)


def fitted(words: str, width: float, size: float, share: float = PLAIN) -> list[str]:
    """Break a text into lines that fit.

    Args:
        width: room, in the picture's units.
        size: of the font.
        share: of an average character in it.
    """
    return wrap(words, max(1, int(width / (size * share))), break_long_words=False, break_on_hyphens=False)


def listed(names: Iterable[str], width: float, size: float) -> list[str]:
    """Break a list of names in a fixed font into lines that fit."""
    return fitted(", ".join(names), width, size, FIXED)


class Drawing:
    """One picture, from its upper left corner.

    Args:
        width, height: in pixels, as it is shown unless there is less room.
        title, description: what it shows, for those who do not see it.
    """

    def __init__(self, width: int, height: int, title: str, description: str) -> None:
        self._size = (width, height)
        self._told = (title, description)
        self._parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, kind: str, radius: int = 8) -> None:
        self._parts.append(
            f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}"/>'
        )

    def text(
        self, x: float, y: float, lines: str | Sequence[str], kind: str = "", *, size: float = 13, middle: bool = False
    ) -> float:
        """Write lines under each other.

        Args:
            y: of the first line's foot.
            size: of the font that `kind` has, for the distance of the lines.
            middle: `x` is their middle, not where they begin.

        Returns:
            The foot of the line that would come next.
        """
        for line in [lines] if isinstance(lines, str) else lines:
            about = f' class="{kind}"' if kind else ""
            about += ' text-anchor="middle"' if middle else ""
            self._parts.append(f'<text x="{x:g}" y="{y:g}"{about}>{escape(line)}</text>')
            y = round(y + size * LINE, 1)
        return y

    def arrow(self, path: str, hint: str = "") -> None:
        """Draw a path with a tip at its end; what it is for shows when a pointer rests on it."""
        inside = f"<title>{escape(hint)}</title>" if hint else ""
        self._parts.append(f'<path class="arrow" marker-end="url(#tip)" d="{path}">{inside}</path>')

    def rule(self, x: float, y: float, to_x: float, to_y: float) -> None:
        self._parts.append(f'<line class="rule" x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}"/>')

    def document(self) -> str:
        """The whole file."""
        width, height = self._size
        title, description = self._told
        light, dark = (
            " ".join(f"--{name}: {pair[index]};" for name, pair in _COLORS.items()).rstrip(";") for index in (0, 1)
        )
        parts = [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
                f' viewBox="0 0 {width} {height}" role="img" aria-label={quoteattr(title)}>'
            ),
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(description)}</desc>",
            "<style>",
            f":root {{ {light} }}",
            f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}{_RULES}</style>",
            _TIP,
            f'<rect class="ground" width="{width}" height="{height}" rx="10"/>',
            *self._parts,
            "</svg>\n",
        ]
        return "\n".join(parts)
