"""GGUF files: what their tokens stand for, what ends a turn, and that none of them is trusted.

Leaves out   real files and llama.cpp's own reading of them: see tests/engines/test_llama_cpp.py.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from toolc.compiler.cli import cli
from toolc.compiler.errors import VocabError
from toolc.compiler.pipeline import compile_tools
from toolc.compiler.vocab import TokenTable, builtin_path, load_tokens
from toolc.compiler.vocab.encode import encoder
from toolc.compiler.vocab.gguf import MOST_BYTES, MOST_ITEMS, MOST_KEYS, chat_template
from toolc.compiler.vocab.hf_json import byte_alphabet
from toolc.compiler.vocab.load import fingerprint

from .gguf_files import (
    ARRAY,
    BOOL,
    BYTE,
    CONTROL,
    F32,
    I32,
    NORMAL,
    STRING,
    U8,
    U32,
    U64,
    UNKNOWN,
    UNUSED,
    USER,
    gguf,
    text,
    vocabulary,
)

TOKENS = [
    ("a", NORMAL),
    ("Ġa", NORMAL),
    ("Ã©", NORMAL),
    ("<|im_end|>", CONTROL),
    ("<tool_call>", USER),
    ("  ", USER),
    ("[PAD6]", UNUSED),
    ("<unk>", UNKNOWN),
    ("<unused3>", NORMAL),
    ("→", NORMAL),
]
PIECES = [
    ("<unk>", UNKNOWN),
    ("<s>", CONTROL),
    ("</s>", CONTROL),
    ("<0x0A>", BYTE),
    ("▁the", NORMAL),
    ("<b>", USER),
    ("é", NORMAL),
    ("▁▁", USER),
]


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., TokenTable]:
    def load(fields: Any, **options: Any) -> TokenTable:
        path = tmp_path / "model.gguf"
        path.write_bytes(fields if isinstance(fields, bytes) else gguf(fields))
        return load_tokens(path, **options)

    return load


def test_byte_level(load: Callable[..., TokenTable]) -> None:
    table = load(vocabulary(TOKENS, eos_token_id=(U32, 3)))
    assert table.tokens == (b"a", b" a", "é".encode(), b"", b"", b"  ", b"", b"", b"", b"")
    assert table.special == {"<|im_end|>": 3, "<tool_call>": 4, "<unk>": 7}
    assert table.end_of_turn == (3,) and table.end_of_turn_origin == "the tokenizer file"
    assert table.logits_width == len(TOKENS) and table.source == "model.gguf"


@pytest.mark.parametrize(
    ("model", "more"), [("llama", {}), ("t5", {}), ("gemma4", {}), ("gpt2", {"pre": (STRING, "gemma4")})]
)
def test_pieces(load: Callable[..., TokenTable], model: str, more: dict[str, Any]) -> None:
    table = load(vocabulary(PIECES, model, eos_token_id=(U32, 2), **more))
    assert table.tokens == (b"", b"", b"", b"\n", b" the", b"", "é".encode(), "▁▁".encode())
    assert table.special == {"<unk>": 0, "<s>": 1, "</s>": 2, "<b>": 5}


def test_all_ends_count(load: Callable[..., TokenTable]) -> None:
    tokens = [*TOKENS, ("<|eot_id|>", CONTROL), ("<|eom_id|>", NORMAL)]
    ends = {"eos_token_id": (U32, 3), "eot_token_id": (U32, 10), "eom_token_id": (I32, 11)}
    assert load(vocabulary(tokens, **ends)).end_of_turn == (3, 10, 11)
    assert load(vocabulary(tokens, **ends), eos=["<|eot_id|>"]).end_of_turn == (10,)
    for kind, none in ((U32, (1 << 32) - 1), (I32, -1), (U64, (1 << 64) - 1)):
        assert load(vocabulary(tokens, **ends | {"eot_token_id": (kind, none)})).end_of_turn == (3, 11)
    nameless = load(vocabulary(tokens))
    assert nameless.end_of_turn_origin == "well-known name <|eot_id|>"


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ((U32, 10), "0 to 9"),
        ((STRING, "3"), "0 to 9"),
        ((BOOL, True), "0 to 9"),
        ((F32, 3.0), "0 to 9"),
        ((ARRAY, (U32, [3])), "0 to 9"),
        ((U32, 0), "cannot be one that stands for text"),
    ],
)
def test_ends_that_are_none(load: Callable[..., TokenTable], end: tuple[int, Any], message: str) -> None:
    with pytest.raises(VocabError, match=message):
        load(vocabulary(TOKENS, eos_token_id=end))


def test_a_text_token_ends_nothing_unless_another_is_named(load: Callable[..., TokenTable]) -> None:
    assert load(vocabulary(TOKENS, eos_token_id=(U32, 0)), eos=[3]).end_of_turn == (3,)


def test_the_width_of_logits(load: Callable[..., TokenTable]) -> None:
    assert load(vocabulary(TOKENS), logits_width=64).logits_width == 64
    with pytest.raises(VocabError, match="fewer logits"):
        load(vocabulary(TOKENS), logits_width=2)


@pytest.mark.parametrize(
    ("change", "place", "message"),
    [
        ({"tokenizer.ggml.model": (STRING, "bert")}, "#tokenizer.ggml.model", "WordPiece"),
        ({"tokenizer.ggml.model": (STRING, "rwkv")}, "#tokenizer.ggml.model", "'gpt2'"),
        ({"tokenizer.ggml.model": (U32, 1)}, "#tokenizer.ggml.model", "found 1"),
        ({"tokenizer.ggml.tokens": (ARRAY, (U32, [1]))}, "#tokenizer.ggml.tokens", "an array of strings"),
        ({"tokenizer.ggml.tokens": (STRING, "a")}, "#tokenizer.ggml.tokens", "an array of strings"),
        ({"tokenizer.ggml.tokens": (ARRAY, (STRING, [b"\xff"]))}, "#tokenizer.ggml.tokens/0", "UTF-8"),
        ({"tokenizer.ggml.token_type": (ARRAY, (I32, [1]))}, "#tokenizer.ggml.token_type", "an array of 10 numbers"),
        ({"tokenizer.ggml.token_type": (ARRAY, (F32, [1.0] * 10))}, "#tokenizer.ggml.token_type", "other numbers"),
        ({"tokenizer.ggml.token_type": (U32, 1)}, "#tokenizer.ggml.token_type", "an array of 10 numbers"),
    ],
)
def test_refused(load: Callable[..., TokenTable], change: dict[str, Any], place: str, message: str) -> None:
    with pytest.raises(VocabError, match=message) as caught:
        load(vocabulary(TOKENS) | change)
    assert caught.value.place == "model.gguf" + place


def test_a_file_without_a_vocabulary(load: Callable[..., TokenTable]) -> None:
    with pytest.raises(VocabError, match="mmproj"):
        load({"general.architecture": (STRING, "clip")})


def nested(depth: int) -> tuple[int, Any]:
    array: Any = (U8, [1])
    for _ in range(depth):
        array = (ARRAY, [array])
    return ARRAY, array


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gguf(vocabulary(TOKENS), version=1), "found 1"),
        (b"GGUF\0\0\0\3" + bytes(16), "big-endian"),
        (gguf({}, keys=MOST_KEYS + 1), f"at most {MOST_KEYS}"),
        (gguf({}, keys=1 << 63), "keys"),
        (gguf({"a": (U32, 1)}, keys=2), "truncated"),
        (gguf(vocabulary(TOKENS))[:24] + b"\xff" * 8, f"more than {MOST_BYTES} bytes"),
        (gguf({"a": nested(5)}), "an array in arrays"),
        (gguf({}, keys=1) + text("a") + b"\x0d\0\0\0", "0 to 12"),
        (gguf({}, keys=1) + text("a") + b"\x09\0\0\0\x08\0\0\0" + b"\xff" * 8 + bytes(1 << 10), "truncated"),
        (gguf({}, keys=1) + text("a") + b"\x09\0\0\0\x05\0\0\0" + b"\xff" * 8, "wrong length"),
        (gguf({"tokenizer.ggml.model": (STRING, "gpt2")}, keys=2) + text("tokenizer.ggml.model"), "truncated"),
        (gguf(vocabulary(TOKENS), keys=7) + gguf({"tokenizer.ggml.model": (STRING, "gpt2")})[24:], "a key twice"),
    ],
)
def test_hostile(load: Callable[..., TokenTable], data: bytes, message: str) -> None:
    with pytest.raises(VocabError, match=message):
        load(data)


@pytest.mark.parametrize("inner", [STRING, ARRAY])
def test_bombs_are_refused_in_time(load: Callable[..., TokenTable], inner: int) -> None:
    """Empty strings, or empty arrays, as many as the file says."""
    element = b"\0" * 8 if inner == STRING else b"\0" * 12
    head = gguf({}, keys=1) + text("a") + b"\x09\0\0\0" + inner.to_bytes(4, "little") + b"\xff" * 8
    begin = time.process_time()
    with pytest.raises(VocabError, match=f"more than {MOST_ITEMS} items"):
        load(head + element * (MOST_ITEMS + 1))
    assert time.process_time() - begin < 8


def test_cut_short_and_edited_files(load: Callable[..., TokenTable]) -> None:
    whole = gguf(vocabulary(TOKENS, eos_token_id=(U32, 3), chat=(ARRAY, (ARRAY, [(U8, [1, 2])]))))
    for end in range(4, len(whole)):
        with pytest.raises(VocabError):
            load(whole[:end])
    pick = random.Random(5)
    opened = 0
    for _ in range(1000):
        data = bytearray(whole)
        for _ in range(pick.randint(1, 4)):
            data[pick.randrange(4, len(data))] = pick.choice([0, 1, 5, 8, 9, 0xFF, pick.randrange(256)])
        try:
            opened += load(bytes(data)).size > 0
        except VocabError:
            pass
    assert 100 < opened < 950


def test_only_the_metadata_is_read(tmp_path: Path) -> None:
    """A model of 64 GiB, most of it a hole."""
    small, large = tmp_path / "small" / "model.gguf", tmp_path / "large" / "model.gguf"
    for path in (small, large):
        path.parent.mkdir()
        path.write_bytes(gguf(vocabulary(TOKENS)))
    with large.open("r+b") as stream:
        stream.truncate(1 << 36)
    assert load_tokens(large) == load_tokens(small)
    assert fingerprint(large) == fingerprint(small) != fingerprint(small, logits_width=64)
    assert encoder(large) is None
    small.write_bytes(gguf(vocabulary(TOKENS[:-1])))
    assert fingerprint(large) != fingerprint(small)


def test_a_folder(tmp_path: Path) -> None:
    """No file beside it counts: llama.cpp looks at none."""
    (tmp_path / "model.gguf").write_bytes(gguf(vocabulary(TOKENS, eos_token_id=(U32, 3))))
    (tmp_path / "config.json").write_text('{"vocab_size": 64, "eos_token_id": 4}')
    table = load_tokens(tmp_path)
    assert (table.end_of_turn, table.logits_width) == ((3,), len(TOKENS))


def test_the_chat_template(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(vocabulary(TOKENS) | {"tokenizer.chat_template": (STRING, "{{ messages }}")}))
    assert chat_template(path) == "{{ messages }}"
    path.write_bytes(gguf(vocabulary(TOKENS)))
    assert chat_template(path) is None


def test_compiled(tmp_path: Path) -> None:
    """The command takes such a file like any other; the bundle has the tables of the same tokens from elsewhere."""
    builtin = load_tokens(builtin_path())
    alphabet = byte_alphabet()
    control = {token: name for name, token in builtin.special.items()}
    tokens = [
        (control[n], CONTROL)
        if n in control
        else ("".join(alphabet[b] for b in data), NORMAL)
        if data
        else ("", UNUSED)
        for n, data in enumerate(builtin.tokens)
    ]
    path, spec, out = tmp_path / "model.gguf", tmp_path / "spec.json", tmp_path / "out.toolc"
    path.write_bytes(gguf(vocabulary(tokens, eos_token_id=(U32, builtin.end_of_turn[0]))))
    assert load_tokens(path).tokens == builtin.tokens
    spec.write_text('[{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]')
    result = CliRunner().invoke(cli, ["compile", str(spec), "--tokenizer", str(path), "-o", str(out)])
    assert result.exit_code == 0, result.output
    made = compile_tools(spec, path).bundle
    assert made.vocab.logits_width == builtin.size
    assert made.tables.row_list.tolist() == compile_tools(spec).bundle.tables.row_list.tolist()
