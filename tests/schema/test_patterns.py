"""Patterns against Python's own engine, over every short text of a few characters."""

from __future__ import annotations

import itertools
import json
import random
import re

import pytest

from toolc.compiler.errors import UnsupportedError
from toolc.compiler.schema import schema_to_lark

from .recogniser import Compiled

TEXTS = ["".join(text) for length in range(7) for text in itertools.product("ab,", repeat=length)]
ANCHORS_IN_REPEATED_GROUPS = [
    "^([^,]+(,|$)){3,}$",
    "^((^|,)a+)*$",
    "((^|,)(a|b)){2}",
    "(a|$){2}b?",
    "(^|a){3}b",
    "(^a|b$|,)+",
    "(^a$|b){1,2}",
    "(^a$|b){2}",
    "(^a$|b?){2}",
    "(^$|a){2,3}",
    "(^|$){2}",
    "(?:^a)+b",
    "(a$){2}|(^b){2,}",
    "((^a|,)(b|$))*b",
    "((a|^){2}(,|$)){1,2}b*$",
    "(,|a$b?){0,2}b$",
    "(^a|b){0}b$",
]


def accepts_alike(pattern: str, texts: list[str]) -> None:
    ours = Compiled(schema_to_lark({"type": "string", "pattern": pattern})[0])
    plain = re.compile(pattern.replace("$", r"\Z"))
    for text in texts:
        assert ours.accepts(json.dumps(text)) == bool(plain.search(text)), (pattern, text)


@pytest.mark.parametrize("pattern", ANCHORS_IN_REPEATED_GROUPS)
def test_anchors_in_repeated_groups(pattern: str) -> None:
    accepts_alike(pattern, TEXTS)


def test_random_anchors_in_repeated_groups() -> None:
    rng = random.Random(5)

    def some(depth: int) -> str:
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(["a", "b", ",", "^", "$", "[ab]", "a?", ",b"])
        if rng.random() < 0.4:
            return f"(?:{some(depth - 1)}){rng.choice(['*', '+', '?', '{2}', '{1,3}', '{2,}', '{0,2}'])}"
        parts = [some(depth - 1) for _ in range(rng.randrange(2, 4))]
        return f"(?:{'|'.join(parts)})" if rng.random() < 0.5 else "".join(parts)

    compared = 0
    for _ in range(300):
        pattern = some(4)
        try:
            accepts_alike(pattern, rng.sample(TEXTS, 60))
            compared += 1
        except UnsupportedError as error:
            assert "so many alternatives" in error.message, pattern
    assert compared > 250


def test_looks_beside_anchors_in_repeated_groups_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="one repeated group"):
        schema_to_lark({"type": "string", "pattern": "(^a|\\bb)+"})
