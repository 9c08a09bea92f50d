"""Whether some text matches two expressions.

Leaves out   looks and anchors: where they stand nothing is known.
Invariants   False only if surely no text matches both.
Source       Antimirov 1996: what is left of an expression after a character is a set of expressions.
"""

from __future__ import annotations

from ..budget import look
from . import charset
from .charset import Ranges
from .nodes import EMPTY, Chars, Concat, Regex, Repeat, Union, concat, repeat

_MOST = 4096
"""Pairs of rests that are looked at."""


def may_meet(one: Regex, other: Regex) -> bool:
    """Whether a text may match both."""
    todo = [(one, other)]
    seen = set(todo)
    rests: dict[Regex, list[tuple[Ranges, Regex]] | None] = {}
    while todo:
        pair = todo.pop()
        look()
        if len(seen) > _MOST or (_nullable(pair[0]) and _nullable(pair[1])):
            return True
        left, right = (_rests(rest, rests) for rest in pair)
        if left is None or right is None:
            return True
        for ranges, after in left:
            for others, after_other in right:
                reached = (after, after_other)
                if reached not in seen and charset.intersection(ranges, others):
                    seen.add(reached)
                    todo.append(reached)
    return False


def rests_of(regex: Regex) -> list[tuple[Ranges, Regex]]:
    """First characters of an expression without looks, each with what is left of it (its partial derivatives)."""
    found = _rests(regex, {})
    assert found is not None, "nothing looks"
    return found


def _nullable(regex: Regex) -> bool:
    if isinstance(regex, Concat):
        return all(map(_nullable, regex.items))
    if isinstance(regex, Union):
        return any(map(_nullable, regex.options))
    return isinstance(regex, Repeat) and (regex.low == 0 or _nullable(regex.item))


def _rests(regex: Regex, known: dict[Regex, list[tuple[Ranges, Regex]] | None]) -> list[tuple[Ranges, Regex]] | None:
    """First characters, each with what must follow; None where that is not known."""
    if regex not in known:
        known[regex] = _find_rests(regex, known)
    return known[regex]


def _find_rests(
    regex: Regex, known: dict[Regex, list[tuple[Ranges, Regex]] | None]
) -> list[tuple[Ranges, Regex]] | None:
    if isinstance(regex, Chars):
        return [(regex.ranges, EMPTY)] if regex.ranges else []
    if isinstance(regex, Union):
        parts = [_rests(option, known) for option in regex.options]
        return None if None in parts else [rest for part in parts for rest in part or ()]
    if isinstance(regex, Repeat):
        found = _rests(regex.item, known)
        fewer = repeat(regex.item, max(regex.low - 1, 0), None if regex.high is None else regex.high - 1)
        return found and [(ranges, concat(after, fewer)) for ranges, after in found]
    if not isinstance(regex, Concat):
        return None
    out: list[tuple[Ranges, Regex]] = []
    for index, item in enumerate(regex.items):
        look()
        found = _rests(item, known)
        if found is None:
            return None
        out += [(ranges, concat(after, *regex.items[index + 1 :])) for ranges, after in found]
        if not _nullable(item):
            break
    return out
