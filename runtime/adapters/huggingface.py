"""A logits processor for `transformers` `generate`: greedy, sampling, beam search and assisted decoding.

Leaves out   the masks: see matcher.py. This only finds the matcher that has read a row's tokens. Rows that are followed
             on a GPU: see follow.py. Continuous batching: see continuous.py.
Invariants   the mask depends on nothing but the tokens after the prompt, so reordered beams, rows that came and went,
             rejected drafts and repeated calls are all right; what is kept from call to call only saves time.
Rows         A row that read an end-of-turn id is finished: whatever follows (padding) is ignored, and only the
             end-of-turn ids are allowed. A row that holds a token that is not allowed (a beam of probability 0, a
             draft that will be rejected) is treated the same, or refused with `strict`.
Reuse        where the prompt's length is that of the first call, rows of another `generate` are found out and refused:
             more than one column more than ever seen, or, on the host, a row that is no text and neither one of the
             call before, with a token more or cut off. On a device, those of one column more are dead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch

from ..device.masks import check_logits, mask_logits_
from ..errors import DecodeError
from ..format.entries import checked_budget
from ..format.width import LogitsWidth
from ..host.matcher import Matcher
from .follow import Follower

if TYPE_CHECKING:
    from ..format.bundle import Bundle


RESET = "make a new processor for each call of generate, or call reset()"


class ToolcLogitsProcessor:
    """Allows only what a bundle allows; give it to `generate(logits_processor=[...])`.

    It has the interface of `transformers.LogitsProcessor` and needs nothing of that library. Make one for each call of
    `generate`, or call `reset`. The model's `eos_token_id` should name the bundle's end-of-turn ids.

    Args:
        bundle: for all rows; or a list with one for each sequence of the batch, None for an unconstrained one. Beams
            and returned sequences of one input share its bundle.
        prompt_length: columns of `input_ids` before the constrained text; those of the first call if None. Give it
            where rows grow by more than one token a call, or do not begin at their prompt.
        entry: the name of the entry where the texts begin.
        budget: how many tokens there may be, `max_new_tokens` of the call, so that texts end in time; for all or, like
            `bundle`, for each. See `Matcher`.
        strict: raise on a token that is not allowed, instead of ending its row.
        logits_width: how many logits the model has; see `Decoder`.
        on_device: follow the rows where they are, without a synchronisation, as long as they grow by one token a call
            from the prompt on; otherwise, and with `strict`, they are read on the host. None: on a CUDA device.
    """

    supports_continuous_batching = False

    def __init__(
        self,
        bundle: Bundle | Sequence[Bundle | None],
        prompt_length: int | None = None,
        *,
        entry: str = "start",
        budget: int | Sequence[int | None] | None = None,
        strict: bool = False,
        on_device: bool | None = None,
        logits_width: int | None = None,
    ) -> None:
        self._bundles: list[Bundle | None] = list(bundle) if isinstance(bundle, Sequence) else [bundle]
        some = [b for b in self._bundles if b is not None]
        if not some:
            raise DecodeError("a logits processor needs a bundle", found="none", expected="at least one")
        for b in some[1:]:
            if b.vocab.digest != some[0].vocab.digest:
                raise DecodeError(
                    "the bundles are of different tokenizers", found=b.vocab.digest, expected=some[0].vocab.digest
                )
        self._budgets = list(budget) if isinstance(budget, Sequence) else [budget] * len(self._bundles)
        if len(self._budgets) != len(self._bundles):
            raise DecodeError("budgets", found=f"{len(self._budgets)}", expected=f"{len(self._bundles)}, one a bundle")
        for held, most in zip(self._bundles, self._budgets, strict=True):
            if held is not None:
                checked_budget(held, entry, most)
        self._vocab = some[0].vocab
        self._some = some
        self._width = LogitsWidth(self._vocab, logits_width)
        self._width.check_given(some)
        self._given_length = prompt_length
        self._entry = entry
        self._strict = strict
        self._on_device = on_device
        self.reset()

    def reset(self) -> None:
        """Forget the last call, and the prompt's length if it was not given."""
        self._length = self._given_length
        self._most = 0  # the most columns seen since the prompt
        self._read: list[_Read] = []
        self._follower: Follower | None = None

    def _follows(self, tokens: torch.Tensor) -> bool:
        """Whether the rows could be followed on their device, and were."""
        wanted = tokens.is_cuda if self._on_device is None else self._on_device
        if self._strict or not wanted:
            return False
        if tokens.shape[1] == 0:
            share = tokens.shape[0] // len(self._bundles)
            bundles = [given for given in self._bundles for _ in range(share)]
            budgets = [budget for budget in self._budgets for _ in range(share)]
            self._follower = Follower(bundles, self._entry, tokens.device, budgets, self._width.known)
        elif self._follower is not None and self._follower.fits(tokens):
            self._follower.read(tokens)
        elif self._follower is not None:
            self._read = self._followed(self._follower.ids.cpu().numpy())
            self._follower = None
        return self._follower is not None

    def _followed(self, tokens: np.ndarray) -> list[_Read]:
        """What the host would have read of rows that were followed."""
        share = tokens.shape[0] // len(self._bundles)
        given = zip(self._bundles, self._budgets, strict=True)
        each = [pair for pair in given for _ in range(share)]
        return [
            _Read(Matcher(bundle, self._entry, budget), budget, row)
            for (bundle, budget), row in zip(each, tokens, strict=True)
            if bundle is not None
        ]

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.Tensor:
        """Scores with -inf where a token is not allowed; the given scores are not changed."""
        rows = int(input_ids.shape[0])
        if rows % len(self._bundles):
            raise DecodeError(
                "the batch does not fit the bundles",
                found=f"{rows} rows",
                expected=f"a multiple of {len(self._bundles)}",
            )
        check_logits(scores, rows, self._width, self._some)
        if self._length is None:
            self._length = int(input_ids.shape[1])
        columns = int(input_ids.shape[1])
        if columns < self._length:
            raise DecodeError(
                "the rows are shorter than the prompt",
                found=f"{columns} tokens",
                expected=f"at least {self._length}",
                hint=RESET,
            )
        self._most = self._length if columns == self._length else self._most
        if self._given_length is None and columns > self._most + 1:
            raise DecodeError(
                "the rows grew by more than one token",
                found=f"{columns} tokens",
                expected=f"at most {self._most + 1}",
                hint=f"{RESET}; or give prompt_length",
            )
        self._most = max(self._most, columns)
        if self._follows(input_ids[:, self._length :]):
            assert self._follower is not None
            return self._follower.mask_(scores.clone())
        tokens = input_ids[:, self._length :].cpu().numpy()
        share = rows // len(self._bundles)
        bits = np.full((rows, self._vocab.words), 0xFFFFFFFF, dtype=np.uint32)
        constrained = np.zeros(rows, dtype=bool)
        lookup = {read.key(): read for read in self._read}
        fresh: list[_Read] = []
        for row in range(rows):
            bundle = self._bundles[row // share]
            if bundle is None:
                continue
            read = self._find(bundle, self._budgets[row // share], tokens[row], lookup)
            fresh.append(read)
            read.fill(bits[row])
            constrained[row] = True
            if self._strict and read.refused:
                raise read.matcher.refusal(int(read.tokens[len(read.matcher)]))
        self._read = fresh
        words = torch.from_numpy(bits.view(np.int32)).to(scores.device)
        return mask_logits_(scores.clone(), words, self._vocab.size, torch.from_numpy(constrained).to(scores.device))

    def _find(self, bundle: Bundle, budget: int | None, tokens: np.ndarray, lookup: dict[_Key, _Read]) -> _Read:
        """A matcher that has read the tokens, from the nearest one of the last call."""
        best = lookup.get((id(bundle), budget, tokens[:-1].tobytes())) if tokens.size else None
        common = tokens.size
        if best is None:
            common = -1
            for read in self._read:
                if (read.matcher.bundle, read.budget) == (bundle, budget) and (length := read.common(tokens)) > common:
                    best, common = read, length
        if best is None:
            found, common = _Read(Matcher(bundle, self._entry, budget), budget, tokens), 0
        else:
            found = best.continued(tokens)
        ended = found.refused or len(found.matcher) < tokens.size
        if self._given_length is None and common < tokens.size and ended:
            raise DecodeError(
                "the rows go on as none of the call before, and are no text of the bundle",
                found=f"token {found.tokens[len(found.matcher)]} after {len(found.matcher)} tokens",
                hint=f"{RESET}; or give prompt_length",
            )
        return found


_Key: TypeAlias = tuple[int, int | None, bytes]


class _Read:
    """Tokens, and the matcher that read them: all of them, or those up to the end of turn or the first refusal."""

    def __init__(self, matcher: Matcher, budget: int | None, tokens: np.ndarray) -> None:
        self.matcher = matcher
        self.budget = budget
        self.tokens = tokens
        self.refused = False
        for token in tokens[len(matcher) :].tolist():
            if matcher.is_finished:
                break
            if not matcher.try_advance(token):
                self.refused = True
                break

    def key(self) -> _Key:
        return id(self.matcher.bundle), self.budget, self.tokens.tobytes()

    def common(self, tokens: np.ndarray) -> int:
        """How many tokens at the start are equal."""
        length = min(tokens.size, self.tokens.size)
        differ = np.flatnonzero(tokens[:length] != self.tokens[:length])
        return int(differ[0]) if differ.size else length

    def continued(self, tokens: np.ndarray) -> _Read:
        """The same for other tokens; this one stays as it is."""
        matcher = self.matcher.fork()
        matcher.rollback(max(0, len(matcher) - self.common(tokens)))
        return _Read(matcher, self.budget, tokens)

    def fill(self, mask: np.ndarray) -> None:
        if not self.refused:
            self.matcher.fill(mask)
            return
        mask[:] = 0
        for token in self.matcher.bundle.tables.end_of_turn_tokens:
            mask[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
