"""Collect the rules and terminals of schemas under names of their own.

Leaves out   the bodies of rules: of values (writer.py), of the shapes of one kind (scalar_rules.py, array_rules.py,
             object_rules.py), of arguments (argument_rules.py).
Invariants   a rule is written once per body, terminals once per expression; numbering is by discovery.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from ..budget import Budget
from ..errors import SchemaError, UnsupportedError
from ..ir.nodes import EMPTY, Choice, Expr, Line, Ref, choice, optional, sequence, string
from ..regex import NOTHING, Chars, Regex, charset, repeat
from .atoms import Conj, Literal
from .common import Common
from .encoding import JSON_ENCODING, Encoding
from .nodes import Reader
from .normalise import Normaliser
from .references import Loader
from .shapes import Shape

INLINE = 24
"""An expression of at most this many characters of Lark text stands where it is used; a longer one gets a rule."""

_BLANK = Chars(charset.normal([(9, 10), (13, 13), (32, 32)]))


class Gaps(NamedTuple):
    """The rules of what stands between tokens: inside of brackets, a comma with its blanks, a colon with its blanks."""

    inside: str = "_w"
    comma: str = "_c"
    colon: str = "_k"


GAPS = Gaps()


@dataclass(frozen=True)
class SchemaOptions:
    """How values are laid out.

    Attributes:
        whitespace: what stands between two tokens: ``spaced`` (a space after ``,`` and ``:``, and nothing else, or what
            the encoding's own gaps say), ``compact`` (nothing), ``pretty`` (new lines and an indentation, in JSON;
            ``spaced`` in other encodings), ``flexible`` (any blanks), or at most so many blanks.
        digits: digits of a number before and after its point.
        key_order: ``declared`` (the order in which the schema names them) or ``any``, but for objects of too many keys.
        registers: whether registers may keep which members an object has, or items an array;  ruled_out: but in those
            at these places.
        loader: gives the document at a URI, or None; without one, references outside are refused.
        relax: keywords (RELAXABLE of ../options.py) that are left out, and reported, where they cannot be compiled.
        formats: the formats that are enforced, where others are annotations; None: all.
        closed: whether arguments that the schema of a tool does not name are left out.
        later: whether keywords and formats of drafts after that of a schema hold in it.
    """

    whitespace: str | int = "spaced"
    digits: int = 20
    relax: tuple[str, ...] = ()
    closed: bool = False
    later: bool = False
    formats: frozenset[str] | None = None
    key_order: str = "declared"
    registers: bool = True
    ruled_out: frozenset[str] = frozenset()
    loader: Loader | None = None


Key = tuple[str, tuple[Shape, ...], tuple[Shape, ...], bool]
"""A kind, its shapes, those that may stand in its place, as whoever reads cannot tell, and whether no text at all is
the empty one."""


@dataclass
class ElementRules:
    """The rules of arrays and objects that are written part by part.

    Attributes:
        rules: (what, what it lies in, or none where that does not matter) → rule; inside of its own kind it is JSON.
        open: what is being written, from the outside in.
        recursive: rules in which something lies inside of its own kind, or of what is around them.
        recursions: how often that came up.
    """

    rules: dict[tuple[Key, frozenset[Key] | None], str] = field(default_factory=dict)
    open: list[Key] = field(default_factory=list)
    recursive: set[str] = field(default_factory=set)
    recursions: int = 0


class Rules(ABC):
    """The rules of several schemas, and what their writers share.

    Attributes:
        places: rule or terminal → JSON pointer of the schema it came from.
        restrictions: the declared restrictions that the text makes use of.
        elements: the rules of arrays and objects that are written part by part.
        open_parts: kind → the rule of the parts of one that may hold anything, of the arguments added last.
        gap: whether blanks may stand inside of brackets;  blank: these, or nothing;  comma, colon: with their blanks.
        line: what begins a line of indented JSON; None where it is not indented.
    """

    def __init__(
        self, options: SchemaOptions, budget: Budget | None = None, encoding: Encoding = JSON_ENCODING,
        common: Common | None = None, gaps: Gaps = GAPS,
    ) -> None:  # fmt: skip
        blanks = options.whitespace
        known = blanks in ("compact", "spaced", "pretty", "flexible")
        if not known and not (isinstance(blanks, int) and not isinstance(blanks, bool) and blanks >= 0):
            raise SchemaError(
                place="options/whitespace",
                found=repr(blanks),
                expected="compact, spaced, pretty, flexible or a number of blanks",
            )
        self.line = Line(encoding.indent) if blanks == "pretty" and encoding.indent else None
        if blanks == "pretty" and self.line is None:
            blanks = "spaced"
        self._layout = blanks
        if options.key_order not in ("declared", "any"):
            raise SchemaError(
                place="options/key_order",
                found=repr(options.key_order),
                expected="declared or any, as the order of keys",
            )
        self.options = options
        self.encoding = encoding
        self.gaps = gaps
        self.budget = budget or Budget(None, None, None, None)
        self._own_gaps = dict(encoding.gaps) if blanks == "spaced" else {}
        some = "_w" in self._own_gaps or blanks in ("pretty", "flexible") or (isinstance(blanks, int) and blanks > 0)
        self.gap = encoding.blanks and some
        self.places: dict[str, str] = {}
        self.restrictions: set[str] = set()
        self.subsets = 0  # of keys that were read, in objects of the schema that is written
        self.place_of_rule = ""  # that is written
        self._many_keys: dict[str, None] = {}  # places; one of those of equal schemas
        self.elements = ElementRules()
        self.open_parts: dict[str, Ref] = {}
        self._reader = Reader(options.loader, options.relax, self.budget, options.later, options.formats)
        self.normaliser = Normaliser(self._reader, self.budget, options.relax, options.digits)
        self._rules: dict[str, Expr] = {}
        self._terminals: dict[Regex, str] = {}
        self._terminal_names: set[str] = {"ws"}  # lower case, as _name compares them
        self._rule_names: set[str] = {"start", *GAPS, *gaps}
        self._last_number: dict[tuple[str, bool], int] = {}  # of the names that begin alike
        self._by_body: dict[Expr, str] = {}
        self._place = "#"  # of the schema that is written
        self.blank: Expr = Ref(gaps.inside) if self.gap else EMPTY
        self.comma, self.colon = Ref(gaps.comma), Ref(gaps.colon)
        self.common_rules = common
        if common is not None:
            self._rule_names |= common.rules.keys()
            self._terminal_names |= {name.lower() for name in common.terminals.values()}

    @abstractmethod
    def value(self, one: tuple[Literal, ...], hint: str) -> Expr:
        """A rule, literal or terminal for one value; rules it needs are queued."""

    @abstractmethod
    def alternatives(self, shapes: dict[str, tuple[Shape, ...]], hint: str) -> Expr:
        """The alternatives of some shapes that live."""

    @abstractmethod
    def any_string(self) -> Expr:
        """The rule of any string of JSON."""

    @property
    def definitions(self) -> tuple[dict[str, Expr], dict[Regex, str]]:
        """Rules by name, and the names of terminals by their expressions."""
        return self._rules, self._terminals

    @property
    def terminals(self) -> dict[str, Regex]:
        """Terminals by name."""
        return {name: regex for regex, name in self._terminals.items()}

    def gap_terminals(self) -> dict[str, Regex]:
        """The terminals of these rules."""
        if not self.gap or self.line is not None or "_w" in self._own_gaps:
            return {}
        most = None if self._layout == "flexible" else int(self._layout)
        return {self.gaps.inside.strip("_").upper() + "S": repeat(_BLANK, 1, most)}

    def gap_rules(self) -> dict[str, Expr]:
        """The rules of what stands between the tokens of JSON."""
        before = after = self.blank
        if self._layout == "spaced" and self.encoding.blanks:
            before, after = EMPTY, string(" ")
        signs = ((self.gaps.comma, ","), (self.gaps.colon, ":"))
        if self.line is not None:
            comma, colon = sequence(string(","), self.line), sequence(string(":"), string(" "))
            return {self.gaps.inside: self.line, self.gaps.comma: comma, self.gaps.colon: colon}
        rules = {name: sequence(before, string(sign), after) for name, sign in signs}
        if blank := self.gap_terminals():
            rules = {self.gaps.inside: optional(Ref(*blank)), **rules}
        return rules | self._own_gaps

    def enclosed(self, opening: str, inside: Expr, closing: str) -> Expr:
        """What stands in brackets, the blanks before the closing one included, with those behind the opening one.

        Brackets around nothing have no line between them.
        """
        options = inside.options if type(inside) is Choice else (inside,)
        if self.line is None or EMPTY not in options:
            return sequence(string(opening), self.blank, inside, string(closing))
        some = choice(*[sequence(self.blank, option) for option in options if option != EMPTY])
        return sequence(string(opening), optional(some), string(closing))

    def in_declared_order(self) -> None:
        """The keys of what is written stand in declared order: a restriction, whatever order was asked for."""
        if self.options.key_order == "any":
            self.restrictions.add("many-keys")
            self._many_keys[self._place] = None
        else:
            self.restrictions.add("key-order")

    @property
    def many_keys(self) -> list[str]:
        """Places of objects in declared order, as they have too many keys for any."""
        return self._reader.alike(self._many_keys)

    @contextmanager
    def within(self, one: Conj) -> Iterator[None]:
        """What is written or refused meanwhile stands where the conj does; where it is empty, where it did before."""
        around = self._place
        if one:
            self._place = one[-1].node.place
        try:
            yield
        except UnsupportedError as error:
            error.place = error.place or self._place
            raise
        finally:
            self._place = around

    def _name(self, hint: str, taken: set[str], upper: bool = False) -> str:
        base = rule_name(hint)
        name, number = base, self._last_number.get((base, upper), 1)
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        self._last_number[base, upper] = number
        taken.add(name)
        return name.upper() if upper else name

    def rule(self, body: Expr, hint: str, place: str | None) -> Ref:
        """A rule with this body."""
        known = self._by_body.get(body)
        if known is not None:
            return Ref(known)
        name = self._by_body[body] = self._name(hint, self._rule_names)
        self._rules[name] = body
        if place is not None:
            self.places[name] = place
        return Ref(name)

    def terminal(self, regex: Regex, hint: str) -> Ref:
        """A terminal of this expression."""
        known = self._terminals.get(regex)
        if known is None and self.common_rules is not None and regex in self.common_rules.terminals:
            known = self._terminals[regex] = self.common_rules.terminals[regex]
        if known is None:
            known = self._terminals[regex] = self._name(hint, self._terminal_names, upper=True)
            self.places[known] = self._place
        return Ref(known)

    def nothing(self) -> Ref:
        """What matches no text, where there is none that can be written."""
        known = self._terminals.get(NOTHING)
        if known is None:
            known = self._terminals[NOTHING] = self._name("nothing", self._terminal_names, upper=True)
        return Ref(known)

    def reserve(self, names: Iterable[str]) -> None:
        """Keep off names that other parts of the grammar define."""
        for name in names:
            (self._rule_names if name.islower() else self._terminal_names).add(name.lower())

    def state_rules(self, count: int, hint: str) -> list[str]:
        """Names for the states of a small automaton, whose bodies are still to be set."""
        names = [self._name(hint, self._rule_names) for _ in range(count)]
        self._rules.update(dict.fromkeys(names, EMPTY))
        self.places.update(dict.fromkeys(names, self._place))
        return names

    def set_rule(self, name: str, body: Expr) -> None:
        """Write the body of a rule that was named before."""
        self._rules[name] = body


@lru_cache(4096)
def rule_name(hint: str) -> str:
    """A name for a rule that Lark takes."""
    name = re.sub(r"[^a-z0-9]+", "_", hint.lower()).strip("_")[:24].rstrip("_")
    return name if name and name[0].isalpha() else "x" + name
