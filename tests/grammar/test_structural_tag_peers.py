"""Random structural tags: toolc accepts the texts that XGrammar accepts, where that is installed."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from toolc.compiler import compile_tools
from toolc.compiler.errors import SpecError
from toolc.runtime.calls.whole_text import read_whole

xgrammar = pytest.importorskip("xgrammar", reason="XGrammar is not installed")

LETTERS = "ab<>"
_SEVERAL = ("sequence", "or", "optional", "star", "plus", "repeat", "tag", "triggered_tags", "tags_with_separator")
_PATTERNS = ("a+", "[ab]*<", "(ab|b)?", "a{1,2}b")


def word(rng: random.Random, most: int = 3) -> str:
    return "".join(rng.choice(LETTERS) for _ in range(rng.randint(1, most)))


def random_tag(rng: random.Random, depth: int) -> dict[str, Any]:
    end = rng.choice([word(rng, 2), [word(rng, 2), word(rng, 2)]])
    return {"type": "tag", "begin": word(rng), "content": random_format(rng, depth - 1), "end": end}


def random_format(rng: random.Random, depth: int) -> dict[str, Any]:
    """A format with words of LETTERS; no excluded string holds a trigger, which XGrammar does not see there."""
    kind = rng.choice(["const_string", "any_text", "regex", *(2 * [*_SEVERAL, "dispatch"] if depth else [])])
    inner = random_format(rng, depth - 1) if depth else {}
    tags = [random_tag(rng, depth) for _ in range(rng.randint(1, 2))] if depth else []
    excludes = [word(rng)] if rng.random() < 0.3 else []
    flags = {"at_least_one": rng.random() < 0.3, "stop_after_first": rng.random() < 0.3}
    triggers = sorted({tag["begin"][: rng.randint(1, len(tag["begin"]))] for tag in tags})
    rules = [[word(rng), inner] for _ in range(rng.randint(1, 2))]
    kept = [one for one in excludes if not any(trigger in one for trigger in [*triggers, *(rule[0] for rule in rules)])]
    body: dict[str, dict[str, Any]] = {
        "const_string": {"value": word(rng)},
        "any_text": {"excludes": excludes} | ({"max_chars": rng.randint(0, 3)} if rng.random() < 0.2 else {}),
        "regex": {"pattern": rng.choice(_PATTERNS)},
        "sequence": {"elements": [inner, *(random_format(rng, depth - 1) for _ in range(rng.randint(0, 2)) if depth)]},
        "or": {"elements": [inner, *(random_format(rng, depth - 1) for _ in range(rng.randint(0, 2)) if depth)]},
        "repeat": {"min": rng.randint(0, 1), "max": rng.choice([-1, 1, 2]), "content": inner},
        "tag": tags[0] if tags else {},
        "triggered_tags": {"tags": tags, "triggers": triggers, "excludes": kept, **flags},
        "tags_with_separator": {"tags": tags, "separator": word(rng, 1), **flags},
        "dispatch": {"rules": rules, "loop": rng.random() < 0.5, "excludes": kept},
    }
    return {"type": kind, **body.get(kind, {"content": inner})}


def random_texts(rng: random.Random, form: dict[str, Any]) -> list[str]:
    """Texts made of the words of a format, and others."""
    words = [one for one in json.dumps(form).split('"') if one and set(one) <= set(LETTERS)]
    texts = []
    for _ in range(60):
        some = [rng.choice([*words, word(rng, 2)]) for _ in range(rng.randint(1, 5))]
        texts.append("".join(some) if rng.random() < 0.8 else word(rng, 6))
    return list(dict.fromkeys(texts))


@pytest.mark.parametrize("seed", range(40))
def test_equal_texts(seed: int) -> None:
    rng = random.Random(seed)
    form = random_format(rng, rng.choice([1, 2, 2]))
    vocab = xgrammar.TokenizerInfo(["<s>", *LETTERS, "</s>"], stop_token_ids=[len(LETTERS) + 1])
    document = {"type": "structural_tag", "format": form}
    try:
        theirs = xgrammar.GrammarCompiler(vocab).compile_structural_tag(json.dumps(document))
    except (RuntimeError, ValueError) as error:
        pytest.skip(f"XGrammar refuses it: {error}")
    try:
        ours = compile_tools(document, "builtin").bundle
    except SpecError as error:
        assert "is never reached" in str(error)
        return
    for text in random_texts(rng, form):
        matcher = xgrammar.GrammarMatcher(theirs)
        accepted = matcher.accept_string(text) and matcher.accept_token(len(LETTERS) + 1)
        assert (read_whole(ours, text.encode(), "start")[1] is None) == accepted, (text, form)
