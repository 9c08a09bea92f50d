"""tokenizer.json of Hugging Face tokenizers: BPE and Unigram, byte-level or with a space symbol and byte fallback.

Leaves out   merges, scores, normalizers and pre-tokenizers: they say how text is cut, not what an id stands for.
Invariants   a token's bytes are those that the file's own decoder gives it in the middle of a text: what a decoder does
             only to the first or last token of a text (Strip, prepend_scheme) is left out. A decoder that is not
             understood is refused by name.
Arrays       byte_of_char int16 [0x10000]: the byte that a character of the GPT-2 alphabet stands for, -1 for others.
Source       tokenizers 0.23, src/decoders/ and src/pre_tokenizers/byte_level.rs; tests/vocab/ decodes with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..errors import VocabError
from .table import Draft, is_control, is_entry, is_unused, most_ids

_BYTE_NAME = re.compile(r"<0x([0-9A-Fa-f]{2})>")

Decode = Callable[[list[str]], list[bytes]]


def read_hf_json(data: dict[str, Any], place: str) -> Draft:
    """The token bytes of a parsed tokenizer.json.

    Args:
        data: the whole document.
        place: what errors call the file.

    Raises:
        VocabError: a model or decoder that toolc does not know, or a malformed document.
    """
    model = data.get("model")
    if not isinstance(model, dict):
        raise VocabError(place=f"{place}#/model", found=_kind(model), expected="an object")
    ids = _vocabulary(model, f"{place}#/model")
    added = data.get("added_tokens") or []
    decode = _decoder(data.get("decoder"), f"{place}#/decoder")

    names: list[str | None] = []
    _put(names, ids.items(), f"{place}#/model/vocab")
    control: dict[str, int] = {}
    try:
        contents = [(token["content"], token["id"], bool(token.get("special"))) for token in added]
    except (TypeError, KeyError):
        raise VocabError(place=f"{place}#/added_tokens", expected="objects with an id and a content") from None
    if wrong := [(content, token) for content, token, _ in contents if not is_entry(content, token)]:
        raise VocabError(
            place=f"{place}#/added_tokens",
            found="content {!a}, id {!a}".format(*wrong[0]),
            expected="a text and a whole number",
        )
    _put(names, ((content, token) for content, token, _ in contents), f"{place}#/added_tokens")
    control.update((content, token) for content, token, special in contents if is_control(content, special))
    if (unknown := _unknown_token(model, ids)) is not None and unknown[1] not in control.values():
        control[unknown[0]] = unknown[1]

    silent = set(control.values())
    silent.update(
        token for token, name in enumerate(names) if name and name[0] in "<[" and name[-1] in ">]" and is_unused(name)
    )
    tokens = decode([name or "" for name in names])
    for token in silent:
        tokens[token] = b""
    return Draft(tokens=tokens, special=control, ids=ids)


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__


def _put(names: list[str | None], items: Iterable[tuple[str, int]], place: str) -> None:
    """Write names to their ids; the list grows as needed."""
    pairs = list(items)
    if not ({type(token) for _, token in pairs} <= {int} and {type(name) for name, _ in pairs} <= {str}):
        wrong = next(pair for pair in pairs if (type(pair[0]), type(pair[1])) != (str, int))
        raise VocabError(place=place, found="{!a}, id {!a}".format(*wrong), expected="texts and whole numbers")
    top = max((token for _, token in pairs), default=-1)
    beyond = most_ids(len(names) + len(pairs))
    least = min((token for _, token in pairs), default=0)
    if top >= beyond or least < 0:
        found = str(least if least < 0 else top)
        raise VocabError("a token id that no vocabulary has", place=place, found=found, expected=f"0 to {beyond - 1}")
    names.extend([None] * (top + 1 - len(names)))
    for name, token in pairs:
        names[token] = name


def _vocabulary(model: dict[str, Any], place: str) -> dict[str, int]:
    """Ids by token string, for the model types whose tokens are plain pieces of text."""
    vocab = model.get("vocab")
    kind = model.get("type") or ("BPE" if "merges" in model else "Unigram" if isinstance(vocab, list) else None)
    if kind == "BPE" and isinstance(vocab, dict):
        for key in ("continuing_subword_prefix", "end_of_word_suffix"):
            if model.get(key):
                raise VocabError(
                    "tokens whose text depends on their place in a word are not supported",
                    place=f"{place}/{key}",
                    found=repr(model[key]),
                )
        return vocab
    if kind == "Unigram" and isinstance(vocab, list):
        try:
            return {piece: token for token, (piece, _) in reversed(list(enumerate(vocab)))}
        except (TypeError, ValueError):
            raise VocabError(place=f"{place}/vocab", expected="pairs of piece and score") from None
    if kind in ("BPE", "Unigram"):
        raise VocabError(place=f"{place}/vocab", found=_kind(vocab), expected="an object or a list of pairs")
    raise VocabError(
        "a model of this type does not write exact bytes"
        if kind in ("WordPiece", "WordLevel")
        else "unknown type of model",
        place=f"{place}/type",
        found=repr(kind),
        expected="'BPE' or 'Unigram'",
    )


def _unknown_token(model: dict[str, Any], ids: dict[str, int]) -> tuple[str, int] | None:
    """The token for text that the model cannot write; it stands for no text of its own."""
    index = model.get("unk_id")
    if isinstance(index, int) and isinstance(model.get("vocab"), list) and 0 <= index < len(model["vocab"]):
        return str(model["vocab"][index][0]), index
    name = model.get("unk_token")
    if isinstance(name, str) and name in ids:
        return name, ids[name]
    return None


# ---- decoders


def _decoder(section: Any, place: str) -> Decode:
    """The function from token strings to bytes that the decoder section describes."""
    if not isinstance(section, dict):
        raise VocabError(
            "without a decoder the library puts a space between all tokens",
            place=place,
            found=_kind(section),
            expected="a ByteLevel, Metaspace or Sequence decoder",
        )
    steps = section.get("decoders") if section.get("type") == "Sequence" else [section]
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise VocabError(place=f"{place}/decoders", found=_kind(steps), expected="a list of decoders")
    kinds = [step.get("type") for step in steps]
    if "ByteLevel" in kinds:
        if any(kind not in ("ByteLevel", "Fuse") for kind in kinds) or kinds.count("ByteLevel") > 1:
            raise VocabError("a ByteLevel decoder beside others is not supported", place=place, found=repr(kinds))
        return decode_byte_level

    edits: list[Callable[[str], str]] = []
    fallback = fused = False
    for number, step in enumerate(steps):
        here = f"{place}/decoders/{number}" if section.get("type") == "Sequence" else place
        kind = kinds[number]
        if kind == "Metaspace":
            edits.append(_replace(step.get("replacement"), " ", here, fused))
        elif kind == "Replace":
            pattern = step.get("pattern")
            text = pattern.get("String") if isinstance(pattern, dict) else None
            edits.append(_replace(text, step.get("content"), here, fused))
        elif kind == "ByteFallback":
            fallback = True
        elif kind == "Fuse":
            fused = True
        elif kind == "Strip":
            if not fused:  # after Fuse it only touches both ends of the whole text
                edits.append(_strip(step, here))
        else:
            raise VocabError(
                "a decoder that toolc does not understand",
                place=here,
                found=repr(kind),
                expected="ByteLevel, Metaspace, Replace, ByteFallback, Fuse or Strip",
            )

    def decode(names: list[str]) -> list[bytes]:
        tokens = []
        for name in names:
            if fallback and len(name) == 6 and (match := _BYTE_NAME.fullmatch(name)):
                tokens.append(bytes([int(match[1], 16)]))
                continue
            for edit in edits:
                name = edit(name)
            tokens.append(name.encode(errors="surrogatepass"))
        return tokens

    return decode


def _replace(old: Any, new: Any, place: str, fused: bool) -> Callable[[str], str]:
    if not isinstance(old, str) or not isinstance(new, str) or not old:
        raise VocabError("only a fixed string can be replaced", place=place, found=repr(old), expected="a string")
    if fused and len(old) > 1:
        raise VocabError("a replacement across tokens is not supported", place=place, found=repr(old))
    return lambda name: name.replace(old, new)


def _strip(step: dict[str, Any], place: str) -> Callable[[str], str]:
    content, start, stop = step.get("content"), step.get("start", 0), step.get("stop", 0)
    if not isinstance(content, str) or len(content) != 1 or not isinstance(start, int) or not isinstance(stop, int):
        raise VocabError(place=place, found=repr(step), expected="one character and two counts")

    def strip(name: str) -> str:
        left = min(start, len(name) - len(name.lstrip(content)))
        right = min(stop, len(name) - left - len(name[left:].rstrip(content)))
        return name[left : len(name) - right]

    return strip


def byte_alphabet() -> list[str]:
    """The character that byte-level tokenizers write for each byte: itself where it prints, else from U+0100 on."""
    prints = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(prints)]
    char_of_byte = {byte: chr(byte) for byte in prints} | {byte: chr(256 + n) for n, byte in enumerate(others)}
    return [char_of_byte[byte] for byte in range(256)]


def decode_byte_level(names: list[str]) -> list[bytes]:
    """Every character is a byte; a token with a character outside the alphabet is written as it stands.

    One table look-up over the joined text, as a loop over the characters would cost more than parsing the file.
    """
    byte_of_char = np.full(0x10000, -1, np.int16)
    for byte, char in enumerate(byte_alphabet()):
        byte_of_char[ord(char)] = byte
    text = "".join(names)
    codes = np.frombuffer(text.encode("utf-32-le", errors="surrogatepass"), "<u4")
    found = byte_of_char[np.minimum(codes, 0xFFFF)]
    flat = found.astype(np.uint8).tobytes()
    tokens, at = [], 0
    for name in names:
        end = at + len(name)
        tokens.append(flat[at:end])
        at = end
    strange = np.flatnonzero(found < 0)
    if len(strange):
        ends = np.cumsum(np.fromiter(map(len, names), np.int64, len(names)))
        for token in np.unique(np.searchsorted(ends, strange, side="right")).tolist():
            tokens[token] = names[token].encode(errors="surrogatepass")
    return tokens
