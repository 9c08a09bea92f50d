"""One sequence on the host: which tokens may come next, and what the text read so far amounts to.

Leaves out   the tables: see bundle.py. The loops: see kernels.py. Batches: see decoder.py.
Invariants   a refused token changes nothing. Configurations are kept for every token read, so `rollback` is exact and
             costs nothing. A matcher belongs to one thread at a time; the bundle may be shared.
Arrays       kernels.py: history int32 [n, 5], frames int32 [m, 3].
Finished     after the end of turn only the end-of-turn ids are allowed, and reading one changes nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from . import kernels
from .errors import DecodeError
from .tables import END_OF_TURN, FINISHED

if TYPE_CHECKING:
    from .bundle import Bundle

_advance_token = kernels.advance_token
_fill_mask = kernels.fill_mask
_ACCEPTED = kernels.ACCEPTED


class Matcher:
    """The state of one sequence under a bundle.

    Args:
        bundle: the constraint.
        entry: the name of the entry where the text begins; see `Bundle.entry`.
    """

    __slots__ = ("_at", "_frames", "_history", "_host", "_length", "_packed", "_start", "bundle")

    def __init__(self, bundle: Bundle, entry: str = "start") -> None:
        entries = bundle.meta["entry"]
        if entry not in entries:
            raise DecodeError("no such entry", found=repr(entry), expected="one of " + ", ".join(sorted(entries)))
        self.bundle = bundle
        self._host = bundle.host
        self._packed, self._at = self._host.packed, self._host.at
        self._start = int(entries[entry])
        self._history = np.zeros((64, 5), dtype=np.int32)
        self._frames = np.zeros((64, 3), dtype=np.int32)
        self._length = 0
        self._history[0] = (self._start, 0, 0, -1, 0)

    @classmethod
    def from_tokens(cls, bundle: Bundle, tokens: Iterable[int], entry: str = "start") -> Matcher:
        """A matcher that has read the tokens."""
        matcher = cls(bundle, entry)
        for token in tokens:
            matcher.advance(token)
        return matcher

    @classmethod
    def at_configuration(cls, bundle: Bundle, state: int, counter: int, stack: Iterable[tuple[int, int]]) -> Matcher:
        """A matcher put where another backend stands; it cannot be rolled back before that."""
        frames = list(stack)
        twin = object.__new__(cls)
        twin.bundle, twin._host = bundle, bundle.host
        twin._packed, twin._at, twin._start = twin._host.packed, twin._host.at, state
        twin._history = np.zeros((64, 5), dtype=np.int32)
        twin._frames = np.zeros((64 + len(frames), 3), dtype=np.int32)
        for n, (symbol, saved) in enumerate(frames):
            twin._frames[n] = (n - 1, symbol, saved)
        twin._length = 0
        twin._history[0] = (state, counter, len(frames), len(frames) - 1, len(frames))
        return twin

    def fill(self, mask: np.ndarray) -> None:
        """Set the bits of the allowed tokens, and clear all others.

        Args:
            mask: uint32 [at least ceil(V / 32)], contiguous; bit t is in word t >> 5 at t & 31.
        """
        host = self._host
        if mask.size < host.words:
            raise DecodeError("the mask is too short", found=f"{mask.size} words", expected=f"at least {host.words}")
        try:
            row = _fill_mask(
                self._packed, self._at, host.slots, host.slot_of_row, self._history, self._frames, self._length, mask
            )
        except TypeError as error:
            raise DecodeError(
                "the mask has another form",
                found=f"{mask.dtype} {list(mask.shape)}, contiguous: {mask.flags.c_contiguous}",
                expected="uint32, one dimension, contiguous, writable",
            ) from error
        if row >= 0:
            self._fill_slowly(mask)

    def _fill_slowly(self, mask: np.ndarray) -> None:
        """Expand the rows first; those past the cache's limit only for this mask."""
        host = self._host
        words = host.words
        mask[:] = 0
        for row in self.rows():
            host.keep(row)
            mask[:words] |= host.row(row)

    def rows(self) -> list[int]:
        """The numbers of the rows whose union is the mask; the number of rows itself stands for the end-of-turn ids."""
        out = np.empty(self.bundle.meta["max_chain"] + 1, dtype=np.int32)
        count = kernels.rows_of_mask(self._packed, self._at, self._history, self._frames, self._length, out)
        return [int(row) for row in out[:count]]

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
        code = self._advance(token)
        if code != _ACCEPTED:
            raise self._refusal(token, code)

    def try_advance(self, token: int) -> bool:
        """Read one token; False, and unchanged, if it is not allowed here."""
        code = self._advance(token)
        if code == kernels.OVERFLOW:
            raise self._refusal(token, code)
        return code == _ACCEPTED

    def _advance(self, token: int) -> int:
        host = self._host
        token = operator.index(token)
        while True:
            code = _advance_token(
                self._packed,
                self._at,
                host.token_offset,
                host.token_bytes,
                self._history,
                self._frames,
                self._length,
                token,
            )
            if code == _ACCEPTED:
                self._length += 1
                return code
            if code != kernels.FULL:
                return code
            self._grow()

    def _grow(self) -> None:
        used = int(self._history[self._length, 4])
        if self._length + 2 > self._history.shape[0]:
            self._history = np.concatenate([self._history, np.zeros_like(self._history)])
        else:
            self._frames = np.concatenate([self._frames, np.zeros_like(self._frames)])
        assert used <= self._frames.shape[0]

    def advance_bytes(self, data: bytes) -> int:
        """Read bytes, each as if it were a token; returns how many were accepted, and stays after those.

        Each accepted byte counts as one token for `rollback`.
        """
        symbol = np.zeros(1, dtype=np.int32)
        reader = symbol.view()
        reader.flags.writeable = False
        for count, byte in enumerate(data):
            symbol[0] = byte
            while True:
                code = kernels.advance_symbols(
                    self._packed, self._at, reader, self._history, self._frames, self._length
                )
                if code != kernels.FULL:
                    break
                self._grow()
            if code != _ACCEPTED:
                return count
            self._length += 1
        return len(data)

    def _possible(self) -> np.ndarray:
        out = np.zeros(self.bundle.tables.symbol_class.size, dtype=np.uint8)
        if self._history[self._length, 4] >= self._frames.shape[0]:
            self._frames = np.concatenate([self._frames, np.zeros_like(self._frames)])
        kernels.possible_symbols(self._packed, self._at, self._history, self._frames, self._length, out)
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
        return bool(self._history[self._length, 0] == FINISHED)

    @property
    def state(self) -> int:
        """The local state."""
        return int(self._history[self._length, 0])

    @property
    def counter(self) -> int:
        return int(self._history[self._length, 1])

    @property
    def depth(self) -> int:
        """Frames on the stack."""
        return int(self._history[self._length, 2])

    @property
    def stack(self) -> list[tuple[int, int]]:
        """(stack symbol, saved counter) of every frame, the top last."""
        found = []
        top = int(self._history[self._length, 3])
        while top >= 0:
            parent, symbol, saved = map(int, self._frames[top])
            found.append((symbol, saved))
            top = parent
        return found[::-1]

    def __len__(self) -> int:
        """How many tokens were read and not rolled back."""
        return self._length

    def rollback(self, count: int = 1) -> None:
        """Forget the last tokens."""
        if not 0 <= count <= self._length:
            raise DecodeError("cannot roll back", found=f"{count} tokens", expected=f"0 to {self._length}")
        self._length -= count

    def reset(self) -> None:
        """Back to the entry, with no history."""
        self._length = 0

    def fork(self) -> Matcher:
        """An independent copy, history included."""
        twin = object.__new__(Matcher)
        twin.bundle, twin._host = self.bundle, self._host
        twin._packed, twin._at, twin._start = self._packed, self._at, self._start
        twin._history, twin._frames, twin._length = self._history.copy(), self._frames.copy(), self._length
        return twin

    def refusal(self, token: int) -> DecodeError:
        """The error that `advance` raises for a token that is not allowed here."""
        probe = self.fork()
        return self._refusal(token, probe._advance(token))

    def _refusal(self, token: int, code: int) -> DecodeError:
        bundle = self.bundle
        place = f"{bundle.name}, token {self._length}, state {self.state}, depth {self.depth}"
        if code == kernels.OVERFLOW:
            return DecodeError(
                f"token {token} pushes past the capacity of the stack: the bundle is unsound",
                place=place,
                found=f"more than {bundle.meta['capacity']} frames",
                hint="compile the bundle again, and report this",
            )
        if not 0 <= token < bundle.vocab.size:
            return DecodeError("no such token", place=place, found=str(token), expected=f"0 to {bundle.vocab.size - 1}")
        accepted = ""
        text = bundle.vocab.token(token)
        if text and token not in bundle.tables.special_token:
            probe = self.fork()
            symbols = np.frombuffer(text, dtype=np.uint8).astype(np.int32)
            for n in range(len(text), 0, -1):
                part = symbols[:n].copy()
                part.flags.writeable = False
                while True:
                    found = kernels.advance_symbols(
                        probe._packed, probe._at, part, probe._history, probe._frames, probe._length
                    )
                    if found != kernels.FULL:
                        break
                    probe._grow()
                if found == _ACCEPTED:
                    accepted = f", of which {text[:n]!r} would be accepted"
                    break
        special = [bundle.vocab.shown(i) for i in self.expected_special()]
        wanted = [s for s in (_shown_bytes(self.expected_bytes()), ", ".join(special)) if s]
        return DecodeError(
            "the token is not allowed here",
            place=place,
            found=f"token {token}, {bundle.vocab.shown(token)}{accepted}",
            expected="one of " + " ".join(wanted) if wanted else "nothing: this state allows no symbol",
        )


def _shown_bytes(data: bytes) -> str:
    """Byte set as a person reads it: ranges of ASCII quoted, others as hex."""
    parts: list[str] = []
    i = 0
    while i < len(data):
        j = i
        while j + 1 < len(data) and data[j + 1] == data[j] + 1:
            j += 1
        low, high = data[i], data[j]
        if j - i >= 2:
            parts.append(f"{_shown_byte(low)}-{_shown_byte(high)}")
        else:
            parts.extend(_shown_byte(b) for b in data[i : j + 1])
        i = j + 1
    return " ".join(parts)


def _shown_byte(byte: int) -> str:
    return repr(chr(byte)) if 32 <= byte < 127 else f"0x{byte:02x}"
