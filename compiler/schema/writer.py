"""Shapes as Lark text: one grammar for several schemas, rules shared by shape.

Leaves out   which shapes a schema has (normalise.py), protocols around the values (../grammar).
Invariants   the text is linear in the shapes; ``{ } [ ]`` are always literals of their own; no terminal matches the
             empty text; a rule is written once per conj, terminals once per expression; numbering is by discovery.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..budget import Budget
from ..errors import SchemaError
from . import numbers, strings
from .atoms import NEVER, Conj, Literal
from .nodes import Document, Reader, draft_of
from .normalise import Normaliser
from .patterns import content
from .shapes import CONSTANTS, FULL, Arrays, Constants, Numbers, Objects, Shape, Strings
from .values import kind_of

INLINE = 24
"""Expressions up to this many characters are repeated where they are used; longer ones get a rule."""


@dataclass(frozen=True)
class SchemaOptions:
    """How values are laid out.

    Attributes:
        whitespace: ``compact`` (no blank), ``spaced`` (exactly one after ``,`` and ``:``), ``flexible`` (any number),
            or at most so many blanks in a gap.
        digits: digits of a number before and after its point.
        lenient: drop keywords that are not supported, and report them, instead of failing.
    """

    whitespace: str | int = 8
    digits: int = 20
    lenient: bool = False


def schema_to_lark(
    schema: Any, options: SchemaOptions | None = None, budget: Budget | None = None
) -> tuple[str, LarkWriter]:
    """A whole grammar for one schema: its text, and the writer with what it learned."""
    writer = LarkWriter(options or SchemaOptions(), budget)
    rule = writer.add(schema)
    blank = "_w " if writer.gap else ""
    return f"start: {blank}{rule}{' _w' if blank else ''}\n" + writer.text(), writer


class LarkWriter:
    """Collects the rules of several schemas.

    Attributes:
        places: rule → JSON pointer of the schema it came from.
        restrictions: the declared restrictions that the text makes use of.
        keywords: (place of the schema, keyword, status) for every keyword met.
    """

    def __init__(self, options: SchemaOptions, budget: Budget | None = None) -> None:
        blanks = options.whitespace
        known = blanks in ("compact", "spaced", "flexible")
        if not known and not (isinstance(blanks, int) and not isinstance(blanks, bool) and blanks >= 0):
            raise SchemaError(found=repr(blanks), expected="compact, spaced, flexible or a number of blanks")
        self.options = options
        self.budget = budget or Budget(None, None, None, None)
        self.gap = blanks == "flexible" or (isinstance(blanks, int) and blanks > 0)
        self.places: dict[str, str] = {}
        self.restrictions: set[str] = set()
        self._reader = Reader()
        self._normaliser = Normaliser(self._reader, self.budget, options.lenient)
        self._rules: dict[str, str] = {}
        self._terminals: dict[str, str] = {}
        self._terminal_names: set[str] = {"WS"}
        self._rule_names: set[str] = {"start", "_w", "_c", "_k"}
        self._by_conj: dict[tuple[Literal, ...], str] = {}
        self._by_body: dict[str, str] = {}
        self._queue: list[tuple[tuple[Literal, ...], str]] = []
        self._b = "_w " if self.gap else ""

    @property
    def keywords(self) -> list[tuple[str, str, str]]:
        """What became of every keyword."""
        return self._reader.report

    def add(self, schema: Any, *, document: Any = None, pointer: str = "", base: str = "", name: str = "value") -> str:
        """Write the rules of one more schema.

        Args:
            schema: the schema.
            document: what references are resolved in; the schema itself if None.
            pointer: where the schema stands in ``document``, or with no document, in the file (for errors).
            base: name of the file, for errors.
            name: what to call the rule.

        Returns:
            The name of a rule that matches one JSON value, without blanks around it.
        """
        if document is None:
            home = Document(schema, base, pointer, draft_of(schema, f"{base}#{pointer}"))
            pointer = ""
        else:
            home = Document(document, base, "", draft_of(document, f"{base}#"))
        node = self._normaliser.final(self._reader.read(home, pointer, schema, ""))
        root: Conj = NEVER if node is self._reader.false else () if node is self._reader.true else (Literal(node),)
        self._normaliser.explore(root)
        assert root is not None
        body = self._value(root, name)
        self._drain()
        if re.fullmatch(r"[a-z][a-z0-9_]*", body):
            return body
        return self._rule(body, name, home.place(pointer))

    def text(self) -> str:
        """All rules and terminals."""
        lines: list[str] = []
        blanks = self.options.whitespace
        if self.gap:
            lines.append("_w: WS?  // a gap between two tokens")
        after = '" "' if blanks == "spaced" else self._b
        lines.append(f'_c: {self._b}"," {after}'.rstrip())
        lines.append(f'_k: {self._b}":" {after}'.rstrip())
        lines += [f"{name}: {body}" for name, body in self._rules.items()]
        lines += [f"{name}: /{regex}/" for regex, name in self._terminals.items()]
        if self.gap:
            lines.append(r"WS: /[ \t\n\r]" + ("+" if blanks == "flexible" else f"{{1,{blanks}}}") + "/")
        return "\n".join(lines) + "\n"

    # -- names

    def _name(self, hint: str, taken: set[str], upper: bool = False) -> str:
        base = re.sub(r"[^a-z0-9]+", "_", hint.lower()).strip("_")[:24].rstrip("_")
        if not base or not base[0].isalpha():
            base = "x" + base
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name)
        return name.upper() if upper else name

    def _rule(self, body: str, hint: str, place: str | None) -> str:
        """The name of a rule with this body."""
        known = self._by_body.get(body)
        if known is not None:
            return known
        name = self._by_body[body] = self._name(hint, self._rule_names)
        self._rules[name] = body
        if place is not None:
            self.places[name] = place
        return name

    def _terminal(self, regex: str, hint: str) -> str:
        known = self._terminals.get(regex)
        if known is None:
            known = self._terminals[regex] = self._name(hint, self._terminal_names, upper=True)
        return known

    # -- values

    def _value(self, one: tuple[Literal, ...], hint: str) -> str:
        """A rule name, literal or terminal for one value; rules it needs are queued."""
        if not one:
            return self._any()
        known = self._by_conj.get(one)
        if known is not None:
            return known
        shapes = self._normaliser.shapes(one)
        if "array" not in shapes and "object" not in shapes:
            body = self._alternatives(shapes, hint)
            if len(body) > INLINE or " " in body:
                body = self._rule(body, hint, one[0].node.place)
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

    def _drain(self) -> None:
        while self._queue:
            queue, self._queue = self._queue, []
            for one, name in queue:
                self.budget.check("states", len(self._rules), self.places[name])
                self._rules[name] = self._alternatives(self._normaliser.shapes(one), name)

    def _alternatives(self, shapes: dict[str, tuple[Shape, ...]], hint: str) -> str:
        options: dict[str, None] = {}
        for kind, union in shapes.items():
            for shape in union:
                if self._normaliser.lives(shape):
                    options.setdefault(self._shape(kind, shape, hint))
        return " | ".join(options)

    def _shape(self, kind: str, shape: Shape, hint: str) -> str:
        if isinstance(shape, Constants):
            return self._constants(kind, shape, hint)
        if isinstance(shape, Numbers):
            return self._number(shape, hint)
        if isinstance(shape, Strings):
            return self._string(shape, hint)
        if isinstance(shape, Arrays):
            if shape == FULL["array"]:
                return self._any_array()
            return self._array(shape, hint)
        assert isinstance(shape, Objects)
        if shape == FULL["object"]:
            return self._any_object()
        return self._object(shape, hint)

    # -- any JSON

    def _fixed(self, name: str, body: str) -> str:
        if name not in self._rules:
            self._rules[name] = body
            self._rule_names.add(name)
            self._by_body.setdefault(body, name)
        return name

    def _any(self) -> str:
        if "any" not in self._rules:
            self._fixed("any", "")
            string, number = self._any_string(), self._terminal(numbers.free_number(self.options.digits), "NUM")
            self.restrictions.add("digits")
            arrays, objects = self._any_array(), self._any_object()
            self._rules["any"] = f'{string} | {number} | {arrays} | {objects} | "true" | "false" | "null"'
        return "any"

    def _any_string(self) -> str:
        return self._fixed("str", f'"\\"" {self._terminal(strings.CHAR, "CHAR")}* "\\""')

    def _any_array(self) -> str:
        if "arr" not in self._rules:
            self._fixed("arr", "")
            self._rules["arr"] = self._array(Arrays(), "arr")
        return "arr"

    def _any_object(self) -> str:
        if "obj" not in self._rules:
            self._fixed("obj", "")
            self._rules["obj"] = self._object(Objects(), "obj")
        return "obj"

    # -- scalars

    def _constants(self, kind: str, shape: Constants, hint: str) -> str:
        values = [constant.value for constant in shape.values]
        if kind == "string":
            self.restrictions.add("minimal-escapes")
            if len(values) < 4 and sum(map(len, values)) < 40:
                return " | ".join(strings.quoted(value) for value in values)
            return self._terminal(strings.alternatives(values), hint)
        if kind == "number":
            texts = [numbers.constant(value, self.options.digits) for value in values]
            if len(texts) < 4 and all(text.isdigit() for text in texts):
                return " | ".join(f'"{text}"' for text in texts)
            return self._terminal("|".join(texts), hint)
        return " | ".join(self._constant(value) for value in values)

    def _constant(self, value: Any) -> str:
        """One value as Lark text, blanks allowed between its tokens."""
        kind = kind_of(value)
        if kind == "string":
            self.restrictions.add("minimal-escapes")
            return strings.quoted(value)
        if kind == "number":
            text = numbers.constant(value, self.options.digits)
            return f'"{text}"' if text.isdigit() else self._terminal(text, "CONST")
        if kind == "array":
            return self._bracketed("[", [self._constant(item) for item in value], "]")
        if kind == "object":
            return self._bracketed("{", [f"{strings.quoted(k)} _k {self._constant(v)}" for k, v in value.items()], "}")
        return {None: '"null"', True: '"true"', False: '"false"'}[value]

    def _bracketed(self, opening: str, items: Sequence[str], closing: str) -> str:
        inside = " _c ".join(items)
        return f'"{opening}" {self._b}{inside}{" " if inside else ""}{self._b if inside else ""}"{closing}"'

    def _number(self, shape: Numbers, hint: str) -> str:
        digits = self.options.digits
        self.restrictions.add("digits")
        if shape.integral:
            self.restrictions.add("plain-integers")
        if shape.fractional:
            self.restrictions.add("plain-bounds")
            return self._terminal(numbers.free_fraction(digits), hint)
        if shape.low is None and shape.high is None:
            if shape.integral:
                return self._terminal(numbers.free_integer(digits), "INT")
            return self._terminal(numbers.free_number(digits), "NUM")
        if not shape.integral:
            self.restrictions.add("plain-bounds")
        regex = numbers.interval(shape.low, shape.low_strict, shape.high, shape.high_strict, shape.integral, digits)
        assert regex is not None
        return self._terminal(regex, hint)

    def _string(self, shape: Strings, hint: str) -> str:
        if not shape.patterns and not shape.excluded:
            if shape == Strings():
                return self._any_string()
            char = self._terminal(strings.CHAR, "CHAR")
            return f'"\\"" {_repeat(char, shape.low, shape.high)} "\\""'.replace("  ", " ")
        self.restrictions.add("minimal-escapes")
        heads: list[str] = []
        if shape.excluded:
            heads.append("(?!(?:" + "|".join(strings.regex_of(strings.spelled(t)) for t in shape.excluded) + ')")')
        bodies = [(content(match.pattern, match.place), match.positive) for match in shape.patterns]
        last = None if shape.low or shape.high is not None else next((b for b, positive in bodies if positive), None)
        for body, positive in bodies:
            if not positive:
                heads.append(f"(?!{body})")
            elif body is not last:
                heads.append(f"(?={body})")
        if last is None:
            times = f"{{{shape.low},{'' if shape.high is None else shape.high}}}"
            last = strings.PLAIN + ("*" if times == "{0,}" else times) + '"'
        return self._terminal('"' + "".join(heads) + last, hint)

    # -- arrays

    def _array(self, shape: Arrays, hint: str) -> str:
        alive = self._normaliser.alive
        prefix, rest, high = list(shape.prefix), shape.rest, shape.high
        for index, item in enumerate(prefix):
            if not alive(item):
                del prefix[index:]
                rest, high = NEVER, index
                break
        if not alive(rest):
            rest, high = NEVER, min(len(prefix), len(prefix) if high is None else high)
        if high == 0:
            return self._bracketed("[", [], "]")
        stem = hint if hint.endswith("_item") else f"{hint}_item"
        tail = "" if rest is None or high == len(prefix) else self._value(rest, stem)
        items = [self._value(item, f"{stem}_{index}") for index, item in enumerate(prefix) if item is not None]
        if not items:
            more = _repeat(f"(_c {tail})", max(0, shape.low - 1), None if high is None else high - 1)
            inside = f"{tail} {more}".rstrip()
        else:
            low = shape.low - len(items)
            inside = _repeat(f"(_c {tail})", max(0, low), None if high is None else high - len(items)) if tail else ""
            for index in range(len(items) - 1, -1, -1):
                after = f"{items[index]} {inside}".rstrip()
                if index == 0:
                    inside = after
                elif index >= shape.low:
                    inside = f"(_c {after})?"
                    if len(inside) > 400:
                        inside = self._rule(f"_c {after}", f"{hint}_rest", None) + "?"
                else:
                    inside = f"_c {after}"
        if shape.low == 0:
            return f'"[" {self._b}({_grouped(inside, self.gap)}{" _w" if self.gap else ""})? "]"'
        return f'"[" {self._b}{inside} {self._b}"]"'

    # -- objects

    def _object(self, shape: Objects, hint: str) -> str:
        required = set(shape.required)
        members: list[tuple[str, bool]] = []
        for name, value in shape.named:
            if self._normaliser.alive(value):
                assert value is not None
                members.append((f"{strings.quoted(name)} _k {self._value(value, name)}", name in required))
        more = self._open(shape, hint)
        if len(members) + bool(more) > 1:
            self.restrictions.add("key-order")
        if members:
            self.restrictions.add("minimal-escapes")
        inside = self._sequence(members, more, hint)
        if not inside:
            return self._bracketed("{", [], "}")
        if not required:
            return f'"{{" {self._b}({_grouped(inside, self.gap)}{" _w" if self.gap else ""})? "}}"'
        return f'"{{" {self._b}{inside} {self._b}"}}"'

    def _open(self, shape: Objects, hint: str) -> str:
        """One member whose key is not declared, or nothing."""
        names = [name for name, _ in shape.named]
        declared = "|".join(strings.regex_of(strings.spelled(name)) for name in names)
        ahead = f'(?!(?:{declared})")' if len(names) > 1 else f'(?!{declared}")' if names else ""
        stem = hint if hint.endswith("_more") else f"{hint}_more"
        options: list[str] = []
        for one in shape.opened:
            if self._normaliser.alive(one.value):
                assert one.value is not None
                heads = [f"(?!{content(match.pattern, match.place)})" for match in one.unmatched]
                bodies = [content(match.pattern, match.place) for match in one.matched]
                heads += [f"(?={body})" for body in bodies[1:]]
                regex = f'"{ahead}{"".join(heads)}{bodies[0] if bodies else strings.PLAIN_TAIL}'
                key = self._terminal(regex, f"{hint}_key" if names or heads or bodies else "KEY")
                options.append(f"{key} _k {self._value(one.value, stem)}")
        if options:
            self.restrictions.update(("open-keys", "minimal-escapes"))
        if len(options) > 1:
            return self._rule(" | ".join(options), stem, None)
        return options[0] if options else ""

    def _sequence(self, members: list[tuple[str, bool]], more: str, hint: str) -> str:
        """Members in order, at least one of them, each but the required ones optional; then any number of ``more``."""
        pivot = next((index for index, (_, needed) in enumerate(members) if needed), None)
        if pivot is None:
            texts = [text for text, _ in members]
            if more:
                texts.append(f"{more} (_c {more})*" if len(more) <= INLINE else self._list_of(more, hint))
            return self._choose(texts, hint) if texts else ""
        parts = [f"({text} _c)?" for text, _ in members[:pivot]]
        parts.append(members[pivot][0])
        parts += [f"_c {text}" if needed else f"(_c {text})?" for text, needed in members[pivot + 1 :]]
        if more:
            parts.append(f"(_c {more})*")
        return " ".join(parts)

    def _list_of(self, more: str, hint: str) -> str:
        one = self._rule(more, f"{hint}_open", None)
        return f"{one} (_c {one})*"

    def _choose(self, texts: list[str], hint: str) -> str:
        """Some of the texts in order, at least one: linear by halving."""
        if len(texts) == 1:
            return texts[0]
        middle = (len(texts) + 1) // 2
        left, right = self._choose(texts[:middle], hint), self._choose(texts[middle:], hint)
        if len(right) > INLINE:
            right = self._rule(right, f"{hint}_part", None)
        first = f"({left})" if " | " in left else left
        second = f"({right})" if " | " in right else right
        return f"{first} (_c {second})? | {right}"


BOOLEAN = (Constants(CONSTANTS["boolean"]),)


def _grouped(text: str, needed: bool) -> str:
    """The text fit to be followed by more: alternatives in parentheses (those of _choose, which are never nested)."""
    return f"({text})" if needed and " | " in text else text


def _repeat(item: str, low: int, high: int | None) -> str:
    """``low`` to ``high`` copies of an item as Lark writes it."""
    if high is None:
        return f"{item}*" if low == 0 else f"{item}+" if low == 1 else f"{item}~{low} {item}*"
    if high == 0:
        return ""
    if (low, high) == (0, 1):
        return f"{item}?"
    if low == high:
        return item if low == 1 else f"{item}~{low}"
    return f"{item}~{low}..{high}"
