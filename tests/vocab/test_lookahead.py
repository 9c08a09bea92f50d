"""Tokens that are said to stay whatever follows a text do, also where a tokenizer looks far or has added tokens."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from toolc.compiler.vocab.builtin import builtin_path
from toolc.compiler.vocab.encode import Encode

FAR = r"\d{1,3}(?=(?:\d{3})*\b)|\p{L}+|[^\p{L}\d]+"
WORDS = [
    "hello",
    " world",
    " ",
    "  ",
    "\n",
    "12",
    "345",
    '"',
    ": ",
    "<",
    "tool",
    "_call>",
    "x",
    ",",
    "é",
    "end",
    "'s",
    "'",
    "l",
    "v",
    "\n  ",
    "\r\n",
]


def encoder(monkeypatch: pytest.MonkeyPatch, folder: Path, pattern: str = "", **added: dict[str, Any]) -> Encode:
    """The built-in tokenizer with another pattern, or with added tokens of these names and settings."""
    monkeypatch.setenv("TOOLC_CACHE", str(folder))
    document = json.loads(builtin_path().read_bytes())
    if pattern:
        document["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = pattern
    document["normalizer"] = added.pop("normalizer", None)
    settings = {"special": False, "normalized": False, "single_word": False, "lstrip": False, "rstrip": False}
    for content, changes in added.items():
        token = {"id": 9000 + len(document["added_tokens"]), "content": content, **settings, **changes}
        document["added_tokens"].append(token)
    return Encode(json.dumps(document).encode(), "1")


CASES: list[tuple[str, dict[str, Any], bool]] = [  # pattern, added tokens, whether some tokens stay
    ("", {}, True),
    (FAR, {}, False),
    ("", {"hello world": {}}, True),
    ("", {"hello world,": {}, "world,12": {}, "  ": {}, "   ": {}}, True),
    ("", {"x,": {"lstrip": True}}, True),
    ("", {"world": {"single_word": True}, " world": {"single_word": True}}, True),
    ("", {"hello world": {"normalized": True}, "normalizer": {"type": "Lowercase"}}, True),
]


@pytest.mark.parametrize(("pattern", "added", "some"), CASES)
def test_what_stays_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pattern: str, added: dict[str, Any], some: bool
) -> None:
    encode = encoder(monkeypatch, tmp_path, pattern, **added)
    assert stays(encode, "normalizer" in added) == some


def stays(encode: Encode, capitals: bool = False) -> bool:
    """Whether some tokens of random texts are said to stay; all that are do."""
    pick = random.Random(7)
    seen = 0
    for _ in range(1500):
        text = "".join(pick.choices(WORDS, k=pick.randint(2, 7)))
        if capitals:
            text = "".join(pick.choice([one, one.upper()]) for one in text)
        at = pick.randrange(len(text))
        ids, fixed = encode([text[:at]])[0]
        seen += fixed
        assert encode([text])[0][0][:fixed] == ids[:fixed], (text[:at], text)
    return seen > 0


def test_the_tokens_before_an_added_one_that_is_begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``say hello wor`` may go on as ``say hello world``."""
    plain = encoder(monkeypatch, tmp_path)
    added = encoder(monkeypatch, tmp_path, **{"hello world": {}})
    for encode, stays in ((plain, "x, hello"), (added, "x,")):
        ids, fixed = encode(["x, hello wor"])[0]
        assert encode._library()[0].decode(ids[:fixed]) == stays
    assert added(["x, hello war"])[0] == plain(["x, hello war"])[0]


@pytest.mark.parametrize("name", ["llama3.json", "qwen3.json"])
def test_common_tokenizers_look_no_further_than_that(shared: Path, name: str) -> None:
    assert stays(Encode((shared / "tokenizers" / name).read_bytes(), "1"))


@pytest.mark.parametrize(("begun", "whole"), [("a'l", "a'll"), ("a'v", "a've"), ("a\n  ", "a\n  \n"), ("a'", "a's")])
def test_what_is_given_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, begun: str, whole: str) -> None:
    """With the pattern of GPT-2, which is the library's own."""
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path))
    document = json.loads(builtin_path().read_bytes())
    document["pre_tokenizer"] = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    encode = Encode(json.dumps(document).encode(), "1")
    ids, fixed = encode([begun])[0]
    assert encode([whole])[0][0][:fixed] == ids[:fixed] and fixed == 1
    assert stays(encode)
