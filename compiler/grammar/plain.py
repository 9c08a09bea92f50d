"""The plain part of the Lark language read without Lark, for texts that toolc writes: rules, terminals, templates.

Lark's own parser takes longer for such a text than the automaton of its grammar. What is here gives the trees that Lark
gives, for definitions made of names, literals, alternatives, groups, repeats and uses of templates. At anything else,
or anything wrong, it gives up, and Lark reads the text and finds the words for what is wrong.

Leaves out   directives, modifiers, priorities, aliases, ranges, optional parts in brackets; the meaning of trees
             (reader.py).
Invariants   what it reads, Lark reads as the same trees: tests/grammar/test_plain.py compares them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any

from lark import Tree
from lark.grammar import NonTerminal
from lark.grammar import Terminal as LarkTerminal

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\f]+|\s*(?://|\#)[^\n]*)
    |(?P<or>(?:(?:\r?\n)+\s*)?\|)
    |(?P<end>(?:\r?\n)+\s*)
    |(?P<rule>_?[a-z][_a-z0-9]*)
    |(?P<terminal>_?[A-Z][_A-Z0-9]*)
    |(?P<string>"(?:\\"|\\\\|[^"\n])*?"i?)
    |(?P<regexp>/(?!/)(?:\\/|\\\\|[^/])*?/[imslux]*)
    |(?P<op>[+*]|\?(?![a-z_]))
    |(?P<times>~[ ]*(?P<low>[0-9]+)(?:\.\.(?P<high>[0-9]+))?(?![0-9.]))
    |(?P<mark>[():{},])
    |(?P<other>.)""",
    re.VERBOSE,
)


class _NotPlain(Exception):
    """Internal: Lark has to read this."""


@dataclass
class Plain:
    """Definitions.

    Attributes:
        terminals: tree of each, in which the names of others are their trees.
        rules: (parameters, tree) of each.
        lines: line of each rule.
    """

    terminals: dict[str, Any] = field(default_factory=dict)
    rules: dict[str, tuple[tuple[str, ...], Any]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)


def read_plain(text: str, known: Container[str] = ()) -> Plain | None:
    """The definitions of a text; None if Lark has to read it.

    Args:
        known: rules that are defined elsewhere.
    """
    try:
        return _Parser(text, known).read()
    except (_NotPlain, RecursionError):
        return None


def _tokens(text: str) -> Iterator[tuple[str, Any, int]]:
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup
        if kind == "times":
            yield kind, found.group("low", "high"), found.start()
        elif kind == "other":
            raise _NotPlain
        elif kind != "blank":
            yield found[0] if kind == "mark" else str(kind), found[0], found.start()
    yield "end", "\n", len(text)


def tokens_of(text: str) -> Iterator[str]:
    """A text in pieces, of which the names of rules and terminals are whole ones."""
    return (found[0] for found in _TOKEN.finditer(text))


class _Parser:
    def __init__(self, text: str, known: Container[str]) -> None:
        self.text = text
        self.known = known
        self.tokens = list(_tokens(text))
        self.at = 0
        self.out = Plain()
        self.used: set[tuple[str, int]] = set()  # names in the definition that is read, arguments they are given
        self.of_terminals: dict[str, set[str]] = {}

    def read(self) -> Plain:
        line, counted = 1, 0
        uses = []
        while self.at < len(self.tokens):
            kind, text, place = self.tokens[self.at]
            self.at += 1
            if kind == "rule":
                params = self.names() if self.tokens[self.at][0] == "{" else ()
                self.take(":")
                self.define(self.out.rules, text, (params, self.expansions()))
                line, counted = line + self.text.count("\n", counted, place), place
                self.out.lines[text] = line
                uses.append((params, self.used))
            elif kind == "terminal":
                self.take(":")
                self.define(self.out.terminals, text, self.expansions())
                self.of_terminals[text] = {name for name, _ in self.used}
            elif kind != "end":
                raise _NotPlain
            self.used = set()
            if kind != "end" and self.tokens[self.at][0] != "end":
                raise _NotPlain
        self.check(uses)
        self.resolve()
        return self.out

    def take(self, kind: str) -> Any:
        found, text, _ = self.tokens[self.at]
        if found != kind:
            raise _NotPlain
        self.at += 1
        return text

    def define(self, definitions: dict[str, Any], name: str, value: Any) -> None:
        if name in self.out.rules or name in self.out.terminals or name.startswith("__"):
            raise _NotPlain
        definitions[name] = value

    def names(self) -> tuple[str, ...]:
        """Parameters between braces."""
        found = []
        self.take("{")
        while True:
            found.append(self.take("rule"))
            if self.tokens[self.at][0] == "}":
                self.at += 1
                return tuple(found)
            self.take(",")

    def expansions(self) -> Tree:
        """Alternatives, up to a token that is none of theirs."""
        options = []
        items: list[Any] = []
        while True:
            kind, text, _ = self.tokens[self.at]
            if kind == "(":
                self.at += 1
                item: Any = self.expansions()
                self.take(")")
            elif kind in ("rule", "terminal", "string", "regexp"):
                item = Tree("value", [self.value()])
            else:
                options.append(Tree("expansion", items))
                if kind != "or":
                    return Tree("expansions", options)
                self.at += 1
                items = []
                continue
            kind, text, _ = self.tokens[self.at]
            if kind == "op":
                self.at += 1
                item = Tree("expr", [item, text])
            elif kind == "times":
                self.at += 1
                low, high = text
                if high is not None and int(high) < int(low):
                    raise _NotPlain
                item = Tree("expr", [item, "~", low] if high is None else [item, "~", low, high])
            items.append(item)

    def value(self) -> Any:
        """A name, a literal, or the use of a template."""
        kind, text, _ = self.tokens[self.at]
        self.at += 1
        if kind in ("string", "regexp"):
            return Tree("literal", [text])
        if kind == "terminal":
            self.used.add((text, 0))
            return LarkTerminal(text)
        if kind != "rule":
            raise _NotPlain
        if self.tokens[self.at][0] != "{":
            self.used.add((text, 0))
            return NonTerminal(text)
        args = []
        self.take("{")
        while True:
            args.append(Tree("value", [self.value()]))
            if self.tokens[self.at][0] == "}":
                break
            self.take(",")
        self.at += 1
        self.used.add((text, len(args)))
        return Tree("template_usage", [NonTerminal(text), *args])

    def check(self, uses: list[tuple[tuple[str, ...], set[tuple[str, int]]]]) -> None:
        """Every name is defined, and templates get their arguments."""
        rules, terminals = self.out.rules, self.out.terminals
        for params, used in uses:
            if len(set(params)) < len(params) or any(p in rules for p in params):
                raise _NotPlain
            for name, count in used:
                if name in params or name in terminals or (not count and name in self.known):
                    continue
                if name not in rules or (count and len(rules[name][0]) != count):
                    raise _NotPlain

    def resolve(self) -> None:
        """Put the trees of terminals in the place of their names."""
        done: set[str] = set()
        for first in self.of_terminals:
            path = [(first, iter(sorted(self.of_terminals[first])))]
            open_ = {first}
            while path:
                name, others = path[-1]
                other = next((one for one in others if one not in done), None)
                if other is None:
                    path.pop()
                    open_.discard(name)
                    done.add(name)
                    continue
                if other in open_ or other not in self.of_terminals:
                    raise _NotPlain
                open_.add(other)
                path.append((other, iter(sorted(self.of_terminals[other]))))
        todo = [self.out.terminals[name] for name, names in self.of_terminals.items() if names]
        while todo:
            for i, child in enumerate(children := todo.pop().children):
                if isinstance(child, LarkTerminal):
                    children[i] = self.out.terminals[child.name]
                elif isinstance(child, Tree):  # as yet without the trees of others
                    todo.append(child)
