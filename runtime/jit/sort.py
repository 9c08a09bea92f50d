"""Numbers in order, inside of kernels: numpy's own sort takes numba a second to compile, for every dtype and caller.

Trusts       nothing.
Source       Shell 1959, with the gaps of Knuth.
"""

from __future__ import annotations

from .memory import kernel


@kernel()
def ascend(numbers):  # type: ignore[no-untyped-def]
    """Sort an array in place, the least first."""
    gap = 1
    while gap < numbers.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, numbers.size):
            number, k = numbers[i], i
            while k >= gap and numbers[k - gap] > number:
                numbers[k] = numbers[k - gap]
                k -= gap
            numbers[k] = number
        gap //= 3
