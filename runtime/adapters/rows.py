"""Masks as row numbers: the host says which rows of the tables make a mask, the device looks them up.

A mask of 128,000 tokens is 16 KB; its row numbers are a few, at most the longest chain + 1. So a host matcher and a
device that holds the rows need no copying of masks.

Leaves out   whose rows they are: see sglang.py. The tables: see arena.py.
Invariants   row numbers written since the last call but one of `blank` stay valid: bundles used since then are not
             evicted, and rows never move.
Arrays       numbers int64 [B, width]: rows whose union is the mask, padded with the empty row; the full row for a row
             that is not constrained; first -1 - t where token t is all that a budget leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ..device.arena import Arena
from ..device.masks import mask_logits_
from ..device.relocate import EMPTY_ROW, FULL_ROW

if TYPE_CHECKING:
    import numpy as np

    from ..format.bundle import Bundle
    from ..host.matcher import Matcher


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
        rows = self._rows_of[bundle][matcher.rows()]
        numbers[: len(rows)] = torch.from_numpy(rows)

    def apply_(self, logits: torch.Tensor, numbers: torch.Tensor) -> None:
        """Mask logits by row numbers on their device."""
        dense = self.arena.table["dense"]
        first = numbers[:, 0]
        bits = dense[first.clamp(min=0)]
        for n in range(1, numbers.shape[1]):
            bits = bits | dense[numbers[:, n]]
        token = (-1 - first).to(torch.int32).unsqueeze(1)
        words = torch.arange(bits.shape[1], dtype=torch.int32, device=bits.device)
        only = (words == token >> 5).to(torch.int32) << (token & 31)
        bits = torch.where((first < 0).unsqueeze(1), only, bits)
        mask_logits_(logits, bits, self.arena.size, first != FULL_ROW)
