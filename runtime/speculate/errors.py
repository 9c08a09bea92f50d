"""The errors of this package, and the check of its limits."""

from __future__ import annotations

from typing import Any

from ..errors import ToolcError


class SpeculateError(ToolcError):
    """Settings, calls or requests that speculation cannot take."""


def check_limit(name: str, value: Any, whole: bool = False) -> None:
    """Refuse what is no number of 0 or more, or no whole one where that is due; infinity is no whole number."""
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or not value >= 0:
        expected = "a whole number, 0 or more" if whole else "a number, 0 or more"
        raise SpeculateError("no such limit", place=name, found=repr(value)[:80], expected=expected)
