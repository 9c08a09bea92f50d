"""Rows of token histories that grow by one token a call, followed on their device.

Leaves out   histories that change otherwise: `Follower.fits` says so, and the caller reads them on the host.
Invariants   nothing is read on the host. A row's state is that of a row of the call before which had the same bundle
             and budget and the same tokens but the last; it is found by a hash of the tokens, then compared token by
             token. Where there is none the row is dead, which allows the end of turn only.
Arrays       ids int64 [B, T], the tokens after the prompt; hash int64 [B], the sum of token x weight modulo 2^64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from ..device.decoder import NO_BUNDLE, Decoder

if TYPE_CHECKING:
    from ..format.bundle import Bundle


class Follower:
    """A batch of histories.

    Args:
        bundles: of each row, None for no constraint.
        entry: where the texts begin.
        device: of the histories and the scores.
        budget: of each row, None for none.
        logits_width: how many logits the model has; see `Decoder`.
    """

    def __init__(
        self,
        bundles: Sequence[Bundle | None],
        entry: str,
        device: torch.device,
        budget: Sequence[int | None],
        logits_width: int | None = None,
    ) -> None:
        some = list(dict.fromkeys(b for b in bundles if b is not None))
        numbers = [NO_BUNDLE if b is None else some.index(b) for b in bundles]
        self._decoder = Decoder(
            some,
            len(bundles),
            device,
            bundle_of_row=numbers,
            entry=entry,
            budget=budget,
            check=False,
            history=0,
            logits_width=logits_width,
        )
        asked = torch.stack([self._decoder.bundle_of_row.to(torch.int64), self._decoder.budget], 1)
        self._same_asked = (asked.unsqueeze(1) == asked.unsqueeze(0)).all(2)
        self._ids = torch.zeros((len(bundles), 0), dtype=torch.int64, device=device)
        self._hash = torch.zeros(len(bundles), dtype=torch.int64, device=device)
        self._weights = torch.zeros(0, dtype=torch.int64, device=device)

    @property
    def ids(self) -> torch.Tensor:
        """The histories as they were last read."""
        return self._ids

    def fits(self, ids: torch.Tensor) -> bool:
        """Whether `read` can take this history next, as far as shapes tell."""
        rows, length = self._ids.shape
        return ids.device == self._ids.device and ids.shape == (rows, length + 1)

    def read(self, ids: torch.Tensor) -> None:
        """Follow to histories of one token more, in any order of rows."""
        before, last = ids[:, :-1], ids[:, -1]
        same = (self._hashed(before).unsqueeze(1) == self._hash.unsqueeze(0)) & self._same_asked
        source = same.to(torch.int8).argmax(1)
        found = same.gather(1, source.unsqueeze(1)).squeeze(1) & (self._ids[source] == before).all(1)
        self._decoder.reorder_(source)
        self._decoder.state.mul_(found)
        self._decoder.advance_(last)
        self._ids = ids.clone()
        self._hash = self._hashed(ids)

    def mask_(self, scores: torch.Tensor) -> torch.Tensor:
        """Mask scores [B, at least V] in place; returns them."""
        return self._decoder.mask_(scores)

    def _hashed(self, ids: torch.Tensor) -> torch.Tensor:
        missing = ids.shape[1] - self._weights.shape[0]
        if missing > 0:
            more = torch.randint(-(1 << 63), (1 << 63) - 1, (max(missing, 256),), device=self._weights.device)
            self._weights = torch.cat([self._weights, more])
        return (ids * self._weights[: ids.shape[1]]).sum(1)
