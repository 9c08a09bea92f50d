"""Iterate over the children of a trie node by byte: from a dead one to the next that is not, past all between.

A state often lives on a few bytes while a node has a hundred children. The bytes that an op row lives on, and those of
the children of a node, are four words of bits each; what is in both is where a walk goes on.

Leaves out   the walks (walk.py, token_costs.py).
Arrays       of nodes with few children there is no record: there a walk looks at every child.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numba.extending import intrinsic

from toolc.runtime.format.ops import KIND_MASK
from toolc.runtime.jit.memory import BARE, kernel

from ..passes import Pass
from ..terminals.workspace import PUSH

_MANY = 8  # children of a node that has a record


@intrinsic
def count_bits(context: Any, x: Any) -> Any:
    """How many bits of a uint64 are set."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return numba.int64(numba.uint64), codegen


class Children(NamedTuple):
    """Of the nodes of a trie with many children, by place in its order; the last place is the root.

    wide int32 [places + 1]: number of the record, -1 for none;  bits uint64 [records, 4]: bytes of the children;
    first int32 [records, 4]: where those of each word begin in ``place``;  place int32 [·]: of each child.
    """

    wide: np.ndarray
    bits: np.ndarray
    first: np.ndarray
    place: np.ndarray


def children_of(order: np.ndarray, skip: np.ndarray, node_byte: np.ndarray) -> Children:
    """Those of a trie in preorder."""
    return Children(*_index(order, skip, node_byte, _MANY if Pass.CHILDREN.on else 257))


@kernel()
def _index(order, skip, node_byte, many):  # type: ignore[no-untyped-def]
    """The arrays of `Children` for a trie in preorder; ``many``: children of a node that has a record."""
    n = order.size
    wide = np.full(n + 1, -1, np.int32)
    bits = np.zeros((n // many + 2, 4), np.uint64)
    first = np.zeros((n // many + 2, 4), np.int32)
    place = np.empty(n, np.int32)
    records = 0
    used = 0
    for p in range(-1, n):
        begin, end = p + 1, skip[p] if p >= 0 else n
        if end - begin < many and p >= 0:
            continue
        count = 0
        i = begin
        while i < end and count < many:
            i = skip[i]
            count += 1
        if count < many and p >= 0:
            continue
        wide[p] = records
        i = begin
        word = -1
        while i < end:
            byte = node_byte[order[i]]
            while word < byte >> 6:
                word += 1
                first[records, word] = used
            bits[records, word] |= np.uint64(1) << np.uint64(byte & 63)
            place[used] = i
            used += 1
            i = skip[i]
        records += 1
    return wide, bits[:records].copy(), first[:records].copy(), place[:used].copy()


@kernel()
def _members(symbol_class, classes):  # type: ignore[no-untyped-def]
    """The bytes of each class: uint64 [classes, 4]."""
    members = np.zeros((classes, 4), np.uint64)
    for byte in range(256):
        members[symbol_class[byte], byte >> 6] |= np.uint64(1) << np.uint64(byte & 63)
    return members


@kernel()
def alive_bytes(ops, symbol_class):  # type: ignore[no-untyped-def]
    """The bytes on which each op row int32 [rows, classes] lives, and those on which it stays in its frame: uint64
    [rows, 4] each."""
    members = _members(symbol_class, ops.shape[1])
    alive, stays = np.zeros((ops.shape[0], 4), np.uint64), np.zeros((ops.shape[0], 4), np.uint64)
    for r in range(ops.shape[0]):
        for k in range(ops.shape[1]):
            op = ops[r, k]
            if op != 0:
                goes = np.uint64(0) - np.uint64(op & KIND_MASK < PUSH)  # all bits, or none
                for word in range(4):
                    alive[r, word] |= members[k, word]
                    stays[r, word] |= members[k, word] & goes
    return alive, stays


@kernel()
def alive_in_comb(offset, column, classes, symbol_class):  # type: ignore[no-untyped-def]
    """The same for rows of a comb, see `CombRows`."""
    members = _members(symbol_class, classes)
    out = np.zeros((offset.size - 1, 4), np.uint64)
    for r in range(offset.size - 1):
        for i in range(offset[r], offset[r + 1]):
            for word in range(4):
                out[r, word] |= members[column[i], word]
    return out


@kernel(**BARE)
def count_of(bits):  # type: ignore[no-untyped-def]
    """How many bytes a set uint64 [4] holds."""
    return count_bits(bits[0]) + count_bits(bits[1]) + count_bits(bits[2]) + count_bits(bits[3])


@kernel(**BARE)
def next_child(c, alive, row, parent, byte, end):  # type: ignore[no-untyped-def]
    """The place of the first child after ``byte`` (-1: of all) on which an op row lives; ``end`` if there is none.

    Args:
        c: `Children`, of which ``parent`` has a record;  alive: see `alive_bytes`.
    """
    w = c.wide[parent]
    word = (byte + 1) >> 6
    if word == 4:
        return end
    have = (c.bits[w, word] & alive[row, word]) >> np.uint64((byte + 1) & 63) << np.uint64((byte + 1) & 63)
    while have == 0:
        word += 1
        if word == 4:
            return end
        have = c.bits[w, word] & alive[row, word]
    below = (have & (~have + np.uint64(1))) - np.uint64(1)
    return np.int64(c.place[c.first[w, word] + count_bits(c.bits[w, word] & below)])
