"""Splice automata of terminals and literals into the NFA as blocks.

The states of a block are numbered when it is asked for; its moves are made for all blocks of one automaton at once.

Leaves out   the states around (nfa.py), one block (blocks.py).
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from toolc.runtime.jit.memory import kernel

from .blocks import block_of

if TYPE_CHECKING:
    from .nfa import Nfa


@kernel()
def _place(use, sizes, moves, masks, edges, free):  # type: ignore[no-untyped-def]
    """Write the moves of all blocks of terminals, block by block and there use by use.

    Args:
        use: int32 [·, 3]: entry, back, first state of its own of every use.
        sizes: int64 [blocks, 4]: how many uses, moves that read, moves that do not, and masks each block has.
        moves: int32 [·, 3]: those of the blocks;  masks: int32 [·]: numbers of their masks.
        edges, free: int32 [·, 4], int32 [·, 3], receive the moves, as in `Nfa`.
    """
    first_use, first_move, first_mask, n, f = 0, 0, 0, 0, 0
    state = np.empty(2, np.int32)
    for p in range(sizes.shape[0]):
        end = first_move + sizes[p, 1] + sizes[p, 2]
        for u in range(first_use, first_use + sizes[p, 0]):
            for i in range(first_move, end):
                for k in range(2):
                    place = moves[i, 2 * k]
                    state[k] = use[u, place] if place < 2 else use[u, 2] + place - 2
                if moves[i, 1] >= 0:
                    mask = masks[first_mask + moves[i, 1]]
                    edges[n, 0], edges[n, 1], edges[n, 2], edges[n, 3] = state[0], mask, state[1], 0
                    n += 1
                else:
                    free[f, 0], free[f, 1], free[f, 2] = state[0], state[1], 0
                    f += 1
        first_use += sizes[p, 0]
        first_move = end
        first_mask += sizes[p, 3]


@kernel()
def _place_texts(use, length, data, number, edges):  # type: ignore[no-untyped-def]
    """Write the moves of all blocks of literals.

    Args:
        use: int32 [·, 3]: entry, back, first state of its own of every text.
        length: int32 [·];  data: uint8: the texts.
        number: int32 [256]: of the set of each byte;  edges: int32 [·, 4], receives the moves, as in `Nfa`.
    """
    n = 0
    for t in range(length.size):
        source = use[t, 0]
        for i in range(length[t]):
            target = use[t, 1] if i == length[t] - 1 else use[t, 2] + i
            edges[n, 0], edges[n, 1], edges[n, 2], edges[n, 3] = source, number[data[n]], target, 0
            source = target
            n += 1


def splice_terminals(nfa: Nfa, use: np.ndarray) -> None:
    """Give the blocks of terminals their moves.

    Args:
        use: int32 [·, 4]: node, entry, back, first state of its own of every use.
    """
    if not len(use):
        return
    uses = Counter(use[:, 0].tolist())  # in the order of their first use
    nodes, dfas = nfa.pool.nodes, nfa.pool.dfas
    blocks = [block_of(dfas[nodes[node][1]]) for node in uses]
    place = np.zeros(max(uses) + 1, np.int32)
    place[list(uses)] = np.arange(len(uses))
    use = np.ascontiguousarray(use[np.argsort(place[use[:, 0]], kind="stable"), 1:])
    masks = np.array(nfa.mask_numbers(chain.from_iterable(one.masks for one in blocks)), np.int32)
    sizes = np.array(
        [
            (count, one.reads, len(one.moves) - one.reads, len(one.masks))
            for one, count in zip(blocks, uses.values(), strict=True)
        ],
        np.int64,
    )
    edges = np.empty((int(sizes[:, 0] @ sizes[:, 1]), 4), np.int32)
    free = np.empty((int(sizes[:, 0] @ sizes[:, 2]), 3), np.int32)
    _place(use, sizes, np.concatenate([one.moves for one in blocks]), masks, edges, free)
    nfa.edges.blocks.append(edges)
    nfa.free.blocks.append(free)


def splice_literals(nfa: Nfa, use: np.ndarray) -> None:
    """The same of literals."""
    if not len(use):
        return
    nodes = nfa.pool.nodes
    texts = [nodes[n][1] for n in use[:, 0].tolist()]
    data = np.frombuffer(b"".join(texts), np.uint8)
    used = np.flatnonzero(np.bincount(data))
    number = np.zeros(256, np.int32)
    number[used] = nfa.mask_numbers(1 << byte for byte in used.tolist())
    edges = np.empty((len(data), 4), np.int32)
    length = np.array(list(map(len, texts)), np.int32)
    _place_texts(np.ascontiguousarray(use[:, 1:]), length, data, number, edges)
    nfa.edges.blocks.append(edges)
