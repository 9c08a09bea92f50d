"""Blanks between tokens, and other copies of a state that each allow one byte of a kind less: masks are those of trying
every token, whatever the setting."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from toolc.compiler import Options, compile_grammar, compile_schema, compile_tools
from toolc.compiler.errors import VocabError
from toolc.runtime import Matcher
from toolc.runtime.format.bundle import Bundle

from .brute import brute_mask
from .test_counted_grids import runs
from .test_masks import bits, choose, vocab


def up_to(count: int, item: str) -> str:
    """So many copies of an item or fewer: as states, not as a counter."""
    text = ""
    for _ in range(count):
        text = f"({item} {text})?"
    return text


GRAMMARS = {
    "letters": f'start: "<" {up_to(6, "A")} "c" | "[" {up_to(3, "A")} "d"\nA: /[ab]/\n',
    "then anything": f'start: "<" {up_to(5, "A")} X*\nA: /[ab ]/\nX: /[^ab ]/\n',
    "in strings": f'start: "\\"" {up_to(9, "A")} (X S*)? "\\""\nA: /[ax]/\nX: /[^"\\\\ax]/\nS: /[^"\\\\]|\\\\["n]/\n',
    "entered in the middle": f'start: ("x" l "!" | "b" m "!")+\nl: {up_to(12, "A")}\nm: {up_to(5, "A")}\nA: "a"\n',
    "pushes": f'start: "<" t\nt: {up_to(4, "A")} "[" t? "]" {up_to(3, "A")} ">"\nA: " "\n',
    "special tokens": f'start: "<" {up_to(5, "A")} (_tag{{"</think>"}} {up_to(5, "A")})? "x"\n'
    '%import .protocol (_tag)\nA: " "\n',
    "counters": f'start: "[" s ("," l s)~2..30 "]"\nl: {up_to(8, "A")}\ns: "\\"" B~3..40 "\\"" l\nA: " "\nB: /[ab ]/\n',
    "comes back": f'start: "<" ({up_to(7, "A")} "b")* "c"\nA: "a"\n',
}
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "string"}, "maxItems": 4}, "b": {"enum": [1, "b", None]}},
    "required": ["b"],
}
TOOLS = [{"name": name, "parameters": SCHEMA} for name in ("one", "other", "two")]  # blanks stand where names decide


def compiled(case: str | int) -> Bundle:
    if case == "tools":
        return compile_tools(TOOLS, vocab("builtin"), options=Options(whitespace=8)).bundle
    if case == "indented tools":
        options = Options(protocol="hermes", whitespace="pretty")
        return compile_tools([*TOOLS, {"name": "any", "parameters": {}}], vocab("builtin"), options=options).bundle
    if case in GRAMMARS:
        return compile_grammar(GRAMMARS[str(case)], vocab("builtin") if "special" in str(case) else runs()).bundle
    return compile_schema(SCHEMA, vocab("builtin"), options=Options(whitespace=case)).bundle


@pytest.mark.parametrize("case", [*GRAMMARS, "tools", "indented tools", "spaced", "pretty", "flexible", 1, 3, 20, 100])
def test_masks(case: str | int) -> None:
    held = compiled(case)
    rng = random.Random(str(case))
    for _ in range(20):
        matcher = Matcher(held)
        for _ in range(30):
            allowed = bits(matcher, held.vocab.size)
            np.testing.assert_array_equal(allowed, brute_mask(held, matcher))
            matcher.advance(choose(np.flatnonzero(allowed), held, rng))
            if matcher.is_finished:
                break


def test_a_vocab_with_other_slices_is_refused() -> None:
    held = vocab("builtin")
    other = replace(held, meta={**held.meta, "slices": [*held.meta["slices"][:-1], "others"]})
    with pytest.raises(VocabError, match="another version"):
        compile_schema(SCHEMA, other)
