"""Schemas as nodes: read once, checked, references resolved, equal schemas shared.

Leaves out   what the keywords mean: atoms.py turns a node into constraints.
Invariants   two nodes of one reader are the same object if their keywords are written alike (annotations aside);
             children are read before parents, without recursion; a reference is followed when it is asked for, so
             what nothing refers to is not read; keywords keep the order in which they are written.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from ..errors import SchemaError, UnsupportedError
from ..regex import MOST_TIMES
from .formats import FORMATS
from .keywords import FREE_FORMATS, KEYWORDS, NUMBER_FORMATS
from .operands import Constant, escape_pointer, parse_names, parse_operand
from .references import Document, Library, Loader, Scope, Target, base_in, identifier_of, index_of, resolve
from .report import narrowed_by
from .values import MAX_NESTING, describe, freeze

__all__ = ["Constant", "Node", "Reader", "escape_pointer"]


PLAIN = frozenset(("type", "enum", "const", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum",
                   "exclusiveMaximum"))  # fmt: skip
"""Keywords that have no schemas in them, and of which neither shapes nor errors know where they stand."""

MOST_PLAIN = 1000
"""Characters of the values of ``enum`` and ``const`` together."""


@dataclass(eq=False)
class Node:
    """One schema. ``keywords`` holds only what constrains, with sub-schemas as nodes; compared by identity.

    Attributes:
        number: order of reading, for stable sorting.
        place: where it was first met, ``file#/pointer``.
        keywords: keyword → parsed value.
        plain: what the schema says, where that is little and holds wherever it stands, in any document; else None.
    """

    number: int
    place: str
    keywords: dict[str, Any]
    plain: Hashable = None

    def at(self, *path: str | int) -> str:
        """The place of something inside this schema."""
        return self.place + "".join("/" + escape_pointer(str(step)) for step in path)


Active: TypeAlias = list[tuple[str, Any, str]]
"""(keyword, value, what the value is: one of the forms of keywords.py, ``items`` told apart)."""

Waiting: TypeAlias = tuple[Active, str, Scope]
"""What of a schema waits for its children: keywords, and inside of it the base and the dynamic anchors."""


class Reader:
    """Reads schemas into shared nodes.

    Attributes:
        report: (place, keyword, status) for every keyword met, in reading order.
        narrowed: (place, keyword) → the declared restrictions that may narrow it, where there are any.
    """

    def __init__(self, loader: Loader | None = None) -> None:
        self.report: list[tuple[str, str, str]] = []
        self.narrowed: dict[tuple[str, str], tuple[str, ...]] = {}
        self._nodes: dict[Hashable, Node] = {}
        self._read: dict[tuple[int, str, Scope], Node] = {}
        self._library = Library(loader)
        self.true = self._intern({}, "#")
        self.false = self._intern({"false": True}, "#")

    # -- reading

    def read(self, document: Document, pointer: str, value: Any, base: str, scope: Scope = ()) -> Node:
        """The node of the schema ``value`` at ``pointer``.

        Args:
            document: where it stands.
            pointer: where in the document.
            value: the schema.
            base: the URI that references around it start from.
            scope: the dynamic anchors that are in force.
        """
        number = self._library.add(document)
        start = (number, pointer, scope)
        draft, anchored = document.draft, bool(index_of(document).dynamic)
        identifier = identifier_of(draft)
        stack: list[tuple[Any, str, str, Scope, int, Waiting | None]] = [(value, pointer, base, scope, 0, None)]
        while stack:
            value, at, base, scope, depth, waiting = stack.pop()
            key = (number, at, scope)
            if key in self._read:
                continue
            if waiting is not None:
                self._read[key] = self._build(document, number, at, value, *waiting)
                continue
            if isinstance(value, bool):
                self._read[key] = self.true if value else self.false
                continue
            if not isinstance(value, dict):
                place = document.place(at)
                raise SchemaError(place=place, found=describe(value), expected="a schema: an object, true or false")
            if depth > MAX_NESTING:
                place = document.place(at)
                raise SchemaError(f"the schema nests deeper than {MAX_NESTING} levels", place=place)
            inside = base_in(value, base, draft) if identifier in value else base
            within = self._library.enter(scope, document, inside) if anchored else scope
            active = _active(value, draft)
            children = _children(document, at, active)
            if not children:
                self._read[key] = self._build(document, number, at, value, active, inside, within)
                continue
            stack.append((value, at, base, scope, depth, (active, inside, within)))
            children.reverse()
            stack.extend([(child, where, inside, within, depth + 1, None) for child, where in children])
        return self._read[start]

    def follow(self, target: Target) -> Node:
        """The node that a reference leads to."""
        value = resolve(target.document, target.pointer)
        return self.read(target.document, target.pointer, value, target.base, target.scope)

    def _build(
        self, document: Document, number: int, at: str, schema: dict[str, Any], active: Active, base: str, scope: Scope
    ) -> Node:
        def child(where: str) -> Node:
            return self._read[number, where, scope]

        keywords: dict[str, Any] = {}
        place = document.place(at)
        for keyword, value, form in active:
            status = "enforced"
            if form == "schema":
                parsed: Any = child(f"{at}/{keyword}")
            elif form == "map":
                parsed = {name: child(f"{at}/{keyword}/{escape_pointer(name)}") for name in value}
            elif form == "schemas":
                parsed = tuple([child(f"{at}/{keyword}/{index}") for index in range(len(value))])
            elif form == "reference":
                parsed = self._library.target(keyword, value, document, base, scope, f"{place}/{keyword}")
            elif form == "dependencies":
                parsed = {
                    name: parse_names(item, f"{place}/{keyword}/{escape_pointer(name)}")
                    if isinstance(item, list)
                    else child(f"{at}/{keyword}/{escape_pointer(name)}")
                    for name, item in value.items()
                }
            else:
                parsed = parse_operand(form, value, f"{place}/{keyword}")
                if keyword == "format":
                    status = _format_status(value, document)
            if form != "count" or parsed < MOST_TIMES:
                keywords[keyword] = parsed
            elif keyword.startswith("min"):
                raise UnsupportedError(
                    "no text is so long",
                    place=f"{place}/{keyword}",
                    found=describe(value),
                    expected=f"at most {MOST_TIMES - 1:,}",
                )
            self.report.append((place, keyword, status))
            if names := narrowed_by(keyword, value):
                self.narrowed[place, keyword] = names
        if len(active) < len(schema):
            known = {keyword for keyword, _, _ in active}
            self.report += [(place, keyword, "annotation") for keyword in schema if keyword not in known]
        if document.draft == 2019 and "contains" in keywords:
            keywords["$2019"] = True  # there contains does not evaluate items
        if document.openapi:
            self._openapi(document, at, schema, keywords)
        return self._intern(keywords, place)

    def _openapi(self, document: Document, at: str, schema: dict[str, Any], keywords: dict[str, Any]) -> None:
        """What OpenAPI adds: ``nullable``, ``discriminator``, formats of its own."""
        if "format" in keywords:
            keywords["$openapi"] = True
        if schema.get("nullable") is True and "type" in keywords:
            keywords["type"] = tuple(sorted({*keywords["type"], "null"}))
            self.report.append((document.place(at), "nullable", "enforced"))
        found = schema.get("discriminator")
        name = found.get("propertyName") if isinstance(found, dict) else None
        if not isinstance(name, str):
            return
        mapping = found.get("mapping", {}) if isinstance(found, dict) else {}
        for keyword in {"oneOf", "anyOf"} & set(keywords):
            options = []
            for child, raw in zip(keywords[keyword], schema[keyword], strict=True):
                ref = raw.get("$ref") if isinstance(raw, dict) else None
                if isinstance(ref, str):
                    short = ref.rsplit("/", 1)[-1]
                    known = [tag for tag, to in mapping.items() if to in (ref, short)]
                    tags = tuple(Constant(freeze(tag), tag) for tag in dict.fromkeys([*known, short]))
                    value = self._intern({"enum": tags}, document.place(f"{at}/discriminator"))
                    tagged = {"type": ("object",), "properties": {name: value}, "required": (name,)}
                    mark = self._intern(tagged, document.place(f"{at}/discriminator"))
                    child = self._intern({"allOf": (child, mark)}, document.place(f"{at}/{keyword}"))
                options.append(child)
            keywords[keyword] = tuple(options)
            self.report.append((document.place(at), "discriminator", "enforced"))

    def any_of(self, nodes: tuple[Node, ...]) -> Node:
        """The union of some schemas."""
        return self._intern({"anyOf": nodes}, nodes[0].place)

    def _intern(self, keywords: dict[str, Any], place: str) -> Node:
        key = tuple([(keyword, _key(value)) for keyword, value in keywords.items()])
        node = self._nodes.get(key)
        if node is None:
            plain = PLAIN.issuperset(keywords)
            if plain and ("enum" in keywords or "const" in keywords):
                constants = (*keywords.get("enum", ()), *keywords.get("const", ()))
                plain = sum(len(repr(one.value)) for one in constants) <= MOST_PLAIN
            node = self._nodes[key] = Node(len(self._nodes), place, keywords, key if plain else None)
        return node


@cache
def _forms(draft: int) -> dict[str, str]:
    """What the keywords of a draft take."""
    return {keyword: known.value for keyword, known in KEYWORDS.items() if known.since <= draft <= known.until}


def _active(schema: dict[str, Any], draft: int) -> Active:
    """The keywords of a schema that its draft gives a meaning, with their values and what these are."""
    if draft <= 7 and isinstance(schema.get("$ref"), str):
        return [("$ref", schema["$ref"], "reference")]
    forms = _forms(draft)
    found: Active = []
    for keyword, value in schema.items():
        form = forms.get(keyword)
        if form is None:
            if keyword != "additionalItems" or not isinstance(schema.get("items"), list):
                continue
            form = KEYWORDS[keyword].value
        elif form == "items":
            form = "schemas" if isinstance(value, list) else "schema"
        found.append((keyword, value, form))
    return found


def _children(document: Document, at: str, active: Active) -> list[tuple[Any, str]]:
    """The sub-schemas of a schema, and where they stand."""
    found: list[tuple[Any, str]] = []
    for keyword, value, form in active:
        if form == "schema":
            found.append((value, f"{at}/{keyword}"))
        elif form == "schemas":
            if not isinstance(value, list) or not (value or keyword == "items"):
                place = document.place(f"{at}/{keyword}")
                raise SchemaError(place=place, found=describe(value), expected="a list of at least one schema")
            found += [(item, f"{at}/{keyword}/{index}") for index, item in enumerate(value)]
        elif form in ("map", "dependencies"):
            if not isinstance(value, dict):
                place = document.place(f"{at}/{keyword}")
                raise SchemaError(place=place, found=describe(value), expected="an object")
            for name, item in value.items():
                if form == "map" or not isinstance(item, list):
                    found.append((item, f"{at}/{keyword}/{escape_pointer(name)}"))
    return found


def _key(value: Any) -> Hashable:
    """A hashable form of a parsed keyword value; nodes and targets stand for themselves."""
    kind = type(value)
    if kind is dict:
        return tuple(value.items())  # of nodes, or tuples of names
    if kind is tuple:
        constants = value and type(value[0]) is Constant
        return tuple([(one.key, repr(one.value)) for one in value]) if constants else value
    if kind is Target:
        return ("$ref", id(value.document), value.pointer, value.base, value.scope)
    return value if kind is Node or kind is str else (kind.__name__, value)


def _format_status(name: str, document: Document) -> str:
    """What becomes of ``format``."""
    known = FORMATS.get(name)
    if known is not None:
        return "annotation" if known.openapi and not document.openapi else "enforced"
    return "enforced" if name in NUMBER_FORMATS else "any value" if name in FREE_FORMATS else "annotation"
