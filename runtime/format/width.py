"""Check the width of a model's logits against the vocabulary of a bundle.

A model may have more logits than its tokenizer has ids: the rest is padding. It may have fewer where the last ids stand
in prompts only. Much wider logits belong to another tokenizer, and text made with them is garbage.

Invariants   the width is known if the checkpoint's config.json stated it when the vocabulary was made, or if the caller
             states it. Logits then have at most that many columns. If the width is unknown, logits have at most
             `PADDING` columns more than there are ids, with one warning. In both cases every token that some mask
             allows has a column.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..errors import DecodeError

if TYPE_CHECKING:
    from .bundle import Bundle
    from .vocab import Vocab

PADDING = 1024
"""Columns past the vocabulary that are taken for padding where the width is not known."""


class LogitsWidthWarning(UserWarning):
    """Logits are wider than the vocabulary, and nobody said how wide they may be."""


_warned: set[tuple[str, int]] = set()


def _last_text(vocab: Vocab) -> int:
    """The largest id of a token with text, -1 if there is none."""
    return int(vocab.node_tokens.max(initial=-1))


def least_width(bundle: Bundle) -> int:
    """One more than the largest id that a mask of the bundle may allow."""
    t = bundle.tables
    last = max(bundle.vocab.once(_last_text), int(t.special_token.max(initial=-1)))
    return 1 + max(last, int(t.end_of_turn_tokens.max(initial=-1)))


class LogitsWidth:
    """How many columns the logits of one model may have.

    Attributes:
        known: the width that the caller or the vocabulary states; None if neither does.
        size: ids of the vocabulary.
        most: the most columns that logits may have.

    Args:
        vocab: of the bundles.
        given: the width as the caller states it; None: as the vocabulary records it, if it does.

    Raises:
        DecodeError: no such width, or a larger one than the vocabulary records.
    """

    def __init__(self, vocab: Vocab, given: int | None = None) -> None:
        recorded = vocab.logits_width
        if given is not None:
            try:
                given = operator.index(given)
            except TypeError:
                raise DecodeError(
                    "logits_width is no number of columns", found=repr(given)[:80], expected="an integer, or None"
                ) from None
            if recorded is not None and given > recorded:
                raise DecodeError(
                    "the bundle belongs to a model with fewer logits",
                    found=f"logits_width={given}",
                    expected=f"at most {recorded}, as {vocab.meta['source']} says",
                    hint="compile it for the tokenizer of the model that is served",
                )
        self.known = recorded if given is None else given
        self._vocab = vocab
        self.size = vocab.size
        self.most = self.size + PADDING if self.known is None else max(self.known, self.size)
        self._seen = -1 if given is not None else vocab.size  # the width that was checked last

    def check_given(self, bundles: Iterable[Bundle]) -> None:
        """Check the stated width itself, where there is one, before there are logits."""
        if self.known is not None and self._seen < 0:
            self.check(self.known, bundles)

    def check(self, width: int, bundles: Iterable[Bundle]) -> None:
        """Refuse logits of this width.

        Args:
            width: columns of the logits.
            bundles: those that masks may come from.

        Raises:
            DecodeError: they are too wide, or too narrow for a token that a mask may allow.
        """
        if width == self._seen:
            return
        size = self.size
        if width < size:
            self._check_narrow(width, bundles)
            return
        if width > self.most:
            raise DecodeError(
                "the logits are too wide for the bundle's tokenizer",
                place=str(self._vocab.meta["source"]),
                found=f"{width} logits",
                expected=f"at most {self.most}, for {size} token ids",
                hint="compile for the tokenizer of this model; if it is that one, "
                f"compile with --logits-width {width} or give logits_width={width}",
            )
        if self.known is None and (self._vocab.digest, width) not in _warned:
            _warned.add((self._vocab.digest, width))
            warnings.warn(
                f"the model has {width} logits and the tokenizer {size} ids: the last {width - size} are taken for "
                f"padding. Give logits_width={width}, or compile with --logits-width {width}, if that is right.",
                LogitsWidthWarning,
                stacklevel=2,
            )
        self._seen = width

    def _check_narrow(self, width: int, bundles: Iterable[Bundle]) -> None:
        for bundle in bundles:
            if width < (least := least_width(bundle)):
                raise DecodeError(
                    "the logits are too narrow for the bundle's tokenizer",
                    place=bundle.name,
                    found=f"{width} logits",
                    expected=f"at least {least}, of {self._vocab.size} token ids",
                    hint="compile for the tokenizer of this model",
                )
