"""The bytes of every format against the library that owns it: decoding random ids equals joining the bytes.

Leaves out   control tokens and the choice of an end of turn: see test_control.py.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from toolc.compiler.vocab import TokenTable, builtin_path, load_tokens

tokenizers = pytest.importorskip("tokenizers")

PROSE = (
    "The quick brown fox jumps over the lazy dog. Pack my box with five dozen liquor jugs! "
    '{"name": "get_weather", "arguments": {"city": "São Paulo", "days": [1, 2, 3]}}\n'
    "\tÜber, naïve café; 東京の天気。 Привет, мир 🚀 don't 3.14159  double  spaces "
)


def text_ids(table: TokenTable) -> list[int]:
    return [token for token, content in enumerate(table.tokens) if content]


def samples(table: TokenTable, count: int = 60, length: int = 40, seed: int = 7) -> list[list[int]]:
    rng, ids = random.Random(seed), text_ids(table)
    return [[rng.choice(ids) for _ in range(length)] for _ in range(count)]


def joined(table: TokenTable, ids: Sequence[int]) -> bytes:
    return b"".join(table.tokens[token] for token in ids)


def check_strings(table: TokenTable, decode: Callable[[list[int]], str], samples: list[list[int]]) -> None:
    for ids in samples:
        assert decode(ids) == joined(table, ids).decode(errors="replace")


def check_every_token(table: TokenTable, decode: Callable[[list[int]], str], anchor: int) -> None:
    """Every text token alone, in the middle of a text: after and before the same anchor token."""
    edge = table.tokens[anchor].decode()
    for token in text_ids(table):
        content = table.tokens[token].decode(errors="replace")
        assert decode([anchor, token, anchor]) == edge + content + edge, token


# ---- tokenizer.json


def library(path: Path) -> Callable[[list[int]], str]:
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    return lambda ids: tokenizer.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize("name", ["llama3.json", "qwen3.json"])
def test_real_byte_level(shared: Path, name: str) -> None:
    path = shared / "tokenizers" / name
    table = load_tokens(path)
    decode = library(path)
    check_strings(table, decode, samples(table))
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    assert table.size == tokenizer.get_vocab_size()
    ids = tokenizer.encode(PROSE, add_special_tokens=False).ids
    assert joined(table, ids) == PROSE.encode()


def test_builtin() -> None:
    table = load_tokens("builtin")
    decode = library(builtin_path())
    check_strings(table, decode, samples(table))
    check_every_token(table, decode, anchor=table.tokens.index(b"a"))
    assert set(range(256)) == {content[0] for content in table.tokens if len(content) == 1}


def byte_pieces(table: TokenTable, rng: random.Random) -> list[int]:
    """Characters spelled with byte tokens; whole ones, as the library writes a broken run as one U+FFFD a byte."""
    out: list[int] = []
    for char in rng.sample("é☃🚀\nÿ中", 3):
        out += [table.tokens.index(bytes([byte])) for byte in char.encode()]
    return out


def metaspace_bpe(scheme: str) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = tokenizers.decoders.Sequence(
        [
            tokenizers.decoders.Replace("▁", " "),
            tokenizers.decoders.ByteFallback(),
            tokenizers.decoders.Fuse(),
            tokenizers.decoders.Strip(content=" ", left=1, right=0),
        ]
    )
    byte_names = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<unk>", "<s>", "</s>", *byte_names], show_progress=False
    )
    tokenizer.train_from_iterator([PROSE.replace("\n", " ")] * 4, trainer)
    document = json.loads(tokenizer.to_str())
    # the trainer can only make them as special tokens; in a real file they are plain entries of the vocabulary
    document["added_tokens"] = [token for token in document["added_tokens"] if not token["content"].startswith("<0x")]
    return tokenizers.Tokenizer.from_str(json.dumps(document))


@pytest.mark.parametrize("scheme", ["first", "always", "never"])
def test_metaspace_bpe_with_byte_fallback(tmp_path: Path, scheme: str) -> None:
    tokenizer = metaspace_bpe(scheme)
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    table = load_tokens(path)
    assert table.special == {"<unk>": 0, "<s>": 1, "</s>": 2}
    assert table.tokens[3 : 3 + 256] == tuple(bytes([byte]) for byte in range(256))
    anchor = table.tokens.index(b".", 3 + 256)
    whole = [t for t in text_ids(table) if t >= 3 + 256]
    rng = random.Random(1)
    for _ in range(60):
        ids = [anchor]
        for _ in range(8):
            ids += [rng.choice(whole), *byte_pieces(table, rng), rng.choice(whole)]
        assert tokenizer.decode(ids, skip_special_tokens=False) == joined(table, ids).decode()


@pytest.mark.parametrize("scheme", ["first", "always", "never"])
def test_unigram(tmp_path: Path, scheme: str) -> None:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = tokenizers.decoders.Metaspace(prepend_scheme=scheme)
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=200, special_tokens=["<unk>", "</s>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator([PROSE.replace("\n", " ")] * 4, trainer)
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    table = load_tokens(path)
    decode = library(path)
    anchor = table.tokens.index(b".")
    check_strings(table, decode, [[anchor, *ids] for ids in samples(table)])
    check_every_token(table, decode, anchor)
    assert table.special == {"<unk>": 0, "</s>": 1}


def test_byte_level_with_tokens_outside_the_alphabet(tmp_path: Path) -> None:
    """The library writes a token with any character outside the alphabet as it stands; added text tokens are such."""
    tokenizer = tokenizers.Tokenizer.from_file(str(builtin_path()))
    tokenizer.add_tokens(["   two words   ", "漢字", "tab\there", "🚀"])
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    table = load_tokens(path)
    assert table.tokens[-4:] == (b"   two words   ", "漢字".encode(), b"tab\there", "🚀".encode())
    check_strings(table, library(path), samples(table, count=10) + [[table.size - 1 - n for n in range(4)]])


# ---- tiktoken


def test_tiktoken_ranks(tmp_path: Path) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {content: rank for rank, content in enumerate(load_tokens("builtin").tokens) if content}
    path = tmp_path / "ours.tiktoken"
    path.write_bytes(b"".join(base64.b64encode(content) + b" %d\n" % rank for content, rank in ranks.items()))
    encoding = tiktoken.Encoding("ours", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={})
    table = load_tokens(path)
    assert table.special == {} and table.end_of_turn == ()
    for ids in samples(table):
        assert encoding.decode_bytes(ids) == joined(table, ids)


# ---- Mistral's and SentencePiece's files, as mistral_common ships them


def mistral_files(pattern: str) -> list[str]:
    spec = importlib.util.find_spec("mistral_common")
    if spec is None or not spec.submodule_search_locations:
        return []
    return sorted(str(path) for path in Path(spec.submodule_search_locations[0], "data").glob(pattern))


def base_name(path: str) -> str:
    return Path(path).name


@pytest.mark.parametrize("path", mistral_files("tekken*.json"), ids=base_name)
def test_tekken(path: str) -> None:
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    theirs = Tekkenizer.from_file(path)
    table = load_tokens(path)
    assert table.size == theirs.n_words
    assert set(table.special.values()) == theirs.special_ids
    assert table.end_of_turn == (theirs.eos_id,)
    check_strings(table, lambda ids: theirs.decode(ids), samples(table))
    assert joined(table, theirs.encode(PROSE, bos=False, eos=False)) == PROSE.encode()


@pytest.mark.parametrize("path", mistral_files("*.model.v*"), ids=base_name)
def test_sentencepiece(path: str) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    theirs = sentencepiece.SentencePieceProcessor(model_file=path)
    table = load_tokens(path)
    assert table.size == theirs.get_piece_size()
    assert table.end_of_turn == (theirs.eos_id(),)
    for token in range(table.size):
        # user-defined pieces such as [REF] are control tokens by the rule of table.py
        markup = "[" in theirs.id_to_piece(token) and token in table.special.values()
        silent = theirs.is_control(token) or theirs.is_unknown(token) or theirs.is_unused(token) or markup
        assert bool(table.tokens[token]) != silent, theirs.id_to_piece(token)
    anchor = table.tokens.index(b"a", 3 + 256)

    def squeezed(text: str) -> str:  # for a broken run of byte pieces it writes one U+FFFD a byte, Python one a run
        return re.sub("�+", "�", text)

    for ids in samples(table):
        ids = [anchor, *ids]
        assert squeezed(theirs.decode(ids)) == squeezed(joined(table, ids).decode(errors="replace"))
    assert joined(table, theirs.encode(PROSE.strip())) == b" " + PROSE.strip().encode()
