"""GGUF files of llama.cpp: the vocabulary in their metadata, read without a library.

Leaves out   merges, scores and normalizers: they say how text is cut, not what an id stands for. Tensors, which follow
             the metadata: only the metadata is read, however large the file is.
Invariants   a file is distrusted: bytes, strings and nesting are bounded before anything is kept, and a count is
             believed only as far as the file goes on. The bytes of a token are those that llama.cpp writes for it in
             the middle of a text. Control, unknown and unused tokens stand for no text; user-defined ones follow the
             rule for added tokens, see table.py. There are as many logits as tokens.
Ends         eos, eot and eom, all that the metadata names: llama.cpp stops at any of them.
Source       ggml/docs/gguf.md; llama.cpp, src/llama-vocab.cpp, token_to_piece. tests/engines/test_llama_cpp.py decodes
             with that library.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import VocabError
from ..paths import path_text
from .hf_json import byte_alphabet, decode_byte_level
from .sentencepiece_model import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED, byte_of
from .table import Draft, is_control, is_unused

MAGIC = b"GGUF"
MOST_BYTES = 1 << 27
"""Of metadata; a vocabulary of 262,144 tokens with its merges takes 15 MB."""
MOST_ITEMS = 1 << 21
"""Strings and arrays in all; a vocabulary of 262,144 tokens has 777,050 with its merges."""
MOST_KEYS = 1 << 16
_DEEPEST = 4  # arrays in arrays

_NUMBERS = dict(enumerate(map(struct.Struct, ("<B", "<b", "<H", "<h", "<I", "<i", "<f", "<?"))))
_NUMBERS |= {10: struct.Struct("<Q"), 11: struct.Struct("<q"), 12: struct.Struct("<d")}
_INT32 = 5
_HEAD = struct.Struct("<IQ")  # of an array: the kind of its elements, and how many
_STRING, _ARRAY = 8, 9

_PREFIX = "tokenizer.ggml."
_MODEL, _PRE, _TOKENS, _TYPES = (_PREFIX + name for name in ("model", "pre", "tokens", "token_type"))
_ENDS = tuple(f"{_PREFIX}{name}_token_id" for name in ("eos", "eot", "eom"))
_TEMPLATE = "tokenizer.chat_template"
_TOOL_TEMPLATE = _TEMPLATE + ".tool_use"
_WANTED = {_MODEL, _PRE, _TOKENS, _TYPES, _TEMPLATE, _TOOL_TEMPLATE, *_ENDS}
_NO_TOKEN = (-1, (1 << 32) - 1, (1 << 64) - 1)

_PIECES = ("llama", "t5", "gemma4")  # models whose tokens are SentencePiece's, with U+2581 for a space
_PIECES_OF_BPE = ("gemma4", "sarvam-moe")  # pre-tokenizers of `gpt2` with such tokens


def is_gguf(path: Path) -> bool:
    """Whether a file begins like one.

    Raises OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def metadata_bytes(path: Path) -> bytes:
    """The part of a file that says all about the vocabulary.

    Raises VocabError, OSError: as `read_gguf`.
    """
    with path.open("rb") as stream:
        _metadata(stream, path_text(path.name))
        end = stream.tell()
        stream.seek(0)
        return stream.read(end)


def chat_template(path: Path) -> str | None:
    """The chat template in a file, the one for tools if there are several; None if it has none.

    Raises VocabError, OSError: as `read_gguf`.
    """
    with path.open("rb") as stream:
        metadata = _metadata(stream, path_text(path.name))
    found = (metadata.get(name) for name in (_TOOL_TEMPLATE, _TEMPLATE))
    return next((template for template in found if isinstance(template, str)), None)


def read_gguf(path: Path) -> Draft:
    """The token bytes of a GGUF file.

    Raises:
        VocabError: truncated, too large, of another version, without a vocabulary or with one that toolc cannot write.
        OSError: it cannot be read.
    """
    place = path_text(path.name)
    with path.open("rb") as stream:
        found = _metadata(stream, place)
    names, kinds = found.get(_TOKENS), found.get(_TYPES)
    if not isinstance(names, list):
        raise VocabError(
            "a GGUF file without a vocabulary",
            place=f"{place}#{_TOKENS}",
            found=_shown(names),
            expected="an array of strings",
            hint="files of projectors (mmproj), of adapters and later parts of a split model have none",
        )
    if not isinstance(kinds, np.ndarray) or len(kinds) != len(names):
        raise VocabError(
            place=f"{place}#{_TYPES}", found=_shown(kinds), expected=f"an array of {len(names)} numbers, int32"
        )
    types = kinds.tolist()
    tokens = _bytes(found, names, types, place)
    special: dict[str, int] = {}
    ids: dict[str, int] = {}
    for token, (name, kind) in enumerate(zip(names, types)):
        ids.setdefault(name, token)
        named = kind == USER_DEFINED and is_control(name, False)
        if kind in (UNKNOWN, CONTROL) or named:
            special.setdefault(name, token)
        if named or is_unused(name):
            tokens[token] = b""
    draft = Draft(tokens=tokens, special=special, ids=ids, logits_width=len(tokens))
    draft.end_of_turn = _ends(found, len(tokens), place)
    return draft


def _bytes(found: dict[str, Any], names: list[str], kinds: list[int], place: str) -> list[bytes]:
    """The bytes of every token, user-defined ones as they stand."""
    model, pre = found.get(_MODEL), found.get(_PRE)
    texts = [name if kind == NORMAL else "" for name, kind in zip(names, kinds)]
    if model in _PIECES or (model == "gpt2" and pre in _PIECES_OF_BPE):
        tokens = [text.replace("\u2581", " ").encode() for text in texts]
        for token, kind in enumerate(kinds):
            if kind == BYTE:
                tokens[token] = byte_of(names[token], f"{place}#{_TOKENS}/{token}")
    elif model == "gpt2":
        # A character outside the alphabet makes llama.cpp write "[UNK_BYTE_0x…]": such a token is never allowed.
        alphabet = set(byte_alphabet())
        tokens = decode_byte_level([text if alphabet.issuperset(text) else "" for text in texts])
    else:
        raise VocabError(
            "a vocabulary that toolc cannot write exactly",
            place=f"{place}#{_MODEL}",
            found=_shown(model),
            expected=f"'gpt2', {', '.join(map(repr, _PIECES))}",
            hint="WordPiece models (bert) write a space before every word",
        )
    for token, kind in enumerate(kinds):
        if kind == USER_DEFINED:
            tokens[token] = names[token].encode()
    return tokens


def _ends(found: dict[str, Any], size: int, place: str) -> list[int]:
    """The ids that the metadata names as ends of a turn."""
    ends: dict[int, None] = {}
    for key in _ENDS:
        token = found.get(key)
        if token is None or token in _NO_TOKEN:
            continue
        if type(token) is not int or not 0 <= token < size:
            raise VocabError(
                "no such token id", place=f"{place}#{key}", found=_shown(token), expected=f"0 to {size - 1}"
            )
        ends[token] = None
    return list(ends)


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return "an array of other numbers"
    if isinstance(value, (list, np.ndarray)):
        return f"an array of {len(value)} {'strings' if isinstance(value, list) else value.dtype}"
    return "nothing" if value is None else ascii(value)[:60]


# ---- the format


class _Input:
    """The bytes of a file, as far as they may be read."""

    def __init__(self, stream: BinaryIO, place: str) -> None:
        self._stream = stream
        self._left = MOST_BYTES
        self._items = MOST_ITEMS
        self._place = place

    def take(self, count: int) -> bytes:
        """The next bytes."""
        self._left -= count
        if self._left < 0:
            raise VocabError(
                "metadata that no model has",
                place=self._place,
                found=f"more than {MOST_BYTES} bytes, or a wrong length",
            )
        data = self._stream.read(count)
        if len(data) != count:
            raise VocabError("a truncated GGUF file", place=self._place)
        return data

    def number(self, kind: int) -> Any:
        """The next number of a kind of `_NUMBERS`."""
        form = _NUMBERS[kind]
        return form.unpack(self.take(form.size))[0]

    def count(self) -> int:
        """The next length."""
        return int(_U64.unpack(self.take(8))[0])

    def string(self) -> bytes:
        """The next string."""
        self.item()
        return self.take(self.count())

    def item(self) -> None:
        """Count one more."""
        self._items -= 1
        if self._items < 0:
            raise VocabError("metadata that no model has", place=self._place, found=f"more than {MOST_ITEMS} items")


_U64 = struct.Struct("<Q")


def _metadata(stream: BinaryIO, place: str) -> dict[str, Any]:
    """The wanted keys of a file: numbers, texts, lists of texts, arrays of int32, and of other numbers the bytes."""
    source = _Input(stream, place)
    if source.take(len(MAGIC)) != MAGIC:
        raise VocabError("not a GGUF file", place=place)
    version = source.number(4)
    if version not in (2, 3):
        raise VocabError(
            "a version of GGUF that toolc does not read",
            place=place,
            found=f"{version}, big-endian" if version in (2 << 24, 3 << 24) else str(version),
            expected="2 or 3, little-endian",
        )
    source.count()  # of tensors
    keys = source.count()
    if keys > MOST_KEYS:
        raise VocabError(
            "metadata that no model has", place=place, found=f"{keys} keys", expected=f"at most {MOST_KEYS}"
        )
    found: dict[str, Any] = {}
    for _ in range(keys):
        key = _text(source.string(), place)
        value = _value(source, f"{place}#{key[:80]}", key in _WANTED)
        if key in _WANTED:
            if key in found:
                raise VocabError("a key twice", place=f"{place}#{key}")
            found[key] = value
    return found


def _value(source: _Input, place: str, wanted: bool) -> Any:
    """The next value; None, and only passed over, where it is not wanted."""
    kind = source.number(4)
    if kind == _STRING:
        data = source.string()
        return _text(data, place) if wanted else None
    if kind == _ARRAY:
        return _array(source, place, wanted, 1)
    if kind not in _NUMBERS:
        raise VocabError("a kind of value that GGUF has not", place=place, found=str(kind), expected="0 to 12")
    return source.number(kind)


def _array(source: _Input, place: str, wanted: bool, depth: int) -> Any:
    source.item()
    kind, count = _HEAD.unpack(source.take(_HEAD.size))
    if kind in _NUMBERS:
        data = source.take(_NUMBERS[kind].size * count)
        if not wanted:
            return None
        return np.frombuffer(data, "<i4") if kind == _INT32 else data
    if kind == _STRING:
        texts = []
        for n in range(count):
            data = source.string()
            if wanted:
                texts.append(_text(data, f"{place}/{n}"))
        return texts if wanted else None
    if kind != _ARRAY or depth == _DEEPEST:
        raise VocabError(
            "a kind of value that no GGUF has", place=place, found="an array in arrays" if kind == _ARRAY else str(kind)
        )
    for _ in range(count):
        _array(source, place, False, depth + 1)
    return None


def _text(data: bytes, place: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise VocabError(place=place, found=ascii(data[:40]), expected="text in UTF-8") from None
