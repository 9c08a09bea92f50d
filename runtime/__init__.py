"""The runtime: open a bundle, constrain one sequence (`Matcher`) or a batch (`BatchMatcher`)
on the host, or a batch on a device (`Decoder`).

Leaves out   compiling: see toolc.compiler, which this never imports.
Invariants   importing this loads numpy and msgpack at most; numba and torch load when a matcher or decoder is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import errors
from .errors import ArgumentError, BundleError, DecodeError, RequestError, StoreError, ToolcError
from .lazy import lazy_names

if TYPE_CHECKING:
    from .adapters.constraint import Constraint
    from .calls.events import Call, Event
    from .calls.explain import Explanation, explain
    from .calls.reader import Reader
    from .calls.text_stream import TextStream
    from .calls.typed import read_value, run
    from .calls.whole_text import read_calls
    from .calls.writer import Written, write_call, write_calls
    from .device.decoder import Decoder
    from .format.bundle import Bundle
    from .format.tables import Tables
    from .format.vocab import Vocab, find_vocab, vocab_cache_dir
    from .host.batch import BatchMatcher
    from .host.matcher import Matcher
    from .selection.subset import subset
    from .serving.requests import read_request
    from .store.fetch import load
    from .store.store import Store, open_store
    from .version import __version__

_HOME = {
    "Explanation": "calls.explain",
    "explain": "calls.explain",
    "__version__": "version",
    "BatchMatcher": "host.batch",
    "Bundle": "format.bundle",
    "Constraint": "adapters.constraint",
    "Decoder": "device.decoder",
    "Call": "calls.events",
    "Event": "calls.events",
    "Matcher": "host.matcher",
    "Store": "store.store",
    "Reader": "calls.reader",
    "Tables": "format.tables",
    "TextStream": "calls.text_stream",
    "Vocab": "format.vocab",
    "find_vocab": "format.vocab",
    "load": "store.fetch",
    "open_store": "store.store",
    "read_calls": "calls.whole_text",
    "read_request": "serving.requests",
    "read_value": "calls.typed",
    "run": "calls.typed",
    "Written": "calls.writer",
    "subset": "selection.subset",
    "vocab_cache_dir": "format.vocab",
    "write_call": "calls.writer",
    "write_calls": "calls.writer",
}

__all__ = [
    "ArgumentError",
    "BatchMatcher",
    "Bundle",
    "BundleError",
    "Call",
    "Constraint",
    "DecodeError",
    "Decoder",
    "Event",
    "Explanation",
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
    "__version__",
    "errors",
    "explain",
    "find_vocab",
    "load",
    "open_store",
    "read_calls",
    "read_request",
    "read_value",
    "run",
    "subset",
    "vocab_cache_dir",
    "write_call",
    "write_calls",
]


__getattr__ = lazy_names(globals(), _HOME)
