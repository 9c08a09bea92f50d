"""Whether a kernel does what plain passes do as well: to load one takes longer than to pass over a file or two.

Leaves out   the kernels, and the passes: see packing.py and checks.py.
Invariants   numba is never loaded for this; results do not depend on the answer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

PATIENCE = 6  # questions: the passes over three bundles
LARGE = 8 << 20  # bytes that take longer to pass over than any kernel to load
_asked = 0


def kernels_pay(size: Callable[[], int] = int) -> bool:
    """Whether the kernels are loaded for matchers already, or numba is and this was asked often enough or of many
    bytes, which ``size`` gives."""
    global _asked
    if "toolc.runtime.host.kernels" in sys.modules:
        return True
    _asked += 1
    return "numba" in sys.modules and (_asked > PATIENCE or size() >= LARGE)
