"""Where each of some sequences begins that lie one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

import numpy as np


def offsets(sizes: Iterable[int], dtype: type = np.int64) -> np.ndarray:
    """[n + 1], of sequences of these sizes, and where the last one ends."""
    return np.array([0, *accumulate(sizes)], dtype)
