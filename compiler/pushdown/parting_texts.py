"""Write two texts that begin alike and need stacks of different depths, for the error that refuses a grammar.

Leaves out   finding configurations that differ without bound (stack_sets.py), the error (deterministic.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from ..budget import Budget
from .inclusion import Word
from .networks import FINISHED, Network

_MOST_VISITS = 20_000


def shortest_texts(network: Network, budget: Budget) -> list[bytes | None]:
    """Per state the first of the shortest texts with which its rule ends; None where it needs a special token."""
    found: list[bytes | None] = [b"" if final else None for final in network.final]
    found[network.end] = b""
    grew = True
    while grew:
        budget.check("")
        grew = False
        for s in range(len(found)):
            for text in _ways(network, found, s):
                best = found[s]
                if best is None or (len(text), text) < (len(best), best):
                    found[s] = text
                    grew = True
    return found


def _ways(network: Network, found: list[bytes | None], state: int) -> Iterator[bytes]:
    for mask, target in network.edges[state]:
        rest = found[target] if target != FINISHED else None
        byte = first_byte(mask)
        if rest is not None and byte:
            yield byte + rest
    for callee, back in network.calls[state]:
        inner, rest = found[callee], found[back]
        if inner is not None and rest is not None:
            yield inner + rest


def first_byte(mask: int) -> bytes:
    """The first letter or digit of a set of symbols, or its first byte."""
    some = [byte for byte in range(256) if mask >> byte & 1]
    plain = [byte for byte in some if bytes((byte,)).isalnum()]
    return bytes((plain or some)[:1])


def text_of(word: Word, shortest: list[bytes | None]) -> bytes | None:
    """A shortest text of a word of states."""
    parts = [shortest[state] for state in word if state != FINISHED]
    return None if None in parts else b"".join(part for part in parts if part is not None)


Place = tuple[int, tuple[int, ...]]  # a state and the symbols on the stack


def way_to(
    begins: list[int], wanted: int, steps: Callable[[Place], Iterator[tuple[bytes, Place]]]
) -> tuple[bytes, tuple[int, ...]] | None:
    """A shortest text that leads to a state, and the stack there; None where it is too far."""
    todo = deque[tuple[Place, bytes]](((state, ()), b"") for state in begins)
    seen = {place for place, _ in todo}
    while todo and len(seen) < _MOST_VISITS:
        place, text = todo.popleft()
        if place[0] == wanted:
            return text, place[1]
        for byte, then in steps(place):
            if then not in seen:
                seen.add(then)
                todo.append((then, text + byte))
    return None
