"""Put a whole grammar under one rule of another: Lark text, a regular expression, parameters as a protocol writes them.

Leaves out   reading Lark text (reader.py), protocols (protocol.py), where such texts stand (structural_tag.py,
             assemble.py).
Invariants   the rules have names of their own, which begin with an underscore, and terminals too; a text that is read
             back has no marks from in here.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..budget import Budget
from ..errors import ToolcError
from ..ir.nodes import Expr, Grammar, Literal, Ref, Special, Terminal, Use, matched, rebuilt
from ..regex import Regex, parse_regex
from .analysis import reachable
from .protocol import shared_templates

_TEMPLATES = {"text": "_tag", "refuse": "_token", "end": "_end"}


@dataclass
class Embedded:
    """Rules made of whole grammars.

    Attributes:
        rules: by name.
        terminals: that they use, by name.
        places: rule → where its text comes from.
        prefix: of the names.
        templates: of grammars/protocol.lark that the rules use;  declared: terminals that stand for special tokens.
    """

    prefix: str
    rules: dict[str, Expr] = field(default_factory=dict)
    terminals: dict[str, Regex] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    templates: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    _names: dict[Regex, str] = field(default_factory=dict)
    _grammars: list[tuple[Grammar, dict[str, str]]] = field(default_factory=list)

    def grammar(self, grammar: Grammar, place: str) -> Ref:
        """The rule that stands for a grammar's start."""
        stem = f"{self.prefix}{len(self._grammars)}"
        reached = reachable(grammar)
        name = {rule: f"{stem}_{_word(rule, number)}" for number, rule in enumerate(reached)}
        self._grammars.append((grammar, name))

        def put(expr: Expr) -> Expr:
            if type(expr) is Ref:
                return Ref(name[expr.name])
            if type(expr) is Terminal:
                return self.terminal(expr.regex)
            if type(expr) is Special and expr.otherwise == "declared":
                self.declared.add(expr.name)
                return expr
            if type(expr) is Special and expr.otherwise == "member":
                return expr
            if type(expr) is Special:
                return self.use(_TEMPLATES[expr.otherwise], Literal(expr.name.encode()))
            return rebuilt(expr, put)

        for rule in reached:
            self.rules[name[rule]] = put(grammar.rules[rule])
            self.places[name[rule]] = place
        return Ref(name[grammar.start])

    def known(self, grammar: Grammar, rule: str) -> Ref:
        """What a rule of a grammar that was put here is called."""
        return Ref(next(name for one, name in self._grammars if one is grammar)[rule])

    def terminal(self, regex: Regex) -> Expr:
        """What a regular expression matches."""
        plain = matched(regex)
        if type(plain) is not Terminal:
            return plain
        known = self._names.get(regex)
        if known is None:
            known = self._names[regex] = f"{self.prefix.upper()}T{len(self._names)}"
            self.terminals[known] = regex
        return Ref(known)

    def needs(self, there: Container[str]) -> str:
        """The Lark text of what the rules use and is not there: templates, declared terminals."""
        declared = "".join(f"%declare {name}\n" for name in sorted(self.declared) if name not in there)
        return declared + shared_templates(self.templates, there)

    def use(self, template: str, *arguments: Expr) -> Use:
        """A use of a template of grammars/protocol.lark."""
        self.templates.add(template)
        return Use(template, arguments)


def _word(rule: str, number: int) -> str:
    """What is added to a name for a rule: its own name, where Lark takes it."""
    return rule if re.fullmatch(r"[a-z][a-z0-9_]*", rule) else f"_{number}"


def lark_grammar(text: str, place: str, budget: Budget) -> Grammar:
    """The grammar of Lark text that stands at a place of a document.

    Raises:
        GrammarError, UnsupportedError: with the place in the document, and in the text.
    """
    from .reader import read_grammar

    with at_place(place):
        return read_grammar(text, "grammar", budget=budget, in_context=True)


def regex_of(pattern: str, place: str, dialect: str = "python") -> Regex:
    """The regular expression of a pattern, which matches whole texts."""
    with at_place(place):
        return parse_regex(pattern, dialect=dialect)


@contextmanager
def at_place(place: str) -> Iterator[None]:
    """Errors inside name the place in the document, then that in the text."""
    try:
        yield
    except ToolcError as error:
        error.place = place + (f" ({error.place})" if error.place else "")
        raise
