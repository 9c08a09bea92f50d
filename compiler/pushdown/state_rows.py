"""Collect rows of numbers by state, in any order, and hand them to kernels ordered by state.

Leaves out   what the rows mean (nfa.py).
Invariants   the rows of a state keep the order in which they were collected, those added later come last.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.jit.memory import kernel


@kernel()
def by_state(rows, states):  # type: ignore[no-untyped-def]
    """Rows int32 [·, 1 + columns], a state first, sorted by it: the other columns, and where the rows of each state
    begin, int32 [states + 1]."""
    offset = np.zeros(states + 1, np.int32)
    for r in range(rows.shape[0]):
        offset[rows[r, 0] + 1] += 1
    for state in range(states):
        offset[state + 1] += offset[state]
    at = offset.copy()
    data = np.empty((rows.shape[0], rows.shape[1] - 1), np.int32)
    for r in range(rows.shape[0]):
        for k in range(1, rows.shape[1]):
            data[at[rows[r, 0]], k - 1] = rows[r, k]
        at[rows[r, 0]] += 1
    return data, offset


class Moves:
    """Rows of ``columns`` numbers.

    Attributes:
        rows: collects: a state and its row, one after the other; only before `settle`.
        blocks: the same as arrays, int32 [·, 1 + columns].
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows: list[int] = []
        self.blocks: list[np.ndarray] = []
        self._more: dict[int, list[tuple[int, ...]]] = {}

    def settle(self, states: int) -> None:
        """From now on rows are read, and added, by state; ``states`` is how many have rows."""
        rows = np.array(self.rows, np.int32).reshape(-1, 1 + self.columns)
        self.rows = []
        self.let(*by_state(np.concatenate([rows, *self.blocks]) if self.blocks else rows, states))
        self.blocks = []

    def let(self, data: np.ndarray, offset: np.ndarray) -> None:
        """Let these be the rows by state, int32 [·, columns], and where those of each begin, int32 [states + 1]."""
        self.data, self.offset = data, offset
        self._begins, self._numbers = offset.data, data.reshape(-1).data  # told sooner

    def of(self, state: int) -> list[tuple[int, ...]]:
        """The rows of a state."""
        begins = self._begins
        rows: list[tuple[int, ...]] = []
        if state + 1 < len(begins):
            begin, end = begins[state], begins[state + 1]
            if begin + 1 == end:
                rows = [tuple(self._numbers[begin * self.columns : end * self.columns])]
            elif begin < end:
                rows = list(map(tuple, self.data[begin:end].tolist()))
        return rows + self._more[state] if state in self._more else rows

    def add(self, state: int, *rows: tuple[int, ...]) -> None:
        """Give a state more rows."""
        if rows:
            self._more.setdefault(state, []).extend(rows)

    def _all(self) -> np.ndarray:
        """The rows by state, each behind its state."""
        before = np.repeat(np.arange(len(self.offset) - 1, dtype=np.int32), np.diff(self.offset))
        return np.concatenate([before[:, None], self.data], axis=1)

    def replace(self, rows: np.ndarray, states: int) -> None:
        """Let states have these rows, int32 [·, 1 + columns], and no others; ``states`` is how many there are now."""
        assert not self._more
        before = self._all()
        changed = np.zeros(states, bool)
        changed[rows[:, 0]] = True
        self.let(*by_state(np.concatenate([before[~changed[before[:, 0]]], rows]), states))

    def finish(self, states: int) -> None:
        """Sort in what was added; ``states`` is how many there are now."""
        if self._more:
            added: list[int] = []
            for state, more in self._more.items():
                for row in more:
                    added += (state, *row)
            self._more = {}
            rows = np.array(added, np.int32).reshape(-1, 1 + self.columns)
            self.let(*by_state(np.concatenate([self._all(), rows]), states))
        elif states + 1 > len(self.offset):
            self.let(self.data, np.append(self.offset, np.full(states + 1 - len(self.offset), self.offset[-1])))
