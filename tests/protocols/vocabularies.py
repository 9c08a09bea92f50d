"""Small vocabularies of the families: the built-in text tokens, and a family's delimiters as tokens or as text."""

from __future__ import annotations

import functools

from tests.cases.protocols import FAMILIES
from toolc.compiler.lift.vocab import build_vocab
from toolc.compiler.vocab import load_tokens
from toolc.compiler.vocab.table import TokenTable
from toolc.runtime import Vocab


@functools.cache
def text_tokens() -> tuple[bytes, ...]:
    """The built-in vocabulary's tokens that stand for text."""
    return tuple(token for token in load_tokens("builtin").tokens if token)


@functools.cache
def vocab_for(
    family: str, as_tokens: bool = True, more: tuple[bytes, ...] = (), ends: tuple[str, ...] | None = None
) -> Vocab:
    """The built-in text tokens, some more, and the family's own; without ``as_tokens`` only those that end a turn.

    Args:
        ends: tokens that end a turn in place of the family's own.
    """
    chosen = FAMILIES[family]
    end = chosen.ends if ends is None else ends
    special = list(dict.fromkeys([*chosen.ends, *end, *(chosen.tokens if as_tokens else ())]))
    tokens = text_tokens() + more
    ids = {name: len(tokens) + i for i, name in enumerate(special)}
    table = TokenTable(
        tokens=tokens + (b"",) * len(special),
        special=ids,
        end_of_turn=tuple(sorted(ids[name] for name in end)),
        source=family,
        end_of_turn_origin="tests",
    )
    return build_vocab(table)
