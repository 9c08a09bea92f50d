"""The stack symbols that can be on top in a state and under one another, against a plain fixpoint over the tables."""

from __future__ import annotations

import pytest

from toolc.compiler.grammar.reader import read_grammar
from toolc.compiler.pushdown.pushdown import Automaton, build_automaton
from toolc.compiler.terminals.workspace import POP, PUSH

from ..cases.grammars import GRAMMARS


def _plain(a: Automaton) -> tuple[list[set[int]], list[set[int]]]:
    """Sets by state and by symbol: everything that can be concluded, again and again until nothing is new."""
    states = a.state_row.size - 1
    top: list[set[int]] = [set() for _ in range(states)]
    below: list[set[int]] = [set() for _ in range(a.stack_symbols)]
    done: list[set[int]] = [set() for _ in range(states)]  # what can be completed in the frame of a state
    ops = [(q, int(op)) for q in range(states) for op in a.ops[a.state_row[q] : a.state_row[q + 1]].flat if op]
    size = -1
    while size != (size := sum(map(len, [*top, *below, *done]))):
        for q, op in ops:
            kind, number = op & 7, op >> 3
            onward = set()
            if kind == POP:
                done[q].add(number)
            elif kind == PUSH:
                g, *entries, _ = a.pushes[number].tolist()
                below[g] |= top[q]
                for e in entries:
                    top[e].add(g)
                    onward |= {a.returns[g, r][0] for r in done[e] if (g, r) in a.returns} - {0}
            else:
                onward.add(number)
            for t in onward:
                top[t] |= top[q]
                done[q] |= done[t]
    return top, below


@pytest.mark.parametrize("name", sorted(GRAMMARS))
def test_sets(name: str) -> None:
    a = build_automaton(read_grammar(GRAMMARS[name]))
    top, below = _plain(a)
    assert [set(a.sets[n].tolist()) for n in a.top] == top
    assert [set(a.sets[n].tolist()) for n in a.below] == below
    assert all(one.tolist() == sorted(set(one.tolist())) for one in a.sets)
    assert len({tuple(one.tolist()) for one in a.sets}) == len(a.sets)
