"""Code points that no set of some tells apart are one class.

Leaves out   which sets there are (terminal.py), the bytes of code points (utf8.py).
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

import numpy as np

from toolc.runtime.memory import kernel

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


@kernel()
def _cut(offset, ranges):  # type: ignore[no-untyped-def]
    """The same of ranges int64 [·, 2] (first, last), those of set n from offset[n] on; segments are int64 [·, 3]."""
    cuts = np.unique(np.concatenate((ranges[:, 0], ranges[:, 1] + 1)))
    sets, size = offset.size - 1, cuts.size
    inside = np.zeros((size + 1, sets), np.bool_)  # the last one is left empty
    digest = np.zeros(size, np.uint64)
    for n in range(sets):
        for r in range(offset[n], offset[n + 1]):
            k = np.searchsorted(cuts, ranges[r, 0])
            while cuts[k] <= ranges[r, 1]:
                inside[k, n] = True
                digest[k] = (digest[k] ^ np.uint64(n + 1)) * np.uint64(0x9E3779B97F4A7C15)
                k += 1
    first, classes = np.empty(size + 1, np.int64), 0
    segments, count = np.empty((size, 3), np.int64), 0
    for k in range(size):
        if digest[k] == 0 and not inside[k].any():
            continue
        label = 0
        while label < classes:
            if digest[first[label]] == digest[k] and (inside[first[label]] == inside[k]).all():
                break
            label += 1
        if label == classes:
            first[label] = k
            classes += 1
        segments[count, 0], segments[count, 1], segments[count, 2] = cuts[k], cuts[k + 1] - 1, label
        count += 1
    first[classes] = size
    return segments[:count], np.ascontiguousarray(inside[first[: max(classes, 1)]].T)
