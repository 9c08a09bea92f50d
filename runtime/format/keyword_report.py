"""Unpack the keyword report of a bundle: what became of every keyword of every schema.

Leaves out   what a status means, and packing: the compiler's schema/report.py.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from ..errors import BundleError

Row: TypeAlias = tuple[str, str, str, tuple[str, ...]]
"""Place, keyword, status, restrictions."""


def unpack(packed: Any) -> tuple[Row, ...]:
    """The rows of a packed report.

    Raises:
        BundleError: it is damaged.
    """
    rows: list[Row] = []
    try:
        sets, places = packed
        last = ""
        for shared, rest, index in zip(places[::3], places[1::3], places[2::3], strict=True):
            if not (isinstance(shared, int) and 0 <= shared <= len(last) and isinstance(rest, str) and index >= 0):
                raise ValueError(f"the place after {last[:60]!r}")
            last = last[:shared] + rest
            for keyword, status, names in sets[index]:
                rows.append((last, str(keyword), str(status), tuple(map(str, names))))
    except (ValueError, TypeError, IndexError) as error:
        raise BundleError("the keyword report of this bundle is damaged", found=str(error)[:120]) from None
    return tuple(rows)
