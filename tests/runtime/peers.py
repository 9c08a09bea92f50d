"""Libraries that are too large to install for the tests: imported where they are installed, or from an unpacked wheel.

The variable of a library names the folder of its wheel's contents, and folders of what it imports, joined like $PATH:

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-*.whl -d vllm && TOOLC_VLLM=vllm:more pytest …
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import pytest


def function(module: Any, path: str, name: str, names: dict[str, Any]) -> Any:
    """One function of a library's file that cannot be imported as a whole.

    Args:
        module: a module of the library; path: of the file, from the library's folder.
        name: the function; names: what it refers to.
    """
    root = Path(module.__file__ or "")
    while root.name != module.__name__.split(".")[0]:
        root = root.parent
    tree = ast.parse((root / path).read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    exec(compile(tree, path, "exec"), names)  # the library's own code
    return names[name]


def peer(library: str, module: str) -> Any:
    """A module of a library; the tests of the calling module are skipped where it cannot be imported."""
    variable = f"TOOLC_{library.upper()}"
    if importlib.util.find_spec(library) is None:
        folders = os.environ.get(variable)
        if folders is None:
            pytest.skip(
                f"{library} is not installed, and ${variable} names no folder of its wheel", allow_module_level=True
            )
        sys.path += [folder for folder in folders.split(os.pathsep) if folder not in sys.path]
    return importlib.import_module(module)
