"""Tokenizer → the vocab file of a tokenizer, cached by the content of its source.

Leaves out   reading tokenizer formats (../vocab), the arrays (trie.py, slices.py), the file (runtime/format/vocab.py).
Invariants   a cached file is the one that would be made: its key covers the tokenizer's files, the end-of-turn
             names, the unit automata and the file format. A cache that cannot be read or written costs time and
             nothing else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import toolc.runtime.format.vocab as runtime_vocab
from toolc.runtime.errors import BundleError
from toolc.runtime.format.container import replace_file
from toolc.runtime.format.vocab import Vocab, vocab_cache_dir

from ..vocab.load import fingerprint, load_tokens
from ..vocab.table import TokenTable
from .slices import unit_automata
from .trie import build_slices, build_trie, flatten

_DIGEST = re.compile("[0-9a-f]+")
_opened: dict[str, Vocab] = {}  # by key: a process compiles many specs for one tokenizer


def build_vocab(table: TokenTable) -> Vocab:
    """The vocabulary of a token table: trie and slices."""
    units = unit_automata()
    offset, data = flatten(table.tokens)
    meta = {
        "size": len(table.tokens),
        "special": dict(sorted(table.special.items())),
        "end_of_turn": list(table.end_of_turn),
        "source": table.source,
        "logits_width": table.logits_width,
        "slices": list(units.names),
    }
    arrays: dict[str, Any] = {**build_trie(table.tokens), **build_slices(offset, data, units)}
    return Vocab(
        token_offset=offset,
        token_bytes=data,
        meta=meta,
        **arrays,
    )


def load_vocab(source: str | Path, eos: Sequence[str | int] = (), logits_width: int | None = None) -> Vocab:
    """The vocabulary of a tokenizer, from the cache where it was made before.

    Args:
        source: a tokenizer file, a model folder, a Hugging Face id, or ``builtin``; see ``load_tokens``.
        eos: names or ids of the tokens that end a turn; by default what the tokenizer's own files say.
        logits_width: how many logits the model has; by default what its config.json says.

    Raises:
        VocabError: the tokenizer cannot be read.
    """
    print_ = fingerprint(source, eos, logits_width)
    if print_ is None:
        return _stored(build_vocab(load_tokens(source, eos, logits_width)))
    units = unit_automata()
    shape = repr((runtime_vocab.VERSION, units.names)).encode() + units.next_unit.tobytes()
    key = hashlib.blake2b(print_.encode() + shape, digest_size=16).hexdigest()
    if key not in _opened:
        _opened[key] = _cached(key) or _stored(build_vocab(load_tokens(source, eos, logits_width)), key)
    return _opened[key]


def _cached(key: str) -> Vocab | None:
    pointer = vocab_cache_dir() / f"{key}.key"
    try:
        digest = pointer.read_text().strip()
        return Vocab.open(vocab_cache_dir() / f"{digest}.vocab") if _DIGEST.fullmatch(digest) else None
    except (OSError, UnicodeDecodeError, BundleError):
        return None  # not there, or damaged: it is made anew


def _stored(vocab: Vocab, key: str = "") -> Vocab:
    """Keep a vocab file under its digest, where bundles look for it, and its key beside it."""
    folder = vocab_cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        vocab.write(folder / f"{vocab.digest}.vocab")
        if key:
            replace_file(folder / f"{key}.key", [vocab.digest.encode()], flush=False)
    except (OSError, BundleError):
        return vocab  # a read-only home: work without a cache
    return vocab
