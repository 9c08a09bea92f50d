"""Step a configuration through a bundle's tables, one symbol at a time, in plain Python.

A configuration is a local state, its counter and a stack; docs/architecture.md, "Reading a symbol". This is what
`Reader` and `toolc check` read with: no kernel and nothing to compile.

Leaves out   tokens and masks: see matcher.py. What the text says: see reader.py.
Invariants   `op` changes nothing; `step` takes what `op` gave for the same configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .blanks import BLANKS
from .tables import DEAD, END_OF_TURN, FINISHED, POP, PUSH

if TYPE_CHECKING:
    from .bundle import Bundle

_MOST_BLANKS = 256  # that a grammar may ask for in one place


class Machine:
    """The tables of a bundle as a configuration reads them.

    Attributes:
        view: array → its memoryview.
        classes: class → the bytes in it; specials: (class, symbol) of every delimiter that is a token.
    """

    def __init__(self, bundle: Bundle) -> None:
        t = bundle.tables
        self.view: dict[str, Any] = {name: array.data for name, array in t.arrays().items() if array.size}
        self.breaks, self.modes = t.breaks, t.modes
        self.soft_depth, self.capacity = bundle.meta["soft_depth"], bundle.meta["capacity"]
        found: dict[int, bytearray] = {}
        for byte, number in enumerate(t.symbol_class[:END_OF_TURN].tolist()):
            found.setdefault(number, bytearray()).append(byte)
        self.classes = {number: bytes(some) for number, some in found.items()}


class Configuration:
    """Where a text stands in the tables.

    Attributes:
        state, counter: the local state and its counter.
        stack: (stack symbol, saved counter) of every frame, the top last.
    """

    __slots__ = ("counter", "machine", "stack", "state")

    def __init__(self, machine: Machine, state: int) -> None:
        self.machine = machine
        self.state, self.counter = state, 0
        self.stack: list[tuple[int, int]] = []

    def copy(self) -> Configuration:
        """An independent one."""
        twin = Configuration(self.machine, self.state)
        twin.counter, twin.stack = self.counter, self.stack.copy()
        return twin

    @property
    def mode(self) -> int:
        """The mode of a token that begins here."""
        machine = self.machine
        return machine.modes - 1 if len(self.stack) >= machine.soft_depth else 0

    @property
    def base(self) -> int:
        """Where the transitions of the cell lie in ``delta``."""
        view, c = self.machine.view, self.counter
        cell = view["state_cell"][self.state]
        for b in range(self.machine.breaks):
            at, count = view["state_break"][self.state, b, 0], view["state_break"][self.state, b, 1]
            cell += min(max(c - at + count, 0), count)
        return int(view["cell_delta"][cell])

    def op(self, symbol: int) -> int:
        """The op that reads a symbol; 0 where none does."""
        if self.state <= FINISHED:
            return 0
        view, base = self.machine.view, self.base
        delta, place = view["delta"], base + view["symbol_class"][symbol]
        if delta[place, 0] != base:
            return 0
        op: int = delta[place, 1]
        if op & 7 == POP:
            if not self.stack:
                return 0
            base = view["return_offset"][self.stack[-1][0]]
            place = base + (op >> 3)
            return op if view["return"][place, 0] == base and view["return"][place, 1] >> 2 != DEAD else 0
        return op if op & 7 == PUSH or op >> 3 != DEAD else 0

    def step(self, op: int, mode: int) -> None:
        """Do what an op says; a push needs room on the stack."""
        kind, n, c = op & 7, op >> 3, self.counter
        if kind < PUSH:
            self.state, self.counter = n, (c, c + 1, 0, 1)[kind]
        elif kind == PUSH:
            push = self.machine.view["push"]
            self.stack.append((push[n, 0], (c, c + 1, 0, 1)[push[n, 3]]))
            self.state, self.counter = push[n, 2 if mode else 1], 0
        else:
            view = self.machine.view
            g, saved = self.stack.pop()
            value = view["return"][view["return_offset"][g] + n, 1]
            self.state, self.counter = value >> 2, (saved, saved + 1, 0, 1)[value & 3]

    def after(self, symbol: int) -> Configuration:
        """An independent one that has read a symbol, which has to be readable."""
        twin = self.copy()
        twin.step(self.op(symbol), self.mode)
        return twin

    @property
    def may_end(self) -> bool:
        """The end of turn may come, or has come."""
        return self.state == FINISHED or bool(self.op(END_OF_TURN))

    def expected_bytes(self) -> bytes:
        """The bytes that may come next, ascending."""
        return bytes(sorted(b"".join(some for some in self.machine.classes.values() if self.op(some[0]))))

    def blanks_before(self, symbol: int) -> bytes | None:
        """The fewest blanks after which a symbol can be read; None where it cannot be. None of them opens a frame."""
        twin = Configuration(self.machine, self.state)
        twin.stack = self.stack  # is left as it is
        wave, seen = [(self.state, self.counter, b"")], {(self.state, self.counter)}
        for _ in range(_MOST_BLANKS):
            after = []
            for state, counter, blanks in wave:
                for blank in BLANKS:
                    twin.state, twin.counter = state, counter
                    op = twin.op(blank)
                    if not op or op & 7 >= PUSH:
                        continue
                    twin.step(op, 0)
                    if twin.op(symbol):
                        return blanks + bytes((blank,))
                    if (twin.state, twin.counter) not in seen:
                        seen.add((twin.state, twin.counter))
                        after.append((twin.state, twin.counter, blanks + bytes((blank,))))
            wave = after
            if not wave:
                return None
        return None
