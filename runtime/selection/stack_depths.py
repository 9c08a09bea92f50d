"""How deep frames lie, and so which states mode 1 concerns: what is reached from where texts may begin.

Mode 1 is that of tokens that begin at or above the soft depth. Such a token may leave frames, as many as it has symbols
that leave one, and go on in one that lies lower; what it opens there it enters as mode 1 does.

Leaves out   what the modes are for (compiler/pushdown/pushdown.py).
Trusts       what completion_automaton.py does; an entry of ``delta`` lies in a column of its owner, or is free. Checked
             on opening.
Upper bounds A frame is as deep as on the deepest way to it, whatever stands on the other ways.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..format.kernels.step import phases_of
from ..format.ops import ACTION_BITS, FINISHED, KIND_BITS, KIND_MASK, POP, PUSH
from ..format.tables import Tables
from ..format.vocab import Vocab
from ..jit.memory import kernel
from .comb import CombRows, rows_at
from .completion_automaton import returns_of
from .shortest_paths import distinct_ops


class Depths(NamedTuple):
    """Of states.

    reached bool [states]: some text leads there.
    begun bool [states]: a token may begin there in mode 1.
    crossed bool [states]: a token in mode 1 may come there, or begin there.
    """

    reached: np.ndarray
    begun: np.ndarray
    crossed: np.ndarray


class Moves(NamedTuple):
    """The ops of cells, without the symbols that they are for.

    rows: those of the comb, by cell;  offset int32 [rows + 2], op int32 [·]: the different ops of each.
    """

    rows: CombRows
    offset: np.ndarray
    op: np.ndarray


def moves_of(t: Tables) -> Moves:
    """What the cells of tables can do."""
    rows = rows_at(t.delta, t.cell_delta, t.cell_default, t.classes)
    any_symbol = np.zeros(t.classes, np.int32)
    offset, op, _ = distinct_ops(rows.offset, rows.column, rows.value, any_symbol, any_symbol)
    return Moves(rows, offset, op)


def depths_of(t: Tables, moves: Moves, vocab: Vocab, entries: Iterable[int], soft_depth: int) -> Depths:
    """The depths of states.

    Args:
        moves: those of the tables.
        entries: where texts may begin.
        soft_depth: from which depth on tokens are read in mode 1.
    """
    starts = np.array([FINISHED, *entries], np.int32)
    offset, back = returns_of(t, np.ones(t.states, bool))
    leaving = _most_leaving(t, vocab) if t.modes > 1 else 0
    depth = np.full(t.states, -1, np.int32)
    depth[starts] = 0
    _deepest(
        moves.rows.of, moves.offset, moves.op, t.state_cell, t.state_break, t.breaks, t.push, offset, back, t.modes,
        soft_depth, leaving, starts, depth,
    )  # fmt: skip
    reached = depth >= 0
    two = t.modes > 1
    return Depths(reached, reached & two & (depth >= soft_depth), reached & two & (depth + leaving >= soft_depth))


def _most_leaving(t: Tables, vocab: Vocab) -> int:
    """The most symbols of a token that some state leaves a frame on."""
    classes = np.zeros(int(t.symbol_class.max()) + 1, bool)
    rows = np.flatnonzero((t.delta[:, 1] & KIND_MASK == POP) & (t.delta[:, 0] >= 0))
    classes[rows - t.delta[rows, 0]] = True
    leaving = classes[t.symbol_class[:256]]
    known: dict[bytes, int] = vocab.__dict__.setdefault("_most_leaving", {})  # of few sets of bytes
    found = known.get(leaving.tobytes())
    if found is None:
        leaves = np.append(0, np.cumsum(leaving[vocab.token_bytes]))
        found = max(1, int((leaves[vocab.token_offset[1:]] - leaves[vocab.token_offset[:-1]]).max()))
        known[leaving.tobytes()] = found
    return found


@kernel()
def _deepest(  # type: ignore[no-untyped-def]
    row,
    ops_offset,
    ops,
    state_cell,
    state_break,
    breaks,
    push,
    back_offset,
    back,
    modes,
    most,
    leaving,
    starts,
    depth,
):
    """depth int32 [states], -1 but for starts, becomes the largest depth of a frame in which each state lies, up to
    ``most``."""
    todo, waits, count = np.empty(depth.size, np.int32), np.zeros(depth.size, np.bool_), 0
    for q in starts:
        if not waits[q]:
            waits[q] = True
            todo[count] = q
            count += 1
    while count > 0:
        count -= 1
        q = todo[count]
        waits[q] = False
        for x in range(state_cell[q], state_cell[q] + phases_of(breaks, state_break[q])):
            for op in ops[ops_offset[row[x]] : ops_offset[row[x] + 1]]:
                kind, number = op & KIND_MASK, op >> KIND_BITS
                if kind == POP:
                    continue
                first, end, entered = 0, 1, 0
                if kind == PUSH:
                    entered = 1 + (modes > 1 and depth[q] + leaving >= most)
                    first, end = back_offset[push[number, 0]] - entered, back_offset[push[number, 0] + 1]
                for i in range(first, end):
                    if kind < PUSH:
                        r, found = number, depth[q]
                    elif i < first + entered:
                        r, found = push[number, 1 + i - first], min(most, depth[q] + 1)
                    else:
                        r, found = back[i] >> ACTION_BITS, depth[q]
                    if found > depth[r]:
                        depth[r] = found
                        if not waits[r]:
                            waits[r] = True
                            todo[count] = r
                            count += 1
