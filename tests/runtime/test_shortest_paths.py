"""The queue of least weights against a heap."""

from __future__ import annotations

import heapq

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from toolc.runtime.format.tables import NEVER
from toolc.runtime.selection.shortest_paths import _LEVELS, _dequeue, _enqueue

STEPS = st.one_of(st.integers(0, 3), st.integers(0, 5000), st.integers(0, NEVER))


@settings(max_examples=200)
@given(st.lists(st.tuples(st.booleans(), STEPS), max_size=60))
def test_least_come_first(steps: list[tuple[bool, int]]) -> None:
    """Whatever is put in no lower than the last that came out: values as a heap gives them, each cell once."""
    queue = np.full(_LEVELS, -1, np.int32), np.zeros((len(steps), 3), np.int32)
    heap: list[int] = []
    value_of: dict[int, int] = {}
    now = n = 0
    for puts, more in [*steps, *[(False, 0)] * (len(steps) + 1)]:
        if puts:
            value_of[n] = min(now + more, NEVER)
            _enqueue(queue, n, now, value_of[n], n)
            heapq.heappush(heap, value_of[n])
            n += 1
            continue
        value, x = _dequeue(queue, now)
        if heap:
            assert value == heapq.heappop(heap) == value_of.pop(x)
            now = value
        else:
            assert (value, x) == (now, -1)
    assert not heap and not value_of
