"""Does a JSON text belong to the language of emitted Lark text? Two matchers, for tests only.

``Recogniser`` is the obvious one; it knows only the syntax that compiler/schema writes, and that every terminal but
CHAR and WS is one whole JSON token. ``Compiled`` asks the automaton. tests/schema/test_lark.py checks the first against
Lark's own Earley parser; tests/automata the second against plain readings of grammars.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from tests.automata.machine import accepts
from toolc.compiler.automata.pushdown import Automaton, build_automaton
from toolc.compiler.errors import UnsatisfiableError
from toolc.compiler.grammar.reader import read_grammar

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


class Recogniser:
    """Matches texts against one grammar."""

    def __init__(self, text: str) -> None:
        self.rules: dict[str, Any] = {}
        for line in text.splitlines():
            tokens = [m for m in _TOKEN.finditer(line) if m.lastgroup != "blank"]
            assert sum(len(m[0]) for m in _TOKEN.finditer(line)) == len(line), line
            if tokens:
                assert tokens[1][0] == ":", line
                self.rules[tokens[0][0]] = _choice(tokens, 2)[0]

    def accepts(self, text: str, start: str = "start") -> bool:
        """Whether the whole text is derived."""
        self.text, self.memo = text, {}
        return len(text) in self._ends(("ref", start), 0)

    def _ends(self, node: Any, at: int) -> frozenset[int]:
        kind = node[0]
        if kind == "literal":
            return frozenset((at + len(node[1]),)) if self.text.startswith(node[1], at) else frozenset()
        if kind == "regex":
            return self._regex(node[1], at)
        if kind == "ref":
            key = (node[1], at)
            if key not in self.memo:
                self.memo[key] = frozenset()
                body = self.rules[node[1]]
                if node[1] in ("CHAR", "WS"):
                    found = body[1].match(self.text, at)
                    self.memo[key] = frozenset((found.end(),)) if found else frozenset()
                else:
                    self.memo[key] = self._ends(body, at)
            return self.memo[key]
        if kind == "choice":
            return frozenset().union(*(self._ends(one, at) for one in node[1]))
        if kind == "sequence":
            ends = frozenset((at,))
            for one in node[1]:
                ends = frozenset().union(*(self._ends(one, end) for end in ends))
                if not ends:
                    break
            return ends
        assert kind == "repeat"
        _, item, low, high = node
        done: set[int] = set()
        ends, count = frozenset((at,)), 0
        while ends and (high is None or count <= high):
            if count >= low:
                if ends <= done and high is None:
                    break
                done |= ends
            ends, count = frozenset().union(*(self._ends(item, end) for end in ends)), count + 1
        return frozenset(done)

    def _regex(self, regex: re.Pattern[str], at: int) -> frozenset[int]:
        if _DIGIT.fullmatch(regex.pattern):  # one character of a number that is written as rules
            return frozenset((at + 1,)) if regex.fullmatch(self.text, at, at + 1) else frozenset()
        token = _SCALAR.match(self.text, at)
        if token and regex.fullmatch(self.text, at, token.end()):
            return frozenset((token.end(),))
        return frozenset()


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
