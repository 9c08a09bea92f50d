"""Step symbols, read tokens and compute masks in plain Python: what the tables of a bundle mean.

Every backend does what this module says, faster, and is tested against it: host/kernels.py (numba),
device/torch_step.py and device/triton_step.py. Read it from top to bottom:

    Machine         the tables, as memoryviews
    Configuration   a state, its counter and a stack; reads one *symbol* at a time
    Sequence        a configuration that reads *tokens*, with its masks and its budget
    refusal         the error that tells why a token is not allowed

A pushdown automaton reads symbols: the 256 bytes, and from 256 on the special tokens (256 is the end of turn). A token
is read as its bytes, or as its one special symbol. The mask of a configuration is the union of *rows*, precomputed sets
of tokens: one row of the state, and one for each frame of the stack that a token can pop and go on below. Each frame
has a *register*, a set of bits that says which members an object has so far, where their order is free: states test and
set bits (``register_rule``), and check lists take out of a mask the tokens that a test on their way does not allow. Its
word 0 has no bits, but counts how many tokens these members have taken off what is owed.

Leaves out   speed; checks of a file (format/checks.py); what a text says (calls/reader.py).
Tables       docs/format.md; ``x`` and `view["x"]` are its table x, `bundle.meta["x"]` is a field of the meta.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import DecodeError
from .format.ops import ACTION_BITS, ACTION_MASK, DEAD, END_OF_TURN, FINISHED, KIND_BITS, KIND_MASK, POP, PUSH
from .format.tables import MAX_COUNT

if TYPE_CHECKING:
    from .format.bundle import Bundle

WORD_0 = 0xFFFFFFFF
"""Of a register: how many tokens its members took off what is owed."""


class Machine:
    """The tables of a bundle.

    Attributes:
        view: table → its memoryview; indexing one is quicker than indexing an array.
        bytes_of_class: symbol class → the bytes in it.
    """

    def __init__(self, bundle: Bundle) -> None:
        self.bundle, t = bundle, bundle.tables
        self.view: dict[str, Any] = {name: array.data for name, array in t.arrays().items() if array.size}
        self.modes, self.soft_depth, self.capacity = t.modes, bundle.meta["soft_depth"], bundle.meta["capacity"]
        self._width = {name: getattr(t, name).shape[1] for name in set(BREAKS.values())}
        self._rules: list[tuple[int, int, int, int]] = [tuple(row) for row in t.register_rule.tolist()]
        if len(self._rules) == 1:
            self._rules = []  # no state has one
        masks = [int.from_bytes(row.tobytes(), "little") for row in t.test_mask]
        self._tests = list(zip((t.test_wants == 1).tolist(), masks, strict=True))
        found: dict[int, bytearray] = {}
        for byte, number in enumerate(t.symbol_class[:END_OF_TURN].tolist()):
            found.setdefault(number, bytearray()).append(byte)
        self.bytes_of_class = {number: bytes(some) for number, some in found.items()}

    def phase(self, table: str, owner: int, counter: int) -> int:
        """Which of the owner's cells a counter falls into.

        A breakpoint (at, count) makes count + 1 cells: one for all values up to at - count, one for each value between,
        one for all from `at` on. (10, 3): 0 to 7, 8, 9, 10 and more.
        """
        total, lists, number = 0, BREAKS[table], self.view[table][owner]
        for b in range(self._width[lists]):
            at, count = self.view[lists][number, b, 0], self.view[lists][number, b, 1]
            total += min(max(counter - at + count, 0), count)
        return total

    def cells(self, state: int) -> range:
        """The cells of a state: one for each phase of its counter."""
        first = self.view["state_cell"][state]
        return range(first, first + self.phase("state_break", state, MAX_COUNT) + 1)

    def rule(self, state: int) -> tuple[int, int, int, int]:
        """The register rule of a state: the test on entering it, the bit it sets or -1, the test before a pop, and what
        it adds to word 0."""
        return self._rules[self.view["state_register"][state]] if self._rules else (0, -1, 0, 0)

    def passes(self, test: int, register: int) -> bool:
        """Whether a register passes a test: some bit of the mask is clear, or none is."""
        wants, mask = self._tests[test]
        return (mask & ~register != 0) == wants

    def entry(self, cell: int, symbol_class: int) -> int:
        """The op of a cell on a symbol class: of its own row, else of its default row, else 0.

        An entry of the comb is of a row where its owner is the base of the row.
        """
        delta = self.view["delta"]
        for table in ("cell_delta", "cell_default"):
            base = self.view[table][cell]
            if delta[base + symbol_class, 0] == base:
                return int(delta[base + symbol_class, 1])
        return DEAD


BREAKS = {  # of each owner a list of breakpoints, and the table of these
    "state_break": "breaks",
    "chain_break": "breaks",
    "close_break": "close_breaks",
    "owed_break": "close_breaks",
}


def act(action: int, counter: int) -> int:
    """The counter after an action: keep, add one, set to 0, set to 1."""
    return (counter, counter + 1, 0, 1)[action]


# ---------------------------------------------------------------- symbols


class Configuration:
    """Where a text stands in the tables.

    Attributes:
        state, counter, register: the local state, its counter, and the register of the frame: a set of bits.
        stack: (stack symbol, saved counter) of every frame, the top last.
        registers: the saved register of every frame of the stack.
    """

    __slots__ = ("counter", "machine", "register", "registers", "stack", "state")

    def __init__(
        self,
        machine: Machine,
        state: int,
        counter: int = 0,
        stack: Iterable[tuple[int, int]] = (),
        register: int = 0,
        registers: Iterable[int] | None = None,
    ) -> None:
        self.machine = machine
        self.state, self.counter, self.register = state, counter, register
        self.stack: list[tuple[int, int]] = list(stack)
        self.registers: list[int] = [0] * len(self.stack) if registers is None else list(registers)

    def copy(self) -> Configuration:
        """An independent copy."""
        return Configuration(self.machine, self.state, self.counter, self.stack, self.register, self.registers)

    @property
    def bundle(self) -> Bundle:
        """The bundle whose tables these are."""
        return self.machine.bundle

    @property
    def mode(self) -> int:
        """The mode of a token that begins here; in mode 1 a push enters the twin for texts with the fewest groups."""
        machine = self.machine
        return machine.modes - 1 if len(self.stack) >= machine.soft_depth else 0

    @property
    def cell(self) -> int:
        """The cell of the state at the counter."""
        machine = self.machine
        return int(machine.view["state_cell"][self.state]) + machine.phase("state_break", self.state, self.counter)

    def op(self, symbol: int) -> int:
        """The op that reads a symbol; 0 where the symbol cannot be read, or the text is over."""
        if self.state <= FINISHED:
            return 0
        op = self.machine.entry(self.cell, self.machine.view["symbol_class"][symbol])
        kind, number = op & KIND_MASK, op >> KIND_BITS
        if kind == POP:
            if not self.stack or not self.machine.passes(self.machine.rule(self.state)[2], self.register):
                return 0
            back = self._return(number) >> ACTION_BITS
            return op if back != DEAD and self.machine.passes(self.machine.rule(back)[0], self.registers[-1]) else 0
        if kind == PUSH:
            return op
        return op if number != DEAD and self.machine.passes(self.machine.rule(number)[0], self.register) else 0

    def overflows(self, op: int) -> bool:
        """Whether an op pushes and the stack has no room for it, which happens in no sound bundle."""
        return op & KIND_MASK == PUSH and len(self.stack) >= self.machine.capacity

    def _return(self, returns: int) -> int:
        """State and counter action with which the frame below the top goes on; 0 where it cannot."""
        view = self.machine.view
        base = view["return_offset"][self.stack[-1][0]]
        value: int = view["return"][base + returns, 1]
        return value if view["return"][base + returns, 0] == base else 0

    def step(self, op: int, mode: int) -> None:
        """Do what an op says, which `op` gave for this configuration; a push needs room on the stack."""
        kind, number, counter = op & KIND_MASK, op >> KIND_BITS, self.counter
        if kind < PUSH:
            self.state, self.counter = number, act(kind, counter)
        elif kind == PUSH:
            symbol, state, state_of_least_height, action = (self.machine.view["push"][number, k] for k in range(4))
            self.stack.append((symbol, act(action, counter)))
            self.registers.append(self.register)
            self.state, self.counter, self.register = (state_of_least_height if mode else state), 0, 0
        else:
            value = self._return(number)
            _, saved = self.stack.pop()
            self.register = self.registers.pop()
            self.state, self.counter = value >> ACTION_BITS, act(value & ACTION_MASK, saved)
        _, bit, _, cost = self.machine.rule(self.state)
        if bit >= 0:
            self.register = (self.register | 1 << bit) + cost

    def after(self, symbol: int) -> Configuration:
        """A copy that has read a symbol, which has to be readable."""
        twin = self.copy()
        twin.step(self.op(symbol), self.mode)
        return twin

    @property
    def may_end(self) -> bool:
        """The end of turn may come, or has come."""
        return self.state == FINISHED or bool(self.op(END_OF_TURN))

    def expected_bytes(self) -> bytes:
        """The bytes that may come next, ascending."""
        return bytes(sorted(b"".join(some for some in self.machine.bytes_of_class.values() if self.op(some[0]))))


# ---------------------------------------------------------------- tokens


class Sequence(Configuration):
    """One sequence of tokens under a bundle.

    Attributes:
        left: how many tokens may still come, the end of turn among them; None for any number.
    """

    __slots__ = ("left",)

    def __init__(self, machine: Machine, state: int, left: int | None = None) -> None:
        super().__init__(machine, state)
        self.left = left

    @classmethod
    def start(cls, bundle: Bundle, entry: str = "start", budget: int | None = None) -> Sequence:
        """At an entry, with a budget."""
        return cls(Machine(bundle), bundle.meta["entry"][entry], budget)

    def copy(self) -> Sequence:
        """An independent copy."""
        twin = Sequence(self.machine, self.state, self.left)
        twin.counter, twin.stack = self.counter, list(self.stack)
        twin.register, twin.registers = self.register, list(self.registers)
        return twin

    def symbols(self, token: int) -> list[int]:
        """What a token is read as: its special symbol, or its bytes; nothing for an id without a text."""
        t, vocab = self.bundle.tables, self.bundle.vocab
        special = np.flatnonzero(t.special_token == token)
        if special.size:
            return [int(t.special_symbol[special[0]])]
        return list(vocab.token(token)) if 0 <= token < vocab.size else []

    def reads(self, symbols: Iterable[int]) -> Configuration | None:
        """The configuration after the symbols of one token; None where the token is not allowed."""
        here, mode, some = Configuration.copy(self), self.mode, False
        for symbol in symbols:
            some = True
            if here.state == FINISHED and symbol == END_OF_TURN:
                continue  # the end of turn again changes nothing
            op = here.op(symbol)
            if not op or here.overflows(op):
                return None
            here.step(op, mode)
            if here.state == DEAD:
                return None
        return here if some else None

    def advance(self, token: int) -> bool:
        """Read a token; False, and unchanged, where it is not allowed."""
        found = self.reads(self.symbols(token))
        if found is None:
            return False
        if self.left is not None and self.state != FINISHED:
            self.left -= 1
        self.state, self.counter, self.stack = found.state, found.counter, found.stack
        self.register, self.registers = found.register, found.registers
        return True

    # ------------------------------------------------------------ masks

    def row(self, number: int) -> set[int]:
        """The tokens of a row: a prefix of a slice, with those of a dense bit row and of a token list toggled."""
        t, v = self.bundle.tables, self.bundle.vocab
        s, units, dense, tokens = (int(a[number]) for a in (t.row_slice, t.row_units, t.row_dense, t.row_list))
        found: set[int] = set()
        if s >= 0:
            some = slice(v.slice_token_offset[s], v.slice_token_offset[s + 1])
            held = zip(v.slice_tokens[some].tolist(), v.slice_units[some].tolist(), strict=True)
            found.update(token for token, size in held if units < 0 or size <= units)
        if dense >= 0:
            found ^= set(np.flatnonzero(np.unpackbits(t.dense[dense].view(np.uint8), bitorder="little")).tolist())
        while tokens >= 0:  # a list is stored as the difference to its base
            found ^= set(t.list_tokens[t.list_offset[tokens] : t.list_offset[tokens + 1]].tolist())
            tokens = int(t.list_base[tokens])
        return found

    def rows(self) -> list[tuple[int, int | None, int]]:
        """The rows whose union is the mask: (row, its chain cell, frames below); the first, of the state, has no cell.

        An *exit profile* stands for the tokens that pop the frame before they end; what they do below depends on the
        stack symbol there: ``chain`` gives row and next profile, for as many frames as tokens reach down.
        """
        view, machine = self.machine.view, self.machine
        cell = view["state_cell"][self.state] + machine.phase("state_break", self.state, self.counter)
        found: list[tuple[int, int | None, int]] = [(view["cell_row"][cell, self.mode], None, len(self.stack))]
        profile = view["cell_exit"][cell, self.mode]
        for below in range(len(self.stack) - 1, -1, -1):
            if profile < 0:
                break
            symbol, saved = self.stack[below]
            base = view["chain_offset"][profile]
            if view["chain"][base + symbol, 0] != base:  # never in a sound bundle
                break
            number = view["chain"][base + symbol, 1]
            cell = view["chain_cell"][number] + machine.phase("chain_break", number, saved)
            found.append((view["chain_row"][cell], cell, below))
            profile = view["chain_exit"][cell]
        return found

    def mask(self) -> set[int]:
        """The allowed tokens, whatever the budget."""
        if self.state == FINISHED:
            return {int(token) for token in self.bundle.tables.end_of_turn_tokens}
        rows = self.rows()
        return set().union(*(self.row(number) for number, _, _ in rows)) - self.taken_out(rows)

    def taken_out(self, rows: list[tuple[int, int | None, int]]) -> set[int]:
        """The tokens of the rows that the registers do not allow: those of a check list whose tests fail.

        A row has the tokens that the automaton reads whatever its registers hold.
        """
        t = self.bundle.tables
        found: set[int] = set()
        if not t.has_registers:
            return found
        passes = self.machine.passes
        for _, cell, below in rows:
            if cell is None:
                number, register = t.cell_check[self.cell, self.mode], self.register
            else:
                number, register = t.chain_check[cell], self.registers[below]
            for token, one, two in t.check[t.check_offset[number] : t.check_offset[number + 1]].tolist():
                if not (passes(one, register) and passes(two, register)):
                    found.add(token)
        return found

    def brute_mask(self) -> set[int]:
        """The allowed tokens, found without any row: by trying every token."""
        size = self.bundle.vocab.size
        return {token for token in range(size) if self.reads(self.symbols(token)) is not None}

    # ------------------------------------------------------------ budgets

    def owed(self, frames: int) -> int:
        """How many tokens are enough for the lowest frames of the stack, once what is above them is over; and for the
        required members of the objects that were entered with them: those that are there already are taken off."""
        view = self.machine.view
        registers = *self.registers[1:], self.register  # of the frame above each
        return sum(
            int(view["owed"][view["owed_first"][g] + self.machine.phase("owed_break", g, saved)]) - (above & WORD_0)
            for (g, saved), above in zip(self.stack[:frames], registers, strict=False)
        )

    def close_cell(self) -> int:
        """The cell of the tables that lead to the shortest completion."""
        place = int(self.machine.view["state_close"][self.state])
        return place + self.machine.phase("close_break", self.state, self.counter)

    def bound(self) -> int:
        """How many tokens are enough to end."""
        if self.state == FINISHED:
            return 0
        return int(self.machine.view["close_bound"][self.close_cell()]) + self.owed(len(self.stack))

    def need(self) -> int:
        """How many tokens are enough to end after any token of the mask."""
        view = self.machine.view
        after = [int(view["close_after"][self.close_cell(), self.mode]) + self.owed(len(self.stack))]
        after += [int(view["chain_after"][cell]) + self.owed(below) for _, cell, below in self.rows()[1:]]
        return max(after)

    def mask_in_budget(self) -> set[int]:
        """The mask; or the first token of the shortest completion, where some token of the mask could cost too much."""
        if self.left is None or self.state == FINISHED:
            return self.mask()
        token = self.close_token()
        return self.mask() if token < 0 or self.need() < max(self.left, 0) else {token}

    def close_token(self) -> int:
        """The first token of the shortest completion: where the members of an object stand in any order, the first of
        a way list whose test the register passes; -1 where none is known."""
        t = self.bundle.tables
        number = t.state_way[self.state]
        for token, test in t.way[t.way_offset[number] : t.way_offset[number + 1]].tolist():
            if self.machine.passes(test, self.register):
                return int(token)
        return int(t.close_token[self.close_cell(), self.mode])


# ---------------------------------------------------------------- errors


def refusal(at: Configuration, token: int, read: int) -> DecodeError:
    """The error that tells why a token is not allowed.

    Args:
        at: where the sequence stands.
        token: the id.
        read: how many tokens were read before.
    """
    machine, bundle, token = at.machine, at.bundle, int(operator.index(token))  # which may be a bool
    place = f"{bundle.name}, token {read}, state {at.state}, depth {len(at.stack)}"
    if not 0 <= token < bundle.vocab.size:
        return DecodeError("no such token", place=place, found=str(token), expected=f"0 to {bundle.vocab.size - 1}")
    t, accepted = bundle.tables, ""
    text = b"" if token in t.special_token else bundle.vocab.token(token)
    here, mode = at.copy(), at.mode
    for count, byte in enumerate(text):
        op = here.op(byte)
        if here.overflows(op):
            return DecodeError(
                f"token {token} pushes past the capacity of the stack: the bundle is unsound",
                place=place,
                found=f"more than {machine.capacity} frames",
                hint="compile the bundle again, and report this",
            )
        if op:
            here.step(op, mode)
        if not op or here.state == DEAD:
            accepted = f", of which {text[:count]!r} would be accepted" if count else ""
            break
    pairs = zip(t.special_token.tolist(), t.special_symbol.tolist())
    special = [bundle.vocab.shown(i) for i, symbol in pairs if _reads_special(at, symbol)]
    wanted = [some for some in (shown_bytes(at.expected_bytes()), ", ".join(special)) if some]
    return DecodeError(
        "the token is not allowed here",
        place=place,
        found=f"token {token}, {bundle.vocab.shown(token)}{accepted}",
        expected="one of " + " ".join(wanted) if wanted else "nothing: this state allows no symbol",
    )


def _reads_special(at: Configuration, symbol: int) -> bool:
    """Whether a special symbol may come next; after the end of turn only the end of turn may."""
    return symbol == END_OF_TURN if at.state == FINISHED else bool(at.op(symbol))


def shown_bytes(data: bytes) -> str:
    """A set of bytes, ascending, as a person reads it: ranges of ASCII quoted, others as hex."""
    parts: list[str] = []
    i = 0
    while i < len(data):
        j = i
        while j + 1 < len(data) and data[j + 1] == data[j] + 1:
            j += 1
        if j - i >= 2:
            parts.append(f"{_shown(data[i])}-{_shown(data[j])}")
        else:
            parts.extend(_shown(byte) for byte in data[i : j + 1])
        i = j + 1
    return " ".join(parts)


def _shown(byte: int) -> str:
    return repr(chr(byte)) if 32 <= byte < 127 else f"0x{byte:02x}"
