"""Does a JSON text belong to the language of emitted Lark text? Two matchers, for tests only.

``Recogniser`` is the obvious one; it knows only the syntax that compiler/schema writes, and that every terminal but
CHAR and WS is one whole JSON token. ``Compiled`` asks the automaton. tests/schema/test_lark.py checks the first against
Lark's own Earley parser; tests/automata the second against plain readings of grammars.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, TypeAlias

from tests.automata.machine import accepts
from toolc.compiler.errors import UnsatisfiableError
from toolc.compiler.grammar.reader import read_grammar
from toolc.compiler.pushdown.pushdown import Automaton, build_automaton

_TOKEN = re.compile(
    r'(?P<blank>[ \t]+|//[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*")|(?P<regex>/(?:\\.|[^/\\\n])+/)'
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<times>~(?P<low>\d+)(?:\.\.(?P<high>\d+))?)|(?P<mark>[?*+|():])|(?P<line>\n)"
)
_SCALAR = re.compile(r'"(?:\\.|[^"\\])*"|[^\s,:\[\]{}"]+', re.S)
_DIGIT = re.compile(r"\[[-.0-9]+\]")


class Compiled:
    """Matches texts against one grammar by its automaton; one that derives nothing matches none."""

    def __init__(self, text: str) -> None:
        self.automaton = _automaton(text)

    def accepts(self, text: str) -> bool:
        """Whether the whole text is derived."""
        return self.automaton is not None and accepts(self.automaton, text.encode())


@lru_cache(maxsize=4096)
def _automaton(text: str) -> Automaton | None:
    try:
        return build_automaton(read_grammar(text))
    except UnsatisfiableError:
        return None


Ends: TypeAlias = Callable[[int], Collection[int]]
"""Where a match that begins at a position may end."""
_NONE: tuple[int, ...] = ()


class Recogniser:
    """Matches texts against one grammar: every part of it is a function from a position to where matches end."""

    def __init__(self, text: str) -> None:
        self.text = ""
        self.memo: dict[tuple[str, int], Collection[int]] = {}
        self.rules: dict[str, Ends] = {}
        for line in text.replace("\n    |", " |").splitlines():
            tokens = [m for m in _TOKEN.finditer(line) if m.lastgroup != "blank"]
            assert sum(len(m[0]) for m in _TOKEN.finditer(line)) == len(line), line
            if tokens:
                assert tokens[1][0] == ":", line
                name, body = tokens[0][0], _choice(tokens, 2)[0]
                self.rules[name] = self._free(body[1]) if name in ("CHAR", "WS") else self._part(body)

    def accepts(self, text: str, start: str = "start") -> bool:
        """Whether the whole text is derived."""
        self.text, self.memo = text, {}
        return len(text) in self._rule(start)(0)

    def _part(self, node: Any) -> Ends:
        kind = node[0]
        if kind == "literal":
            return self._literal(node[1])
        if kind == "regex":
            return self._regex(node[1])
        if kind == "ref":
            return self._rule(node[1])
        if kind == "choice":
            return self._any_of([self._part(one) for one in node[1]])
        if kind == "sequence":
            return self._all_of([self._part(one) for one in node[1]])
        assert kind == "repeat"
        return self._repeat(self._part(node[1]), node[2], node[3])

    def _literal(self, literal: str) -> Ends:
        return lambda at: (at + len(literal),) if self.text.startswith(literal, at) else _NONE

    def _free(self, regex: re.Pattern[str]) -> Ends:
        def ends(at: int) -> Collection[int]:
            found = regex.match(self.text, at)
            return (found.end(),) if found else _NONE

        return ends

    def _regex(self, regex: re.Pattern[str]) -> Ends:
        digit = _DIGIT.fullmatch(regex.pattern)  # one character of a number that is written as rules

        def ends(at: int) -> Collection[int]:
            token = digit or _SCALAR.match(self.text, at)
            end = at + 1 if digit else token.end() if token else at
            return (end,) if token and regex.fullmatch(self.text, at, end) else _NONE

        return ends

    def _rule(self, name: str) -> Ends:
        def ends(at: int) -> Collection[int]:
            found = self.memo.get((name, at))
            if found is None:
                self.memo[name, at] = _NONE
                found = self.memo[name, at] = self.rules[name](at)
            return found

        return ends

    def _any_of(self, options: list[Ends]) -> Ends:
        def ends(at: int) -> Collection[int]:
            found: set[int] = set()
            for one in options:
                found.update(one(at))
            return found

        return ends

    def _all_of(self, parts: list[Ends]) -> Ends:
        def ends(at: int) -> Collection[int]:
            found: Collection[int] = (at,)
            for one in parts:
                found = one(next(iter(found))) if len(found) == 1 else {end for here in found for end in one(here)}
                if not found:
                    break
            return found

        return ends

    def _repeat(self, item: Ends, low: int, high: int | None) -> Ends:
        def ends(at: int) -> Collection[int]:
            done: set[int] = set()
            here, count = {at}, 0
            while here and (high is None or count <= high):
                if count >= low:
                    if here <= done and high is None:
                        break
                    done |= here
                here, count = {end for one in here for end in item(one)}, count + 1
            return done

        return ends


def _choice(tokens: list[re.Match[str]], at: int) -> tuple[Any, int]:
    options: list[Any] = []
    while True:
        items: list[Any] = []
        while at < len(tokens) and tokens[at][0] not in ("|", ")"):
            item, at = _item(tokens, at)
            items.append(item)
        options.append(items[0] if len(items) == 1 else ("sequence", items))
        if at == len(tokens) or tokens[at][0] == ")":
            return (options[0] if len(options) == 1 else ("choice", options)), at
        at += 1


def _item(tokens: list[re.Match[str]], at: int) -> tuple[Any, int]:
    token = tokens[at]
    item: Any
    if token[0] == "(":
        item, at = _choice(tokens, at + 1)
        assert tokens[at][0] == ")"
    elif token.lastgroup == "string":
        item = ("literal", token[0][1:-1].replace('\\"', '"'))
        assert "\\" not in item[1]
    elif token.lastgroup == "regex":
        item = ("regex", re.compile(token[0][1:-1].replace("\\/", "/")))
    else:
        assert token.lastgroup == "name", token
        item = ("ref", token[0])
    at += 1
    if at < len(tokens) and tokens[at][0] in ("?", "*", "+"):
        low, high = {"?": (0, 1), "*": (0, None), "+": (1, None)}[tokens[at][0]]
        return ("repeat", item, low, high), at + 1
    if at < len(tokens) and tokens[at]["times"]:
        low = int(tokens[at]["low"])
        return ("repeat", item, low, int(tokens[at]["high"] or low)), at + 1
    return item, at
