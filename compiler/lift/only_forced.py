"""Narrow the masks of states with forced tokens to the first of these: only on request.

Where one text alone may follow, every way of cutting its beginning into tokens is allowed, and a model may begin with
a token that the tokenizer would not write there, as `{` where it would write `{"`. What it writes after that is text
cut as the model has rarely seen it, and more tokens.

Leaves out   which tokens are forced (forced.py).
Invariants   no text is lost: a state with forced tokens has one text to go on with. What is read stays as it was.
             Bounds hold as they are, since they are of rows with more tokens; where a budget leaves one token only,
             that is it.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.format.tables import Tables


def only_forced(t: Tables) -> Tables:
    """The tables with the first forced token alone in the masks of every state that has one."""
    states = np.flatnonzero(t.state_forced)
    if not states.size:
        return t
    tokens, which = np.unique(t.forced_tokens[t.forced_offset[t.state_forced[states]]], return_inverse=True)
    count = t.cells_of("state_break")[states]
    first = np.concatenate([[0], np.cumsum(count)[:-1]])
    cells = np.repeat(t.state_cell[states] - first, count) + np.arange(int(count.sum()))
    cell_row, cell_exit = t.cell_row.copy(), t.cell_exit.copy()
    cell_row[cells] = np.repeat(t.rows + which.reshape(-1), count)[:, None]
    cell_exit[cells] = -1
    none = np.full(tokens.size, -1)
    lists = np.arange(1, tokens.size + 1)
    ends = {
        "row_slice": none,
        "row_units": none,
        "row_dense": none,
        "row_list": t.list_offset.size - 2 + lists,
        "list_offset": t.list_offset[-1] + lists,
        "list_tokens": tokens,
        "list_base": none,
    }
    longer = {name: np.concatenate([getattr(t, name), end]).astype(np.int32) for name, end in ends.items()}
    return t.but(cell_row=cell_row, cell_exit=cell_exit, **longer)
