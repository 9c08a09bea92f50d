"""What matchers share on the host: the addresses of a bundle's tables, and the rows expanded for a vocabulary.

Leaves out   one sequence's configuration: see matcher.py. The loops: see kernels.py.
Invariants   nothing here changes but the row cache, which only kernels write; so all of it is safe from several threads
             and in forked processes.
Arrays       kernels.py; the tables of an opened file are the mapped file itself, not a copy.
"""

from __future__ import annotations

import itertools
import os
import threading
from typing import TYPE_CHECKING

import numpy as np

from . import kernels

if TYPE_CHECKING:
    from ..format.bundle import Bundle
    from ..format.vocab import Vocab

DEFAULT_ROW_BYTES = 4 << 20


class Shared:
    """Bitmaps of a vocabulary's slices, and the row cache of all its bundles; made at first use.

    Attributes:
        stride: half as many tokens as a mask has words, so that toggling from the nearest bitmap costs less than
            copying it, and all bitmaps take about 8 bytes per token of a slice.
        arrays: by the names of kernels.py; those of the vocabulary, too.
        numbers: what of kernels.py is alike for all bundles: where the arrays lie, how many there are of something.

    Args:
        vocab: the vocabulary.
        row_bytes: room for expanded rows; $TOOLC_ROW_BYTES or 4 MiB if None.
        stride: of the bitmaps, if another.
    """

    def __init__(self, vocab: Vocab, row_bytes: int | None = None, stride: int | None = None) -> None:
        if row_bytes is None:
            row_bytes = int(os.environ.get("TOOLC_ROW_BYTES", DEFAULT_ROW_BYTES))
        words, offset = vocab.words, vocab.slice_token_offset
        self.stride = stride or max(words // 2, 16)
        # The last stretch of a slice may be shorter; a slice whose length is a multiple has its whole twice.
        whole = np.diff(offset) // self.stride
        first = np.cumsum(whole + 2) - (whole + 2)
        # Zeros that are written, so that no page of them is touched first while decoding.
        prefix = np.full((int((whole + 2).sum()), words), 0, dtype=np.uint32)
        first = first.astype(np.int32)
        kernels.prefix_rows(offset, vocab.slice_tokens, first, self.stride, prefix)
        even = np.flatnonzero(np.diff(offset) % self.stride == 0)
        prefix[first[even] + whole[even] + 1] = prefix[first[even] + whole[even]]
        self.slots = 1 << max(0, (row_bytes // (4 * words)).bit_length() - 1)
        self.arrays = {
            **{name: getattr(vocab, name) for name in kernels.VOCAB},
            "prefix_first": first,
            "prefix": prefix,
            "slots": np.full((self.slots, words), 0, dtype=np.uint32),
            "slot_tag": np.zeros(self.slots, dtype=np.int64),
        }
        self.numbers = {
            **{name: array.ctypes.data for name, array in self.arrays.items()},
            "tokens": vocab.size,
            "words": words,
            "prefix_stride": self.stride,
            "slot_count": self.slots,
        }

    @staticmethod
    def of(vocab: Vocab) -> Shared:
        """The one of a vocabulary."""
        found = vocab.__dict__.get("_shared")
        if found is None:
            with _LOCK:
                found = vocab.__dict__.get("_shared")
                if found is None:
                    found = vocab.__dict__["_shared"] = Shared(vocab)
        return found


_LOCK = threading.Lock()
_MAKING = threading.Lock()
_NUMBERS = itertools.count(1)


class Host:
    """The addresses of one bundle's tables; see `host_of`.

    Attributes:
        at: int64 [·], kernels.py, `host`; address: where it is.
        register_words: G, of which there are none in a bundle without registers.
    """

    def __init__(self, bundle: Bundle, shared: Shared | None = None) -> None:
        t = bundle.tables
        shared = shared or Shared.of(bundle.vocab)
        self.words = bundle.vocab.words
        self.rows = t.rows
        self.register_words = t.register_words if t.has_registers else 0
        self._alive = t, shared  # not the bundle, which holds this: it would not go before a collection of garbage
        found = {
            **shared.numbers,
            **t.addresses,
            "specials": t.special_token.size,
            "symbols": t.symbol_class.size,
            "width": t.breaks.shape[1],
            "close_width": t.close_breaks.shape[1],
            "modes": t.modes,
            "soft_depth": bundle.meta["soft_depth"],
            "capacity": bundle.meta["capacity"],
            "register_words": self.register_words,
            "rows": t.rows,
            "tag": next(_NUMBERS) << 32,
        }
        self.at = np.array([found[name] for name in kernels.FIELDS], dtype=np.int64)
        self.at.flags.writeable = False
        self.address: int = self.at.ctypes.data

    def expand(self, row: int, out: np.ndarray) -> None:
        """One row into `out` uint32 [words]; row number `rows` stands for the end-of-turn ids."""
        kernels.expand_row(self.address, row, out)


def host_of(bundle: Bundle) -> Host:
    """The packed tables and expanded rows of a bundle, made at first use and shared by all its matchers."""
    found: Host | None = bundle.__dict__.get("_host")
    if found is None:
        with _MAKING:
            found = bundle.__dict__.get("_host")
            if found is None:
                found = bundle.__dict__["_host"] = Host(bundle)
    return found
