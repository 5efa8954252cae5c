"""What a document tells its reader to type: commands and blocks of code, in their order."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.packaging.layers import ROOT

# A command stands indented, as the shell would take it; a sentence behind it is set off by spaces or `#`.
_COMMAND = re.compile(r"^ {4,}((?:[A-Z]+=\S+ )?(?:reattach|make|pip|python|pytest|timeout|flink|curl|docker)(?: .*)?)$")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DRAWN = re.compile(r"<!-- \w+:begin.*?<!-- \w+:end -->", re.DOTALL)
PLAIN = "command"


@dataclass(frozen=True, slots=True)
class Block:
    """A command (`language` is "command"), or a fenced block.

    Args:
        path: of the document, from the repository's root.
    """

    path: str
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.path}: {self.text.strip().partition(chr(10))[0][:60]}"


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks_of(path: Path) -> list[Block]:
    """Everything on a page that a reader may type or copy; what is drawn from the code is left out."""
    text = _DRAWN.sub("", path.read_text(encoding="utf-8"))
    shown = path.relative_to(ROOT).as_posix()
    found: list[tuple[int, Block]] = []
    rest = text
    for fence in _FENCE.finditer(text):
        found.append((fence.start(), Block(shown, fence[1], fence[2])))
        rest = rest[: fence.start()] + re.sub(r"[^\n]", "x", fence[0]) + rest[fence.end() :]
    at = 0
    for line in rest.split("\n"):
        if command := _COMMAND.match(line):
            found.append((at, Block(shown, PLAIN, re.split(r"\s{2,}|\s#\s", command[1])[0].rstrip())))
        at += len(line) + 1
    return [block for _, block in sorted(found, key=lambda pair: pair[0])]
