"""Strings of JSON with conditions as regular expressions, and whether some string meets them.

Leaves out   the conditions (shapes.py, patterns.py), where the expression stands (scalar_rules.py).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

from ..budget import Budget
from ..errors import ToolcError
from ..regex import Look, Regex, concat, repeat, size, union
from . import strings
from .patterns import content, may_both_match
from .shapes import Strings

_MOST_CONDITIONS, _MOST_NODES, _MOST_COUNTED, _MOST_STATES = 4, 1000, 64, 300
"""Of more conditions, larger expressions, higher counts, large automata it is not asked whether a string meets them."""


def tail(shape: Strings) -> tuple[list[Regex], Regex]:
    """Look-aheads after the opening quote, and an expression for the rest of the string, closing quote included."""
    # One look-ahead for all that must not be found costs less than many.
    never = [content(match.pattern, match.place, True) for match in shape.patterns if not match.positive]
    if shape.excluded:
        never.append(strings.tails(shape.excluded))
    heads: list[Regex] = [Look(union(*never), negative=True)] if never else []
    wanted = [match for match in shape.patterns if match.positive]
    last = None
    if wanted and not shape.low and shape.high is None:
        last = content(wanted[0].pattern, wanted[0].place)
        del wanted[0]
    heads += [Look(content(match.pattern, match.place, True)) for match in wanted]
    if last is None:
        last = concat(repeat(strings.PLAIN, shape.low, shape.high), strings.QUOTE)
    return heads, last


@lru_cache(4096)
def some_string(shape: Strings) -> bool:
    """Whether some string has a shape: False only if surely none has."""
    wanted = [match for match in shape.patterns if match.positive]
    odd = any("^" in match.pattern[1:] or "$" in match.pattern[:-1] for match in wanted)
    conditions = len(shape.patterns) + bool(shape.excluded)
    if (conditions < 2 and not odd) or conditions > _MOST_CONDITIONS:
        return True  # lengths were looked at (merge.py)
    from ..terminals.terminal import terminal_dfa

    try:
        for one, other in combinations(wanted, 2):
            if not may_both_match(one.pattern, one.place, other.pattern, other.place):
                return False
        heads, last = tail(shape)
        regex = concat(strings.QUOTE, *heads, last)
        if size(regex) > _MOST_NODES or max(shape.low, shape.high or 0) > _MOST_COUNTED:
            return True
        return not terminal_dfa(regex, Budget(_MOST_STATES, _MOST_STATES, None, None)).is_empty
    except ToolcError:
        return True  # refused where it is written, with its place
