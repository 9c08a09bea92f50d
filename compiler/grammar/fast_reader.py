"""Read the plain part of the Lark language without Lark, for texts that toolc writes: rules, terminals, templates.

Lark's own parser takes longer for such a text than the automaton of its grammar. What is here reads definitions made of
names, literals, alternatives, groups, repeats and uses of templates, and makes of each what an algebra makes of such
parts. At anything else, or anything wrong, it gives up, and Lark reads the text and finds the words for what is wrong.

Leaves out   directives, modifiers, priorities, aliases, ranges, optional parts in brackets, deep groups; the meaning of
             literals and templates (reader.py).
Invariants   of what it reads, Lark makes the same grammar: tests/grammar/test_fast_reader.py compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Generic, TypeVar

from ..regex import MOST_TIMES

Part = TypeVar("Part")

_TOKEN = re.compile(
    r"""[ \t\f]*(
    (?://|\#)[^\n]*
    |(?:\r?\n)+\s*(?:\||(?://|\#)[^\n]*)?
    |_?(?:[a-z][_a-z0-9]*|[A-Z][_A-Z0-9]*)
    |"(?:\\"|\\\\|[^"\n])*?"i?
    |/(?!/)(?:\\/|\\\\|[^/])*?/[imslux]*
    |[|+*():{},]|\?(?![a-z_])
    |~[ ]*[0-9]+(?:\.\.[0-9]+)?(?![0-9.])
    |[^ \t\f\n][^\n]*)""",  # the last is anything else
    re.VERBOSE,
)
_TIMES = re.compile(r"~[ ]*([0-9]+)(?:\.\.([0-9]+))?")
END = "\n"
MOST_NESTED = 100
"""How deep groups of a definition may nest; every one takes frames of the thousand that Python allows."""
_REPEATS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}


class NotPlain(Exception):
    """Lark has to read this."""


Body = list[str]
"""The tokens of a definition, and an end."""


@dataclass
class Plain:
    """Definitions.

    Attributes:
        terminals: body of each.
        rules: (parameters, body) of each.
        lines: line of each rule.
    """

    terminals: dict[str, Body] = field(default_factory=dict)
    rules: dict[str, tuple[tuple[str, ...], Body]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Algebra(Generic[Part]):
    """What to make of a body.

    Attributes:
        known: names and literals that stand for something.
        leaf: what stands for others; NotPlain where a token is neither.
        use: of a template and its arguments.
        sequence, choice: of parts, in order.
        repeat: of a part, the least and the most copies.
    """

    known: Mapping[str, Part]
    leaf: Callable[[str], Part]
    use: Callable[[str, list[Part]], Part]
    sequence: Callable[[list[Part]], Part]
    choice: Callable[[list[Part]], Part]
    repeat: Callable[[Part, int, int | None], Part]


def read_plain(text: str) -> Plain:
    """The definitions of a text, whose bodies are still to be read; NotPlain if Lark has to do it."""
    out = Plain()
    line = behind = 1  # line of the definition, and of what is behind the token
    found: Body = []
    for token in [*_TOKEN.findall(text), END]:
        head = token[0]
        if head > "/":  # names, most of the time
            found.append(token)
        elif head in "\r\n":
            behind += token.count("\n")
            if token[-1] == "|" and token[:-1].isspace():
                found.append("|")
            elif token.isspace():  # else it is a comment, which ends no definition
                if found:
                    found.append(END)
                    _define(out, found, line)
                    found = []
                line = behind
        elif head == '"' or (head == "/" and token[1:2] != "/"):
            if token.rfind(head) == 0:
                raise NotPlain
            behind += token.count("\n")
            found.append(token)
        elif head != "/" and head != "#":
            found.append(token)
    return out


def _define(out: Plain, tokens: list[str], line: int) -> None:
    """Add one definition."""
    name, at = tokens[0], 1
    if name in out.rules or name in out.terminals or name.startswith("__"):
        raise NotPlain
    params: tuple[str, ...] = ()
    if tokens[1] == "{" and "}" in tokens:
        at = tokens.index("}") + 1
        params = tuple(tokens[2 : at - 1 : 2])
        if len(set(params)) < len(params) or not all(map(_is_rule, params)) or set(tokens[3 : at - 1 : 2]) - {","}:
            raise NotPlain
    if tokens[at] != ":":
        raise NotPlain
    body = tokens[at + 1 :]
    if body.count("(") > MOST_NESTED and _depth(body) > MOST_NESTED:
        raise NotPlain
    if _is_rule(name):
        out.rules[name] = params, body
        out.lines[name] = line
    elif not params and name.isupper() and name.isascii():
        out.terminals[name] = body
    else:
        raise NotPlain


def _depth(body: Body) -> int:
    """How deep groups nest."""
    return max(accumulate((token == "(") - (token == ")") for token in body))


def _is_rule(token: str) -> bool:
    """Whether a token is a name of a rule."""
    return token.islower() and token.isidentifier() and token.isascii()


def read_body(body: Body, algebra: Algebra[Part]) -> Part:
    """What an algebra makes of a body."""
    if len(body) == 2 and (one := algebra.known.get(body[0])) is not None:
        return one
    found, at = _alternatives(body, 0, algebra)
    if at != len(body):
        raise NotPlain
    return found


def _alternatives(body: Body, at: int, algebra: Algebra[Part]) -> tuple[Part, int]:
    """Alternatives from a token on, and what is behind the token that ends them."""
    known = algebra.known
    options: list[Part] = []
    items: list[Part] = []
    while True:
        token = body[at]
        at += 1
        if token == "|" or token == ")" or token == END:
            options.append(items[0] if len(items) == 1 else algebra.sequence(items))
            if token == "|":
                items = []
                continue
            return options[0] if len(options) == 1 else algebra.choice(options), at
        if token == "(":
            item, at = _alternatives(body, at, algebra)
            if body[at - 1] != ")":
                raise NotPlain
        elif body[at] == "{":
            item, at = _use(body, at - 1, algebra)
        else:
            found = known.get(token)
            item = algebra.leaf(token) if found is None else found
        times = body[at]
        if times in _REPEATS:
            item = algebra.repeat(item, *_REPEATS[times])
            at += 1
        elif times[0] == "~":
            bounds = _TIMES.fullmatch(times)
            low, high = (int(bounds[1]), int(bounds[2] or bounds[1])) if bounds else (0, MOST_TIMES)
            if not low <= high < MOST_TIMES:
                raise NotPlain
            item = algebra.repeat(item, low, high)
            at += 1
        items.append(item)


def _use(body: Body, at: int, algebra: Algebra[Part]) -> tuple[Part, int]:
    """The use of a template, or another name or literal, at a token, and what is behind it."""
    token = body[at]
    at += 1
    if token == END:
        raise NotPlain
    if body[at] != "{":
        found = algebra.known.get(token)
        return algebra.leaf(token) if found is None else found, at
    args: list[Part] = []
    while True:
        one, at = _use(body, at + 1, algebra)
        args.append(one)
        if body[at] == "}":
            return algebra.use(token, args), at + 1
        if body[at] != ",":
            raise NotPlain


def tokens_of(text: str) -> Iterator[str]:
    """A text in pieces, of which the names of rules and terminals are whole ones."""
    at = 0
    for found in _TOKEN.finditer(text):
        begin, end = found.span(1)
        if at < begin:
            yield text[at:begin]
        yield text[begin:end]
        at = end
    yield text[at:]
