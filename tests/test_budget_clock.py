"""The clock of a budget: what numba needs to compile a kernel does not count."""

from __future__ import annotations

import time

from numba import njit

from toolc.compiler.budget import Budget, kernel_seconds


def test_compiling_a_kernel_costs_nothing() -> None:
    budget = Budget(seconds=1000).start()
    before, begin = kernel_seconds(), time.monotonic()

    @njit
    def kernel(n: int) -> int:
        total = 0
        for i in range(n):
            total += i % 3
        return total

    assert kernel(4) == 3
    took, compiled = time.monotonic() - begin, kernel_seconds() - before
    assert 0 < compiled <= took
    assert budget.elapsed() <= time.monotonic() - begin - compiled + 0.01
    Budget(seconds=compiled / 2).check("")  # a new clock begins at zero
