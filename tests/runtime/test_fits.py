"""Bundles against an engine's own tokenizer: its pieces are read as the compiler reads its file."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolc.compiler.vocab import TokenTable, builtin_path, load_tokens
from toolc.runtime import DecodeError
from toolc.runtime.adapters.fits import Fits, _check_tokens

from .handmade import bundle

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")


def vocab(table: TokenTable) -> Any:
    """What the check asks of a vocabulary."""
    return SimpleNamespace(
        size=len(table.tokens), token=table.tokens.__getitem__, special=table.special, shown=lambda token: str(token)
    )


def engine(path: Path) -> Any:
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))


@pytest.mark.parametrize("name", ["llama3.json", "qwen3.json"])
def test_real_tokenizers(shared: Path, name: str) -> None:
    folder = shared / "tokenizers"
    other = "qwen3.json" if name == "llama3.json" else "llama3.json"
    known = engine(folder / name)
    _check_tokens("b", vocab(load_tokens(folder / name)), known, None)
    for wrong in (folder / other, builtin_path()):
        with pytest.raises(DecodeError, match="another tokenizer"):
            _check_tokens("b", vocab(load_tokens(wrong)), known, None)


def metaspace(path: Path) -> Path:
    """A file of a small tokenizer as SentencePiece's converters write it."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE(byte_fallback=True, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="first")
    replace, strip = tokenizers.decoders.Replace("▁", " "), tokenizers.decoders.Strip(content=" ", left=1, right=0)
    fallback, fuse = tokenizers.decoders.ByteFallback(), tokenizers.decoders.Fuse()
    made.decoder = tokenizers.decoders.Sequence([replace, fallback, fuse, strip])
    names = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<unk>", "<s>", "</s>", *names], show_progress=False
    )
    made.train_from_iterator(["The quick brown fox jumps over the lazy dog", "naïve café, 東京"] * 4, trainer)
    document = json.loads(made.to_str())
    document["added_tokens"] = [token for token in document["added_tokens"] if not token["content"].startswith("<0x")]
    path.write_text(json.dumps(document))
    return path


def test_a_tokenizer_of_words_and_bytes(tmp_path: Path) -> None:
    path = metaspace(tmp_path / "tokenizer.json")
    table = load_tokens(path)
    _check_tokens("b", vocab(table), engine(path), None)
    for token in (5, 200, len(table.tokens) - 1):
        tokens = list(table.tokens)
        tokens[token] = b"other"
        changed = SimpleNamespace(
            size=len(tokens), token=tokens.__getitem__, special=table.special, shown=lambda token: str(token)
        )
        with pytest.raises(DecodeError, match=f"token {token} as"):
            _check_tokens("b", changed, engine(path), None)


def test_added_tokens_and_sizes(tmp_path: Path) -> None:
    path = metaspace(tmp_path / "tokenizer.json")
    known = engine(path)
    known.add_tokens(["<call>", "plain text"])
    known.add_special_tokens({"additional_special_tokens": ["<|end|>"]})
    known.backend_tokenizer.save(str(tmp_path / "more.json"))
    more = vocab(load_tokens(tmp_path / "more.json"))
    _check_tokens("b", more, known, None)
    _check_tokens("b", more, known, more.size + 64)
    few = vocab(load_tokens(path))
    with pytest.raises(DecodeError, match="another tokenizer; found"):
        _check_tokens("b", few, known, None)
    with pytest.raises(DecodeError, match="another tokenizer; found"):
        _check_tokens("b", more, engine(path), None)
    _check_tokens("b", few, known, few.size)  # the model has no logits for what was added


def test_each_vocabulary_is_compared_once() -> None:
    asked = []

    class Counting:
        def __len__(self) -> int:
            return 96

        def convert_ids_to_tokens(self, ids: list[int]) -> list[Any]:
            asked.append(len(ids))
            names = {token: name for name, token in bundle("words").vocab.special.items()}
            return [names.get(token) or bundle("words").vocab.token(token) for token in ids]

    fits = Fits(Counting, 96, lambda: [3, 0])
    for kind in ("words", "brackets", "words"):
        fits.check(bundle(kind))
    assert asked == [96]
    with pytest.raises(DecodeError, match="other ends of turn"):
        Fits(Counting, 96, lambda: [3]).check(bundle("words"))
