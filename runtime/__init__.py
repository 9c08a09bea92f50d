"""The runtime: open a bundle, constrain one sequence on the host (`Matcher`) or a batch on a device (`Decoder`).

Leaves out   compiling: see toolc.compiler, which this never imports.
Invariants   importing this loads numpy and msgpack at most; numba and torch load when a matcher or decoder is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import errors
from .errors import BundleError, DecodeError, ToolcError

if TYPE_CHECKING:
    from .bundle import Bundle
    from .decoder import Decoder
    from .matcher import Matcher
    from .tables import Tables
    from .vocab import Vocab, find_vocab, vocab_cache_dir

_HOME = {
    "Bundle": "bundle",
    "Decoder": "decoder",
    "Matcher": "matcher",
    "Tables": "tables",
    "Vocab": "vocab",
    "find_vocab": "vocab",
    "vocab_cache_dir": "vocab",
}

__all__ = [
    "Bundle",
    "BundleError",
    "DecodeError",
    "Decoder",
    "Matcher",
    "Tables",
    "ToolcError",
    "Vocab",
    "errors",
    "find_vocab",
    "vocab_cache_dir",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value
