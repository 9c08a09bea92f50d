"""From an automaton over classes of code points to one over the bytes of UTF-8.

Leaves out   building the automaton over code points (terminal.py).
Invariants   the result is minimal if the input is: between two characters the state is one of the input's; inside one
             it is named by what the remaining bytes do, so equal states are made once. A state inside a character never
             equals one between two, nor one with another number of bytes to go.
Arrays       table int32 [states, classes], -1 is dead; segments: (first, last, class) of code points, ascending.
Source       RFC 3629. Segments hold no surrogates, so neither does the result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from toolc.runtime.jit.memory import kernel

from .dfa import Dfa, make_dfa

Segment = tuple[int, int, int]  # first and last code point, class
# A node is (run, run, …), a run (first byte, last byte, child): child is a number of the node's own labels at the last
# byte, else (node, labels of the child in its order).
Shape = tuple[tuple[int, int, Any], ...]


def _node(level: int, base: int, segments: list[Segment], lead: int) -> tuple[Shape, tuple[int, ...]]:
    """Shape of the bytes that lead to ``segments``, and the labels it numbers in order of appearance.

    Args:
        level: how many bytes are left, this one included.
        base: the code point that the smallest byte (``lead``) stands for.
        segments: inside what this node covers, neighbours with different labels.
        lead: the byte for ``base``.
    """
    labels: dict[int, int] = {}
    runs: list[tuple[int, int, Any]] = []
    if level == 1:
        for first, last, label in segments:
            runs.append((lead + first - base, lead + last - base, labels.setdefault(label, len(labels))))
        return tuple(runs), tuple(labels)
    unit = 64 ** (level - 1)
    pieces: list[tuple[int, int, list[Segment]]] = []  # (first child, last child, what is in it)
    for first, last, label in segments:
        while first <= last:
            child = (first - base) // unit
            start = base + child * unit
            if first == start and last >= start + unit - 1:
                through = (last + 1 - base) // unit - 1
                end = base + (through + 1) * unit - 1
                pieces.append((child, through, [(base, base + unit - 1, label)]))
                first = end + 1
                continue
            end = min(last, start + unit - 1)
            if pieces and pieces[-1][0] == pieces[-1][1] == child:
                pieces[-1][2].append((first, end, label))
            else:
                pieces.append((child, child, [(first, end, label)]))
            first = end + 1
    for low, high, inside in pieces:
        start = base if len(inside) == 1 and inside[0][1] - inside[0][0] == unit - 1 else base + low * unit
        shape, used = _node(level - 1, start, inside, 0x80)
        mine = tuple(labels.setdefault(label, len(labels)) for label in used)
        if runs and runs[-1][1] == lead + low - 1 and runs[-1][2] == (shape, mine):
            runs[-1] = (runs[-1][0], lead + high, runs[-1][2])
        else:
            runs.append((lead + low, lead + high, (shape, mine)))
    return tuple(runs), tuple(labels)


@lru_cache(maxsize=512)
def _leads(segments: tuple[Segment, ...]) -> tuple[tuple[int, int, int, Shape, tuple[int, ...]], ...]:
    """(first lead byte, last, bytes after it, shape after it, labels) of everything above ASCII."""
    out: list[tuple[int, int, int, Shape, tuple[int, ...]]] = []
    for level, low, high, base, lead in (
        (2, 0x80, 0x7FF, 0, 0xC0),
        (3, 0x800, 0xFFFF, 0, 0xE0),
        (4, 0x10000, 0x10FFFF, 0, 0xF0),
    ):
        inside = [(max(a, low), min(b, high), label) for a, b, label in segments if b >= low and a <= high]
        if not inside:
            continue
        shape, labels = _node(level, base, inside, lead)
        for first, last, child in shape:
            below, used = child
            out.append((first, last, level - 1, below, tuple(labels[n] for n in used)))
    return tuple(out)


def to_bytes(
    table: np.ndarray, accepting: np.ndarray, segments: list[Segment], look: Callable[[], None] = lambda: None
) -> Dfa:
    """The byte automaton of a minimal trim automaton over code points.

    Args:
        table: int32 [states, classes]; -1 for none.
        accepting: bool [states].
        segments: the classes of code points.
        look: called now and then; what it raises ends the work.
    """
    if not segments or segments[-1][1] < 0x80:
        classes = np.full(256, table.shape[1], np.int64)
        for first, last, label in segments:
            classes[first : last + 1] = label
        none = np.full((len(table), 1), -1, np.int32)
        return make_dfa(classes, np.concatenate([table, none], axis=1), accepting, minimal=True)
    alive = np.any(table >= 0, axis=0).tolist()
    segments = [one for one in segments if alive[one[2]]]
    ascii_class = np.full(128, -1, np.intp)
    for first, last, label in segments:
        if first < 128:
            ascii_class[first : min(last, 127) + 1] = label
    above = [(max(first, 128), last, label) for first, last, label in segments if last >= 128]
    runs: list[tuple[np.ndarray, int, int, np.ndarray]] = []  # (states, first byte, last byte, target of each)
    total = len(table)
    if above:
        total = _add_inner(table, above, runs, look)
    # Byte classes: ASCII by its class of characters, the rest by the runs that tell bytes apart.
    cuts = sorted({0x80, 0x100, *(r[1] for r in runs), *(r[2] + 1 for r in runs)})
    ascii_used = sorted(set(ascii_class[ascii_class >= 0].tolist()))
    dead = len(ascii_used)
    classes = np.full(256, dead, np.intp)
    for n, label in enumerate(ascii_used):
        classes[:128][ascii_class == label] = n
    column_of_cut = {cut: dead + 1 + n for n, cut in enumerate(cuts)}  # that of 0x100 is behind the last one
    for low, high in pairwise(cuts):
        classes[low:high] = column_of_cut[low]
    out = np.full((total, dead + len(cuts)), -1, np.int32)
    out[: len(table), : len(ascii_used)] = table[:, ascii_used]
    for at, (states, low, high, target) in enumerate(runs):
        if at & 1023 == 0:
            look()
        out[states, column_of_cut[low] : column_of_cut[high + 1]] = target[:, None]
    final = np.zeros(total, bool)
    final[: len(table)] = accepting
    return make_dfa(classes, out, final, minimal=True)


def _add_inner(
    table: np.ndarray, above: list[Segment], runs: list[tuple[np.ndarray, int, int, np.ndarray]],
    look: Callable[[], None],
) -> int:  # fmt: skip
    """Make the states inside characters; returns how many states there are with them."""
    segments = np.array(above, np.int64)
    ends, labels_of = segments[:, :2], segments[:, 2]
    used = np.unique(labels_of)
    # States whose rows tell the same classes apart share their shapes. The pattern of a row: the classes that it has
    # moves on, and for each the first class with the same target.
    patterns: dict[bytes, list[int]] = {}
    row_of, first_of = np.full(len(table), -1, np.int64), np.empty(len(table), np.int32)
    for state in range(len(table)):
        if state & 255 == 0:
            look()
        pattern = _pattern(table, state, used, row_of, first_of)
        patterns.setdefault(pattern.tobytes(), []).append(state)
    # inner[(level, shape)]: target tuple -> state
    inner: dict[tuple[int, Shape, tuple[int, ...]], int] = {}
    count = len(table)
    pending: list[tuple[int, Shape, tuple[int, ...], int]] = []

    def states_for(level: int, shape: Shape, targets: list[tuple[int, ...]]) -> list[int]:
        nonlocal count
        found = []
        for one in targets:
            key = (level, shape, one)
            state = inner.get(key)
            if state is None:
                state = inner[key] = count
                pending.append((level, shape, one, state))
                count += 1
            found.append(state)
        return found

    interned: dict[Shape, Shape] = {}
    for key, states in patterns.items():
        look()
        pattern = np.frombuffer(key, np.int32).reshape(-1, 2)
        if not pattern.size:
            continue
        stands_for = np.full(table.shape[1], -1, np.int32)
        stands_for[pattern[:, 0]] = pattern[:, 1]
        columns = stands_for[labels_of]
        live = np.flatnonzero(columns >= 0)
        merged: list[Segment] = []
        for (first, last), column in zip(ends[live].tolist(), columns[live].tolist(), strict=True):
            if merged and merged[-1][2] == column and merged[-1][1] == first - 1:
                merged[-1] = (merged[-1][0], last, column)
            else:
                merged.append((first, last, column))
        where = np.array(states)
        for low, high, level, shape, labels in _leads(tuple(merged)):
            shape = interned.setdefault(shape, shape)
            targets = [tuple(row) for row in table[where[:, None], list(labels)].tolist()]
            runs.append((where, low, high, np.array(states_for(level, shape, targets), np.int32)))
    # Below the lead byte: each inner state's own runs; states made here are handled in turn.
    by_run: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    at = 0
    while at < len(pending):
        level, shape, targets_of, state = pending[at]
        at += 1
        if at & 255 == 0:
            look()
        for low, high, child in shape:
            if level == 1:
                target = targets_of[child]
            else:
                below, labels = child
                below = interned.setdefault(below, below)
                (target,) = states_for(level - 1, below, [tuple(targets_of[n] for n in labels)])
            froms, tos = by_run.setdefault((low, high), ([], []))
            froms.append(state)
            tos.append(target)
    for (low, high), (froms, tos) in by_run.items():
        runs.append((np.array(froms), low, high, np.array(tos, np.int32)))
    return count


@kernel()
def _pattern(table, state, used, row_of, first_of):  # type: ignore[no-untyped-def]
    """The used classes that a state has moves on, and for each the first one with the same target: int32 [classes, 2].

    ``row_of`` and ``first_of``, one of each state, are scratch: where a target was seen last.
    """
    out, count = np.empty((used.size, 2), np.int32), 0
    for k in used:
        target = table[state, k]
        if target >= 0:
            if row_of[target] != state:
                row_of[target], first_of[target] = state, k
            out[count, 0], out[count, 1] = k, first_of[target]
            count += 1
    return out[:count]
