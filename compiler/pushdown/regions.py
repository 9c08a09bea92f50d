"""Regions of text as numbers: a *region* is a stretch of text that a marked rule derives (ir/nodes.py, Mark).

Every NFA state lies in one; what a region is depends on the marks around it, from the outermost in.

Leaves out   what states tell of their regions (marks.py).
Numbers      bit 0: free text is reasoning; bits 1 to 3: kind of text; the rest: one more than the tool, or 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toolc.runtime.format.tables import ARGUMENTS, KEY, NAME, REASONING, STRING, TEXT, VALUE
from toolc.runtime.jit.memory import BARE, kernel

from ..ir.nodes import Mark

OUTSIDE = 0
"""The region of what no marked rule derives."""
_REASONS = 8  # beside the kinds of text, which have three bits
_NUMBER_OF = {"text": TEXT, "name": NAME, "arguments": ARGUMENTS, "key": KEY, "value": VALUE, "string": STRING}


class Region(NamedTuple):
    """Kind of text, tool (-1 for none), whether free text is reasoning here."""

    kind: int
    tool: int
    reasoning: bool

    @staticmethod
    def of(number: int) -> Region:
        """What a number says."""
        return Region(number >> 1 & 7, (number >> 4) - 1, bool(number & 1))


def in_call(region: int, tool: int) -> int:
    """The same region in a call of a tool."""
    return (tool + 1) << 4 | region & 15


def number_of(mark: Mark) -> int:
    """A mark as `inside` reads it."""
    if mark.kind == "tool":
        return ~mark.number
    return _REASONS if mark.kind == "reasoning" else _NUMBER_OF[mark.kind]


@kernel(**BARE)
def inside(region, mark):  # type: ignore[no-untyped-def]
    """The region of a marked rule in another region."""
    reasoning, kind, call = region & 1, region >> 1 & 7, region >> 4
    if mark < 0:
        call = -mark
    elif mark == _REASONS:
        reasoning = np.int64(1)
    elif mark == TEXT and reasoning == 1:
        kind = np.int64(REASONING)
    else:
        kind = mark
    return call << 4 | kind << 1 | reasoning
