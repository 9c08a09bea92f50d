"""SentencePiece models (tokenizer.model): the pieces and their types, read from the protobuf without its library.

Leaves out   scores, normalization and segmentation.
Invariants   control, unknown and unused pieces stand for no text; a byte piece is its byte; in all others U+2581 is a
             space, also at the start: a piece's bytes are those in the middle of a text. User-defined pieces follow the
             rule for added tokens, see table.py.
Source       sentencepiece 0.2, src/sentencepiece_model.proto and SentencePieceProcessor::Decode; tests/vocab/ decodes
             with that library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import VocabError
from .table import Draft, is_control, is_unused

# fields of ModelProto, SentencePiece, TrainerSpec and NormalizerSpec
_PIECES, _TRAINER, _DENORMALIZER = 1, 2, 5
_PIECE_TEXT, _PIECE_TYPE = 1, 3
_TRAINER_EOS_ID = 42
_NORMALIZER_CHARSMAP = 2
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
_BYTE_NAME = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def looks_like_sentencepiece(data: bytes) -> bool:
    """Whether a file begins with a piece: field 1, a short message whose first field is a string."""
    return len(data) > 4 and data[0] == 0x0A and data[1] < 0x80 and data[2] == 0x0A


def read_sentencepiece(data: bytes, place: str) -> Draft:
    """The token bytes of a SentencePiece model.

    Raises:
        VocabError: a truncated file, or a model that rewrites its output (a denormalizer).
    """
    tokens: list[bytes] = []
    special: dict[str, int] = {}
    ids: dict[str, int] = {}
    eos = 2  # the default of TrainerSpec.eos_id
    kinds: list[int] = []
    try:
        for number, value in _fields(data):
            if number == _PIECES and isinstance(value, bytes):
                name, kind = _piece(value)
                token = len(tokens)
                ids.setdefault(name, token)
                kinds.append(kind)
                tokens.append(_content(name, kind, place, token))
                if kind in (UNKNOWN, CONTROL) or (kind == USER_DEFINED and is_control(name, False)):
                    special[name] = token
            elif number == _TRAINER and isinstance(value, bytes):
                eos = next((int(v) for n, v in _fields(value) if n == _TRAINER_EOS_ID), eos)
            elif number == _DENORMALIZER and isinstance(value, bytes):
                if any(n == _NORMALIZER_CHARSMAP and v for n, v in _fields(value)):
                    raise VocabError(
                        "a model that rewrites its output is not supported", place=f"{place}#denormalizer_spec"
                    )
    except (IndexError, UnicodeDecodeError):
        raise VocabError("not a SentencePiece model, or a truncated one", place=place) from None
    if not tokens:
        raise VocabError("a SentencePiece model without pieces", place=place)
    # -1, also written as an unsigned 64-bit number, says that there is none
    named = [eos] if 0 <= eos < len(tokens) and kinds[eos] == CONTROL else []
    return Draft(tokens=tokens, special=special, ids=ids, end_of_turn=named)


def _content(name: str, kind: int, place: str, token: int) -> bytes:
    if kind == BYTE:
        return byte_of(name, f"{place}, piece {token}")
    if kind in (UNKNOWN, CONTROL, UNUSED) or is_unused(name) or (kind == USER_DEFINED and is_control(name, False)):
        return b""
    return name.replace("\u2581", " ").encode()


def byte_of(name: str, place: str) -> bytes:
    """The byte that a piece of that kind stands for."""
    match = _BYTE_NAME.fullmatch(name)
    if match is None:
        raise VocabError(place=place, found=repr(name)[:80], expected="<0x00> to <0xFF>")
    return bytes([int(match[1], 16)])


def _piece(data: bytes) -> tuple[str, int]:
    name, kind = "", NORMAL
    for number, value in _fields(data):
        if number == _PIECE_TEXT and isinstance(value, bytes):
            name = value.decode()
        elif number == _PIECE_TYPE and isinstance(value, int):
            kind = value
    return name, kind


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message: (number, value), numbers as int and the rest as bytes."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise IndexError
        if at + size > end:
            raise IndexError
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise IndexError
