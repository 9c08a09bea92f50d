"""Where everything of a frame stands on the paper, and the elements of its drawing, as SVG.

Leaves out   which states and edges there are: see graph.py. The page around the drawing: see page.py.
Invariants   every text is escaped; no label is cut inside of a word that is short; labels cover neither each other nor
             states, as long as a free place is near.
"""

from __future__ import annotations

import html
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from toolc.runtime.format.bundle import Bundle
from toolc.runtime.format.ops import FINISHED

from .graph import COLUMN, ROW, Edge, Frame, label

_NO_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")  # a page may not have these
_STEPS = 12
"""Places above and below that are tried for a label."""


def escaped(value: Any) -> str:
    """Text as a page may hold it."""
    return html.escape(_NO_TEXT.sub("\ufffd", str(value)))


class Drawing:
    """Where everything of a frame stands: columns as far apart as their labels need, labels beside each other.

    Attributes:
        place: state → x, y.
        labels: for every edge the x and y of the middle of its label, and the label; None of one that leads back.
    """

    LETTER, SIZE, RADIUS = 6.7, 11, 13

    def __init__(self, bundle: Bundle, frame: Frame) -> None:
        self.bundle, self.frame = bundle, frame
        words = [label(bundle, edge) for edge in frame.edges]
        need: dict[int, float] = defaultdict(lambda: 96.0)
        for edge, text in zip(frame.edges, words, strict=True):
            source, target = frame.place[edge.source][0], frame.place[edge.target][0]
            if target == source + COLUMN:
                need[target] = max(need[target], self.LETTER * len(text) + 64)
        at: dict[int, int] = {}
        x = 0.0
        for column in sorted({x for x, _ in frame.place.values()}):
            x += need[column] if at else 0
            at[column] = round(x)
        self.place = {state: (at[x], y) for state, (x, y) in frame.place.items()}
        self.labels: list[tuple[int, int, str] | None] = []
        taken: dict[int, list[tuple[float, float, float]]] = defaultdict(list)  # by y // ROW: left, right, y
        for x, y in self.place.values():
            taken[y // ROW].append((x - self.RADIUS, x + self.RADIUS, y))
        for edge, text in zip(frame.edges, words, strict=True):
            if self.is_back(edge):
                self.labels.append(None)
                continue
            x, y = self._middle(edge)
            half = self.LETTER * len(text) / 2
            steps = [0, *(sign * step * self.SIZE for step in range(1, _STEPS) for sign in (-1, 1))]
            tries = [y + step for step in steps]
            y = next((y for y in tries if not _meets(taken, x - half, x + half, y, self.SIZE + 1)), y)
            taken[y // ROW].append((x - half, x + half, y))
            self.labels.append((x, y, text))

    def is_back(self, edge: Edge) -> bool:
        """Whether an edge leads to a column before; it has no label beside it."""
        return self.place[edge.target][0] < self.place[edge.source][0]

    def _middle(self, edge: Edge) -> tuple[int, int]:
        """Where the label of an edge would stand if it were alone."""
        (x, y), (u, v) = self.place[edge.source], self.place[edge.target]
        if edge.source == edge.target:
            return x, y - 34
        if u == x:
            return x + 3 * self._bulge(y, v) // 4, (y + v) // 2 + 4
        return (x + u) // 2, (y + v) // 2 - 4

    @staticmethod
    def _bulge(y: int, v: int) -> int:
        """How far an edge to the same column leaves it, to the right."""
        return min(90, 40 + abs(y - v) // 8)

    def svg(self, classes: str) -> str:
        """The drawing at the size at which its letters can be read."""
        xs, ys = zip(*self.place.values())
        left, right, top, bottom = min(xs) - 40, max(xs) + 40, min(ys) - 40, max(ys) + 40
        for x, y, text in filter(None, self.labels):
            half = math.ceil(self.LETTER * len(text) / 2) + 4
            left, right, top, bottom = min(left, x - half), max(right, x + half), min(top, y - 20), max(bottom, y + 12)
        size = f'width={right - left} height={bottom - top} viewBox="{left} {top} {right - left} {bottom - top}"'
        return f'<svg class="{classes}" {size}>{"".join(self._parts())}</svg>'

    def _parts(self) -> Iterator[str]:
        frame = self.frame
        for edge, beside in zip(frame.edges, self.labels, strict=True):
            kind = ("edge" if edge.calls is None else "edge calls") + (" back" if beside is None else "")
            words = "" if beside is None else f'<text x="{beside[0]}" y="{beside[1]}">{escaped(beside[2])}</text>'
            whole = escaped(label(self.bundle, edge, 400))
            yield f'<g class="{kind}"><title>{whole}</title><path d="{self._path(edge)}"></path>{words}</g>'
        for state, (x, y) in self.place.items():
            kind = "end" if state == FINISHED else "root" if state in frame.roots else ""
            ring = f'<circle cx="{x}" cy="{y}" r="16" class=ring></circle>' if state in frame.pops else ""
            yield (
                f'<g class="state {kind}" data-state={state}>{ring}'
                f'<circle cx="{x}" cy="{y}" r="{self.RADIUS}"></circle>'
                f'<text x="{x}" y="{y + 4}">{"end" if state == FINISHED else state}</text></g>'
            )

    def _path(self, edge: Edge) -> str:
        (x, y), (u, v) = self.place[edge.source], self.place[edge.target]
        if edge.source == edge.target:
            return f"M{x - 6} {y - 11}C{x - 22} {y - 40} {x + 22} {y - 40} {x + 6} {y - 11}"
        if u > x:
            return f"M{x + 12} {y}C{x + 60} {y} {u - 60} {v} {u - 13} {v}"
        if u == x:
            bulge = x + self._bulge(y, v)
            return f"M{x + 11} {y}C{bulge} {y} {bulge} {v} {u + 12} {v}"
        bend = min(y, v) - ROW
        return f"M{x} {y - 12}C{x} {bend} {u} {bend} {u} {v - 13}"


def _meets(taken: dict[int, list[tuple[float, float, float]]], left: float, right: float, y: int, height: int) -> bool:
    """Whether a label would cover another, or a state."""
    return any(
        left < b and a < right and abs(y - other) < height
        for row in (y // ROW - 1, y // ROW, y // ROW + 1)
        for a, b, other in taken[row]
    )
