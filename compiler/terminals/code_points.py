"""Code points that no set of some tells apart are one class.

Leaves out   which sets there are (terminal.py), the bytes of code points (utf8.py).
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

import numpy as np

from toolc.runtime.jit.memory import BARE, kernel
from toolc.runtime.jit.sort import ascend

from ..regex import charset
from .offsets import offsets
from .utf8 import Segment


def class_code_points(sets: Collection[charset.Ranges]) -> tuple[list[Segment], np.ndarray]:
    """Code points by class: segments of what is in any set, and whether each set has each class, bool [sets, classes].

    There is a class at least.
    """
    offset = offsets(map(len, sets))
    flat = chain.from_iterable(chain.from_iterable(sets))
    segments, member = _cut(offset, np.array(list(flat), np.int64).reshape(-1, 2))
    return list(map(tuple, segments.tolist())), member


@kernel(**BARE)
def _equal(inside, one, other):  # type: ignore[no-untyped-def]
    """Whether two rows say the same."""
    same = True
    for n in range(inside.shape[1]):
        same &= inside[one, n] == inside[other, n]
    return same


@kernel()
def _cut(offset, ranges):  # type: ignore[no-untyped-def]
    """The same of ranges int64 [·, 2] (first, last), those of set n from offset[n] on; segments are int64 [·, 3]."""
    cuts, size = np.empty(2 * len(ranges), np.int64), 0
    for r in range(len(ranges)):
        cuts[2 * r], cuts[2 * r + 1] = ranges[r, 0], ranges[r, 1] + 1
    ascend(cuts)
    for i in range(cuts.size):
        if i == 0 or cuts[i] != cuts[size - 1]:
            cuts[size] = cuts[i]
            size += 1
    sets = offset.size - 1
    inside = np.zeros((size + 1, sets), np.bool_)  # the last one is left empty
    digest = np.zeros(size, np.uint64)
    for n in range(sets):
        for r in range(offset[n], offset[n + 1]):
            k, beyond = 0, size
            while k < beyond:
                middle = (k + beyond) >> 1
                if cuts[middle] < ranges[r, 0]:
                    k = middle + 1
                else:
                    beyond = middle
            while cuts[k] <= ranges[r, 1]:
                inside[k, n] = True
                digest[k] = (digest[k] ^ np.uint64(n + 1)) * np.uint64(0x9E3779B97F4A7C15)
                k += 1
    first, classes = np.empty(size + 1, np.int64), 0
    segments, count = np.empty((size, 3), np.int64), 0
    for k in range(size):
        if digest[k] == 0 and _equal(inside, k, size):
            continue
        label = 0
        while label < classes:
            if digest[first[label]] == digest[k] and _equal(inside, first[label], k):
                break
            label += 1
        if label == classes:
            first[label] = k
            classes += 1
        segments[count, 0], segments[count, 1], segments[count, 2] = cuts[k], cuts[k + 1] - 1, label
        count += 1
    first[classes] = size
    member = np.empty((sets, max(classes, 1)), np.bool_)
    for n in range(sets):
        for label in range(member.shape[1]):
            member[n, label] = inside[first[label], n]
    return segments[:count], member
