"""The built-in vocabulary is what its script makes, and small."""

from __future__ import annotations

import copy
import hashlib
import pickle

from toolc.compiler.lift.vocab import load_vocab
from toolc.compiler.vocab import builtin_path, load_tokens
from toolc.compiler.vocab.train_builtin import CONTROL, SIZE, corpus, train
from toolc.runtime.format.vocab import Vocab

CORPUS = "5575a69d120392069be97d8c09a0f287"  # BLAKE2b-128 of the training text


def test_corpus_is_the_same_everywhere() -> None:
    assert hashlib.blake2b("".join(corpus()).encode(), digest_size=16).hexdigest() == CORPUS


def test_trained_again_it_is_the_same_file() -> None:
    assert train() == builtin_path().read_text(encoding="utf-8")


def test_size_and_control_tokens() -> None:
    table = load_tokens("builtin")
    assert table.size == SIZE and builtin_path().stat().st_size < 400_000
    assert list(table.special) == [name for name, _ in CONTROL]
    assert list(table.special.values()) == list(range(SIZE - len(CONTROL), SIZE))
    assert table.end_of_turn == (table.special["<|end|>"],)
    assert len(set(table.tokens)) == SIZE - len(CONTROL) + 1  # no two text tokens are equal


def test_what_is_made_of_a_vocabulary_is_made_once_and_not_copied() -> None:
    vocab = load_vocab("builtin", ())

    def made(of: Vocab) -> list[int]:
        return [of.size]

    found = vocab.once(made)
    assert found == [vocab.size] and vocab.once(made) is found
    for other in (copy.copy(vocab), pickle.loads(pickle.dumps(vocab))):
        assert other.once(made) == found and other.once(made) is not found
