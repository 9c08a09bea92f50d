"""One sequence on the host: which tokens may come next, and what the text read so far amounts to.

Leaves out   the tables: see bundle.py. The loops: see kernels.py. Batches: see decoder.py.
Invariants   a refused token changes nothing. Configurations are kept for every token read, so `rollback` is exact and
             costs nothing. A matcher belongs to one thread at a time; the bundle may be shared.
Arrays       kernels.py: seat int64 [9], history int32 [n, 7], frames int32 [m, 4], registers uint32 [k, G].
Finished     after the end of turn only the end-of-turn ids are allowed. Reading one counts as a
             token, for `rollback` too, and changes nothing else; a finished row of a batch reads none.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..errors import DecodeError
from ..expected import named_kind
from ..format.entries import MAX_BUDGET, checked_budget, entry_state, whole_tokens
from ..format.ops import END_OF_TURN, FINISHED
from ..format.tables import NEVER
from ..format.width import LogitsWidth
from ..reference import Configuration, Machine, refusal
from . import kernels
from .shared import host_of

if TYPE_CHECKING:
    from ..calls.explain import Explanation
    from ..format.bundle import Bundle
    from .shared import Host

_advance_token = kernels.advance_token
_fill_mask = kernels.fill_mask
_ACCEPTED = kernels.ACCEPTED
_index = operator.index  # a kernel would cut a float
_FULL = kernels.FULL
# Room of a new sequence, which has as many registers as frames. It doubles when full, which costs as much as 40 tokens.
# Pages not reached stay untouched.
FRESH_HISTORY, FRESH_FRAMES = 4096, 2048
NO_REGISTERS = np.empty((1, 0), dtype=np.uint32)


class Seat:
    """The memory of one sequence: configurations, frames and registers, and the kernels' way to them.

    Attributes:
        row: int64 [9], kernels.py; may be a row of a batch's seats.
        history, frames: int32 [n, 7] and [m, 4].
        registers: uint32 [k, G]; NO_REGISTERS under a bundle that has none.
    """

    __slots__ = ("frames", "history", "registers", "row")

    def __init__(self, row: np.ndarray, host: Host, state: int) -> None:
        self.row = row
        row[kernels.HOST] = host.address
        words = host.register_words
        registers = np.zeros((FRESH_FRAMES, words), dtype=np.uint32) if words else NO_REGISTERS
        self.place(np.empty((FRESH_HISTORY, 7), np.int32), np.empty((FRESH_FRAMES, 4), np.int32), registers)
        self.begin(state)

    def place(self, history: np.ndarray, frames: np.ndarray, registers: np.ndarray) -> None:
        """Take these arrays."""
        self.history, self.frames, self.registers = history, frames, registers
        self.row[kernels.HISTORY], self.row[kernels.HISTORY_SIZE] = history.ctypes.data, history.shape[0]
        self.row[kernels.FRAMES], self.row[kernels.FRAMES_SIZE] = frames.ctypes.data, frames.shape[0]
        if registers.size:
            self.row[kernels.REGISTERS], self.row[kernels.REGISTERS_SIZE] = registers.ctypes.data, registers.shape[0]

    def begin(
        self,
        state: int,
        counter: int = 0,
        stack: Iterable[tuple[int, int]] = (),
        register: int = 0,
        registers: Iterable[int] = (),
    ) -> None:
        """One configuration, without a history.

        Args:
            register: of the state: bit b of the number is bit b.
            registers: saved in each frame of the stack, or in none.
        """
        depth = 0
        number = {0: 0}  # of each register; number 0 is always that
        saved_registers = itertools.chain(registers, itertools.repeat(0))
        for (symbol, saved), saved_register in zip(stack, saved_registers):
            if depth == self.frames.shape[0]:
                self.grow_frames()
            self.frames[depth] = (depth - 1, symbol, saved, self._numbered(saved_register, number))
            depth += 1
        own = self._numbered(register, number)
        self.history[0] = (state, counter, depth, depth - 1, depth, own, len(number))
        self.row[kernels.POSITION] = 0

    def _numbered(self, register: int, number: dict[int, int]) -> int:
        """The number of a register, which is written if it is a new one."""
        if register not in number:
            if len(number) == self.registers.shape[0]:
                self.grow_frames()
            size = 4 * self.registers.shape[1]
            self.registers[len(number)] = np.frombuffer(register.to_bytes(size, "little"), dtype="<u4")
            number[register] = len(number)
        return number[register]

    def grow(self) -> None:
        """Twice the room of what is full."""
        position = int(self.row[kernels.POSITION])
        if position + 2 > self.history.shape[0]:
            self.place(_doubled(self.history), self.frames, self.registers)
        else:
            self.grow_frames()

    def grow_frames(self) -> None:
        """Twice the room of frames and registers."""
        registers = _doubled(self.registers) if self.registers.size else NO_REGISTERS
        self.place(self.history, _doubled(self.frames), registers)

    def move(self, row: np.ndarray) -> None:
        """Take another row."""
        row[:] = self.row
        self.row = row

    def copied(self, row: np.ndarray) -> Seat:
        """An independent copy whose row is another."""
        twin = object.__new__(Seat)
        row[:] = self.row
        twin.row = row
        registers = NO_REGISTERS
        if self.registers.size:
            registers = np.empty_like(self.registers)
            used = int(self.here()[6])
            registers[:used] = self.registers[:used]
        twin.place(np.empty_like(self.history), np.empty_like(self.frames), registers)
        count = int(row[kernels.POSITION]) + 1
        twin.history[:count] = self.history[:count]
        used = int(self.here()[4])
        twin.frames[:used] = self.frames[:used]
        return twin

    def here(self) -> np.ndarray:
        """int32 [7]: the configuration."""
        return self.history[self.row[kernels.POSITION]]


def _doubled(array: np.ndarray) -> np.ndarray:
    """The same with as many rows more, whose values nobody reads before they are written."""
    wide = np.empty((2 * array.shape[0], array.shape[1]), dtype=array.dtype)
    wide[: array.shape[0]] = array
    return wide


def shown_form(mask: object) -> str:
    """The form of what was given as a mask, for errors."""
    if not isinstance(mask, np.ndarray):
        return type(mask).__name__
    return f"{mask.dtype} {list(mask.shape)}, contiguous: {mask.flags.c_contiguous}"


class Matcher:
    """The state of one sequence under a bundle.

    Args:
        bundle: the constraint.
        entry: the name of the entry where the text begins; see `Bundle.entry`.
        budget: how many tokens there may be, the end of turn among them; at least `Bundle.min_tokens` of the entry.
            Masks then allow only what can still end in time, and near the end one token at a time that leads there.
        logits_width: how many logits the model has, if they are to be checked against the vocabulary; see `Decoder`.
    """

    __slots__ = ("_host", "_place", "_row", "_seat", "_start", "bundle")

    def __init__(
        self, bundle: Bundle, entry: str = "start", budget: int | None = None, logits_width: int | None = None
    ) -> None:
        state = entry_state(bundle, entry)
        if logits_width is not None:
            LogitsWidth(bundle.vocab, logits_width).check_given([bundle])
        self._open(bundle, state)
        self._row[kernels.BUDGET] = checked_budget(bundle, entry, budget)

    def _open(self, bundle: Bundle, state: int) -> None:
        self.bundle = bundle
        self._host = host_of(bundle)
        self._start = state
        self._row = np.zeros(len(kernels.SEAT), dtype=np.int64)
        self._place: int = self._row.ctypes.data
        self._seat = Seat(self._row, self._host, state)

    @classmethod
    def from_tokens(cls, bundle: Bundle, tokens: Iterable[int], entry: str = "start") -> Matcher:
        """A matcher that has read the tokens."""
        matcher = cls(bundle, entry)
        for token in tokens:
            matcher.advance(token)
        return matcher

    @classmethod
    def at(cls, here: Configuration) -> Matcher:
        """A matcher put where another backend stands; it cannot be rolled back before that."""
        twin = object.__new__(cls)
        twin._open(here.machine.bundle, here.state)
        twin._seat.begin(here.state, here.counter, here.stack, here.register, here.registers)
        return twin

    def fill(self, mask: np.ndarray) -> None:
        """Set the bits of the allowed tokens, and clear all others.

        Args:
            mask: uint32 [at least ceil(V / 32)], contiguous; bit t is in word t >> 5 at t & 31.
        """
        try:
            if not _fill_mask(self._place, mask):
                return
        except TypeError as error:
            raise DecodeError(
                "the mask has another form",
                found=shown_form(mask),
                expected="a numpy array of uint32, one dimension, contiguous, writable",
            ) from error
        raise DecodeError("the mask is too short", found=f"{mask.size} words", expected=f"at least {self._host.words}")

    @property
    def bound(self) -> int | None:
        """So many tokens, the end of turn among them, are enough to end from here; None where no bound is known."""
        found = int(kernels.bound_of(self._place))
        return found if found < NEVER else None

    @property
    def left(self) -> int | None:
        """How many tokens the budget leaves; None without a budget."""
        budget = int(self._row[kernels.BUDGET])
        return max(budget - len(self), 0) if budget else None

    def limit(self, left: int | None) -> None:
        """Set the budget anew: so many tokens may follow, at least `bound`; None for any number."""
        wanted = None if left is None else whole_tokens(left)
        if wanted is not None and (self.bound is None or wanted < max(1, self.bound)):
            raise DecodeError(
                "the budget is too small",
                place=f"{self.bundle.name}, token {len(self)}",
                found=f"{wanted} tokens",
                expected="no budget: no bound is known" if self.bound is None else f"at least {max(1, self.bound)}",
            )
        self._row[kernels.BUDGET] = 0 if wanted is None else len(self) + min(wanted, MAX_BUDGET)

    @property
    def closing(self) -> int | None:
        """The only token that the budget leaves, where it leaves one."""
        token = int(kernels.closing_token(self._place))
        return None if token < 0 else token

    def forced(self) -> np.ndarray:
        """int32 [·]: tokens that come next whatever is sampled, as the tokenizer itself writes them; often none.

        The grammar has one way on from here; the tokens end where the tokenizer cuts whatever follows. They may be
        read at once (`advance` each), or checked as drafts. None where the budget does not leave them.
        """
        t = self.bundle.tables
        q = self.state
        tokens = t.forced_tokens[t.forced_offset[t.state_forced[q]] : t.forced_offset[t.state_forced[q] + 1]]
        left = self.left
        if left is not None and tokens.size:
            below = int(kernels.owed_of(self._place))
            if int(t.forced_after[q]) + below > left - tokens.size:
                return tokens[:0]
        return tokens

    def allowed(self, most: int = 20) -> list[str]:
        """The tokens that may come next, as people read them: the first ones by their ids, at most so many."""
        mask = np.zeros(self._host.words, dtype=np.uint32)
        self.fill(mask)
        ids = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))[: max(most, 0)]
        vocab = self.bundle.vocab
        texts = [vocab.token(int(token)).decode(errors="backslashreplace") for token in ids]
        return [text or vocab.shown(int(token)) for text, token in zip(texts, ids, strict=True)]

    def allows(self, token: int) -> bool:
        """Whether the mask has a token."""
        mask = np.zeros(self._host.words, dtype=np.uint32)
        self.fill(mask)
        return 0 <= token < 32 * mask.size and bool(mask[token >> 5] >> np.uint32(token & 31) & 1)

    def explain(self, token: int | str) -> Explanation:
        """Why a token, given by its id or its text, is masked here; `toolc.runtime.explain` knows more of whole texts.

        Raises:
            DecodeError: there is no such token.
        """
        from ..calls.explain import explain_token, token_id

        number = token_id(self.bundle, token)
        return explain_token(self._configuration(), number, self.allows(number), self.left)

    def __repr__(self) -> str:
        left = "" if self.left is None else f", {self.left} left"
        end = ", finished" if self.is_finished else ", may end" if self.is_complete else ""
        return f"<Matcher of {self.bundle.name}: {len(self)} tokens read{left}{end}>"

    def rows(self) -> list[int]:
        """The numbers of the rows whose union is the mask; the number of rows itself stands for the end-of-turn ids.

        Tokens that the registers do not allow are in rows, too: see `numbers`. A budget is not looked at: where
        `closing` is a token, that one alone is the mask.
        """
        numbers = self.numbers()
        return [int(row) for row in numbers[numbers >= 0]]

    def numbers(self) -> np.ndarray:
        """int32 [·]: those of `rows`, then -1 - t for each token t that the registers take out of their union."""
        out = np.empty(self.bundle.meta["max_chain"] + 1, dtype=np.int32)
        count = int(kernels.rows_of_mask(self._place, out))
        if not self._host.register_words:
            return out[:count]
        if count > out.size:
            out = np.empty(count, dtype=np.int32)
            kernels.rows_of_mask(self._place, out)
        found = out[:count]
        return np.concatenate([found[found >= 0], np.unique(found[found < 0])])

    def allowed_tokens(self) -> np.ndarray:
        """int32 [·], ascending: the ids that may come next."""
        mask = np.empty(self._host.words, dtype=np.uint32)
        self.fill(mask)
        return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).astype(np.int32)

    def advance(self, token: int) -> None:
        """Read one token.

        Raises:
            DecodeError: the token is not allowed here; the matcher is unchanged.
        """
        try:
            code = _advance_token(self._place, _index(token))
        except (TypeError, OverflowError):
            code = self._advance(token)
        if code != _ACCEPTED:
            if code == _FULL:
                code = self._advance(token)
            if code != _ACCEPTED:
                raise self.refusal(token)

    def try_advance(self, token: int) -> bool:
        """Read one token; False, and unchanged, if it is not allowed here."""
        code = self._advance(token)
        if code == kernels.OVERFLOW:
            raise self.refusal(token)
        return code == _ACCEPTED

    def _advance(self, token: int) -> int:
        try:
            number = np.int64(_index(token))  # a bool is a number to Python, and none to a kernel
        except TypeError:
            raise DecodeError("a token is no integer", found=named_kind(token)) from None
        except OverflowError:
            return kernels.REFUSED
        while (code := int(_advance_token(self._place, number))) == _FULL:
            self._seat.grow()
        return code

    def _read(self, symbols: np.ndarray) -> int:
        while (code := int(kernels.advance_symbols(self._place, symbols))) == _FULL:
            self._seat.grow()
        return code

    def advance_bytes(self, data: bytes) -> int:
        """Read bytes, each as if it were a token; returns how many were accepted, and stays after those.

        Each accepted byte counts as one token for `rollback`.
        """
        symbol = np.zeros(1, dtype=np.int32)
        reader = symbol.view()
        reader.flags.writeable = False
        for count, byte in enumerate(data):
            symbol[0] = byte
            if self._read(reader) != _ACCEPTED:
                return count
        return len(data)

    def _possible(self) -> np.ndarray:
        out = np.zeros(self.bundle.tables.symbol_class.size, dtype=np.uint8)
        here, seat = self._seat.here(), self._seat
        if here[4] >= seat.frames.shape[0] or (seat.registers.size and here[6] >= seat.registers.shape[0]):
            seat.grow_frames()
        kernels.possible_symbols(self._place, out)
        return out

    def expected_bytes(self) -> bytes:
        """The bytes that may come next, ascending."""
        return bytes(np.flatnonzero(self._possible()[:256]).tolist())

    def expected_special(self) -> list[int]:
        """The ids of special tokens that may come next, ascending."""
        t = self.bundle.tables
        return [int(i) for i in t.special_token[self._possible()[t.special_symbol] != 0]]

    @property
    def is_complete(self) -> bool:
        """The text so far is a whole one: the end of turn may come, or has come."""
        return bool(self._possible()[END_OF_TURN])

    @property
    def is_finished(self) -> bool:
        """The end of turn was read."""
        return bool(self._seat.here()[0] == FINISHED)

    @property
    def state(self) -> int:
        """The local state."""
        return int(self._seat.here()[0])

    @property
    def counter(self) -> int:
        return int(self._seat.here()[1])

    @property
    def depth(self) -> int:
        """Frames on the stack."""
        return int(self._seat.here()[2])

    @property
    def stack(self) -> list[tuple[int, int]]:
        """(stack symbol, saved counter) of every frame, the top last."""
        return [(int(symbol), int(saved)) for _, symbol, saved, _ in self._frames()]

    @property
    def register(self) -> int:
        """The register of the frame: bit b of the number is bit b."""
        return self._register(self._seat.here()[5])

    @property
    def registers(self) -> list[int]:
        """The register saved in every frame, the top last."""
        return [self._register(saved) for _, _, _, saved in self._frames()]

    def _register(self, number: Any) -> int:
        if not self._seat.registers.size:
            return 0  # none is saved in frames
        return int.from_bytes(self._seat.registers[number].astype("<u4").tobytes(), "little")

    def _frames(self) -> list[np.ndarray]:
        """int32 [4] each, kernels.py: the frames of the stack, the top last."""
        found = []
        top = int(self._seat.here()[3])
        while top >= 0:
            found.append(self._seat.frames[top])
            top = int(found[-1][0])
        return found[::-1]

    def __len__(self) -> int:
        """How many tokens were read and not rolled back."""
        return int(self._row[kernels.POSITION])

    def rollback(self, count: int = 1) -> None:
        """Forget the last tokens."""
        try:
            back = operator.index(count)
        except TypeError:
            back = -1
        if not 0 <= back <= len(self):
            raise DecodeError("cannot roll back", found=f"{named_kind(count)} tokens", expected=f"0 to {len(self)}")
        self._row[kernels.POSITION] -= back

    def reset(self) -> None:
        """Back to the entry, with no history."""
        self._row[kernels.POSITION] = 0

    def fork(self) -> Matcher:
        """An independent copy, history included; ``copy`` and ``deepcopy`` make one, too."""
        return Matcher.of_seat(self.bundle, self._start, self._seat)

    def __copy__(self) -> Matcher:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, object]) -> Matcher:
        return self.fork()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Matcher cannot be pickled: send its bundle and its tokens, and use Matcher.from_tokens")

    @classmethod
    def of_seat(cls, bundle: Bundle, start: int, seat: Seat) -> Matcher:
        """A matcher at a copy of a seat of the bundle; `start` is where `reset` goes."""
        twin = object.__new__(cls)
        twin.bundle, twin._host, twin._start = bundle, host_of(bundle), start
        twin._row = np.zeros(len(kernels.SEAT), dtype=np.int64)
        twin._place = twin._row.ctypes.data
        twin._seat = seat.copied(twin._row)
        return twin

    def refusal(self, token: int) -> DecodeError:
        """The error that `advance` raises for a token that is not allowed here."""
        return refusal(self._configuration(), token, len(self))

    def _configuration(self) -> Configuration:
        """Where the matcher stands, as the plain specification has it."""
        return Configuration(Machine(self.bundle), self.state, self.counter, self.stack, self.register, self.registers)
