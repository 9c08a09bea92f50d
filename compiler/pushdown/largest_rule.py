"""Find the rule that most states of an NFA come from, for errors about limits.

Leaves out   the states (worklist.py), how errors name a rule (ir/nodes.py).
Invariants   a state beside another one, as those of counted loops are, was numbered after it and comes from the same.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.jit.memory import kernel

from .node_analysis import Facts
from .worklist import Filling

_ASKED = 1 << 20  # states: of as many as a square of the keys, all would take longer than what was allowed


def largest_rule(facts: Facts, filling: Filling, states: np.ndarray | None = None) -> str:
    """The rule that most of these states come from, or of all of them, as errors name it; of many, by some of them."""
    pool = facts.pool
    grammar = pool.grammar
    pointers = any("#" in place for place in grammar.places.values())  # of places in a spec, which libraries have not
    rules = list(pool.rules)
    number = {rule: n for n, rule in enumerate(rules)}
    of_spec = np.array(["#" in grammar.places.get(rule, "") or not pointers for rule in rules])
    own = filling.own
    rule_of = np.array([number[facts.rule_of(node)] for node in range(own.size)])
    shared = np.array([facts.is_shared(node) for node in range(own.size)])
    frames = filling.rows("frame")
    owner = np.full(filling.size, -1)
    owner[frames[:, 1]] = np.where(frames[:, 0] < 0, number[pool.start], rule_of[frames[:, 0] >> 1])
    _own(
        filling.rows("known"), filling.rows("place"), frames, rule_of, shared | ~of_spec[rule_of], owner,
        np.concatenate([filling.rows("use"), filling.rows("text")]), own,
    )  # fmt: skip
    owner = owner[np.maximum.accumulate(np.where(owner < 0, 0, np.arange(filling.size)))]
    for first, copied in filling.copies:
        owner[first : first + len(copied)] = owner[copied]
    states = np.arange(filling.size) if states is None else states
    owner = owner[states[:: states.size // _ASKED + 1]]
    counts = np.bincount(owner[owner >= 0], minlength=len(rules))
    largest = max(range(len(rules)), key=lambda n: (counts[n] > 0 and of_spec[n], counts[n]), default=-1)
    return grammar.place(rules[largest] if largest >= 0 and counts[largest] else pool.start)


@kernel()
def _own(known, place, frames, rule_of, elsewhere, owner, blocks, own):  # type: ignore[no-untyped-def]
    """Find the rule of every task's state, and of those inside of terminals and literals.

    Args:
        known, place, frames, own: see `Filling`; what is behind a state is known before it.
        rule_of: int64 [nodes];  elsewhere: bool [nodes]: blanks and the like, which belong to what is behind them.
        owner: int64 [states], of the first states of frames already, else -1.
        blocks: the rows of ``use`` and of ``text`` there.
    """
    for i in range(known.shape[0]):
        node, back, state = known[i, 0], known[i, 1], known[i, 3]
        rule = rule_of[node]
        if elsewhere[node]:
            around = owner[frames[place[back, 0], 1]]
            if owner[back] >= 0:
                rule = owner[back]
            elif around >= 0:
                rule = around
        if owner[state] < 0:
            owner[state] = rule
    for i in range(blocks.shape[0]):
        for k in range(own[blocks[i, 0]]):
            owner[blocks[i, 3] + k] = owner[blocks[i, 1]]
