"""Draft what a constrained sequence says next: forced tokens, the rest of a cached call, outputs that are inserted.

    forced    the grammar has one way on: `Matcher.forced`, or a mask of one token or of one text
    guessed   the rest of a call that was cached for the tool whose call was begun (Algorithm 4)
    inserted  what follows a turn whose calls have outputs (Algorithm 5): the mask allows nothing else

Leaves out   engines: see engine.py and the adapters. Where outputs come from: see outputs.py.
Invariants   A draft never changes a mask: an engine that verifies drafts by rejection sampling under the masks keeps
             the distribution of every token. No draft holds an end of turn but inside of what is inserted. `rollback`
             is exact; it never goes back behind an insertion that was begun.
Source       arXiv 2512.15834, Algorithms 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls.writer import write_call
from ..errors import DecodeError
from ..host.matcher import Matcher

if TYPE_CHECKING:
    from ..calls.reader import Reader
    from ..format.bundle import Bundle

Encode = Callable[[str], list[int]]
FEW = 8
"""Tokens of a mask that are compared."""


class RestOfCall:
    """Writes the rest of calls as tokens.

    Args:
        bundle: in whose protocol.
        encode: text to tokens, delimiters as their tokens.
    """

    def __init__(self, bundle: Bundle, encode: Encode) -> None:
        self.bundle, self.encode = bundle, encode
        self._names = {token: name.encode() for name, token in bundle.vocab.special.items()}

    def text(self, reader: Reader, name: str, arguments: Mapping[str, Any]) -> bytes:
        """The rest of a call; nothing where other arguments than these were written so far.

        Args:
            reader: inside of the call; it is left as it stands.
        """
        try:
            rest = write_call(reader, name, arguments)
        except DecodeError:  # the reader stands inside of a delimiter
            return b""
        return b"" if rest is None else rest.text

    def after(self, written: bytes, rest: bytes) -> list[int]:
        """Tokens of the rest: as the tokenizer cuts the whole, where one of its tokens ends before the rest."""
        if not rest:
            return []
        tokens = self.encode((written + rest).decode(errors="replace"))
        length, count = 0, 0
        while length < len(written) and count < len(tokens):
            length += len(self.shown(tokens[count]))
            count += 1
        return tokens[count:] if length == len(written) else self.encode(rest.decode(errors="replace"))

    def shown(self, token: int) -> bytes:
        """The bytes of a token; of a special one, those of its name."""
        return self._names[token] if token in self._names else self.bundle.vocab.token(token)


class Guess:
    """A text that may come from a place of a sequence on, however it is cut into tokens.

    Args:
        position: of its first token.
        written: the text before it, of the turn.
        text: what may come.
        rest: cuts it.
    """

    def __init__(self, position: int, written: bytes, text: bytes, rest: RestOfCall) -> None:
        self.position, self.written, self.text, self.rest = position, written, text, rest
        self._tokens = rest.after(written, text)

    def after(self, said: Sequence[int]) -> Sequence[int]:
        """What may follow these tokens, which were said from its place on; nothing where they are none of its text."""
        said = list(said)
        if self._tokens[: len(said)] != said:
            text = b"".join(map(self.rest.shown, said))
            if not self.text.startswith(text):
                return ()
            self._tokens = said + self.rest.after(self.written + text, self.text[len(text) :])
        return self._tokens[len(said) :]


class _Inserted:
    """Tokens that follow, whatever the model would say, and how many of them were read."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens, self.read = list(tokens), 0


class DraftedSequence:
    """One sequence: turns under a bundle, and what was inserted between them.

    Args:
        bundle: the constraint of every turn.
        entry: where a turn begins.
        budget: tokens of the first turn, as `Matcher` takes it.

    Attributes:
        tokens: all that were read, those inserted too.
        turn: where the turn that is open began, as a number of tokens.
        spans: [begin, end) of what was inserted, or is being inserted.
    """

    def __init__(self, bundle: Bundle, entry: str = "start", budget: int | None = None) -> None:
        self.bundle, self.entry = bundle, entry
        self.tokens: list[int] = []
        self.turn = 0
        self.spans: list[tuple[int, int]] = []
        self._parts: list[Matcher | _Inserted] = [Matcher(bundle, entry, budget)]
        self._at = 0
        self._guess: Guess | None = None
        self._ends = frozenset(int(token) for token in bundle.tables.end_of_turn_tokens)
        self._scratch = np.zeros(bundle.vocab.words, np.uint32)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def is_inserting(self) -> bool:
        """What comes next is inserted."""
        return isinstance(self._parts[self._at], _Inserted)

    @property
    def is_finished(self) -> bool:
        """The end of a turn was read, and nothing follows."""
        part = self._parts[self._at]
        return isinstance(part, Matcher) and part.is_finished

    def is_inserted(self, position: int) -> bool:
        """Whether the token at this place is one that was inserted, or is to be."""
        return any(begin <= position < end for begin, end in self.spans)

    def is_end(self, token: int) -> bool:
        """Whether a token ends turns."""
        return token in self._ends

    def read(self, token: int) -> bool:
        """Read one token; False, and unchanged, where it is not allowed."""
        part = self._parts[self._at]
        if isinstance(part, Matcher):
            if not part.try_advance(token):
                return False
        else:
            if token != part.tokens[part.read]:
                return False
            part.read += 1
            if part.read == len(part.tokens):
                self._at += 1
        self.tokens.append(token)
        return True

    def rollback(self, count: int) -> None:
        """Forget the last tokens."""
        if not 0 <= count <= len(self.tokens):
            raise DecodeError("cannot roll back", found=f"{count} tokens", expected=f"0 to {len(self.tokens)}")
        left = count
        while left:
            part = self._parts[self._at]
            back = min(left, part.read if isinstance(part, _Inserted) else len(part))
            if isinstance(part, _Inserted):
                part.read -= back
            else:
                part.rollback(back)
            left -= back
            self._at -= bool(left)
        if count:
            del self.tokens[-count:]

    def allows(self, tokens: Sequence[int]) -> int:
        """How many of the tokens may come next, one after the other; nothing is read."""
        count = 0
        while count < len(tokens) and self.read(int(tokens[count])):
            count += 1
        self.rollback(count)
        return count

    def fill(self, mask: np.ndarray) -> None:
        """Set the bits of the tokens that are allowed, and clear all others; uint32 [at least ceil(V / 32)]."""
        part = self._parts[self._at]
        mask[:] = 0
        if isinstance(part, Matcher):
            part.fill(mask)
        else:
            token = part.tokens[part.read]
            mask[token >> 5] = np.uint32(1 << (token & 31))

    def guess(self, guess: Guess) -> None:
        """What may come; as soon as another text was read in its place, it is of no more use."""
        self._guess = guess

    def insert(self, tokens: Sequence[int], budget: int | None = None) -> None:
        """Have tokens follow the turn that has ended, then another turn.

        Args:
            tokens: at least one.
            budget: tokens of the next turn.
        """
        assert self.is_finished and tokens
        self.spans.append((len(self.tokens), len(self.tokens) + len(tokens)))
        self.turn = len(self.tokens) + len(tokens)
        del self._parts[self._at + 1 :]
        self._parts += [_Inserted(tokens), Matcher(self.bundle, self.entry, budget)]
        self._at += 1

    def draft(self, most: int) -> list[int]:
        """At most so many tokens that are likely, or sure, to come next."""
        count = 0
        while count < most:
            read = self._read_all(self._next(), most - count)
            count += read
            if not read:
                break
        out = self.tokens[len(self.tokens) - count :]
        self.rollback(count)
        return out

    def _read_all(self, tokens: Sequence[int], most: int) -> int:
        """Read tokens up to the first that is not allowed, or that ends a turn; how many were read."""
        count = 0
        for token in tokens[:most]:
            if (int(token) in self._ends and not self.is_inserting) or not self.read(int(token)):
                break
            count += 1
        return count

    def _next(self) -> Sequence[int]:
        part = self._parts[self._at]
        if isinstance(part, _Inserted):
            return part.tokens[part.read :]
        if part.is_finished:
            return ()
        if self._guess is not None and self.turn <= self._guess.position <= len(self.tokens):
            rest = self._guess.after(self.tokens[self._guess.position :])
            if rest:
                return rest
        forced: list[int] = part.forced().tolist()
        return forced or self._along_one_text(part)

    def _along_one_text(self, matcher: Matcher) -> Sequence[int]:
        """The only token of the mask, or the longest one along the only text that may come."""
        matcher.fill(self._scratch)
        words = np.flatnonzero(self._scratch)
        if len(words) > FEW:
            return ()
        bits = np.unpackbits(self._scratch[words].view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
        row, bit = np.nonzero(bits)
        tokens = (32 * words[row] + bit).tolist()
        if len(tokens) == 1 or len(tokens) > FEW:
            return tokens[: len(tokens) == 1]
        texts = [(self.bundle.vocab.token(token), token) for token in tokens]
        only = _only_text(matcher, max(len(text) for text, _ in texts))
        along = [(len(text), token) for text, token in texts if text and only.startswith(text)]
        return (max(along)[1],) if along else ()


def _only_text(matcher: Matcher, most: int) -> bytes:
    """The bytes that come next, whatever is sampled; at most so many."""
    text = b""
    while len(text) < most and len(following := matcher.expected_bytes()) == 1 and not matcher.expected_special():
        matcher.advance_bytes(following)
        text += following
    matcher.rollback(len(text))
    return text
