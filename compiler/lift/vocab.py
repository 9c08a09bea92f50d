"""Tokenizer files → the vocab file of a tokenizer, cached by the content of its source.

Leaves out   reading tokenizer formats (../vocab), the arrays (trie.py, slices.py), the file (runtime/vocab.py).
"""

from __future__ import annotations

from ..vocab.table import TokenTable
from .slices import unit_automata
from .trie import build_slices, build_trie, flatten

from toolc.runtime.vocab import Vocab


def build_vocab(table: TokenTable) -> Vocab:
    """The vocabulary of a token table: trie and slices."""
    units = unit_automata()
    offset, data = flatten(table.tokens)
    meta = {
        "size": len(table.tokens),
        "special": dict(sorted(table.special.items())),
        "end_of_turn": list(table.end_of_turn),
        "source": table.source,
        "slices": list(units.names),
    }
    return Vocab(
        token_offset=offset,
        token_bytes=data,
        **build_trie(table.tokens),
        **build_slices(offset, data, units),
        meta=meta,
    )
