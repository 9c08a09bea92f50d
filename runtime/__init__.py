"""The runtime: open a bundle, constrain one sequence (`Matcher`) or a batch (`BatchMatcher`)
on the host, or a batch on a device (`Decoder`).

Leaves out   compiling: see toolc.compiler, which this never imports.
Invariants   importing this loads numpy and msgpack at most; numba and torch load when a matcher or decoder is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import errors
from .errors import BundleError, DecodeError, RequestError, StoreError, ToolcError

if TYPE_CHECKING:
    from .batch import BatchMatcher
    from .bundle import Bundle
    from .calls import Call, Event
    from .constraint import Constraint
    from .decoder import Decoder
    from .matcher import Matcher
    from .reader import Reader
    from .requests import read_request
    from .store.fetch import load
    from .store.store import Store, open_store
    from .tables import Tables
    from .text import TextStream
    from .vocab import Vocab, find_vocab, vocab_cache_dir
    from .writer import Written, write_call, write_calls

_HOME = {
    "BatchMatcher": "batch",
    "Bundle": "bundle",
    "Constraint": "constraint",
    "Decoder": "decoder",
    "Call": "calls",
    "Event": "calls",
    "Matcher": "matcher",
    "Store": "store.store",
    "Reader": "reader",
    "Tables": "tables",
    "TextStream": "text",
    "Vocab": "vocab",
    "find_vocab": "vocab",
    "load": "store.fetch",
    "open_store": "store.store",
    "read_calls": "whole",
    "read_request": "requests",
    "Written": "writer",
    "vocab_cache_dir": "vocab",
    "write_call": "writer",
    "write_calls": "writer",
}

__all__ = [
    "BatchMatcher",
    "Bundle",
    "BundleError",
    "Call",
    "Constraint",
    "DecodeError",
    "Decoder",
    "Event",
    "Matcher",
    "Reader",
    "RequestError",
    "Store",
    "StoreError",
    "Tables",
    "TextStream",
    "ToolcError",
    "Vocab",
    "Written",
    "errors",
    "find_vocab",
    "load",
    "open_store",
    "read_calls",
    "read_request",
    "vocab_cache_dir",
    "write_call",
    "write_calls",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value
