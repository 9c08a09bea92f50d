"""Ids far beyond the tokens that a tokenizer names: refused before anything of their size is made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from toolc.compiler.errors import VocabError
from toolc.compiler.vocab.load import load_tokens

BPE = {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "decoder": {"type": "ByteLevel"}}


def _tekken(size: int, reserved: int) -> str:
    config = {"default_vocab_size": size, "default_num_special_tokens": reserved, "version": "v7"}
    return json.dumps({"config": config, "vocab": [{"rank": 0, "token_bytes": "YQ=="}]})


FILES: dict[str, Callable[[int], str]] = {
    "vocab": lambda top: json.dumps(BPE | {"model": BPE["model"] | {"vocab": {"a": 0, "b": top}}}),  # type: ignore[operator]
    "added": lambda top: json.dumps(BPE | {"added_tokens": [{"id": top, "content": "<|end|>", "special": True}]}),
    "ranks": lambda top: f"YQ== 0\nYg== {top}\n",
    "tekken": lambda top: _tekken(top + 1, top),
}


@pytest.mark.parametrize("top", [1 << 17, 1 << 24, 10**12])
@pytest.mark.parametrize("kind", FILES)
def test_ids_without_tokens(kind: str, top: int, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer"
    path.write_text(FILES[kind](top))
    with pytest.raises(VocabError, match=r"no vocabulary has|contradict each other"):
        load_tokens(path)


@pytest.mark.parametrize("kind", FILES)
def test_some_ids_may_have_no_token(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer"
    path.write_text(FILES[kind](999))
    assert load_tokens(path).size == 1000


def test_an_end_of_turn_far_beyond_the_ranks(tmp_path: Path) -> None:
    """A rank file names no control tokens, so any id may be one."""
    path = tmp_path / "tokenizer"
    path.write_text(FILES["ranks"](1))
    assert load_tokens(path, eos=[5]).end_of_turn == (5,)
    with pytest.raises(VocabError, match="no such token id"):
        load_tokens(path, eos=[10**9])
