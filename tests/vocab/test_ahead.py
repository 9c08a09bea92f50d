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
WORDS = ["hello", " world", " ", "  ", "\n", "12", "345", '"', ": ", "<", "tool", "_call>", "x", ",", "é", "end", "'s"]


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
    pick = random.Random(7)
    seen = 0
    for _ in range(1500):
        words = pick.choices(WORDS, k=pick.randint(2, 7))
        text = "".join(words)
        if "normalizer" in added:
            text = "".join(pick.choice([one, one.upper()]) for one in text)
        at = pick.randrange(len(text))
        ids, fixed = encode([text[:at]])[0]
        seen += fixed
        assert encode([text])[0][0][:fixed] == ids[:fixed], (text[:at], text)
    assert bool(seen) == some


def test_the_tokens_before_an_added_one_that_is_begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``say hello wor`` may go on as ``say hello world``."""
    plain = encoder(monkeypatch, tmp_path)
    added = encoder(monkeypatch, tmp_path, **{"hello world": {}})
    for encode, stays in ((plain, "x, hello"), (added, "x,")):
        ids, fixed = encode(["x, hello wor"])[0]
        assert encode._library().decode(ids[:fixed]) == stays
    assert added(["x, hello war"])[0] == plain(["x, hello war"])[0]


def test_common_tokenizers_look_no_further_than_a_character(shared: Path) -> None:
    for name in ("llama3.json", "qwen3.json"):
        encode = Encode((shared / "tokenizers" / name).read_bytes(), "1")
        encode.ready()
        assert encode._ahead.far is False and not encode._ahead.vague
