"""The lifecycle as a picture, drawn from the compiled statechart.

Statuses are panels, their leaves fields in them, each with what it waits for. Between statuses every event is written
out. Within one, arrows on the right side lead down and arrows on the left side up; their events show when a pointer
rests on them, and stand in the table of docs/lifecycle.md. A move that stays in its leaf is not drawn.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from reattach.fsm.diagram import moves
from reattach.models.lifecycle import Leaf, Status
from reattach.runtime.pictures.svg import LINE, Drawing, fitted, listed
from reattach.runtime.view.waits import waits_for

Edges = Mapping[tuple[Leaf, Leaf], set[str]]
Crossings = Mapping[tuple[Status, Status], set[str]]

OPEN: Final = tuple(status for status in Status if not status.terminal)
WIDTH: Final = 1220
PANEL: Final = 316
GAP: Final = 118
LEFT: Final = (WIDTH - 3 * PANEL - 2 * GAP) / 2
# Room on both sides of the fields, for the arrows between them.
LANE: Final = 58
FIELD: Final = PANEL - 2 * LANE
FIELD_GAP: Final = 12
TOP: Final = 62
BAR: Final = 44
HEAD: Final = 40
SMALL: Final = 11.5
EVENT: Final = 11.0


def edges() -> tuple[Edges, Crossings]:
    """Moves between two leaves of a status, and between two statuses, each with the events that make them."""
    within: dict[tuple[Leaf, Leaf], set[str]] = {}
    between: dict[tuple[Status, Status], set[str]] = {}
    for source, target, event in moves():
        if source.status is not target.status:
            between.setdefault((source.status, target.status), set()).add(event)
        elif source is not target:
            within.setdefault((source, target), set()).add(event)
    return within, between


def leaves(status: Status) -> list[Leaf]:
    return [leaf for leaf in Leaf if leaf.status is status]


def waiting(leaf: Leaf) -> list[str]:
    """What a call waits for in this leaf, in lines that fit its field."""
    return fitted(waits_for(leaf), FIELD - 20, SMALL)


def _field_height(leaf: Leaf) -> float:
    return 28 + len(waiting(leaf)) * SMALL * LINE


def _panel_height(status: Status) -> float:
    return HEAD + sum(_field_height(leaf) + FIELD_GAP for leaf in leaves(status)) + 4


def _x(status: Status) -> float:
    return LEFT + OPEN.index(status) * (PANEL + GAP)


class _Picture:
    """From above: the bar of COMPLETED, a way over the panels, the panels, a way under them, the bar of FAILED."""

    def __init__(self) -> None:
        self.within, self.between = edges()
        self.over = TOP + BAR + 62
        self.panels = self.over + 34
        self.under = self.panels + max(_panel_height(status) for status in OPEN) + 30
        most = max(len(self._events(status, Status.FAILED)) for status in OPEN)
        self.failed = self.under + 32 + most * EVENT * LINE + 18
        self.drawing = Drawing(
            WIDTH,
            round(self.failed + BAR + 24),
            "The lifecycle of a call",
            "Five statuses, what a call waits for in each, and the events that lead from one to another.",
        )

    def _events(self, source: Status, target: Status) -> list[str]:
        return listed(sorted(self.between.get((source, target), ())), PANEL - 30, EVENT)

    def draw(self) -> str:
        d = self.drawing
        d.text(LEFT, 38, "The lifecycle of a call", "title", size=18)
        d.text(LEFT + 240, 38, "on the right of a panel arrows lead down, on the left up", "small", size=SMALL)
        for status, y in ((Status.COMPLETED, TOP), (Status.FAILED, self.failed)):
            d.box(LEFT, y, WIDTH - 2 * LEFT, BAR, "good" if status is Status.COMPLETED else "bad")
            kind = "head good" if status is Status.COMPLETED else "head bad"
            d.text(WIDTH / 2, y + 28, status.name, kind, size=15, middle=True)
        for status in OPEN:
            self._panel(status)
            self._ends(status)
        self._beside()
        self._around()
        return d.document()

    def _panel(self, status: Status) -> None:
        d, x = self.drawing, _x(status)
        d.box(x, self.panels, PANEL, _panel_height(status), "panel")
        d.text(x + PANEL / 2, self.panels + 26, status.name, "head", size=15, middle=True)
        for leaf in leaves(status):
            y = self._y(leaf)
            d.box(x + LANE, y, FIELD, _field_height(leaf), "field", 6)
            d.text(x + LANE + 10, y + 18, leaf.value.partition(".")[2], "name")
            d.text(x + LANE + 10, y + 34, waiting(leaf), "small", size=SMALL)
        self._arcs(status)

    def _y(self, leaf: Leaf) -> float:
        above = leaves(leaf.status)[: leaves(leaf.status).index(leaf)]
        return self.panels + HEAD + sum(_field_height(one) + FIELD_GAP for one in above)

    def _arcs(self, status: Status) -> None:
        """Arrows between the leaves of a status, each with a place of its own on both fields: none run together."""
        order = leaves(status)
        for right in (True, False):
            arcs = [
                (source, target)
                for source, target in self.within
                if source.status is status and (order.index(target) > order.index(source)) is right
            ]
            side = _x(status) + (LANE + FIELD if right else LANE)
            for source, target in arcs:
                steps = abs(order.index(target) - order.index(source))
                bulge = (12 + (LANE - 22) * steps / (len(order) - 1)) * (1.33 if right else -1.33)
                start, end = (self._place(arcs, leaf, (source, target)) for leaf in (source, target))
                out = f"{side + bulge:.1f}"
                self.drawing.arrow(
                    f"M{side:g} {start:.1f}C{out} {start:.1f} {out} {end:.1f} {side:g} {end:.1f}",
                    f"{source.value} -> {target.value}: {', '.join(sorted(self.within[source, target]))}",
                )

    def _place(self, arcs: list[tuple[Leaf, Leaf]], leaf: Leaf, arc: tuple[Leaf, Leaf]) -> float:
        """Where an arrow meets a field: those from above in the upper part, the nearest of them at the very top."""
        order = leaves(leaf.status)
        here = order.index(leaf)

        def other(one: tuple[Leaf, Leaf]) -> int:
            return order.index(one[1] if one[0] is leaf else one[0])

        above = sorted((one for one in arcs if leaf in one and other(one) < here), key=other, reverse=True)
        below = sorted((one for one in arcs if leaf in one and other(one) > here), key=other, reverse=True)
        place = [*above, *below].index(arc) + 1
        return self._y(leaf) + _field_height(leaf) * place / (len(above) + len(below) + 1)

    def _ends(self, status: Status) -> None:
        """Arrows up to COMPLETED and down to FAILED, with their events beside."""
        d, x = self.drawing, _x(status) + 14
        events = self._events(status, Status.COMPLETED)
        d.arrow(f"M{x:g} {self.panels:g}V{TOP + BAR + 2:g}", f"{status.name} -> COMPLETED")
        d.text(x + 9, TOP + BAR + 24, events, "event", size=EVENT)
        bottom = self.panels + _panel_height(status)
        d.arrow(f"M{x:g} {bottom:g}V{self.failed - 2:g}", f"{status.name} -> FAILED")
        d.text(x + 9, self.under + 32, self._events(status, Status.FAILED), "event", size=EVENT)

    def _beside(self) -> None:
        """Arrows between neighbours."""
        d = self.drawing
        for left, right in pairwise(OPEN):
            x = _x(left) + PANEL
            for source, target, y in ((left, right, self.panels + 60), (right, left, self.panels + 190)):
                if (source, target) not in self.between:
                    continue
                ends = (x + 2, x + GAP - 2) if source is left else (x + GAP - 2, x + 2)
                d.arrow(f"M{ends[0]:g} {y:g}H{ends[1]:g}", f"{source.name} -> {target.name}")
                names = sorted(self.between[source, target])
                d.text(x + GAP / 2, y + 17, names, "event", size=EVENT, middle=True)

    def _around(self) -> None:
        """Arrows that pass SUBMITTED: over it forwards, under it back."""
        d = self.drawing
        first, last = Status.NOT_STARTED, Status.RUNNING
        a, b = _x(first) + PANEL - 60, _x(last) + 60
        for source, target, y in ((first, last, self.over), (last, first, self.under)):
            names = ", ".join(sorted(self.between.get((source, target), ())))
            if not names:
                continue
            edge = [
                self.panels if y < self.panels else self.panels + _panel_height(status) for status in (source, target)
            ]
            start, end = (a, b) if source is first else (b, a)
            d.arrow(f"M{start:g} {edge[0]:g}V{y:g}H{end:g}V{edge[1]:g}", f"{source.name} -> {target.name}")
            d.text(_x(Status.SUBMITTED) + 23, y - 6, names, "event", size=EVENT)


def lifecycle() -> str:
    """The picture docs/lifecycle.svg."""
    return _Picture().draw()
