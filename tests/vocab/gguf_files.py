"""Write small GGUF files for tests: the metadata, and nothing behind it.

Leaves out   tensors.
Source       ggml/docs/gguf.md.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

U8, I32, U32, F32, BOOL, STRING, ARRAY, U64 = 0, 5, 4, 6, 7, 8, 9, 10
_FORMS = {U8: "<B", I32: "<i", U32: "<I", F32: "<f", BOOL: "<?", U64: "<Q"}

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def value(kind: int, content: Any) -> bytes:
    """A value without its kind; of an array the content is the kind of the elements and the elements."""
    if kind == STRING:
        return text(content)
    if kind == ARRAY:
        inner, elements = content
        head = struct.pack("<IQ", inner, len(elements))
        return head + b"".join(value(inner, element) for element in elements)
    return struct.pack(_FORMS[kind], content)


def gguf(fields: Mapping[str, tuple[int, Any]], version: int = 3, keys: int | None = None) -> bytes:
    """A file of these fields: name → kind and content."""
    head = b"GGUF" + struct.pack("<IQQ", version, 0, len(fields) if keys is None else keys)
    return head + b"".join(text(key) + struct.pack("<I", kind) + value(kind, v) for key, (kind, v) in fields.items())


def vocabulary(
    tokens: Sequence[tuple[str, int]], model: str = "gpt2", **more: tuple[int, Any]
) -> dict[str, tuple[int, Any]]:
    """The fields of a vocabulary: names and kinds of its tokens; `more` are fields of `tokenizer.ggml`."""
    fields = {
        "general.architecture": (STRING, "llama"),
        "tokenizer.ggml.model": (STRING, model),
        "tokenizer.ggml.tokens": (ARRAY, (STRING, [name for name, _ in tokens])),
        "tokenizer.ggml.scores": (ARRAY, (F32, [-float(n) for n in range(len(tokens))])),
        "tokenizer.ggml.token_type": (ARRAY, (I32, [kind for _, kind in tokens])),
        "tokenizer.ggml.merges": (ARRAY, (STRING, ["a b"])),
    }
    return fields | {f"tokenizer.ggml.{name}": field for name, field in more.items()}
