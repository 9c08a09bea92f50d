"""Which file an output option names, decided before a command works.

Leaves out   writing it (runtime/format/container.py, `replace_file`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from .terminal import refuse_usage


def output_file(name: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str] | None] = ()) -> Path:
    """The file that an output names, behind links.

    A usage error where it is a folder or in none, a device or a pipe, or one of the files that the command reads.
    """
    path = Path(os.path.realpath(name))
    try:
        mode = path.stat().st_mode if path.exists() else None
        inside = path.parent.is_dir()
    except OSError as error:
        refuse_usage(f"the output {name} cannot be a file: {error.strerror}")
    if mode is not None and stat.S_ISDIR(mode):
        refuse_usage(f"the output {name} is a folder; name a file in it")
    if mode is not None and not stat.S_ISREG(mode):
        refuse_usage(f"the output {name} is no file but a device or a pipe; name a file")
    if not inside:
        refuse_usage(f"the folder of the output {name} does not exist")
    for one in inputs:
        if one is not None and mode is not None and os.path.exists(one) and os.path.samefile(one, path):
            refuse_usage(f"the output {name} is the file that is read; name another")
    return path
