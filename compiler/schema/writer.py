"""Shapes as Lark text: one grammar for several schemas, rules shared by shape.

Leaves out   which shapes a schema has (normalise.py), the text of one shape (scalar_text.py, array_text.py,
             object_text.py), protocols around the values (../grammar).
Invariants   the text is linear in the shapes; ``{ } [ ]`` are always literals of their own; no terminal matches the
             empty text; a rule is written once per conj, terminals once per expression; numbering is by discovery.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from ..budget import Budget
from ..errors import SchemaError, UnsupportedError
from ..regex import NOTHING, Regex, parse_regex, to_text
from . import numbers, strings
from .array_text import array_text
from .atoms import NEVER, Conj, Literal, both, literal
from .channel import Channel, arguments_text
from .common import KINDS, Closure, Common, Kind
from .elements import ElementRules
from .encoding import JSON_ENCODING, Encoding
from .nodes import OBJECT, Reader
from .normalise import Normaliser
from .object_text import object_text
from .quoted_text import quoted_string
from .references import Document, Loader, draft_of
from .report import Row, keyword_report
from .scalar_text import INLINE, constant_text, constants_text, number_text, string_text
from .shapes import CONSTANTS, FULL, Arrays, Constants, Numbers, Objects, Shape, Strings
from .unwritable import Unwritable

Key = TypeVar("Key")

_MOST_COMMONS = 16
_GAP_OF = {"_w": "inside", "_c": "comma", "_k": "colon"}


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
            the encoding's own gaps say), ``compact`` (nothing), ``flexible`` (any blanks), or at most so many blanks.
        digits: digits of a number before and after its point.
        key_order: ``declared`` (the order in which the schema names them) or ``any``, for as many keys as can be had.
        loader: gives the document at a URI, or None; without one, references outside are refused.
        lenient: drop keywords that are not supported, and report them, instead of failing.
    """

    whitespace: str | int = "spaced"
    digits: int = 20
    lenient: bool = False
    key_order: str = "declared"
    loader: Loader | None = None


def schema_to_lark(
    schema: Any, options: SchemaOptions | None = None, budget: Budget | None = None
) -> tuple[str, LarkWriter]:
    """A whole grammar for one schema: its text, and the writer with what it learned."""
    writer = LarkWriter(options or SchemaOptions(), budget)
    rule = writer.add(schema)
    return f"start: {rule}\n" + writer.text(), writer


class LarkWriter:
    """Collects the rules of several schemas.

    Attributes:
        places: rule or terminal → JSON pointer of the schema it came from.
        restrictions: the declared restrictions that the text makes use of.
        elements: the rules of arrays and objects that are written part by part.
        open_parts: kind → the rule of the parts of one that may hold anything, of the arguments added last.
        keywords: (place of the schema, keyword, status) for every keyword met.
    """

    def __init__(
        self, options: SchemaOptions, budget: Budget | None = None, encoding: Encoding = JSON_ENCODING,
        common: Common | None = None, gaps: Gaps = GAPS,
    ) -> None:  # fmt: skip
        blanks = options.whitespace
        known = blanks in ("compact", "spaced", "flexible")
        if not known and not (isinstance(blanks, int) and not isinstance(blanks, bool) and blanks >= 0):
            raise SchemaError(
                place="options/whitespace",
                found=repr(blanks),
                expected="compact, spaced, flexible or a number of blanks",
            )
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
        some = "_w" in self._own_gaps or blanks == "flexible" or (isinstance(blanks, int) and blanks > 0)
        self.gap = encoding.blanks and some
        self.places: dict[str, str] = {}
        self.restrictions: set[str] = set()
        self.elements = ElementRules()
        self.open_parts: dict[str, str] = {}
        self._reader = Reader(options.loader, options.lenient, self.budget)
        self.normaliser = Normaliser(self._reader, self.budget, options.lenient, options.digits)
        self.root: Conj = NEVER  # of the schema added last
        self._rules: dict[str, str] = {}
        self._terminals: dict[Regex, str] = {}
        self._terminal_names: set[str] = {"ws"}  # lower case, as _name compares them
        self._rule_names: set[str] = {"start", *GAPS, *gaps}
        self._last_number: dict[tuple[str, bool], int] = {}  # of the names that begin alike
        self._own_names: dict[Kind, str] = {}  # kind → rule
        self._by_conj: dict[tuple[Literal, ...], str] = {}
        self._by_body: dict[str, str] = {}
        self._queue: list[tuple[tuple[Literal, ...], str]] = []
        self._place = "#"  # of the schema that is written
        self.blank = f"{gaps.inside} " if self.gap else ""
        self.common_rules = common
        if common is not None:
            self._rule_names |= common.rules.keys()
            self._terminal_names |= {name.lower() for name in common.terminals.values()}

    @property
    def keywords(self) -> list[tuple[str, str, str]]:
        """What became of every keyword."""
        return self._reader.report

    def report(self) -> tuple[Row, ...]:
        """What became of every keyword, place by place, and which declared restrictions narrow it."""
        return keyword_report(*self.met, self.restrictions)

    def add(
        self, schema: Any, *, document: Any = None, pointer: str = "", base: str = "", name: str = "value",
        arguments: bool = False,
    ) -> str:  # fmt: skip
        """Write the rules of one more schema.

        Args:
            schema: the schema.
            document: what references are resolved in, a `Document` where several schemas share one, which is looked
                through once; the schema itself if None.
            pointer: where the schema stands in ``document``, or with no document, in the file (for errors).
            base: name of the file, for errors.
            name: what to call the rule.
            arguments: it is the schema of a tool's arguments: of its values, only objects.

        Returns:
            The name of a rule that matches one JSON value, without blanks around it.
        """
        root, place = self._root(schema, document, pointer, base, arguments)
        assert root is not None
        body = self.value(root, name)
        self._drain()
        if re.fullmatch(r"[a-z][a-z0-9_]*", body):
            return body
        return self.rule(body, name, place)

    def add_arguments(
        self, schema: Any, channel: Channel, *, document: Any = None, pointer: str = "", base: str = "", name: str = ""
    ) -> str:
        """Write the rules of the arguments of a call that are not one object; see ``add``."""
        root, place = self._root(schema, document, pointer, base, True)
        self.open_parts, self._place = {}, place  # so that errors name the tool
        body = arguments_text(self, root, channel, name, place)
        self._drain()
        return body

    def _root(self, schema: Any, document: Any, pointer: str, base: str, arguments: bool = False) -> tuple[Conj, str]:
        """The conj of one more schema, and its place."""
        if document is None:
            home = Document(schema, base, pointer, draft_of(schema, f"{base}#{pointer}"))
            pointer = ""
        else:
            home = document if isinstance(document, Document) else Document.of(document, base)
        node = self.normaliser.final(self._reader.read(home, pointer, schema))
        root = literal(node)
        if arguments and node.keywords.get("type") != OBJECT:
            root = both(literal(self._reader.objects(home.place(pointer))), root)
        self.normaliser.explore(root)
        self.root = root
        return root, home.place(pointer)

    def text(self) -> str:
        """All rules and terminals."""
        return self.rules_text() + terminals_text(self.terminals)

    def rules_text(self) -> str:
        """All rules, those of gaps among them."""
        return self.gap_text() + rules_text(self._rules)

    @property
    def terminals(self) -> dict[str, Regex]:
        """Terminals by name."""
        return {name: regex for regex, name in self._terminals.items()}

    def gap_text(self) -> str:
        """The rules of what stands between the tokens of JSON."""
        blanks = self.options.whitespace
        before = after = self.blank
        if blanks == "spaced" and self.encoding.blanks:
            before, after = "", '" "'
        signs = ((self.gaps.comma, ","), (self.gaps.colon, ":"))
        bodies = {name: f'{before}"{sign}" {after}'.rstrip() for name, sign in signs}
        lines = []
        if self.gap and "_w" not in self._own_gaps:
            blank = "WS" if self.gaps == GAPS else f"{self.gaps.inside[1:].upper()}S"
            bodies = {self.gaps.inside: f"{blank}?  // a gap between two tokens", **bodies}
            some = "+" if blanks == "flexible" else f"{{1,{blanks}}}"
            lines = [rf"{blank}: /[ \t\n\r]{some}/"]
        bodies |= {getattr(self.gaps, _GAP_OF[name]): body for name, body in self._own_gaps.items()}
        return "\n".join([*(f"{name}: {body}" for name, body in bodies.items()), *lines]) + "\n"

    def lost(self) -> tuple[Unwritable, ...]:
        """What no text can have of the schemas."""
        return tuple(self.normaliser.lost())

    @property
    def definitions(self) -> tuple[dict[str, str], dict[Regex, str]]:
        """Rules by name, and the names of terminals by their expressions."""
        return self._rules, self._terminals

    @property
    def met(self) -> tuple[list[tuple[str, str, str]], dict[tuple[str, str], tuple[str, ...]]]:
        """What `keyword_report` makes the report of."""
        return self._reader.report, self._reader.narrowed

    # -- names

    def _name(self, hint: str, taken: set[str], upper: bool = False) -> str:
        base = rule_name(hint)
        name, number = base, self._last_number.get((base, upper), 1)
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        self._last_number[base, upper] = number
        taken.add(name)
        return name.upper() if upper else name

    def rule(self, body: str, hint: str, place: str | None) -> str:
        """The name of a rule with this body."""
        known = self._by_body.get(body)
        if known is not None:
            return known
        name = self._by_body[body] = self._name(hint, self._rule_names)
        self._rules[name] = body
        if place is not None:
            self.places[name] = place
        return name

    def terminal(self, regex: Regex, hint: str) -> str:
        """The name of a terminal of this expression."""
        known = self._terminals.get(regex)
        if known is None and self.common_rules is not None and regex in self.common_rules.terminals:
            known = self._terminals[regex] = self.common_rules.terminals[regex]
        if known is None:
            known = self._terminals[regex] = self._name(hint, self._terminal_names, upper=True)
            self.places[known] = self._place
        return known

    def nothing(self) -> str:
        """What matches no text, where there is none that can be written."""
        known = self._terminals.get(NOTHING)
        if known is None:
            known = self._terminals[NOTHING] = self._name("nothing", self._terminal_names, upper=True)
        return known

    def reserve(self, names: Iterable[str]) -> None:
        """Keep off names that other parts of the grammar define."""
        for name in names:
            (self._rule_names if name.islower() else self._terminal_names).add(name.lower())

    def state_rules(self, count: int, hint: str) -> list[str]:
        """Names for the states of a small automaton, whose bodies are still to be set."""
        names = [self._name(hint, self._rule_names) for _ in range(count)]
        self._rules.update(dict.fromkeys(names, ""))
        self.places.update(dict.fromkeys(names, self._place))
        return names

    def set_rule(self, name: str, body: str) -> None:
        """Write the body of a rule that was named before."""
        self._rules[name] = body

    # -- values

    def value(self, one: tuple[Literal, ...], hint: str) -> str:
        """A rule name, literal or terminal for one value; rules it needs are queued."""
        if not one:
            return self._any()
        known = self._by_conj.get(one)
        if known is not None:
            return known
        shapes = self.normaliser.shapes(one)
        if "array" not in shapes and "object" not in shapes:
            with self.within(one):
                body = self.alternatives(shapes, hint)
            if len(body) > INLINE or " " in body:
                body = self.rule(body, hint, one[0].node.place)
        else:
            full = all(shapes.get(kind) == (shape,) for kind, shape in FULL.items())
            if full and "null" in shapes and shapes.get("boolean") == BOOLEAN:
                body = self._any()
            else:
                body = self._name(hint, self._rule_names)
                self._queue.append((one, body))
                self.places[body] = one[0].node.place
                self._rules[body] = ""
        self._by_conj[one] = body
        return body

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

    def _drain(self) -> None:
        while self._queue:
            queue, self._queue = self._queue, []
            for one, name in queue:
                self.budget.check("states", len(self._rules), self.places[name])
                self._place = one[-1].node.place
                self._rules[name] = self.alternatives(self.normaliser.shapes(one), name)

    def alternatives(self, shapes: dict[str, tuple[Shape, ...]], hint: str) -> str:
        """The alternatives of some shapes that live."""
        options: dict[str, None] = {}
        for kind, union in shapes.items():
            for shape in union:
                if self.normaliser.lives(shape):
                    options.setdefault(self._shape(kind, shape, hint))
        return " | ".join(options)

    def _shape(self, kind: str, shape: Shape, hint: str) -> str:
        if isinstance(shape, Constants):
            return constants_text(self, kind, shape, hint)
        if isinstance(shape, Numbers):
            return number_text(self, shape, hint)
        if isinstance(shape, Strings):
            return string_text(self, shape, hint)
        if isinstance(shape, Arrays):
            if shape == FULL["array"]:
                return self._any_array()
            return array_text(self, shape, hint)
        assert isinstance(shape, Objects)
        if shape == FULL["object"]:
            return self._any_object()
        return object_text(self, shape, hint)

    # -- any JSON

    def _take(self, common: Common, kind: Kind) -> str:
        """The name of a rule of ``common``, which is needed now with all that it needs."""
        closure = common.closures[kind]
        for name in closure.rules:
            self._rules.setdefault(name, common.rules[name])
        for regex in closure.terminals:
            self._terminals.setdefault(regex, common.terminals[regex])
        for body, name in closure.by_body.items():
            self._by_body.setdefault(body, name)
        self.restrictions |= closure.restrictions
        self._own_names.update((one, common.names[one]) for one in KINDS if common.names[one] in closure.rules)
        return common.names[kind]

    def closure(self, kind: Kind) -> tuple[str, Closure]:
        """The name of what is alike in all schemas, and all that it needs; of a writer that wrote nothing else."""
        write: dict[Kind, Callable[[], str]] = {
            "any": self._any,
            "str": self.any_string,
            "arr": self._any_array,
            "obj": self._any_object,
        }
        name = write[kind]()
        self._drain()
        whole = Closure(tuple(self._rules), tuple(self._terminals), dict(self._by_body), frozenset(self.restrictions))
        return name, whole

    def _own(self, kind: Kind) -> tuple[str, bool]:
        """The name of a rule that every schema writes alike, and whether its body is still to be set."""
        known = self._own_names.get(kind)
        if known is not None:
            return known, False
        if self.common_rules is not None:
            return self._take(self.common_rules, kind), False
        name = self._own_names[kind] = self._name(kind, self._rule_names)
        self._rules[name] = ""
        return name, True

    def _any(self) -> str:
        name, new = self._own("any")
        if new:
            string = self.any_string()
            number = self.terminal(parse_regex(numbers.free_number(self.options.digits)), "NUM")
            self.restrictions.add("digits")
            arrays, objects = self._any_array(), self._any_object()
            constants = " | ".join(constant_text(self, value) for value in (True, False, None))
            self._rules[name] = f"{string} | {number} | {arrays} | {objects} | {constants}"
        return name

    def any_string(self) -> str:
        name, new = self._own("str")
        if new:
            quotes = self.encoding.quotes
            body = (
                quoted_string(self, Strings(), "TEXT")
                if quotes
                else f'"\\"" {self.terminal(strings.CHAR, "CHAR")}* "\\""'
            )
            self._rules[name] = body
            self._by_body.setdefault(body, name)
        return name

    def _any_array(self) -> str:
        name, new = self._own("arr")
        if new:
            self._rules[name] = array_text(self, Arrays(), "arr")
        return name

    def _any_object(self) -> str:
        name, new = self._own("obj")
        if new:
            self._rules[name] = object_text(self, Objects(), "obj")
        return name

    @property
    def common(self) -> tuple[str, ...]:
        """The rules of any array and any object, which no schema changes."""
        return tuple(self._own_names[kind] for kind in ("arr", "obj") if kind in self._own_names)


@lru_cache(4096)
def rule_name(hint: str) -> str:
    """A name for a rule that Lark takes."""
    name = re.sub(r"[^a-z0-9]+", "_", hint.lower()).strip("_")[:24].rstrip("_")
    return name if name and name[0].isalpha() else "x" + name


def rules_text(rules: Mapping[str, str]) -> str:
    """Lark text of rules by name."""
    return "".join([f"{name}: {body}\n" for name, body in rules.items()])


def terminals_text(terminals: Mapping[str, Regex]) -> str:
    """Lark text of terminals by name."""
    return "".join([f"{name}: /{to_text(regex)}/\n" for name, regex in terminals.items()])


def _add(known: dict[Key, str], found: Mapping[Key, str]) -> None:
    for one, other in found.items():
        if known.setdefault(one, other) != other:
            raise AssertionError(f"{one} depends on which rule is written first")


@lru_cache(_MOST_COMMONS)
def common_of(options: SchemaOptions, encoding: Encoding, reserved: frozenset[str]) -> Common:
    """What is alike in all schemas that are written so.

    Args:
        reserved: names that it keeps off.
    """
    rules: dict[str, str] = {}
    terminals: dict[Regex, str] = {}
    names: dict[Kind, str] = {}
    closures: dict[Kind, Closure] = {}
    for kind in KINDS:
        writer = LarkWriter(options, None, encoding)
        writer.reserve(sorted(reserved))
        names[kind], closures[kind] = writer.closure(kind)
        found = writer.definitions
        _add(rules, found[0])
        _add(terminals, found[1])
        writer.normaliser.close()
    return Common(rules, terminals, names, closures)


BOOLEAN = (Constants(CONSTANTS["boolean"]),)
