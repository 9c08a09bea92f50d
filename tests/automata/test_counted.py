"""How many units can still come: against sets of states, one length after the other; and an end to the work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolc.compiler import Options, compile_schema
from toolc.compiler.budget import Budget
from toolc.compiler.errors import BudgetError
from toolc.compiler.pushdown.counted import _lengths

Graph = tuple[list[list[int]], list[bool], list[bool]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Targets of every state, whether it lies between two units, whether the text may end there."""
    size = draw(st.integers(1, 8))
    targets = [draw(st.lists(st.integers(0, size - 1), max_size=3)) for _ in range(size)]
    between = [True, *(draw(st.booleans()) for _ in range(size - 1))]
    return targets, between, [b and draw(st.booleans()) for b in between]


def ends_after(graph: Graph, state: int, most: int) -> set[int]:
    """The numbers of units, up to so many, after which the text can end: the first byte of a unit begins it."""
    targets, between, closes = graph
    found, here = set(), {state}
    for count in range(most + 1):
        todo = list(here)
        while todo:  # on inside of the unit
            s = todo.pop()
            more = set() if between[s] else set(targets[s]) - here
            here |= more
            todo += more
        if any(closes[s] for s in here):
            found.add(count)
        here = {t for s in here if between[s] for t in targets[s]}
    return found


@given(graphs())
def test_lengths(graph: Graph) -> None:
    targets, between, closes = graph
    found = _lengths([[(1, t) for t in row] for row in targets], between, closes, lambda: None)
    assert found is not None
    for state, (least, most, _) in enumerate(zip(*found, strict=True)):
        ends = ends_after(graph, state, 60)
        assert least == min(ends, default=None)
        assert (most is None) == (not ends or max(ends) > 40) and (most is None or most == max(ends))


def test_a_large_product_ends_with_the_budget() -> None:
    """It took minutes, and nobody looked at the clock."""
    schema = {"type": "string", "pattern": r"^,(ab,[\x00-\x1f]{0,63}){0,20}$", "minLength": 20, "maxLength": 275}
    with pytest.raises(BudgetError):
        compile_schema(schema, options=Options(budget=Budget(seconds=1.0), jobs=1))


def test_the_product_looks_at_the_clock() -> None:
    def ended() -> None:
        raise BudgetError("over")

    with pytest.raises(BudgetError):
        _lengths([[(1, 0)]], [True], [True], ended)
