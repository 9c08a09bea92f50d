"""Write shapes as rules: one grammar for several schemas, rules shared by shape.

Leaves out   which shapes a schema has (normalise.py), one shape (scalar_rules.py, array_rules.py,
             object_rules.py), protocols around the values (../grammar).
Invariants   what is written is linear in the shapes; ``{ } [ ]`` are always literals of their own; no terminal matches
             the empty text; a rule is written once per conj, terminals once per expression; numbering is by discovery.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

from ..budget import Budget
from ..errors import ToolcError
from ..ir.nodes import EMPTY, Expr, Ref, choice, repeated, sequence, string
from ..ir.printer import rules_text, terminals_text, text_of
from ..regex import Regex
from . import numbers, strings
from .argument_rules import arguments_rule, no_arguments
from .array_rules import array_expr
from .atoms import NEVER, Conj, Literal, both, literal
from .channel import Channel
from .common import KINDS, Closure, Common, Kind
from .encoding import JSON_ENCODING, Encoding
from .nodes import OBJECT
from .object_rules import object_expr, subsets_fit
from .object_unions import union_expr, without_contained
from .quoted_rules import quoted_string
from .references import Document, draft_of
from .report import Row, keyword_report
from .rules import GAPS, INLINE, ElementRules, Gaps, Rules, SchemaOptions
from .scalar_rules import constant_expr, constants_expr, number_expr, string_expr
from .shapes import CONSTANTS, FULL, Arrays, Constants, Numbers, Objects, Shape, Strings
from .unwritable import Unwritable, explore, lost

Key = TypeVar("Key")
Value = TypeVar("Value")

_MOST_COMMONS = 16


def schema_to_lark(
    schema: Any, options: SchemaOptions | None = None, budget: Budget | None = None
) -> tuple[str, LarkWriter]:
    """A whole grammar for one schema: its text, and the writer with what it learned.

    A grammar knows no registers.
    """
    writer = LarkWriter(replace(options or SchemaOptions(), registers=False), budget)
    start = Ref(writer.add(schema))
    return rules_text({"start": start}) + writer.text(), writer


class LarkWriter(Rules):
    """Writes the rules of several schemas.

    Attributes:
        root: the conj of the schema added last.
        keywords: (place of the schema, keyword, status) for every keyword met.
    """

    def __init__(
        self, options: SchemaOptions, budget: Budget | None = None, encoding: Encoding = JSON_ENCODING,
        common: Common | None = None, gaps: Gaps = GAPS,
    ) -> None:  # fmt: skip
        super().__init__(options, budget, encoding, common, gaps)
        self.root: Conj = NEVER
        self._own_names: dict[Kind, str] = {}  # kind → rule
        self._by_conj: dict[tuple[Literal, ...], Expr] = {}
        self._queue: list[tuple[tuple[Literal, ...], str]] = []
        self._schemas = 0  # that were added
        self._rules_before = 0  # those of schemas before the one that is written

    @property
    def keywords(self) -> list[tuple[str, str, str]]:
        """What became of every keyword."""
        return self._reader.report

    def report(self) -> tuple[Row, ...]:
        """What became of every keyword, place by place, and which declared restrictions narrow it."""
        return keyword_report(*self.met, self.restrictions)

    def add(
        self, schema: Any, *, document: Any = None, pointer: str = "", base: str = "", name: str = "value",
        arguments: bool = False, closed: bool = False,
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
            closed: of these, only members that it names.

        Returns:
            The name of a rule that matches one JSON value, without blanks around it.
        """
        root, place = self._root(schema, document, pointer, base, arguments)
        assert root is not None
        with self._whole():
            body = self._closed(root, name, place) if closed else self.value(root, name)
            self._drain()
        if isinstance(body, Ref) and body.name.islower():
            return body.name
        return self.rule(body, name, place).name

    def _closed(self, root: tuple[Literal, ...], name: str, place: str) -> Expr:
        """Arguments without those that the schema does not name."""
        union = self.normaliser.shapes(root).get("object", ())
        if any(isinstance(shape, Objects) and shape.opened for shape in union):
            self.restrictions.add("closed-arguments")
        self._place = place
        shut = [replace(shape, opened=()) if isinstance(shape, Objects) else shape for shape in union]
        living = tuple(shape for shape in dict.fromkeys(shut) if self.normaliser.lives(shape))
        if not living:
            raise no_arguments(place)
        return self.alternatives({"object": living}, name)

    def add_arguments(
        self, schema: Any, channel: Channel, *, document: Any = None, pointer: str = "", base: str = "", name: str = ""
    ) -> str:
        """Write the rules of the arguments of a call that are not one object; see ``add``."""
        root, place = self._root(schema, document, pointer, base, True)
        self.open_parts, self._place = {}, place  # so that errors name the tool
        with self._whole():
            body = arguments_rule(self, root, channel, name, place)
            self._drain()
        return body

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Inside, one schema is written. What an error leaves half written is forgotten: whatever needs it writes it
        anew, and meets the same error."""
        known = len(self._by_conj)
        self._rules_before, self.subsets = len(self._rules), 0
        try:
            yield
        except ToolcError:
            self._queue.clear()
            for one in list(self._by_conj)[known:]:
                del self._by_conj[one]
            self.elements = ElementRules()
            raise

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
        explore(self.normaliser, root, home.place(pointer), schema)
        self.root = root
        self._schemas += 1
        return root, home.place(pointer)

    def text(self) -> str:
        """All rules and terminals as Lark text."""
        return rules_text(self.gap_rules() | self._rules) + terminals_text(self.gap_terminals() | self.terminals)

    def lost(self) -> tuple[Unwritable, ...]:
        """What no text can have of the schemas."""
        return tuple(lost(self.normaliser, self._schemas))

    @property
    def met(self) -> tuple[list[tuple[str, str, str]], dict[tuple[str, str], tuple[str, ...]]]:
        """What `keyword_report` makes the report of."""
        return self._reader.report, self._reader.narrowed

    # -- values

    def value(self, one: tuple[Literal, ...], hint: str) -> Expr:
        """A rule, literal or terminal for one value; rules it needs are queued."""
        if not one:
            return self._any()
        known = self._by_conj.get(one)
        if known is not None:
            return known
        shapes = self.normaliser.shapes(one)
        if "array" not in shapes and "object" not in shapes:
            with self.within(one):
                body = self.alternatives(shapes, hint)
            text = text_of(body)
            if len(text) > INLINE or " " in text:
                body = self.rule(body, hint, one[0].node.place)
        else:
            full = all(shapes.get(kind) == (shape,) for kind, shape in FULL.items())
            if full and "null" in shapes and shapes.get("boolean") == BOOLEAN:
                body = self._any()
            else:
                body = Ref(self._name(hint, self._rule_names))
                self._queue.append((one, body.name))
                self.places[body.name] = one[0].node.place
                self._rules[body.name] = EMPTY
        self._by_conj[one] = body
        return body

    def _drain(self) -> None:
        while self._queue:
            queue, self._queue = self._queue, []
            for one, name in queue:
                self.budget.check("states", len(self._rules) - self._rules_before, self.places[name])
                self._place, self.place_of_rule = one[-1].node.place, self.places[name]
                self._rules[name] = self.alternatives(self.normaliser.shapes(one), name)

    def alternatives(self, shapes: dict[str, tuple[Shape, ...]], hint: str) -> Expr:
        """The alternatives of some shapes that live."""
        options: list[Expr] = []
        for kind, union in shapes.items():
            living = [shape for shape in union if self.normaliser.lives(shape)]
            if kind == "object":
                living = without_contained(self, living)
            joined = union_expr(self, living, hint) if kind == "object" else None
            if joined is not None:
                options.append(joined)
                continue
            objects = [shape for shape in living if isinstance(shape, Objects)]
            free = len(living) == 1 or subsets_fit(self, objects)
            options += [self._shape(kind, shape, hint, len(living) > 1, free) for shape in living]
        return choice(*options)

    def _shape(self, kind: str, shape: Shape, hint: str, union: bool, free: bool) -> Expr:
        if isinstance(shape, Constants):
            return constants_expr(self, kind, shape, hint)
        if isinstance(shape, Numbers):
            return number_expr(self, shape, hint)
        if isinstance(shape, Strings):
            return string_expr(self, shape, hint)
        if isinstance(shape, Arrays):
            if shape == FULL["array"]:
                return self._any_array()
            return array_expr(self, shape, hint, union)
        assert isinstance(shape, Objects)
        if shape == FULL["object"]:
            return self._any_object()
        return object_expr(self, shape, hint, union, free)

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
        write: dict[Kind, Callable[[], Ref]] = {
            "any": self._any,
            "str": self.any_string,
            "arr": self._any_array,
            "obj": self._any_object,
        }
        name = write[kind]().name
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
        self._rules[name] = EMPTY
        return name, True

    def _any(self) -> Ref:
        name, new = self._own("any")
        if new:
            text = self.any_string()
            number = self.terminal(numbers.free_number(self.options.digits), "NUM")
            self.restrictions.add("digits")
            arrays, objects = self._any_array(), self._any_object()
            constants = [constant_expr(self, value) for value in (True, False, None)]
            self._rules[name] = choice(text, number, arrays, objects, *constants)
        return Ref(name)

    def any_string(self) -> Ref:
        name, new = self._own("str")
        if new:
            if self.encoding.quotes:
                body = quoted_string(self, Strings(), "TEXT")
            else:
                body = sequence(string('"'), repeated(self.terminal(strings.CHAR, "CHAR"), 0, None), string('"'))
            self._rules[name] = body
            self._by_body.setdefault(body, name)
        return Ref(name)

    def _any_array(self) -> Ref:
        name, new = self._own("arr")
        if new:
            self._rules[name] = array_expr(self, Arrays(), "arr")
        return Ref(name)

    def _any_object(self) -> Ref:
        name, new = self._own("obj")
        if new:
            self._rules[name] = object_expr(self, Objects(), "obj")
        return Ref(name)

    @property
    def common(self) -> tuple[str, ...]:
        """The rules of any array and any object, which no schema changes."""
        return tuple(self._own_names[kind] for kind in ("arr", "obj") if kind in self._own_names)


def _add(known: dict[Key, Value], found: Mapping[Key, Value]) -> None:
    for one, other in found.items():
        if known.setdefault(one, other) != other:
            raise AssertionError(f"{one} depends on which rule is written first")


@lru_cache(_MOST_COMMONS)
def common_of(options: SchemaOptions, encoding: Encoding, reserved: frozenset[str]) -> Common:
    """What is alike in all schemas that are written so.

    Args:
        reserved: names that it keeps off.
    """
    rules: dict[str, Expr] = {}
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
