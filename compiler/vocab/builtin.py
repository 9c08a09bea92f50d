"""The vocabulary that ships with toolc: small, byte-level, for demos and tests without a download.

Leaves out   how it was made: see train_builtin.py.
"""

from __future__ import annotations

from pathlib import Path

NAME = "builtin"


def builtin_path() -> Path:
    """The built-in tokenizer.json."""
    return Path(__file__).resolve().parent / "data" / "builtin.json"
