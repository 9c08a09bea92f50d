"""Token bytes → the flat trie and the slices of a vocab file; parts of that trie.

Leaves out   reading tokenizers (../vocab), the file (runtime/format/vocab.py).
Invariants   equal token tables give equal arrays; tokens without bytes are in no node and no slice.
Arrays       docs/format.md, "Tables of a vocabulary".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolc.runtime.jit.memory import kernel, largest_in

from .slices import DEAD, UnitAutomata


def flatten(tokens: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """token_offset int32 [V+1], token_bytes uint8 [·]."""
    offset = np.zeros(len(tokens) + 1, np.int32)
    np.cumsum([len(t) for t in tokens], out=offset[1:])
    return offset, np.frombuffer(b"".join(tokens), np.uint8).copy()


def build_trie(tokens: Sequence[bytes]) -> dict[str, np.ndarray]:
    """The arrays node_byte, node_depth, node_skip, node_token_offset, node_tokens."""
    order = sorted((t for t in range(len(tokens)) if tokens[t]), key=lambda t: (tokens[t], t))
    offset, data = flatten([tokens[t] for t in order])
    node_byte, node_depth, node_of = _nodes(offset, data)
    skip = _skips(node_depth)
    token_offset = np.zeros(len(node_byte) + 1, np.int32)
    np.add.at(token_offset, node_of + 1, 1)
    return {
        "node_byte": node_byte,
        "node_depth": node_depth,
        "node_skip": skip,
        "node_token_offset": np.cumsum(token_offset, dtype=np.int32),
        "node_tokens": np.array(order, np.int32),
    }


@kernel()
def _nodes(offset, data):  # type: ignore[no-untyped-def]
    """Nodes of the trie of sorted byte strings: byte and depth per node, node per string."""
    count = offset.size - 1
    node_byte = np.empty(data.size, np.uint8)
    node_depth = np.empty(data.size, np.int32)
    node_of = np.empty(count, np.int64)
    nodes = 0
    for i in range(count):
        begin, end = offset[i], offset[i + 1]
        shared = 0
        if i > 0:
            before = offset[i - 1]
            limit = min(begin - before, end - begin)
            while shared < limit and data[before + shared] == data[begin + shared]:
                shared += 1
        for k in range(begin + shared, end):
            node_byte[nodes] = data[k]
            node_depth[nodes] = k - begin + 1
            nodes += 1
        # a string equal to the one before ends at the same node
        node_of[i] = nodes - 1 if shared < end - begin else node_of[i - 1]
    return node_byte[:nodes].copy(), node_depth[:nodes].copy(), node_of


@kernel()
def _skips(depth):  # type: ignore[no-untyped-def]
    """First node after each subtree of a preorder given by depths."""
    n = depth.size
    skip = np.empty(n, np.int32)
    deepest = 0
    for d in depth:
        deepest = max(deepest, d)
    open_ = np.full(deepest + 2, -1, np.int64)
    top = 0
    for i in range(n):
        while top >= depth[i]:
            if open_[top] >= 0:
                skip[open_[top]] = i
                open_[top] = -1
            top -= 1
        top = depth[i]
        open_[top] = i
    while top >= 0:
        if open_[top] >= 0:
            skip[open_[top]] = n
        top -= 1
    return skip


@kernel()
def count_before(chosen, node_token_offset):  # type: ignore[no-untyped-def]
    """For every node of a trie how many of the chosen places of its node_tokens come before it; int32 [nodes + 1].

    Args:
        chosen: bool [·].
    """
    out = np.empty(node_token_offset.size, np.int32)
    count = 0
    at = 0
    for n in range(node_token_offset.size):
        for k in range(at, node_token_offset[n]):
            count += chosen[k]
        at = max(at, node_token_offset[n])
        out[n] = count
    return out


@kernel()
def cut(own, first, node_token_offset, node_tokens, node_byte, node_depth, skip):  # type: ignore[no-untyped-def]
    """The part of a trie above some tokens: its nodes int32 [n], and for each the place of the next one outside of it.

    Args:
        own: bool [V], these tokens;  first: bool [256], bytes with which any of them begin;  skip: node_skip.
    """
    most, n = 0, 0
    while n < skip.size:
        most += skip[n] - n if first[node_byte[n]] else 0
        n = skip[n]
    order, beyond = np.empty(most, np.int32), np.empty(most, np.int32)
    way = np.zeros(largest_in(node_depth) + 2 if skip.size > 0 else 1, np.int32)  # by depth: nodes, then their places
    count, above = 0, 0  # so many nodes of the way are in `order`
    n = 0
    while n < skip.size:
        depth = node_depth[n]
        if depth == 1 and not first[node_byte[n]]:
            n = skip[n]
            continue
        above = min(above, depth - 1)
        way[depth] = n
        for k in range(node_token_offset[n], node_token_offset[n + 1]):
            if own[node_tokens[k]]:
                while above < depth:
                    above += 1
                    order[count] = way[above]
                    count += 1
                break
        n += 1
    deepest = 0
    for i in range(count):
        depth = node_depth[order[i]]
        while deepest >= depth:
            beyond[way[deepest]] = i
            deepest -= 1
        deepest = depth
        way[deepest] = i
    while deepest > 0:
        beyond[way[deepest]] = count
        deepest -= 1
    if 2 * count > most:  # pages that nobody writes to cost nothing, those of a copy do
        return order[:count], beyond[:count]
    return order[:count].copy(), beyond[:count].copy()


def build_slices(token_offset: np.ndarray, token_bytes: np.ndarray, units: UnitAutomata) -> dict[str, np.ndarray]:
    """The arrays slice_token_offset, slice_tokens, slice_units: one slice per unit state, sorted by units, then id."""
    counts = [_units(token_offset, token_bytes, units.next_unit, units.boundary, s) for s in range(len(units.names))]
    tokens, sizes, offset = [], [], [0]
    for count in counts:
        inside = np.flatnonzero(count >= 0)
        inside = inside[np.argsort(count[inside], kind="stable")]
        tokens.append(inside.astype(np.int32))
        sizes.append(count[inside].astype(np.int32))
        offset.append(offset[-1] + len(inside))
    return {
        "slice_token_offset": np.array(offset, np.int32),
        "slice_tokens": np.concatenate(tokens),
        "slice_units": np.concatenate(sizes),
    }


@kernel()
def _units(token_offset, token_bytes, next_unit, boundary, start):  # type: ignore[no-untyped-def]
    """Units that each token begins from a unit state, -1 if it dies or has no bytes."""
    count = token_offset.size - 1
    out = np.empty(count, np.int32)
    for t in range(count):
        state = start
        units = 0
        if token_offset[t] == token_offset[t + 1]:
            units = -1
        for i in range(token_offset[t], token_offset[t + 1]):
            if boundary[state]:
                units += 1
            state = next_unit[state, token_bytes[i]]
            if state == DEAD:
                units = -1
                break
        out[t] = units
    return out
