"""Masks as row numbers: the host says which rows of the tables make a mask, the device looks them up.

A mask of 128,000 tokens is 16 KB; its row numbers are a few, at most the longest chain + 1. So a host matcher and a
device that holds the rows need no copying of masks. A bundle with registers takes tokens out of their union, too.

Leaves out   whose rows they are: see sglang.py. The tables: see arena.py.
Invariants   row numbers written since the last call but one of `blank` stay valid: bundles used since then are not
             evicted, and rows never move.
Arrays       numbers int64 [B, width]: rows whose union is the mask, padded with the empty row; the full row for a row
             that is not constrained; first -1 - t where token t is all that a budget leaves; -1 - t after the rows for
             each token t that is taken out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from ..device.arena import Arena
from ..device.masks import mask_logits_
from ..device.relocate import EMPTY_ROW, FULL_ROW

if TYPE_CHECKING:
    from ..format.bundle import Bundle
    from ..host.matcher import Matcher


def most_numbers(bundle: Bundle) -> int:
    """At most so many row numbers and tokens make a mask: a row of the state, and one for each frame that a token pops,
    with a check list each; no token is taken out twice."""
    t, chain = bundle.tables, int(bundle.meta["max_chain"])
    if not t.has_registers:
        return chain + 1
    size = np.diff(t.check_offset)
    out = int(size[t.cell_check].max()) + chain * int(size[t.chain_check].max(initial=0))
    return chain + 1 + min(out, bundle.vocab.size)


class RowTable:
    """The rows of bundles on one device.

    Args:
        device: where the logits are.
        limit: the most bytes that the tables may take; None for no limit.
    """

    def __init__(self, device: torch.device, limit: int | None = None) -> None:
        self.arena = Arena(device, limit=limit, closes_holes=False)
        self.arena.holders.add(self)
        self._turn = 0
        self._turn_of: dict[int, int] = {}
        self._rows_of: dict[Bundle, np.ndarray] = {}
        self._most_rows = 1  # that any mask had; places after these have none
        self._takes_out = False  # whether any mask could

    def bundles_in_use(self) -> set[int]:
        """Those whose row numbers were written since the last call but one of `blank`."""
        return {number for number, turn in self._turn_of.items() if turn >= self._turn - 1}

    def shift_states_(self, shift: torch.Tensor) -> None:
        """There are no states here."""

    def blank(self, rows: int, width: int) -> torch.Tensor:
        """Numbers on the host of masks that allow everything; begins the next step."""
        self._turn += 1
        numbers = torch.full((rows, width), EMPTY_ROW, dtype=torch.int64, pin_memory=self.arena.device.type == "cuda")
        numbers[:, 0] = FULL_ROW
        return numbers

    def fill(self, matcher: Matcher, numbers: torch.Tensor) -> None:
        """Write the row numbers of a matcher's mask, int64 [width]."""
        bundle = matcher.bundle
        place = self.arena.add(bundle)
        if self._turn_of.get(place) is None or bundle not in self._rows_of:
            gone = [b for b in self._rows_of if self.arena.number(b) is None]
            for b in gone:
                del self._rows_of[b]
            self._rows_of[bundle] = self.arena.row_numbers(place)
        self._turn_of[place] = self._turn
        numbers[:] = EMPTY_ROW
        token = matcher.closing
        if token is not None:
            numbers[0] = -1 - token
            return
        found = matcher.numbers()
        is_row = found >= 0
        numbers[: len(found)] = torch.from_numpy(np.where(is_row, self._rows_of[bundle][found * is_row], found))
        self._most_rows = max(self._most_rows, int(is_row.sum()))
        self._takes_out = self._takes_out or bundle.tables.has_registers

    def apply_(self, logits: torch.Tensor, numbers: torch.Tensor) -> None:
        """Mask logits by row numbers on their device."""
        dense = self.arena.table["dense"]
        first = numbers[:, 0]
        bits = dense[first.clamp(min=0)]
        for n in range(1, min(self._most_rows, numbers.shape[1])):
            bits = bits | dense[numbers[:, n].clamp(min=EMPTY_ROW)]
        if self._takes_out:
            bits = bits & ~_bits_of(-1 - numbers[:, 1:], bits.shape[1])
        token = (-1 - first).to(torch.int32).unsqueeze(1)
        words = torch.arange(bits.shape[1], dtype=torch.int32, device=bits.device)
        only = (words == token >> 5).to(torch.int32) << (token & 31)
        bits = torch.where((first < 0).unsqueeze(1), only, bits)
        mask_logits_(logits, bits, self.arena.size, first != FULL_ROW)


def _bits_of(tokens: torch.Tensor, words: int) -> torch.Tensor:
    """int32 [B, words]: the bits of tokens, int64 [B, ·], of which a row has none twice; negative ones are none."""
    word = torch.where(tokens < 0, words, tokens >> 5)
    bit = (torch.ones_like(tokens) << (tokens & 31)).to(torch.int32)
    bits = torch.zeros(tokens.shape[0], words + 1, dtype=torch.int32, device=tokens.device)
    return bits.scatter_add_(1, word, bit)[:, :words]
