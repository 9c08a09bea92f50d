"""Search for the end of a text byte by byte, where a bundle has no close tokens, as for a tokenizer without some bytes.

Slow, and for tests. In the frame where a configuration stands, it looks for the end of the frame; where there is none
without a further member, for a required member that is missing (in unions for any); then for any other; then for an
inner frame.

Leaves out   bundles with close tokens (../runtime/reference.py, `close_cell`).
Invariants   a symbol that is given may be read.
"""

from __future__ import annotations

from collections import deque

from toolc.runtime.format.ops import END_OF_TURN, KIND_BITS, KIND_MASK, POP, PUSH
from toolc.runtime.reference import Configuration, Machine

from .pushdown.member_marks import is_required

_MOST = 5_000  # states that one search looks at


class WaysOut:
    """Finds the next symbol on a short way to the end of a text."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        t = machine.bundle.tables
        self._required = [is_required(member) for member in t.mark[:, 4].tolist()]  # by mark
        self._bytes = [some[0] for some in machine.bytes_of_class.values()]

    def next_symbol(self, here: Configuration) -> int:
        """A byte or the end of turn; -1 where nothing is found."""
        if here.op(END_OF_TURN):
            return END_OF_TURN
        wanted, others, inner = -1, -1, -1
        todo, seen = deque([(here.copy(), -1)]), {(here.state, here.counter)}
        while todo and len(seen) < _MOST:
            at, first = todo.popleft()
            for byte in self._bytes:
                op = at.op(byte)
                if not op:
                    continue
                begin, kind = (byte if first < 0 else first), op & KIND_MASK
                if kind == POP:
                    return begin
                if kind == PUSH:
                    inner = begin if inner < 0 else inner
                    continue
                state = op >> KIND_BITS
                if self.machine.rule(state)[1] >= 0:
                    if self._required[self.machine.view["state_mark"][state]]:
                        wanted = begin if wanted < 0 else wanted
                    others = begin if others < 0 else others
                    continue
                after = at.copy()
                after.step(op, at.mode)
                if not after.stack and after.op(END_OF_TURN):
                    return begin
                if (after.state, after.counter) not in seen:
                    seen.add((after.state, after.counter))
                    todo.append((after, begin))
        return next((begin for begin in (wanted, others, inner) if begin >= 0), -1)
