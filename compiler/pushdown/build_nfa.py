"""Build the NFA of a grammar's nodes: states, blocks of terminals, shared first symbols, borders of regions.

Leaves out   states and their moves: nfa.py. Each pass: splice.py, left_factoring.py, choice_tries.py,
             copied_transitions.py.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.format.ops import END_OF_TURN

from ..budget import Budget
from ..passes import Pass
from .choice_tries import share_tries
from .copied_transitions import begin_twins, finish_borders, finish_entered, finish_loops, finish_twins
from .left_factoring import no_heads, share_heads
from .nfa import Choices, Nfa
from .node_analysis import Facts
from .regions import OUTSIDE, Region
from .splice import splice_literals, splice_terminals
from .worklist import ASK, DONE


def build_nfa(facts: Facts, choices: Choices, budget: Budget) -> Nfa:
    """The NFA of all nodes.

    Args:
        facts: what is known about the nodes.
        choices: what is called, inlined and copied.
        budget: limits of states and time.

    Raises:
        BudgetError: there are too many states, or it took too long.
        UnsupportedError: loops count within each other.
    """
    nfa = Nfa(facts, choices, budget)
    _fill(nfa)
    filling = nfa.filling
    splice_terminals(nfa, filling.rows("use"))
    splice_literals(nfa, filling.rows("text"))
    moves = nfa.edges, nfa.free, nfa.guards, nfa.calls
    for one in moves:
        one.settle(nfa.size)
    _share(nfa)
    if nfa.fresh or nfa.behind or nfa.loops:
        twins = begin_twins(nfa)
        entered = finish_borders(nfa, twins)
        finish_twins(nfa, twins)
        finish_loops(nfa)
        finish_entered(nfa, entered)
    for one in moves:
        one.finish(nfa.size)
    nfa.instance, nfa.scope, region = np.ascontiguousarray(filling.rows("place").T)
    regions, number = np.unique(region, return_inverse=True)
    nfa.regions, nfa.region = [Region.of(one) for one in regions.tolist()], number.astype(np.int32)
    return nfa


def _fill(nfa: Nfa) -> None:
    """Make all states, and their moves but for those inside of terminals."""
    filling, pool = nfa.filling, nfa.pool
    root, nfa.finished = (filling.new((0, -1, OUTSIDE)) for _ in range(2))
    turn = nfa.end_of_turn = nfa.mask(1 << END_OF_TURN)
    nfa.edges.rows += (root, turn, nfa.finished, 0, nfa.finished, turn, nfa.finished, 0)
    nfa.entries = [nfa.get(pool.rules[rule], root, -1) for rule in pool.entries]
    filling.let_first(nfa.entries[0], root)
    while (code := filling.run()) != DONE:
        if code == ASK:
            nfa.decide(*filling.pop())
        else:
            nfa.check()
    nfa.check()
    frame, start, end = filling.rows("frame").T
    nfa.instances = list(zip((frame >> 1).tolist(), (frame & 1 > 0).tolist(), strict=True))
    nfa.starts = start.tolist()
    nfa.final = {state: number for number, state in enumerate(end.tolist()) if number}
    nfa.fresh, nfa.behind, nfa.skipped = (dict(filling.rows(x).tolist()) for x in ("fresh", "behind", "skipped"))
    nfa.free.blocks.append(filling.rows("free"))
    nfa.calls.blocks.append(filling.rows("call"))


def _share(nfa: Nfa) -> None:
    """Share what alternatives read alike: their first symbol, and whole tries of texts."""
    filling = nfa.filling
    heads = share_heads(nfa, filling.rows("place")) if Pass.LEFT_FACTORING.on else no_heads(nfa)
    filling.copy(heads.choice)
    tries = share_tries(nfa, filling.rows("place")) if Pass.CHOICE_TRIES.on else None
    if tries is not None:
        filling.copy(np.array(tries.like, np.int32))
    nfa.find_reads_for = lambda: heads.by_state() | (tries.by_state() if tries else {})
