"""A batch of sequences on the host: all masks in one call, all tokens in another, one thread.

Leaves out   one sequence: see matcher.py, whose seats these are, and which this equals bit for bit. Tensors, and torch
             at all: see decoder.py.
Invariants   rows are independent: each has its own bundle, or none, of one vocabulary. A row without bundle allows
             every token and ignores what it reads; a finished row allows the end-of-turn ids and ignores what it reads.
             A batch belongs to one thread at a time.
Arrays       kernels.py: seats int64 [B, 9]. masks uint32 [B, at least words]; tokens int64 [B].
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ..errors import DecodeError
from ..format.bundle import expect_bundle, expect_bundles
from ..format.entries import checked_budget, entry_state
from ..format.width import LogitsWidth
from . import kernels
from .matcher import Matcher, Seat, shown_form
from .shared import host_of

if TYPE_CHECKING:
    from ..format.bundle import Bundle

_fill_masks = kernels.fill_masks
_advance_tokens = kernels.advance_tokens


class BatchMatcher:
    """The state of many sequences.

    Args:
        bundles: of each row, None for an unconstrained one; at least one.
        entry: the name of the entry where the texts begin.
        budget: of all rows or of each; see `Matcher`. Rows without bundle have none.
        logits_width: how many logits the model has; see `Decoder`.
    """

    def __init__(
        self,
        bundles: Sequence[Bundle | None],
        entry: str = "start",
        budget: int | Sequence[int | None] | None = None,
        logits_width: int | None = None,
    ) -> None:
        expect_bundles(bundles, "BatchMatcher(bundles)", alone=False)
        some = next((b for b in bundles if b is not None), None)
        if some is None:
            raise DecodeError("a batch needs a bundle", found="none", expected="at least one")
        if logits_width is not None:
            LogitsWidth(some.vocab, logits_width).check_given([b for b in bundles if b is not None])
        self.vocab = some.vocab
        self.bundles: list[Bundle | None] = [None] * len(bundles)
        self._memory: list[Seat | None] = [None] * len(bundles)
        self._start = [0] * len(bundles)
        self._own(np.zeros((len(bundles), len(kernels.SEAT)), dtype=np.int64))
        budgets = list(budget) if isinstance(budget, Sequence) else [budget] * len(bundles)
        if len(budgets) != len(bundles):
            raise DecodeError("budgets and rows", found=f"{len(budgets)} budgets", expected=f"{len(bundles)}")
        for row, bundle in enumerate(bundles):
            self.set_row(row, bundle, entry, budgets[row])

    def _own(self, seats: np.ndarray) -> None:
        """Take these seats, with room for a token and a code of each."""
        self._seats = seats
        self._tokens = np.zeros(seats.shape[0], dtype=np.int64)
        self._codes = np.zeros(seats.shape[0], dtype=np.int64)
        self._places: tuple[int, int, int] = (seats.ctypes.data, self._tokens.ctypes.data, self._codes.ctypes.data)

    def __len__(self) -> int:
        """B."""
        return len(self._tokens)

    # ------------------------------------------------------------ rows

    def set_row(self, row: int, bundle: Bundle | None, entry: str = "start", budget: int | None = None) -> None:
        """Begin a new text in a row, under another bundle or none; `budget` as in `Matcher`."""
        row = self._checked(row)
        if bundle is not None:
            expect_bundle(bundle, "set_row(bundle)")
        if bundle is None:
            self._seats[row] = 0
            self._memory[row] = self.bundles[row] = None
            return
        state, limit = self._beginning(bundle, entry, budget)
        held = self._memory[row]
        if held is None or self.bundles[row] is not bundle:
            self._memory[row] = Seat(self._seats[row], host_of(bundle), state)
            self.bundles[row] = bundle
        else:
            held.begin(state)
        self._seats[row, kernels.BUDGET] = limit
        self._start[row] = state

    def _beginning(self, bundle: Bundle, entry: str, budget: int | None) -> tuple[int, int]:
        """The state in which a text begins, and its budget as seats hold it."""
        if bundle.vocab is not self.vocab and bundle.vocab.digest != self.vocab.digest:
            raise DecodeError(
                "the bundles are of different tokenizers", found=bundle.vocab.digest, expected=self.vocab.digest
            )
        return entry_state(bundle, entry), checked_budget(bundle, entry, budget)

    def append(self, bundle: Bundle | None, entry: str = "start", budget: int | None = None) -> int:
        """A row more at the end; returns its number."""
        if bundle is not None:
            self._beginning(bundle, entry, budget)  # before there is such a row
        row = len(self)
        self._take([*range(row), -1])
        self.set_row(row, bundle, entry, budget)
        return row

    def reorder(self, index: Iterable[int]) -> None:
        """Row i becomes what row index[i] was; the batch takes the length of the index. A row taken twice is forked."""
        self._take([self._checked(source) for source in index])

    def __copy__(self) -> NoReturn:
        raise TypeError("a BatchMatcher cannot be copied: reorder its rows, or take them by `matcher`")

    def __deepcopy__(self, memo: dict[int, object]) -> NoReturn:
        self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a BatchMatcher cannot be pickled: send its bundles and tokens")

    def _checked(self, row: int) -> int:
        if not 0 <= operator.index(row) < len(self):
            raise DecodeError("no such row", found=str(row), expected=f"0 to {len(self) - 1}")
        return operator.index(row)

    def _take(self, order: list[int]) -> None:
        """Rows in another order; -1 for a new one."""
        seats = np.zeros((len(order), len(kernels.SEAT)), dtype=np.int64)
        memory: list[Seat | None] = []
        taken: set[int] = set()
        for row, source in enumerate(order):
            held = self._memory[source] if source >= 0 else None
            if held is not None:
                if source in taken:
                    held = held.copied(seats[row])
                else:
                    held.move(seats[row])
                    taken.add(source)
            memory.append(held)
        self.bundles = [self.bundles[source] if source >= 0 else None for source in order]
        self._start = [self._start[source] if source >= 0 else 0 for source in order]
        self._memory = memory
        self._own(seats)

    def matcher(self, row: int) -> Matcher:
        """An independent matcher where a row stands, its history included."""
        row = self._checked(row)
        bundle, held = self.bundles[row], self._memory[row]
        if bundle is None or held is None:
            raise DecodeError("the row has no bundle", found=f"row {row}", expected="a constrained row")
        return Matcher.of_seat(bundle, self._start[row], held)

    # ------------------------------------------------------------ masks and tokens

    def new_masks(self) -> np.ndarray:
        """uint32 [B, words], to be filled."""
        return np.zeros((len(self), self.vocab.words), dtype=np.uint32)

    def fill(self, masks: np.ndarray) -> None:
        """Set the bits of each row's allowed tokens and clear the others; all are set in a row without bundle.

        Args:
            masks: uint32 [B, at least ceil(V / 32)], contiguous; bit t of a row is in word t >> 5 at t & 31.
        """
        try:
            if not _fill_masks(self._places[0], len(self._tokens), masks, self.vocab.words):
                return
        except TypeError as error:
            raise DecodeError(
                "the masks have another form",
                found=shown_form(masks),
                expected="a numpy array of uint32, two dimensions, contiguous, writable",
            ) from error
        raise DecodeError(
            "the masks do not fit",
            found=str(list(masks.shape)),
            expected=f"[{len(self)}, at least {self.vocab.words}]",
        )

    def try_advance(self, tokens: Sequence[int] | np.ndarray) -> np.ndarray:
        """Read one token per row; bool [B]: False in rows whose token is not allowed, which stay as they were."""
        if self._advance(tokens) < 0:
            return np.ones(len(self), dtype=bool)
        return self._codes != kernels.REFUSED

    def advance(self, tokens: Sequence[int] | np.ndarray) -> None:
        """Read one token per row.

        Raises:
            DecodeError: naming row and token, if one is not allowed; then no row has read its token.
        """
        if self._advance(tokens) >= 0:
            raise self._refusal(kernels.REFUSED)

    def _advance(self, tokens: Sequence[int] | np.ndarray) -> int:
        """-1 if every row has read, else there are refusals in `_codes`."""
        if len(tokens) != len(self._tokens):
            raise DecodeError("the tokens do not fit", found=f"{len(tokens)} tokens", expected=f"{len(self)}")
        given = np.asarray(tokens)
        if given.ndim != 1:
            raise DecodeError("the tokens do not fit", found=f"{list(given.shape)}", expected=f"[{len(self)}]")
        if given.size and given.dtype.kind not in "iu":  # an empty list has no numbers, and so no kind
            raise DecodeError("tokens are no integers", found=str(given.dtype))
        self._tokens[:] = given
        seats, read, codes = self._places
        count, start = len(self._tokens), 0
        while 0 <= (start := _advance_tokens(seats, count, read, start, codes)) < count:
            held = self._memory[start]
            assert held is not None
            held.grow()
        if start >= 0 and (self._codes == kernels.OVERFLOW).any():
            raise self._refusal(kernels.OVERFLOW)
        return start

    def _refusal(self, code: int) -> DecodeError:
        """The error of the first row with that code, after every row that has read is back where it was."""
        self._seats[self._codes == kernels.ACCEPTED, kernels.POSITION] -= 1
        row = int(np.flatnonzero(self._codes == code)[0])
        error = self.matcher(row).refusal(int(self._tokens[row]))
        error.place = f"row {row} of {len(self)}, {error.place}"
        return error

    def rollback(self, counts: Sequence[int] | np.ndarray | int) -> None:
        """Forget the last tokens of each row; rows without bundle must have 0, or any number if one is given for all.

        A finished row did not read what came after its end of turn.
        """
        given = np.asarray(counts)
        if given.shape not in ((), (len(self),)) or (given.size and given.dtype.kind not in "iu"):
            raise DecodeError(
                "the counts do not fit", found=f"{given.dtype} {list(given.shape)}", expected=f"integers [{len(self)}]"
            )
        back = np.where(self.constrained, given.astype(np.int64), 0)
        bad = np.flatnonzero((back < 0) | (back > self._seats[:, kernels.POSITION]))
        if bad.size:
            row = int(bad[0])
            raise DecodeError(
                "cannot roll back",
                place=f"row {row} of {len(self)}",
                found=f"{back[row]} tokens",
                expected=f"0 to {self._seats[row, kernels.POSITION]}",
            )
        self._seats[:, kernels.POSITION] -= back

    @property
    def lengths(self) -> np.ndarray:
        """int64 [B]: how many tokens each row has read and not rolled back."""
        return self._seats[:, kernels.POSITION].copy()

    @property
    def constrained(self) -> np.ndarray:
        """bool [B]: rows that have a bundle."""
        return self._seats[:, kernels.HOST] != 0

    @property
    def finished(self) -> np.ndarray:
        """bool [B]: the end of turn was read; never in a row without bundle."""
        return np.array([held is not None and held.here()[0] == 1 for held in self._memory], dtype=bool)
