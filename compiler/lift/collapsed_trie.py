"""Collapse the trie of a slice: bytes that a region treats alike are made one.

A region is states inside of strings and all that they lead to inside of a slice, see slice_bases.py. It tells few bytes
apart, and over these classes of bytes most tokens are the same word: the trie of the words is some hundred times
smaller.

Leaves out   which states share a region (slice_bases.py), walks over the trie (collapsed_walks.py).
Arrays       byte_class uint8 [unit states, 256]: by the state of the unit automaton, since letters that are told apart
             in escapes are alike elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toolc.runtime.jit.memory import grown, kernel, largest_in


class Collapsed(NamedTuple):
    """The trie of a slice over classes of bytes, or over bytes, in preorder.

    byte uint8 [n]: a byte of the class;  depth int32 [n]: from 1;  skip int32 [n];  token_offset int32 [n + 1]: how
    many tokens come before each node;  tokens, units int32 [·]: the tokens in this order, and the units of each;
    by_units int32 [·]: the tokens sorted by units, those of n units from ``units_offset[n]`` on.
    """

    byte: np.ndarray
    depth: np.ndarray
    skip: np.ndarray
    token_offset: np.ndarray
    tokens: np.ndarray
    units: np.ndarray
    by_units: np.ndarray
    units_offset: np.ndarray


@kernel()
def byte_classes(m, units, region):  # type: ignore[no-untyped-def]
    """Bytes that the states of a region treat alike, by unit state: uint8 [unit states, 256]; 0 for what is dead there.

    Args:
        region: int32 [·, 2]: state and unit state of its pairs.
    """
    class_of = np.zeros(units.byte.size, np.int32)
    count = np.ones(units.first.size - 1, np.int32)
    column = np.empty(256, np.int32)
    split = np.empty((3, 256), np.int32)
    for u in range(count.size):
        begin, end = units.first[u], units.first[u + 1]
        for k in range(begin, end):
            column[k - begin] = units.next_unit[u, units.byte[k]]
        count[u] = _split(class_of[begin:end], column, count[u], split)
    for n in range(region.shape[0]):
        q = region[n, 0]
        u = region[n, 1]
        begin, end = units.first[u], units.first[u + 1]
        if count[u] == end - begin:
            continue
        for row in range(m.state_row[q], m.state_row[q + 1]):
            for k in range(begin, end):
                column[k - begin] = m.ops[row, m.symbol_class[units.byte[k]]]
            count[u] = _split(class_of[begin:end], column, count[u], split)
    out = np.zeros(units.next_unit.shape, np.uint8)
    of_symbol = np.empty((largest_in(m.symbol_class) + 1, 256), np.uint8)  # by the unit state that follows
    for u in range(count.size):
        for k in range(units.first[u], units.first[u + 1]):
            of_symbol[m.symbol_class[units.byte[k]], units.next_unit[u, units.byte[k]]] = class_of[k]
        for byte in range(256):
            if units.next_unit[u, byte] != 255:
                out[u, byte] = of_symbol[m.symbol_class[byte], units.next_unit[u, byte]]
    return out


@kernel()
def _split(classes, column, count, scratch):  # type: ignore[no-untyped-def]
    """Split classes on which the column differs; returns how many there are now."""
    value, after, have = scratch[0], scratch[1], scratch[2]
    have[:count] = 0
    after[:count] = -1  # the next class split from the same one
    for k in range(classes.size):
        n = classes[k]
        if not have[n]:
            have[n] = 1
            value[n] = column[k]
            continue
        while value[n] != column[k]:
            if after[n] < 0:
                after[n] = count
                after[count] = -1
                have[count] = 1
                value[count] = column[k]
                count += 1
            n = after[n]
        classes[k] = n
    return count


@kernel()
def _collapse(t, next_unit, home, byte_class, node_of_token):  # type: ignore[no-untyped-def]
    """The trie of words over classes: byte, depth and skip in preorder; per token its node."""
    size = 1 << 12
    table = np.full(size, -1, np.int32)
    parent = np.zeros(size >> 1, np.int32)
    byte = np.zeros(size >> 1, np.uint8)
    unit = np.zeros(size >> 1, np.int32)  # state of the unit automaton
    unit[0] = home
    nodes = 1  # 0 is the root
    current = np.zeros(largest_in(t.depth) + 1, np.int32)
    for i in range(t.byte.size):
        depth = t.depth[i]
        up = current[depth - 1]
        k = byte_class[unit[up], t.byte[i]]
        if 2 * nodes + 2 >= size:
            size *= 2
            table = np.full(size, -1, np.int32)
            parent = grown(parent)
            byte = grown(byte)
            unit = grown(unit)
            for n in range(1, nodes):
                slot = _slot(parent[n], byte_class[unit[parent[n]], byte[n]], size)
                while table[slot] >= 0:
                    slot = (slot + 1) & (size - 1)
                table[slot] = n
        slot = _slot(up, k, size)
        while table[slot] >= 0 and (parent[table[slot]] != up or byte_class[unit[up], byte[table[slot]]] != k):
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = nodes
            parent[nodes] = up
            byte[nodes] = t.byte[i]
            unit[nodes] = next_unit[unit[up], t.byte[i]]
            nodes += 1
        current[depth] = table[slot]
        for place in range(t.token_offset[i], t.token_offset[i + 1]):
            node_of_token[place] = table[slot]
    # Preorder: a parent has a smaller number than its children.
    below = np.ones(nodes, np.int32)
    for n in range(nodes - 1, 0, -1):
        below[parent[n]] += below[n]
    start = np.zeros(nodes, np.int32)
    free = np.ones(nodes, np.int32)
    deep = np.zeros(nodes, np.int32)
    for n in range(1, nodes):
        up = parent[n]
        start[n] = start[up] + free[up]
        free[up] += below[n]
        deep[n] = deep[up] + 1
    out_byte = np.zeros(nodes - 1, np.uint8)
    out_depth = np.zeros(nodes - 1, np.int32)
    out_skip = np.zeros(nodes - 1, np.int32)
    for n in range(1, nodes):
        out_byte[start[n] - 1] = byte[n]
        out_depth[start[n] - 1] = deep[n]
        out_skip[start[n] - 1] = start[n] - 1 + below[n]
    for place in range(node_of_token.size):
        node_of_token[place] = start[node_of_token[place]] - 1
    return out_byte, out_depth, out_skip


@kernel()
def _slot(parent, k, size):  # type: ignore[no-untyped-def]
    h = (np.uint64(parent) << np.uint64(8) | np.uint64(k)) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((h >> np.uint64(20)) & np.uint64(size - 1))


def collapse(trie: Collapsed, next_unit: np.ndarray, home: int, byte_class: np.ndarray) -> Collapsed:
    """The collapsed trie of a slice.

    Args:
        trie: the slice over bytes;  home: its unit state;  byte_class: see `byte_classes`.
    """
    node = np.empty(trie.tokens.size, np.int32)
    byte, depth, skip = _collapse(trie, next_unit, home, byte_class, node)
    by_node = np.argsort(node, kind="stable")
    offset = np.zeros(byte.size + 1, np.int32)
    np.cumsum(np.bincount(node, minlength=byte.size), out=offset[1:])
    return trie._replace(
        byte=byte, depth=depth, skip=skip, token_offset=offset, tokens=trie.tokens[by_node], units=trie.units[by_node]
    )
