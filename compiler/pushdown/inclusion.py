"""Prove that every text of one word of network states is a text of another: what need not be followed beside others.

A word is a state and the states to return to, the nearest first; its texts are those that lead through all of them.
The texts of w are among those of a set B where

    w is in B;  or
    w = u v, some u v' are in B, u is not empty, and the texts of v are among those of the v';  or
    B may be empty where w may, and on every symbol what w goes on to is among what B goes on to.

A claim that comes up again while it is proved holds: a shortest text that refutes it would refute one of a shorter
text, or of a shorter word and a text that is no longer. What takes too many steps is not proved, which is never wrong.

Leaves out   networks (networks.py), where it is asked (stack_sets.py).
Source       Hopcroft and Karp 1971, with the rules of Korenjak and Hopcroft 1966 for words.
"""

from __future__ import annotations

from collections.abc import Callable

Word = tuple[int, ...]
Claim = tuple[Word, frozenset[Word]]

_MOST_STEPS = 400
_LONGEST = 12  # states of a word


class Inclusions:
    """What is known of words of one network.

    Args:
        moves: (symbols as a bit mask, next word) of every word but the empty one.
        final: whether a state may be passed without reading.
    """

    def __init__(self, moves: Callable[[Word], list[tuple[int, Word]]], final: list[bool]) -> None:
        self._moves = moves
        self._final = final
        self._holds: set[Claim] = set()
        self._fails: set[Claim] = set()
        self._steps = 0

    def holds(self, word: Word, others: frozenset[Word]) -> bool:
        """Whether it is proved that the texts of a word are among those of others."""
        claim = word, others
        if claim in self._holds:
            return True
        if claim in self._fails:
            return False
        self._steps = 0
        trail: dict[Claim, None] = {}
        if self._prove(claim, trail):
            self._holds.update(trail)
            return True
        self._fails.add(claim)
        return False

    def _empty(self, word: Word) -> bool:
        return all(self._final[state] for state in word)

    def _next(self, word: Word) -> list[tuple[int, Word]]:
        return self._moves(word) if word else []

    def _prove(self, claim: Claim, trail: dict[Claim, None]) -> bool:
        """Prove a claim, and add it to the trail with all that it needs; else leave the trail as it was."""
        word, others = claim
        if word in others or claim in trail or claim in self._holds:
            return True
        self._steps += 1
        if self._steps > _MOST_STEPS or len(word) > _LONGEST or not others:
            return False
        if self._empty(word) and not any(map(self._empty, others)):
            return False
        mine, theirs = self._next(word), [move for other in others for move in self._next(other)]
        here, there = 0, 0
        for mask, _ in mine:
            here |= mask
        for mask, _ in theirs:
            there |= mask
        if here & ~there:
            return False
        known = len(trail)
        trail[claim] = None
        for cut in range(1, len(word)):
            after = frozenset(other[cut:] for other in others if other[:cut] == word[:cut])
            if after and self._prove((word[cut:], after), trail):
                return True
            self._forget(trail, known + 1)
        for symbols in _parts([mask for mask, _ in mine] + [mask & here for mask, _ in theirs]):
            after = frozenset(other for mask, other in theirs if mask & symbols)
            if not all(self._prove((one, after), trail) for mask, one in mine if mask & symbols):
                self._forget(trail, known)
                return False
        return True

    @staticmethod
    def _forget(trail: dict[Claim, None], size: int) -> None:
        while len(trail) > size:
            trail.popitem()


def _parts(masks: list[int]) -> list[int]:
    """The sets of symbols that all masks treat alike, one by one."""
    parts: list[int] = []
    whole = 0
    for mask in masks:
        whole |= mask
    if whole:
        parts.append(whole)
    for mask in dict.fromkeys(masks):
        parts = [some for part in parts for some in (part & mask, part & ~mask) if some]
    return parts
