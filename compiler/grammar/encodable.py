"""Remove from a grammar the texts with characters that the tokenizer has no tokens for.

Most tokenizers have a token for every byte, and write everything. Of one without, a literal would be begun and lead to
a mask that allows nothing. So what cannot be written is taken out of the grammar before there is an automaton.

Leaves out   which rules derive nothing any more (the automaton drops them), tokens that hold a character, or a byte of
             one, only together with others: `{` where `{"` is the only token with it counts as written.
Invariants   the texts that the tokenizer can write are the same before and after; a grammar all of whose characters can
             be written is the same object. Sets of characters stay as they are while some of theirs can be written and
             no token leads into one that cannot: what is made of common sets is made of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .. import regex as rx
from ..budget import Budget
from ..errors import VocabError
from ..ir.nodes import EMPTY, NOTHING, Expr, Grammar, Literal, Repeat, Sequence, Terminal, matched, rebuilt
from ..regex import charset
from ..regex.charset import Ranges
from .analysis import productive
from .cached_reader import inlined, shared

if TYPE_CHECKING:
    from toolc.runtime.format.vocab import Vocab

_UTF8 = frozenset((*range(0xC0), *range(0xC2, 0xF5)))
"""The bytes that occur in UTF-8."""

_SHOWN = 8


def written(grammar: Grammar, vocab: Vocab, budget: Budget) -> tuple[Grammar, str]:
    """The grammar without what a vocabulary cannot write, and the characters that were asked for and cannot be.

    Raises:
        BudgetError: it took too many seconds.
        VocabError: nothing is left of what an entry derives.
    """
    reach = vocab.once(_Reach)
    if reach.is_all:
        return grammar, ""
    whole = shared(inlined(grammar), budget)
    writer = _Writer(reach)
    rules = {name: writer.expr(expr) for name, expr in whole.rules.items()}
    if all(rules[name] is expr for name, expr in whole.rules.items()):
        return grammar, ""
    less = replace(whole, rules=rules)
    lost = "".join(map(chr, sorted(writer.lost)))
    before, after = productive(whole), productive(less)
    for entry, rule in {"start": less.start, **less.entries}.items():
        if rule in before and rule not in after:
            raise VocabError(
                "the tokenizer can write no text of this entry",
                place=f"{vocab.meta['source']}, entry {entry}",
                found="no tokens for " + " ".join(map(repr, lost[:_SHOWN])) + (" …" if lost[_SHOWN:] else ""),
                hint="choose a tokenizer that has a token for every byte",
            )
    return less, lost


class _Reach:
    """The characters that a vocabulary can write."""

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab

    @cached_property
    def is_all(self) -> bool:
        """Whether there is a token for every byte."""
        v = self.vocab
        single = v.token_offset[:-1][np.diff(v.token_offset) == 1]
        return _UTF8.issubset(v.token_bytes[single].tolist())

    def _tokens(self) -> list[bytes]:
        return [text for token in range(self.vocab.size) if (text := self.vocab.token(token))]

    @cached_property
    def _pieces(self) -> frozenset[int]:
        """The bytes of tokens that are no whole characters."""
        return frozenset(byte for text in self._tokens() if not _is_text(text) for byte in text)

    @cached_property
    def can(self) -> Ranges:
        """Characters that stand in a token, and those that pieces may make."""
        found = {ord(one) for text in self._tokens() for one in text.decode(errors="ignore")}
        return charset.union(charset.normal((code, code) for code in found), self._made(self._pieces))

    @cached_property
    def entered(self) -> Ranges:
        """Characters that cannot be written, though a token may end within one."""
        some = self._made(self._pieces | frozenset(range(0x80, 0xC0)))
        return charset.difference(some, self.can)

    @staticmethod
    def _made(held: frozenset[int]) -> Ranges:
        """The characters of several bytes all of which are among these."""
        codes = np.arange(0x80, charset.LAST + 1)
        bytes_ = np.zeros(256, bool)
        bytes_[list(held)] = True
        tail = bytes_[0x80 | codes & 0x3F]
        two = bytes_[np.minimum(0xC0 | codes >> 6, 0xFF)]
        middle = bytes_[0x80 | codes >> 6 & 0x3F]
        three = bytes_[np.minimum(0xE0 | codes >> 12, 0xFF)] & middle
        four = bytes_[0xF0 | codes >> 18] & bytes_[0x80 | codes >> 12 & 0x3F] & middle
        made = tail & np.where(codes < 0x800, two, np.where(codes < 0x10000, three, four))
        made &= (codes < 0xD800) | (codes > 0xDFFF)
        edge = np.flatnonzero(np.diff(made, prepend=False, append=False)).reshape(-1, 2) + 0x80
        return charset.normal((low, high - 1) for low, high in edge.tolist())


@dataclass
class _Writer:
    """See `written`.

    Attributes:
        reach: of the vocabulary.
        lost: characters of literals and sets of which nothing can be written.
        known: what became of sets.
    """

    reach: _Reach
    lost: set[int] = field(default_factory=set)
    known: dict[Ranges, Ranges] = field(default_factory=dict)

    def chars(self, ranges: Ranges) -> Ranges:
        """A set of characters as it stays."""
        found = self.known.get(ranges)
        if found is None:
            found = (
                charset.difference(ranges, self.reach.entered) if charset.intersection(ranges, self.reach.can) else ()
            )
            found = self.known[ranges] = ranges if found == ranges else found
        if not found:
            self.lost.update(low for low, _ in ranges)
        return found

    def regex(self, regex: rx.Regex) -> rx.Regex:
        """An expression as it stays: the same object where nothing changes."""
        if isinstance(regex, rx.Chars):
            ranges = self.chars(regex.ranges)
            return regex if ranges == regex.ranges else rx.Chars(ranges)
        if isinstance(regex, rx.Concat | rx.Union):
            old = regex.items if isinstance(regex, rx.Concat) else regex.options
            new = tuple(map(self.regex, old))
            if all(one is other for one, other in zip(new, old, strict=True)):
                return regex
            if isinstance(regex, rx.Union):
                return rx.union(*new)
            return rx.NOTHING if rx.NOTHING in new else rx.concat(*new)
        if isinstance(regex, rx.Repeat | rx.Look):
            item = self.regex(regex.item)
            if item is regex.item:
                return regex
            if isinstance(regex, rx.Look):
                return rx.Look(item, regex.ahead, regex.negative)
            if item == rx.NOTHING:
                return rx.NOTHING if regex.low else rx.EMPTY
            return rx.repeat(item, regex.low, regex.high, regex.lazy)
        return regex

    def expr(self, expr: Expr) -> Expr:
        """The same of an expression of a grammar."""
        if isinstance(expr, Literal):
            lost = {ord(one) for one in expr.data.decode() if not charset.contains(self.reach.can, ord(one))}
            self.lost |= lost
            return NOTHING if lost else expr
        if isinstance(expr, Terminal):
            regex = self.regex(expr.regex)
            return expr if regex is expr.regex else matched(regex, expr.name)
        made = rebuilt(expr, self.expr)
        if made is expr:
            return expr
        if isinstance(made, Repeat) and made.item == NOTHING:
            return NOTHING if made.low else EMPTY
        return NOTHING if isinstance(made, Sequence) and NOTHING in made.items else made


def _is_text(data: bytes) -> bool:
    """Whether bytes are whole characters."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
