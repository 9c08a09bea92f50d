"""Optional items of a sequence that begin alike, as ``(comma a)? (comma b)?``: what they begin with is read once.

Read apart, each of them begins with blanks and a comma of its own, and so do all that may come next: sets of states
grow with the square of the items, as many times over as there may be blanks.

    (c a)? (c b)? (c m)*    =>    (c X)?  where X is  a (c Y)? | Y  and Y is  b (c Z)? | Z  and Z is  m (c m)*
    (c a)? (c b)? c r       =>    c (a c)? (b c)? r

Takes a pool after factor.py, which finds more alike in sequences as they were written; leaves one of the same language.

Leaves out   items that begin with texts that are alike without being one node.
"""

from __future__ import annotations

from collections.abc import Sequence

from .nodes import CHOICE, REPEAT, SEQUENCE, NodePool, rewrite

_MANY = 2  # items of a run


def share_commas(pool: NodePool) -> None:
    """Rewrite runs of optional items that begin with one node."""
    if any(node[0] == SEQUENCE and _runs(pool, node[1]) for node in pool.nodes):
        rewrite(pool, regroup=lambda items: _regrouped(pool, items))


def _parts(pool: NodePool, number: int) -> tuple[tuple[int, ...], bool]:
    """The items of a sequence that may be left out, no items for any other node; whether it may be there again and
    again."""
    node = pool.nodes[number]
    loops = node[0] == REPEAT and node[2:] == (0, None)
    if loops or (node[0] == CHOICE and len(node[1]) == 2 and node[1][1] == pool.empty):
        item = pool.nodes[node[1] if loops else node[1][0]]
        if item[0] == SEQUENCE:
            return item[1], loops
    return (), False


def _runs(pool: NodePool, items: Sequence[int]) -> list[tuple[int, int]]:
    """Where the runs of a sequence begin and end; what may be there again and again is the last of its run."""
    found = []
    begin, shared, loops = 0, -1, False
    for at, item in enumerate((*items, pool.empty)):
        parts, again = _parts(pool, item)
        if not parts or parts[0] != shared or loops:
            if shared >= 0 and at - begin >= _MANY:
                found.append((begin, at))
            begin, shared = at, parts[0] if parts else -1
        loops = again
    return found


def _regrouped(pool: NodePool, items: Sequence[int]) -> Sequence[int]:
    out = list(items)
    for begin, end in reversed(_runs(pool, items)):
        run = [_parts(pool, item) for item in items[begin:end]]
        comma = run[0][0][0]
        texts, loops = [pool.sequence(parts[1:]) for parts, _ in run], run[-1][1]
        if end < len(items) and items[end] == comma and not loops:
            out[begin : end + 1] = [comma, *(_maybe(pool, pool.sequence([text, comma])) for text in texts)]
            continue
        rest = pool.sequence([texts[-1], items[end - 1]]) if loops else texts[-1]
        for text in texts[-2::-1]:
            here = pool.sequence([text, _maybe(pool, pool.sequence([comma, rest]))])
            rest = pool.add((CHOICE, (here, rest)))  # not flattened: that would be a square
        out[begin:end] = [_maybe(pool, pool.sequence([comma, rest]))]
    return out


def _maybe(pool: NodePool, number: int) -> int:
    return pool.add((CHOICE, (number, pool.empty)))
