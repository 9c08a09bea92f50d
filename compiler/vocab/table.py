"""The bytes of every token id of a tokenizer, and what its files say about control tokens.

Leaves out   reading files: see load.py; the trie and slices of a vocabulary: see runtime/.
Invariants   a control token stands for no text (its bytes are empty), and so does every end-of-turn id;
             end_of_turn ascends without repeats; special is ordered by id; the bytes of a text token are those that it
             adds in the middle of a text.

The rule for added tokens. Their `special` flag is not to be trusted: Qwen 3 marks `<tool_call>` special: false, and
such a token would let text imitate control. So an added token is a control token, matched by its id and never by its
text, except one that is marked special: false *and* holds none of the brackets < > [ ] | ｜: runs of white space and
plain words, as Gemma and GPT-NeoX add them. Those stay text. Ids with names like `<unused7>` or
`<|reserved_special_token_5|>`, and ids that no file names, stand for no text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolc.runtime.expected import named_kind

from ..errors import VocabError

_MARKUP = re.compile(r"[<>\[\]|｜]")
_UNUSED = re.compile(
    r"<\|?(unused|reserved|reserved_special_token|special|extra_id|extra|dummy|placeholder)[_-]?\d+\|?>"
    r"|\[unused[_-]?\d*\]",
    re.IGNORECASE,
)


def most_ids(named: int) -> int:
    """How many ids a tokenizer that names so many tokens may have: each costs time, whether it has text or not."""
    return min(1 << 24, 4 * named + (1 << 16))


@dataclass(frozen=True)
class TokenTable:
    """What a compile needs to know of a tokenizer.

    Attributes:
        tokens: bytes of every id from 0; ``b""`` stands for no text (control, unused or reserved).
        special: ids of the control tokens by content, ordered by id.
        end_of_turn: ids that end a turn, ascending; may be empty.
        source: file name or hub id, for people; never an absolute path.
        end_of_turn_origin: who says so ("generation_config.json", "well-known name <|eot_id|>", "--eos", ...), or "".
        logits_width: how many logits the model has, at least ``size``; None where nobody says it.
    """

    tokens: tuple[bytes, ...]
    special: dict[str, int]
    end_of_turn: tuple[int, ...]
    source: str
    end_of_turn_origin: str = ""
    logits_width: int | None = None

    @property
    def size(self) -> int:
        """The number of ids."""
        return len(self.tokens)

    def __post_init__(self) -> None:
        assert all(0 <= t < self.size and not self.tokens[t] for t in self.special.values()), (
            "control tokens have no text"
        )
        assert list(self.end_of_turn) == sorted(set(self.end_of_turn)), "ids ascend without repeats"
        assert all(0 <= t < self.size and not self.tokens[t] for t in self.end_of_turn), "end of turn has no text"


@dataclass
class Draft:
    """A table in the making: what one tokenizer file says, before the configuration files beside it are read.

    Attributes:
        tokens: bytes of every id.
        special: control tokens by content.
        ids: ids by the string that the file itself gives them; control and text.
        end_of_turn: what the tokenizer file itself names; mostly nothing.
        knows_special: whether the format can name control tokens at all (tiktoken rank files cannot).
        logits_width: how many logits the model has, if that is known.
    """

    tokens: list[bytes]
    special: dict[str, int]
    ids: Mapping[str, int] = field(default_factory=dict)
    end_of_turn: list[int] = field(default_factory=list)
    knows_special: bool = True
    logits_width: int | None = None

    def make_control(self, name: str, token: int) -> None:
        """Say that ``token`` is a control token called ``name``; the table grows where the id lies beyond its end."""
        if token >= len(self.tokens):
            self.tokens.extend([b""] * (token + 1 - len(self.tokens)))
        self.tokens[token] = b""
        self.special[name] = token

    def find(self, name: str) -> int | None:
        """The id of the token that a file calls ``name``, or None."""
        found = self.special.get(name)
        return self.ids.get(name) if found is None else found

    def end_of_turn_id(self, which: str | int, place: str) -> int:
        """The id that ``which`` (a name or an id) means; it becomes a control token if it is not one yet.

        Raises:
            VocabError: there is no such token, or it is plain text.
        """
        if isinstance(which, str):
            found = self.find(which)
            if found is None and which.isascii() and which.isdigit():
                return self.end_of_turn_id(int(which), place)
            if found is None:
                near = difflib.get_close_matches(which, list(self.special), n=3, cutoff=0.5)
                raise VocabError(
                    "this tokenizer has no such token",
                    place=place,
                    found=repr(which),
                    hint=f"near: {', '.join(near)}" if near else "name one of its special tokens, or give an id",
                )
            token, name = found, which
        else:
            token, name = which, f"<id {which}>"
            beyond = len(self.tokens) if self.knows_special else most_ids(len(self.tokens))
            if not 0 <= token < beyond:
                raise VocabError("no such token id", place=place, found=str(token), expected=f"0 to {beyond - 1}")
        if token < len(self.tokens) and self.tokens[token]:
            text = self.tokens[token].decode(errors="replace")
            if not _MARKUP.search(text) or len(text) < 3:
                raise VocabError(
                    "a token that ends a turn cannot be one that stands for text",
                    place=place,
                    found=f"{which!r}, the text {text!r}",
                    hint="name a control token of this tokenizer with --eos",
                )
            name = text
        if token not in self.special.values():
            self.make_control(name, token)
        return token

    def cut(self, width: int, place: str) -> None:
        """Take away the ids for which the model has no logit: no text can hold them.

        Raises:
            VocabError: at ``place``, a width that no model has, or one that takes away tokens with text.
        """
        if isinstance(width, bool) or not isinstance(width, int) or not 1 <= width <= 1 << 24:
            raise VocabError(
                "no model has so many logits", place=place, found=named_kind(width), expected=f"1 to {1 << 24}"
            )
        if any(self.tokens[width:]):
            last = max(token for token in range(width, len(self.tokens)) if self.tokens[token])
            raise VocabError(
                "the model has fewer logits than the tokenizer has tokens",
                place=place,
                found=f"{width} logits",
                expected=f"at least {last + 1}, for {self.tokens[last].decode(errors='replace')!r}",
                hint="this may be the tokenizer of another model",
            )
        del self.tokens[width:]
        self.special = {name: token for name, token in self.special.items() if token < width}
        self.end_of_turn = [token for token in self.end_of_turn if token < width]
        self.ids = {name: token for name, token in self.ids.items() if token < width}
        self.logits_width = width

    def finish(self, end_of_turn: Sequence[int], origin: str, source: str) -> TokenTable:
        """Freeze the table."""
        return TokenTable(
            tokens=tuple(self.tokens),
            special=dict(sorted(self.special.items(), key=lambda item: (item[1], item[0]))),
            end_of_turn=tuple(sorted(set(end_of_turn))),
            source=source,
            end_of_turn_origin=origin if end_of_turn else "",
            logits_width=None if self.logits_width is None else max(self.logits_width, len(self.tokens)),
        )


def is_control(content: str, special: bool) -> bool:
    """Whether an added token is matched by its id and stands for no text (the rule at the top of this file)."""
    return special or _MARKUP.search(content) is not None


def is_entry(name: object, token: object) -> bool:
    """Whether a value can be the name of a token, text that can be written, and another one its id."""
    if not isinstance(name, str) or type(token) is not int:
        return False
    return name.isascii() or not any("\ud800" <= one <= "\udfff" for one in name)


def is_unused(name: str) -> bool:
    """Whether an id with this name is a placeholder."""
    return _UNUSED.fullmatch(name) is not None
