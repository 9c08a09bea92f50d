"""Check bundles against what a serving engine itself says: its tokenizer, its width of logits, its ends of turn.

Leaves out   how an engine says so: see vllm.py.
Invariants   a bundle is admitted only if each of its tokens is the token of that id in the engine's tokenizer, and its
             ends of turn are those at which the engine ends. So the order in which bundles come never matters, and all
             bundles that an engine admits can stand in one batch.
Comparing    a tokenizer gives pieces, not bytes: the piece of byte-level BPE spells bytes as printable characters, that
             of SentencePiece spells a space as ▁ and lone bytes as <0xNN>, and that of an added token is its text.
             A token that can be read in none of these ways as the bundle's bytes is another one, unless the tokenizer
             decodes it to them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection
from typing import Any

from ..errors import DecodeError
from ..format.bundle import Bundle
from ..format.vocab import Vocab
from ..format.width import LogitsWidth

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_level() -> dict[str, int]:
    """Characters of byte-level BPE to bytes, as GPT-2's encoder defines them."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(rest)}


_BYTE_OF = _byte_level()


class Fits:
    """What one engine says.

    Args:
        tokenizer: gives the engine's tokenizer, which knows `convert_ids_to_tokens`; None if it has none.
        width: columns of its logits.
        ends: gives the ids at which it ends a turn.
    """

    def __init__(self, tokenizer: Callable[[], Any], width: int | None, ends: Callable[[], Collection[int]]) -> None:
        self._tokenizer, self._width, self._ends = tokenizer, width, ends
        self._checked: set[str] = set()
        self._lock = threading.Lock()

    def check(self, bundle: Bundle) -> None:
        """Refuse a bundle that does not fit the engine.

        Raises:
            DecodeError: it is of another tokenizer, or of one with other ends of turn.
        """
        vocab = bundle.vocab
        if self._width is not None:
            LogitsWidth(vocab, self._width).check_given([bundle])
        ends = sorted(self._ends())
        mine = sorted(set(map(int, bundle.tables.end_of_turn_tokens)))
        if mine != ends:
            raise DecodeError(
                "the bundle has other ends of turn than the engine",
                place=bundle.name,
                found=", ".join(map(str, mine)),
                expected=", ".join(map(str, ends)) or "none",
                hint="compile it with " + " ".join(f"--eos {end}" for end in ends),
            )
        with self._lock:
            if vocab.digest not in self._checked:
                _check_tokens(bundle.name, vocab, self._tokenizer(), self._width)
                self._checked.add(vocab.digest)


def _check_tokens(name: str, vocab: Vocab, tokenizer: Any, width: int | None) -> None:
    """Compare each token of a vocabulary with the engine's of the same id."""
    if tokenizer is None:
        raise DecodeError("the engine has no tokenizer to check the bundle against", place=name)

    def refused(found: str, expected: str) -> DecodeError:
        hint = "compile the bundle for the tokenizer that is served"
        return DecodeError("the bundle is of another tokenizer", place=name, found=found, expected=expected, hint=hint)

    known = len(tokenizer) if width is None else min(len(tokenizer), width)
    last = max((token for token in range(known, vocab.size) if vocab.token(token)), default=-1)
    if vocab.size < known or last >= 0:
        raise refused(f"{vocab.size} tokens", f"{known}, as the engine has")
    names = {token: text for text, token in vocab.special.items()}
    for token, piece in enumerate(tokenizer.convert_ids_to_tokens(list(range(min(vocab.size, known))))):
        text = vocab.token(token)
        if piece is None or not text and token not in names:  # an id that no text holds
            continue
        if piece == names.get(token) or text in _readings(piece) or _decodes(tokenizer, token, text):
            continue
        raise refused(f"token {token} as {vocab.shown(token)}", f"{piece!r}, as the engine's tokenizer has it")


def _decodes(tokenizer: Any, token: int, text: bytes) -> bool:
    """Whether the tokenizer itself writes a token as this text, but for a space before it that a decoder strips."""
    decode = getattr(tokenizer, "decode", None)
    shown = "" if decode is None or not text else str(decode([token], skip_special_tokens=False))
    return bool(shown) and text.decode(errors="replace") in (shown, f" {shown}")


def _readings(piece: str | bytes) -> list[bytes]:
    """The bytes that a piece may stand for."""
    if isinstance(piece, bytes):
        return [piece]
    found = [piece.encode(), piece.replace("▁", " ").encode()]
    if all(c in _BYTE_OF for c in piece):
        found.append(bytes(_BYTE_OF[c] for c in piece))
    if byte := _BYTE.fullmatch(piece):
        found.append(bytes([int(byte[1], 16)]))
    return found
