"""Lanes as one HTML page that needs nothing but itself.

What comes from a journal reaches the page as JSON in a script element that is not run, with every `<`
escaped, so that no name can end it; the page's script puts it on the page as text and in no other way.
A content security policy allows this very script and this very style, and nothing from anywhere else.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Any, Final

from reattach import __version__
from reattach.models.lifecycle import Leaf
from reattach.runtime.view.lanes import Lane, Step, Timeline

SCRIPTS: Final = ("base", "lanes", "filters", "people")
# What happened in a step, as bits; the scripts know them by the same names.
MARKS: Final = {"POST": 1, "PROBE": 2, "LIFE": 4, "UNDONE": 8, "RESTORED": 16, "GAP": 32, "RESPOND": 64, "CANCEL": 128}
_OF_EFFECTS: Final = {"Submit": "POST", "Probe": "PROBE", "Respond": "RESPOND", "Cancel": "CANCEL"}
_LEAVES: Final = list(Leaf)
_LEAF: Final = {leaf: number for number, leaf in enumerate(_LEAVES)}


class _Texts:
    """Each text once: the same few sentences come again and again."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        found = self._numbers.setdefault(text, len(self.all))
        if found == len(self.all):
            self.all.append(text)
        return found


def data(timeline: Timeline) -> dict[str, Any]:
    """What the page shows.

    Returns:
        `texts`, to which numbers elsewhere refer; `calls`, each `[agent, thread, id, generation, leaf, since, cause,
        steps]`, its steps `[number, times, at, life, generation, before, after, event, says, does, note, marks]`.
        Times count from `from_ms`; `before` is -1 where the call has just begun.
    """
    texts = _Texts()
    lives = {name: number for number, (name, _) in enumerate(timeline.lives)}
    calls = [_call(lane, timeline.from_ms, lives, texts) for lane in timeline.lanes]
    return {
        "made_by": f"reattach {__version__}",
        "from_ms": timeline.from_ms,
        "until_ms": timeline.until_ms,
        "leaves": [leaf.value for leaf in _LEAVES],
        "marks": MARKS,
        "lives": [[texts.number(name), opened_ms - timeline.from_ms] for name, opened_ms in timeline.lives],
        "calls": calls,
        "texts": texts.all,
    }


def _call(lane: Lane, from_ms: int, lives: dict[str, int], texts: _Texts) -> list[Any]:
    number = texts.number
    return [
        number(lane.agent), number(lane.thread_id), number(lane.invocation_id), lane.generation, _LEAF[lane.leaf],
        lane.since_ms - from_ms, number(lane.cause), [_step(step, from_ms, lives, texts) for step in lane.steps],
    ]  # fmt: skip


def _step(step: Step, from_ms: int, lives: dict[str, int], texts: _Texts) -> list[Any]:
    number = texts.number
    return [
        step.number, step.times, step.at_ms - from_ms, lives[step.incarnation], step.generation,
        -1 if step.before is None else _LEAF[step.before], _LEAF[step.after], number(step.event), number(step.says),
        number(step.does), number(step.note), marks(step),
    ]  # fmt: skip


def marks(step: Step) -> int:
    """What happened in a step, as bits."""
    said = {"LIFE": step.begins_life, "UNDONE": step.undone, "RESTORED": step.restored, "GAP": step.gap}
    names = {_OF_EFFECTS[name] for name in step.effects if name in _OF_EFFECTS}
    return sum(bit for name, bit in MARKS.items() if said.get(name) or name in names)


def page(timeline: Timeline) -> str:
    """The whole page."""
    here = files("reattach.runtime.view")
    names = ("page.html", "page.css", *(f"page_{name}.js" for name in SCRIPTS))
    body, style, *scripts = (here.joinpath(name).read_text(encoding="utf-8") for name in names)
    script = '"use strict";\n(() => {\n' + "\n".join(scripts) + "})();\n"
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )
    parts = {"POLICY": policy, "STYLE": style, "SCRIPT": script, "DATA": embedded(data(timeline))}
    return "".join(_filled(body, parts))


def embedded(value: Any) -> str:
    """JSON that can stand in a script element: nothing in it can end that, or begin a comment."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")


def _filled(body: str, parts: dict[str, str]) -> Iterable[str]:
    """The page with its parts in place; what a part holds is never looked at."""
    for piece in body.split("@@"):
        yield parts.get(piece, piece)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
