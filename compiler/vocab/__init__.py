"""Tokenizer files to the bytes of every token."""

from __future__ import annotations

from .builtin import NAME, builtin_path
from .load import WELL_KNOWN_ENDS, load_tokens
from .table import TokenTable

__all__ = ["NAME", "WELL_KNOWN_ENDS", "TokenTable", "builtin_path", "load_tokens"]
