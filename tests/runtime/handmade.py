"""Small hand-made automata over a tiny synthetic vocabulary, lifted by the reference lift."""

from __future__ import annotations

import itertools
import random
from functools import cache

from toolc.runtime.format.bundle import Bundle
from toolc.runtime.format.vocab import Vocab

from ..slow_lift import Machine, Op, reference_lift, reference_vocab

EOT, CALL = 256, 257
LETTERS = (ord("a"), ord("b"))


@cache
def tiny_vocab(
    size: int = 96, alphabet: str = "[],ab", extra: tuple[str, ...] = ("]]],[", "aaaaa", "[[[[", "]]]]")
) -> Vocab:
    """Id 0 end of turn, 1 a special token, 2 unused, 3 a second end of turn, then texts, then unused up to `size`."""
    texts = ["".join(p) for n in (1, 2, 3) for p in itertools.product(alphabet, repeat=n)]
    one = [t for t in texts if len(t) == 1]
    longer = [t for t in texts if len(t) > 1]
    random.Random(7).shuffle(longer)
    chosen = (one + list(extra) + longer)[: size - 6]
    tokens = [b"", b"<call>", b"", b""] + [t.encode() for t in chosen]
    tokens += [b"a", b""][: size - len(tokens)]  # the same bytes twice, and one more unused
    tokens += [b""] * (size - len(tokens))
    letters = set(b"ab")
    return reference_vocab(
        tokens,
        {"<eot>": 0, "<call>": 1, "<end>": 3},
        [0, 3],
        {"letters": lambda t: set(t) <= letters, "closers": lambda t: set(t) == {ord("]")}},
    )


SPECIAL = {0: EOT, 1: CALL, 3: EOT}


def brackets(soft_depth: int = 3, longest: int = 5) -> Machine:
    """value: "[" (value ("," value)*)? "]" | word; word: letter{1,5}; recursive, two modes, `<call>` may precede."""
    top, word, end = 2, 3, 4
    first, inner, after, comma = 5, 6, 7, 8
    shallow = 4  # added to the four above: their twins of minimum height
    limit = 5

    def move(q: int, c: int, s: int) -> Op | None:
        letter = s in LETTERS
        if q in (top, word, end):
            if q == top and s == CALL:
                return ("go", top, 0)
            if q == top and s == ord("["):
                return ("push", 0, first, first + shallow, 0)
            if q in (top, word) and letter and c < limit:
                return ("go", word, 1)
            if q in (word, end) and s == EOT:
                return ("go", 1, 0)
            return None
        twin = shallow if q > comma else 0
        q -= twin
        if q in (first, comma) and s == ord("[") and not twin:
            return ("push", 1, first, first + shallow, 2)
        if q in (first, comma) and letter:
            return ("go", inner + twin, 3)
        if q == inner and letter and c < limit:
            return ("go", inner + twin, 1)
        if q in (inner, after) and s == ord(","):
            return ("go", comma + twin, 2)
        if q in (first, inner, after) and s == ord("]"):
            return ("pop", 0)
        return None

    counted = [(limit, longest)]
    breaks = [[] if q < 2 else counted for q in range(13)]
    return Machine(
        states=13,
        symbols=258,
        breaks=breaks,
        move=move,
        stack_symbols=2,
        returns={(0, 0): (end, 0), (1, 0): (after, 0)},
        special=SPECIAL,
        entry={"start": top, "array": top},
        soft_depth=soft_depth,
        capacity=soft_depth + longest + 1,
        modes=2,
    )


def counted(least: int = 2, most: int = 7, longest: int = 5) -> Machine:
    """group: "[" item{least,most} "]" with items a, b, group, or "[" item{...} ",]" which starts the count anew."""
    top, end, item, closing = 2, 3, 4, 5

    def move(q: int, c: int, s: int) -> Op | None:
        if q == top and s == ord("["):
            return ("push", 0, item, item, 0)
        if q == end and s == EOT:
            return ("go", 1, 0)
        if q == item:
            if s in LETTERS and c < most:
                return ("go", item, 1)
            if s == ord("[") and c < most:
                return ("push", 1, item, item, 1)
            if s == ord("]") and c >= least:
                return ("pop", 0)
            if s == ord(",") and c >= least:
                return ("go", closing, 0)
        if q == closing and s == ord("]"):
            return ("pop", 1)
        return None

    both = [(least, min(least, longest)), (most, longest)]
    return Machine(
        states=6,
        symbols=258,
        breaks=[[], [], both, both, both, both],
        move=move,
        stack_symbols=2,
        returns={(0, 0): (end, 0), (0, 1): (end, 0), (1, 0): (item, 0), (1, 1): (item, 2)},
        special=SPECIAL,
        entry={"start": top},
        soft_depth=40,
        capacity=60,
        modes=1,
    )


def words() -> Machine:
    """word: letter* ("[" word "]" letter*)*: states that any run of letters takes back to themselves."""
    top, inner = 2, 3

    def move(q: int, c: int, s: int) -> Op | None:
        if s in LETTERS:
            return ("go", q, 0)
        if s == ord("["):
            return ("push", q - top, inner, inner, 0)
        if s == ord("]") and q == inner:
            return ("pop", 0)
        return ("go", 1, 0) if s == EOT and q == top else None

    return Machine(
        states=4,
        symbols=258,
        breaks=[[]] * 4,
        move=move,
        stack_symbols=2,
        returns={(0, 0): (top, 0), (1, 0): (inner, 0)},
        special=SPECIAL,
        entry={"start": top},
        soft_depth=40,
        capacity=60,
        modes=1,
    )


def scrambled(seed: int, longest: int = 5) -> Machine:
    """A random machine: any op anywhere but a pop from the bottom frame, thresholds in the moves, one or two modes."""
    pick = random.Random(seed)
    bottom, inner, symbols, sets = pick.randint(1, 3), pick.randint(2, 4), pick.randint(1, 3), pick.randint(1, 3)
    states = 2 + bottom + inner
    modes = pick.randint(1, 2)
    edges = sorted(pick.sample(range(1, 9), pick.randint(0, 2)))
    breaks = [(at, longest) for at in edges]

    def some(low: bool) -> int:
        return pick.randint(2, 1 + bottom) if low else pick.randint(2 + bottom, states - 1)

    table: dict[tuple[int, int, int], Op | None] = {}
    for q in range(2, states):
        low = q < 2 + bottom
        for zone in range(len(edges) + 1):
            for s in (*b"[],ab", CALL):
                roll = pick.random()
                op: Op | None = None
                if roll < 0.45:
                    op = ("go", some(low), pick.choice((0, 0, 1, 1, 2, 3)))
                elif roll < 0.62:
                    g = pick.randrange(symbols) + (0 if low else symbols)
                    op = ("push", g, some(False), some(False), pick.choice((0, 1, 2, 3)))
                elif roll < 0.82 and not low:
                    op = ("pop", pick.randrange(sets))
                table[q, zone, s] = op
            table[q, zone, EOT] = ("go", 1, 0) if low and pick.random() < 0.3 else None

    def move(q: int, c: int, s: int) -> Op | None:
        return table.get((q, sum(c >= at for at in edges), s))

    soft = pick.randint(0, 4)
    return Machine(
        states=states,
        symbols=258,
        breaks=[[] if q < 2 else breaks for q in range(states)],
        move=move,
        stack_symbols=2 * symbols,
        returns={(g, r): (some(g < symbols), pick.randint(0, 3)) for g in range(2 * symbols) for r in range(sets)},
        special=SPECIAL,
        entry={"start": 2},
        soft_depth=soft,
        capacity=40,
        modes=modes,
    )


@cache
def bundle(kind: str, size: int = 96) -> Bundle:
    """A bundle by name: brackets, counted, words, or scrambled-<seed>."""
    if kind.startswith("scrambled-"):
        return reference_lift(scrambled(int(kind.split("-")[1])), tiny_vocab(size))
    return reference_lift({"brackets": brackets, "counted": counted, "words": words}[kind](), tiny_vocab(size))
