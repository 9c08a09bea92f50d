"""A terminal whose characters are counted: its automaton beside that of one character, without dead ends.

A counter replaces as many copies of the automaton as there may be characters. A state is alive at a count c only if
the text can still end with a count in bounds; for the states of this product that is a comparison of c with two
numbers per state, provided that the numbers of characters with which a text can go on to its end leave no gap wider
than the bounds are apart. Where they do, the terminal is not counted.

Leaves out   NFA states (nfa.py gives each product state one), what is counted (nodes.py).
Invariants   every state is reachable and can reach the end; state 0 is right behind the opening quote, if any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from toolc.runtime.jit.memory import kernel

from ..terminals.dfa import Dfa
from .state_rows import by_state

QUOTE = ord('"')
_ROUNDS = 512  # lengths looked at until they repeat


@dataclass(frozen=True)
class Counted:
    """The product.

    Attributes:
        low, high: bounds on the number of units; high None: without bound.
        between: per state whether it lies between two units, where one may begin or the text may end.
        edges: per state (symbols as a bit mask, target); the closing quote is left out.
        closes: per state whether the closing quote, or the end, may follow, as far as the terminal is concerned.
        least, most: fewest and most units that can still come; most None: any number.
        quoted: whether the terminal has quotes; without, what follows it is not part of the product.
    """

    low: int
    high: int | None
    between: tuple[bool, ...]
    edges: tuple[tuple[tuple[int, int], ...], ...]
    closes: tuple[bool, ...]
    least: tuple[int, ...]
    most: tuple[int | None, ...]
    quoted: bool


def masks_of(dfa: Dfa) -> list[list[tuple[int, int]]]:
    """Per state of an automaton: (bytes as a bit mask, target), one entry per target."""
    class_mask = [0] * dfa.next_state.shape[1]
    for byte, k in enumerate(dfa.class_of_byte.tolist()):
        class_mask[k] |= 1 << byte
    rows = []
    for targets in dfa.next_state.tolist():
        masks: dict[int, int] = {}
        for k, t in enumerate(targets):
            if t >= 0:
                masks[t] = masks.get(t, 0) | class_mask[k]
        rows.append([(m, t) for t, m in masks.items() if m])
    return rows


def count_units(
    whole: Dfa, unit: Dfa, low: int, high: int | None, quoted: bool, check: Callable[[], None]
) -> Counted | None:
    """The product of a terminal and its unit; None where it cannot be counted exactly.

    Args:
        whole: the terminal with any number of units, quotes included.
        unit: one unit.
        low, high: how many there may be.
        quoted: whether the terminal has quotes.
        check: called now and then; what it raises ends the work.
    """
    kept = whole.__dict__.setdefault("_products", {})  # by unit, which is kept here so that its id stays its own
    if (id(unit), quoted) not in kept:
        kept[id(unit), quoted] = unit, _product(whole, unit, quoted, check)
    product = kept[id(unit), quoted][1]
    if product is None:
        return None
    widest, counted = product
    if high is not None and widest > high - low:
        return None
    return replace(counted, low=low, high=high)


def _product(whole: Dfa, unit: Dfa, quoted: bool, check: Callable[[], None]) -> tuple[int, Counted] | None:
    """The widest gap between numbers of units with which a text ends, and the product, as yet without bounds."""
    if whole.is_empty or unit.is_empty or not _tells_apart(unit, quoted):
        return None
    quote = 1 << QUOTE
    rows, unit_rows, ends = masks_of(whole), masks_of(unit), unit.accepting.tolist()
    first = [t for m, t in rows[0] if m & quote] if quoted else [0]
    if not first:
        return None
    places = {(first[0], 0): 0}
    states = [(first[0], 0)]
    edges: list[list[tuple[int, int]]] = []
    closes = []
    for s, u in states:
        check()
        here = []
        for m, t in rows[s]:
            for m2, v in unit_rows[u]:
                if m & m2:
                    pair = t, 0 if ends[v] else v
                    if pair not in places:
                        places[pair] = len(states)
                        states.append(pair)
                    here.append((m & m2, places[pair]))
        edges.append(here)
        ended = any(m & quote for m, _ in rows[s]) if quoted else bool(whole.accepting[s])
        closes.append(u == 0 and ended)
    between = [u == 0 for _, u in states]
    found = _lengths(edges, between, closes, check)
    if found is None:
        return None
    least, most, gap = found
    alive = [n is not None for n in least]
    if not alive[0]:
        return None
    kept = [i for i, a in enumerate(alive) if a]
    number = {old: new for new, old in enumerate(kept)}
    return max(g for g, a in zip(gap, alive, strict=True) if a), Counted(
        0,
        None,
        tuple(between[i] for i in kept),
        tuple(tuple((m, number[t]) for m, t in edges[i] if t in number) for i in kept),
        tuple(closes[i] for i in kept),
        tuple(least[i] or 0 for i in kept),
        tuple(most[i] for i in kept),
        quoted,
    )


def _tells_apart(unit: Dfa, quoted: bool) -> bool:
    """Whether units can be counted as they are read: none is empty, begins another, or begins with the quote."""
    quote = -1 if not quoted else unit.next_state[0, unit.class_of_byte[QUOTE]]
    return not unit.accepting[0] and not bool((unit.next_state[unit.accepting] >= 0).any()) and bool(quote < 0)


@kernel()
def _settled(ending, offset, before):  # type: ignore[no-untyped-def]
    """States bool [n], and all that come to one of them by moves int32 [·, 1] from others, offset by target."""
    found, todo, count = ending.copy(), np.empty(ending.size, np.int64), 0
    for state in range(ending.size):
        if ending[state]:
            todo[count] = state
            count += 1
    while count > 0:
        count -= 1
        state = todo[count]
        for k in range(offset[state], offset[state + 1]):
            source = before[k, 0]
            if not found[source]:
                found[source] = True
                todo[count] = source
                count += 1
    return found


def _lengths(
    edges: list[list[tuple[int, int]]], between: list[bool], closes: list[bool], check: Callable[[], None]
) -> tuple[list[int | None], list[int | None], list[int]] | None:
    """Per state the fewest and most further units to the end (None: no end; any number) and the widest gap.

    The states with an end n units away are a function of those with an end n - 1 units away, so the sequence of
    these sets repeats; None if it does not soon.
    """
    size = len(edges)
    moves = np.array([(i, t) for i, row in enumerate(edges) for _, t in row], np.int32).reshape(-1, 2)
    begins = np.array(between)[moves[:, 0]]  # the first byte of a unit
    first, first_to = moves[begins].T
    before, offset = by_state(np.ascontiguousarray(moves[~begins][:, ::-1]), size)  # inside of a unit, by target

    def settle(ending: np.ndarray) -> np.ndarray:
        """Add the states inside of a unit that come to one of these."""
        return _settled(ending, offset, before)

    sets = [settle(np.array(closes))]
    seen = {sets[0].tobytes(): 0}
    while True:
        check()
        new = np.zeros(size, bool)
        new[first[sets[-1][first_to]]] = True
        new = settle(new)
        if new.tobytes() in seen:
            period_from = seen[new.tobytes()]
            break
        if len(sets) == _ROUNDS:
            return None
        seen[new.tobytes()] = len(sets)
        sets.append(new)
    table = np.array(sets)  # [lengths, states]; it goes on with what begins at period_from
    unrolled = np.concatenate([table, table[period_from:], table[period_from:]])
    least: list[int | None] = []
    most: list[int | None] = []
    gap = []
    for i, ends in enumerate(np.ascontiguousarray(unrolled.T)):
        at = np.flatnonzero(ends)
        least.append(int(at[0]) if at.size else None)
        endless = bool(table[period_from:, i].any())
        most.append(None if endless or not at.size else int(at[-1]))
        gap.append(int(np.diff(at).max(initial=1)) - 1)
    return least, most, gap
