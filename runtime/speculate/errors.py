"""The errors of this package."""

from __future__ import annotations

from ..errors import ToolcError


class SpeculateError(ToolcError):
    """Settings, calls or requests that speculation cannot take."""
