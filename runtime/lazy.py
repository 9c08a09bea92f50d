"""Import the modules behind a package's names when they are first used, so that importing the package is quick."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: dict[str, Any], home: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__` (PEP 562).

    Args:
        package: its ``globals()``, where names are kept once they are used.
        home: name → the module, below the package, that defines it.
    """
    own = package["__name__"]

    def attribute(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {own!r} has no attribute {name!r}")
        value = package[name] = getattr(import_module(f".{home[name]}", own), name)
        return value

    return attribute
