"""Names of files as text, for what errors, bundles and tables say of them.

Leaves out   opening files: that takes the name itself, whose bytes need not be UTF-8.
"""

from __future__ import annotations

import os


def path_text(path: str | os.PathLike[str]) -> str:
    """The name with escapes for what is no UTF-8, as stderr shows it: ``bad\\udcff.json``."""
    return os.fspath(path).encode("utf-8", "backslashreplace").decode()
