"""Tokenizer objects of other libraries are taken as their files are."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from toolc.compiler import compile_schema, read_spec, source_key
from toolc.compiler.errors import VocabError
from toolc.compiler.vocab.builtin import builtin_path

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model's folder with the built-in tokenizer, some padding of its logits and two ends of turn."""
    folder = tmp_path / "org" / "small model"
    folder.mkdir(parents=True)
    tokenizers = pytest.importorskip("tokenizers")
    data = json.loads(_builtin_json())
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(data))
    tokenizer.save(str(folder / "tokenizer.json"))
    special = [one["content"] for one in data["added_tokens"] if one["special"]]
    ids = {one["content"]: one["id"] for one in data["added_tokens"]}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": special[0], "tokenizer_class": "PreTrainedTokenizerFast"})
    )
    width = tokenizer.get_vocab_size() + 8
    (folder / "config.json").write_text(json.dumps({"vocab_size": width, "model_type": "llama"}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [ids[special[0]], ids[special[1]]]}))
    return folder


def _builtin_json() -> str:
    from toolc.compiler.vocab.files import read_content

    return read_content(builtin_path()).data.decode()


def vocab_of(tokenizer: Any) -> Any:
    return compile_schema(SCHEMA, tokenizer).bundle.vocab


def test_transformers(model: Path, cache: Path) -> None:
    transformers = pytest.importorskip("transformers")
    loaded = transformers.AutoTokenizer.from_pretrained(str(model))
    ours, theirs = vocab_of(loaded), vocab_of(model)
    assert ours.special == theirs.special and ours.end_of_turn == theirs.end_of_turn and len(ours.end_of_turn) == 2
    assert [ours.token(n) for n in range(ours.size)] == [theirs.token(n) for n in range(theirs.size)]
    assert ours.meta.get("logits_width") == theirs.meta.get("logits_width")
    assert "small_model" in str(ours.meta["source"])
    assert vocab_of(loaded).digest == ours.digest and len(list((cache / "tokenizers").iterdir())) == 1
    spec = read_spec(SCHEMA)
    assert source_key(spec, loaded) == source_key(spec, ours)


def test_tokens_that_were_added_count(model: Path, cache: Path) -> None:
    transformers = pytest.importorskip("transformers")
    loaded = transformers.AutoTokenizer.from_pretrained(str(model))
    loaded.add_tokens(["<my_tool>"], special_tokens=True)
    assert "<my_tool>" in vocab_of(loaded).special and "<my_tool>" not in vocab_of(model).special


def test_tokenizers(model: Path, cache: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    ours = vocab_of(tokenizers.Tokenizer.from_file(str(model / "tokenizer.json")))
    theirs = vocab_of(model)
    assert [ours.token(n) for n in range(ours.size)] == [theirs.token(n) for n in range(theirs.size)]


def test_mistral_common(cache: Path) -> None:
    spec = importlib.util.find_spec("mistral_common")
    if spec is None or spec.origin is None:
        pytest.skip("mistral-common is not installed")
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    path = next(iter(sorted((Path(spec.origin).parent / "data").glob("tekken*.json"))), None)
    if path is None:
        pytest.skip("this mistral-common ships no tekken file")
    whole = MistralTokenizer.from_file(str(path))
    for one in (whole, whole.instruct_tokenizer, whole.instruct_tokenizer.tokenizer):
        assert vocab_of(one).digest == vocab_of(path).digest


def test_objects_that_hold_no_tokenizer() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    with pytest.raises(VocabError, match="this object holds no tokenizer that can be read; found an AddedToken"):
        compile_schema(SCHEMA, tokenizers.AddedToken("x"))
    bundle = compile_schema(SCHEMA, "builtin").bundle
    with pytest.raises(VocabError, match=r"found a Bundle, expected a path, .*; write bundle.vocab"):
        compile_schema(SCHEMA, bundle)
