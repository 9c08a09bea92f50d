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
    column_of_cut = {}
    for n, (low, high) in enumerate(pairwise(cuts)):
        column_of_cut[low] = dead + 1 + n
        classes[low:high] = dead + 1 + n
    out = np.full((total, dead + len(cuts)), -1, np.int32)
    out[: len(table), : len(ascii_used)] = table[:, ascii_used]
    for states, low, high, target in runs:
        for cut in cuts:
            if low <= cut <= high:
                out[states, column_of_cut[cut]] = target
    final = np.zeros(total, bool)
    final[: len(table)] = accepting
    return make_dfa(classes, out, final, minimal=True)


def _add_inner(
    table: np.ndarray, above: list[Segment], runs: list[tuple[np.ndarray, int, int, np.ndarray]],
    look: Callable[[], None],
) -> int:  # fmt: skip
    """Make the states inside characters; returns how many states there are with them."""
    used = sorted({label for _, _, label in above})
    rows = table[:, used]
    # States whose rows tell the same classes apart share their shapes. The pattern of a row: for every column the
    # first column with the same target.
    patterns: dict[bytes, list[int]] = {}
    if len(used) == 1:
        patterns_of = np.where(rows >= 0, 0, -1).astype(np.int32)
    else:
        patterns_of = np.full(rows.shape, -1, np.int32)
        for column in range(rows.shape[1] - 1, -1, -1):
            same = (rows == rows[:, column : column + 1]) & (rows >= 0)
            patterns_of[same] = column
    for state, pattern in enumerate(patterns_of):
        patterns.setdefault(pattern.tobytes(), []).append(state)
    # inner[(level, shape)]: target tuple -> state
    inner: dict[tuple[int, Shape, tuple[int, ...]], int] = {}
    count = len(table)
    column_of = {label: n for n, label in enumerate(used)}
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
        pattern = np.frombuffer(key, np.int32)
        if (pattern < 0).all():
            continue
        merged: list[Segment] = []
        for first, last, label in above:
            column = int(pattern[column_of[label]])
            if column < 0:
                continue
            if merged and merged[-1][2] == column and merged[-1][1] == first - 1:
                merged[-1] = (merged[-1][0], last, column)
            else:
                merged.append((first, last, column))
        where = np.array(states)
        local = rows[where]
        for low, high, level, shape, labels in _leads(tuple(merged)):
            shape = interned.setdefault(shape, shape)
            targets = [tuple(row) for row in local[:, list(labels)].tolist()]
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
