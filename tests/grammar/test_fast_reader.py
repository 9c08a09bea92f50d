"""Plain Lark text read without Lark: the same grammar as through Lark, also of texts that are nearly right."""

from __future__ import annotations

import random

import pytest

from tests.cases.lark_grammars import LARK_GRAMMARS
from toolc.compiler.budget import Budget
from toolc.compiler.errors import ToolcError
from toolc.compiler.grammar.fast_reader import NotPlain, read_plain
from toolc.compiler.grammar.ir import Grammar
from toolc.compiler.grammar.reader import _leaves, _Reader
from toolc.compiler.options import Options
from toolc.compiler.pipeline import grammar_of
from toolc.compiler.specs import read_spec

PLAIN = r"""start: _w value _w
_w: WS?  // a gap
_c: _w "," _w
value: "{" _w (("\"a\"" _w NUM (_c part)? | part) _w)? "}" |  | _k{value, NUM}
part: "\"b\\\"" CHAR~0..25 "x"~3 | (CHAR NUM)+
  | "true"i //
_k{one, two}: one "/" _list{two}
_list{of}: of (of)*
# names
CHAR: /[^"\\]|\\[\/"\\]/
NUM: /-?(?:0|[1-9][0-9]*)/i
WORD: CHAR (NUM | "-")* "."
WS: /[ \t]{1,8}/
"""
TOOLS = [
    {"name": name, "parameters": {"type": "object", "properties": {name: {"enum": [1, "a/b", None]}, "n": {}}}}
    for name in ("look", "send")
]


def _texts() -> list[str]:
    schema = {"properties": {"k": {"type": "array", "items": {"pattern": "^[/\\]]+$"}}, "n": {"multipleOf": 3}}}
    made = [grammar_of(read_spec(schema), Options()).text]
    made += [
        grammar_of(read_spec(TOOLS), Options(protocol=name)).text for name in ("hermes", "qwen3_coder", "pythonic")
    ]
    return [PLAIN, *made]


def _through_lark(text: str) -> Grammar | None:
    _leaves.clear()
    try:
        return _Reader(text, "x", (), Budget()).grammar("start")
    except ToolcError:
        return None


def _compare(text: str) -> bool:
    """Whether the text is plain; then it has to be the same through Lark."""
    _leaves.clear()
    try:
        found = _Reader(text, "x", (), Budget(), read_plain(text)).grammar("start")
    except (NotPlain, ToolcError):
        return False
    assert found == _through_lark(text)
    return True


@pytest.mark.parametrize("number", range(5))
def test_what_toolc_writes_is_plain(number: int) -> None:
    assert _compare(_texts()[number])


@pytest.mark.parametrize(
    "literal",
    [r"/a*?b/", r"/a*\x3fb/", r"/a\x2a?b/", r"/a{2,}?b/", r"/[*?]+b/", r"/a\u003fb\n/", r'/[^"\\\x00-\x1f]/',
     r"/\\\'\//i", r'"a\"b"', r'"\""', r'"\\"', r'"\n"', r'"a"i', '"\'"', '"é"', r"/\\u00/", r"/(?i)ab|(?:x|y)c/",
     r'/a\\"/', r'/[^\\"]/', r'/\\\\"/'],
)  # fmt: skip
def test_literals(literal: str) -> None:
    assert _compare(f'start: {literal} NAMED\nNAMED: {literal}\nBOTH: NAMED "-" {literal}?\n')


def test_grammars_that_people_wrote() -> None:
    plain = sum(_compare(text) for _, text, *_ in LARK_GRAMMARS)
    assert plain > len(LARK_GRAMMARS) / 4


def test_texts_that_are_nearly_right() -> None:
    random.seed(11)
    pieces = ['"', "/", "\\", "|", "(", ")", "{", "}", ",", "~", "~2..1", "?", "*", ":", "\n", "\n  |", " ", "//", "#",
              "!", "a", "A", "__x", "..", "->", "%", "[", "]", "1", ".", "value", "NUM", "\nvalue: NUM", "_k{NUM}",
              "\nCHAR: WORD", "'", "i"]  # fmt: skip
    plain = 0
    for _ in range(400):
        text = PLAIN
        for _ in range(random.randint(1, 2)):
            at = random.randrange(len(text))
            text = text[:at] + random.choice(pieces) + text[at + random.randint(0, 2) :]
        plain += _compare(text)
    assert 20 < plain < 380
