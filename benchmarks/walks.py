"""Random walks along the masks of a bundle on the host: texts that the masks allow, and dead ends if there are any.

Leaves out   judging the texts: see law.py.
Kinds        ``free``: any first byte alike, then closing more and more often; ``bounds``: into strings and lists until
             their counter is near a threshold, and on from there; ``deep``: whatever opens a bracket, to the soft depth
             and past it, then closing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from toolc.runtime import Bundle, Matcher, Vocab

KINDS = ("free", "bounds", "deep")
NEAR = 24  # how close to a threshold a walk takes small steps


@dataclass(frozen=True)
class Walk:
    """One walk.

    Attributes:
        kind: see KINDS.
        text: what was written.
        end: ``ended`` by the end of turn, ``dead`` where a mask was empty, ``long`` when the steps ran out.
        tokens: how many were read.
        deepest: the most frames on the stack.
        counted: the highest counter met.
    """

    kind: str
    text: bytes
    end: str
    tokens: int
    deepest: int
    counted: int


class Walker:
    """Walks bundles of one vocabulary."""

    def __init__(self, vocab: Vocab) -> None:
        texts = [vocab.token(token) for token in range(vocab.size)]
        self.texts = texts
        self.first = np.array([text[0] if text else 256 for text in texts], np.int64)
        self.length = np.array([len(text) for text in texts], np.int64)
        self.closing = np.array([bool(text) and set(text) <= set(b'"}], \n') for text in texts])
        self.opening = np.array([bool(set(text) & set(b"[{")) for text in texts])
        self.quoting = np.array([b'"' in text for text in texts])
        self.mask = np.zeros(vocab.words, np.uint32)

    def walk(self, bundle: Bundle, kind: str, seed: str, steps: int = 1200) -> Walk:
        """One walk, the same for the same seed."""
        rng = random.Random(seed)
        tables, matcher, text = bundle.tables, Matcher(bundle), bytearray()
        ends = tables.end_of_turn_tokens
        patience = rng.choice((5, 20, 60)) if kind == "free" else 300 if kind == "bounds" else 90 + rng.randrange(60)
        late, deepest, counted, step = 0, 0, 0, 0
        for step in range(steps):
            matcher.fill(self.mask)
            allowed = np.flatnonzero(np.unpackbits(self.mask.view(np.uint8), bitorder="little"))
            if not allowed.size:
                return Walk(kind, bytes(text), "dead", step, deepest, counted)
            wish = (step - patience) / (patience + 10)
            if rng.random() < max(wish, 0.02) and np.isin(ends, allowed).any():
                token = int(ends[np.isin(ends, allowed)][0])
            elif kind == "bounds" and (ahead := self._ahead(tables, matcher)) is not None and step < 800:
                token = self._towards(allowed, ahead, rng)
                late = step
            elif kind == "deep" and step < patience and rng.random() < 0.9 and self.opening[allowed].any():
                token = self._deeper(matcher, allowed[self.opening[allowed]], rng)
            elif rng.random() < min(wish if kind != "bounds" else 0.1 + (step - late) / 40, 0.97):
                token = self._any(allowed[self.closing[allowed]], rng) if self.closing[allowed].any() else -1
                token = self._any(allowed, rng) if token < 0 else token
            else:
                token = self._any(allowed, rng)
            matcher.advance(token)
            deepest, counted = max(deepest, matcher.depth), max(counted, matcher.counter)
            if matcher.is_finished:
                return Walk(kind, bytes(text), "ended", step, deepest, counted)
            text += self.texts[token]
        return Walk(kind, bytes(text), "long", step, deepest, counted)

    @staticmethod
    def _ahead(tables, matcher: Matcher) -> int | None:  # type: ignore[no-untyped-def]
        """How far the counter is from the last threshold of the state; None without one, or past it."""
        breaks = tables.breaks[tables.state_break[matcher.state]]
        last = int(breaks[:, 0].max()) if breaks.size else 0
        return last - matcher.counter if matcher.counter < last <= 20_000 else None

    def _towards(self, allowed: np.ndarray, ahead: int, rng: random.Random) -> int:
        """A token that counts: a long one far from the threshold, any near to it."""
        if ahead <= NEAR:
            return self._any(allowed, rng)
        inside = allowed[~self.quoting[allowed]]
        if not inside.size:
            return self._any(allowed, rng)
        some = inside[[rng.randrange(inside.size) for _ in range(24)]]
        return int(some[np.argmax(self.length[some])])

    def _deeper(self, matcher: Matcher, allowed: np.ndarray, rng: random.Random) -> int:
        """Of some tokens the one after which the stack is highest."""
        tried: list[tuple[int, int]] = []
        for _ in range(6):
            token = int(allowed[rng.randrange(allowed.size)])
            matcher.advance(token)
            tried.append((matcher.depth, token))
            matcher.rollback(1)
        return max(tried)[1]

    def _any(self, allowed: np.ndarray, rng: random.Random) -> int:
        """A token of any first byte alike; one time in four of all tokens alike."""
        if rng.random() < 0.25:
            return int(allowed[rng.randrange(allowed.size)])
        firsts = self.first[allowed]
        present = np.flatnonzero(np.bincount(firsts, minlength=257))
        group = allowed[firsts == present[rng.randrange(present.size)]]
        return int(group[rng.randrange(group.size)])
