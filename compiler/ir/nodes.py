"""The grammar as data: what schemas and Lark text become, and what the automaton is built from.

Leaves out   writing it as Lark text (printer.py), reading that (../grammar/reader.py), regular expressions (../regex),
             automata (../pushdown).
Invariants   nodes are frozen and compared by value, so equal sub-expressions can be shared and memoised;
             a Sequence or Choice never holds another of its own kind nor exactly one item;
             Literal data is never empty (the empty text is ``Sequence(())``; no text at all is ``Choice(())``).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from operator import is_
from typing import Any, Union
from typing import Literal as Literal_

from .. import regex as rx
from ..regex import Regex

Expr = Union["Literal", "Terminal", "Special", "Text", "Line", "Ref", "Use", "Sequence", "Choice", "Repeat"]


@dataclass(frozen=True)
class Literal:
    """These bytes exactly (UTF-8 of a Lark string)."""

    data: bytes


@dataclass(frozen=True)
class Terminal:
    """Any text that a regular expression matches as a whole. ``name`` is for errors and dumps only."""

    regex: Regex
    name: str = field(default="", compare=False)


Otherwise = Literal_[
    "refuse", "text", "end", "refuse or end", "words", "inner words", "last words", "declared", "member"
]  # fmt: skip
"""What a special token is where the tokenizer has none, or where it ends a turn (../grammar/specials.py)."""


@dataclass(frozen=True)
class Special:
    """One special token, matched by id and never by text.

    Attributes:
        name: its content in the tokenizer; of a declared terminal, the terminal's name.
        otherwise: what it is where a tokenizer has no such token, or one that ends a turn (see specials.py); "declared"
            until it is known which token a declared terminal stands for; "member" for no token at all: the place behind
            the key of a member (see `member`).
    """

    name: str
    otherwise: Otherwise = "refuse"


def member(bit: int, required: bool) -> Special:
    """Reads nothing: the key of a member was read, of an object whose members stand in any order.

    The bit of the frame's register is set there, and has to be clear before (../pushdown/members.py).
    """
    return Special(f"MEMBER_{bit}_{'REQUIRED' if required else 'OPTIONAL'}", "member")


MOST_REQUIRED = 30
"""Bits that `members` may name."""


def members(bits: int) -> Special:
    """Reads nothing: an object of a union ends here if the register has some bits (../pushdown/union_ends.py)."""
    return Special(f"MEMBERS_{bits}", "member")


@dataclass(frozen=True)
class Text:
    """Free text; specials.py makes it a Terminal once the tokenizer is known.

    Attributes:
        stops: what occurs nowhere in it.
        first: what it does not begin with, blanks aside.
        last: whether it may end a turn: then it ends in no beginning of a string of ``stops``, and is no beginning of
            one of ``first``, but of those that are tokens.
        before: what follows it, with which it has no string of ``stops`` before the end.
    """

    stops: tuple[str | Regex, ...]
    first: tuple[str | Regex, ...] = ()
    last: bool = False
    before: str = ""


@dataclass(frozen=True)
class Line:
    """A new line of indented JSON; ../grammar/indentation.py makes it a Literal.

    Behind an opening bracket there is a bracket more around it, behind a comma as many as before, else one less.

    Attributes:
        indent: what its line begins with, once for every bracket around.
    """

    indent: str


@dataclass(frozen=True)
class Ref:
    """A rule by name; in a definition also a terminal, or a parameter of a template (../grammar/templates.py)."""

    name: str


@dataclass(frozen=True)
class Use:
    """A template applied to arguments. Definitions have such nodes, a Grammar has none."""

    template: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True)
class Sequence:
    """All items in order; the empty sequence is the empty text."""

    items: tuple[Expr, ...]


@dataclass(frozen=True)
class Choice:
    """One of the options; no options is no text at all."""

    options: tuple[Expr, ...]


@dataclass(frozen=True)
class Repeat:
    """``low`` to ``high`` copies of the item; ``high`` None is without bound."""

    item: Expr
    low: int
    high: int | None


EMPTY: Expr = Sequence(())
NOTHING: Expr = Choice(())
_FEW = 8  # so many options are compared each with each


def sequence(*items: Expr) -> Expr:
    """A Sequence in normal form: flattened, adjacent literals kept apart, one item unwrapped."""
    flat: list[Expr] = []
    for item in items:
        if type(item) is Sequence:
            flat.extend(item.items)
        else:
            flat.append(item)
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def choice(*options: Expr) -> Expr:
    """A Choice in normal form: flattened, duplicates dropped, one option unwrapped."""
    flat: list[Expr] = []
    for option in options:
        if type(option) is Choice:
            flat.extend(option.options)
        else:
            flat.append(option)
    if len(flat) > _FEW:
        flat = list(dict.fromkeys(flat))
    else:  # hashes are of all that is inside, and most that differ differ soon
        flat = [one for n, one in enumerate(flat) if one not in flat[:n]]
    return flat[0] if len(flat) == 1 else Choice(tuple(flat))


def free_name(name: str, taken: Container[str]) -> str:
    """The name of a new rule: this one, with as many # behind it as tell it from those that are there."""
    while name in taken:
        name += "#"
    return name


def optional(item: Expr) -> Expr:
    """The item or nothing."""
    return choice(item, EMPTY)


def repeated(item: Expr, low: int, high: int | None) -> Expr:
    """``low`` to ``high`` copies in normal form, as Lark can write them: of no bound there is none or one at least."""
    if high == 0 or item == EMPTY:
        return EMPTY
    if high is None and low > 1:
        return sequence(Repeat(item, low, low), Repeat(item, 0, None))
    if (low, high) == (0, 1):
        return optional(item)
    return item if (low, high) == (1, 1) else Repeat(item, low, high)


def size_of(expr: Expr) -> int:
    """How many nodes an expression has."""
    if type(expr) is Sequence:
        return 1 + sum(map(size_of, expr.items))
    if type(expr) is Choice:
        return 1 + sum(map(size_of, expr.options))
    return 1 + (size_of(expr.item) if type(expr) is Repeat else len(expr.arguments) if type(expr) is Use else 0)


def string(text: str) -> Expr:
    """A text as it is."""
    return Literal(text.encode()) if text else EMPTY


def matched(regex: Regex, name: str = "") -> Expr:
    """What a regular expression matches, in normal form; ``name`` is that of the terminal."""
    text = rx.literal_text(regex)
    if text:
        return Literal(text.encode("utf-8"))
    return EMPTY if regex == rx.EMPTY else NOTHING if regex == rx.NOTHING else Terminal(regex, name)


def rebuilt(expr: Expr, of: Callable[[Expr], Expr]) -> Expr:
    """An expression with other parts, in normal form; itself where these are the same."""
    if type(expr) is Sequence:
        parts = list(map(of, expr.items))
        return expr if all(map(is_, parts, expr.items)) else sequence(*parts)
    if type(expr) is Choice:
        parts = list(map(of, expr.options))
        return expr if all(map(is_, parts, expr.options)) else choice(*parts)
    if type(expr) is Repeat:
        part = of(expr.item)
        return expr if part is expr.item else repeated(part, expr.low, expr.high)
    return Use(expr.template, tuple(map(of, expr.arguments))) if type(expr) is Use else expr


def renamed(expr: Expr, name: Mapping[str, str]) -> Expr:
    """An expression in which some rules have other names."""
    if type(expr) is Ref:
        other = name.get(expr.name)
        return expr if other is None else Ref(other)
    return rebuilt(expr, lambda part: renamed(part, name))


@dataclass(frozen=True)
class Mark:
    """What the text of a rule is to whoever reads it back (docs/format.md, "Marks").

    Attributes:
        kind: "text" said freely; "reasoning" makes reasoning of the free text inside; "tool" a call of one tool, from
            where it differs from those of others; "name", "arguments" those of the tool around; "key", "value" and
            "string" the name of a parameter, its value, and one that is a string as it is.
        number: which tool.
    """

    kind: Literal_["text", "reasoning", "tool", "name", "arguments", "key", "value", "string"]
    number: int = 0


@dataclass(frozen=True, eq=False)
class Closed:
    """Rules that are the same in many grammars, with what is worked out of them kept beside them.

    Attributes:
        grammar: the rules that are its own; it starts from the only one that others refer to.
        order: names of all its rules, those that it shares with others among them, as they were met.
        kept: by who worked it out.
    """

    grammar: Grammar
    order: tuple[str, ...]
    kept: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Grammar:
    """Rules by name and the rule to start from.

    Attributes:
        rules: expression of every rule, in the order of the text.
        start: name of the first rule.
        places: for errors, the JSON pointer or ``file:line`` that a rule came from, where known.
        entries: further places to start from, name → rule; all end where the start rule does.
        marks: what the texts of some rules are.
        apart: further rules, each with all that it alone needs, and where the places in it begin (cached_reader.py).
        groups: rules that are called as bracketed groups are, though they are in no brackets: the first symbol of a
            text pushes, the last one pops.
    """

    rules: dict[str, Expr]
    start: str = "start"
    places: dict[str, str] = field(default_factory=dict)
    entries: dict[str, str] = field(default_factory=dict)
    marks: dict[str, Mark] = field(default_factory=dict)
    apart: dict[str, tuple[Closed, str]] = field(default_factory=dict)
    groups: frozenset[str] = frozenset()

    def place(self, rule: str) -> str:
        """How to name a rule in an error; what follows a # in its name tells parts of it apart, what is before a colon
        whose it is."""
        base = rule.partition("#")[0]
        at = self.places.get(rule, self.places.get(base))
        rule = base.rpartition(":")[2]
        return f"{'terminal' if rule.isupper() else 'rule'} {rule}" + (f" ({at})" if at else "")
