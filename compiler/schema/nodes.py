"""Schemas as nodes: read once, checked, references resolved, equal schemas shared.

Leaves out   what the keywords mean: atoms.py turns a node into constraints.
Invariants   two nodes of one reader are the same object if their keywords are written alike (annotations aside);
             children are read before parents, without recursion; a reference is followed when it is asked for, so
             what nothing refers to is not read; keywords keep the order in which they are written.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import SchemaError
from .formats import FORMATS
from .keywords import FREE_FORMATS, KEYWORDS, NUMBER_FORMATS
from .operands import Constant, escape_pointer, parse_names, parse_operand
from .references import Document, Library, Loader, Scope, Target, base_in, resolve
from .report import narrowed_by
from .values import MAX_NESTING, describe, freeze

__all__ = ["Constant", "Node", "Reader", "escape_pointer"]


@dataclass(eq=False)
class Node:
    """One schema. ``keywords`` holds only what constrains, with sub-schemas as nodes; compared by identity.

    Attributes:
        number: order of reading, for stable sorting.
        place: where it was first met, ``file#/pointer``.
        keywords: keyword → parsed value.
    """

    number: int
    place: str
    keywords: dict[str, Any]

    def at(self, *path: str | int) -> str:
        """The place of something inside this schema."""
        return self.place + "".join("/" + escape_pointer(str(step)) for step in path)


Child = tuple[Any, str]


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
        stack = [(value, pointer, base, scope, 0, False)]
        while stack:
            value, at, base, scope, depth, ready = stack.pop()
            key = (number, at, scope)
            if key in self._read:
                continue
            place = document.place(at)
            if isinstance(value, bool):
                self._read[key] = self.true if value else self.false
                continue
            if not isinstance(value, dict):
                raise SchemaError(place=place, found=describe(value), expected="a schema: an object, true or false")
            if depth > MAX_NESTING:
                raise SchemaError(f"the schema nests deeper than {MAX_NESTING} levels", place=place)
            inside = base_in(value, base, document.draft)
            within = self._library.enter(scope, document, inside)
            if ready:
                self._read[key] = self._build(document, number, at, value, inside, within)
                continue
            stack.append((value, at, base, scope, depth, True))
            children = list(self._children(document, at, value))
            stack.extend((child, where, inside, within, depth + 1, False) for child, where in reversed(children))
        return self._read[start]

    def follow(self, target: Target) -> Node:
        """The node that a reference leads to."""
        value = resolve(target.document, target.pointer)
        return self.read(target.document, target.pointer, value, target.base, target.scope)

    def _active(self, document: Document, schema: dict[str, Any]) -> Iterator[str]:
        """The keywords of a schema that its draft gives a meaning."""
        if document.draft <= 7 and "$ref" in schema and isinstance(schema["$ref"], str):
            yield "$ref"
            return
        for keyword in schema:
            known = KEYWORDS.get(keyword)
            if known is None:
                continue
            old = keyword == "additionalItems" and isinstance(schema.get("items"), list)
            if old or known.since <= document.draft <= known.until:
                yield keyword

    def _children(self, document: Document, at: str, schema: dict[str, Any]) -> Iterator[Child]:
        for keyword in self._active(document, schema):
            value, where = schema[keyword], f"{at}/{keyword}"
            form = KEYWORDS[keyword].value
            if form == "items":
                form = "schemas" if isinstance(value, list) else "schema"
                if form == "schemas" and not value:
                    continue
            if form == "schema":
                yield value, where
            elif form == "schemas":
                if not isinstance(value, list) or not value:
                    raise SchemaError(
                        place=document.place(where), found=describe(value), expected="a list of at least one schema"
                    )
                for index, item in enumerate(value):
                    yield item, f"{where}/{index}"
            elif form in ("map", "dependencies"):
                if not isinstance(value, dict):
                    raise SchemaError(place=document.place(where), found=describe(value), expected="an object")
                for name, item in value.items():
                    if not (form == "dependencies" and isinstance(item, list)):
                        yield item, f"{where}/{escape_pointer(name)}"

    def _build(self, document: Document, number: int, at: str, schema: dict[str, Any], base: str, scope: Scope) -> Node:
        def child(where: str) -> Node:
            return self._read[number, where, scope]

        keywords: dict[str, Any] = {}
        place = document.place(at)
        for keyword in self._active(document, schema):
            where = f"{at}/{keyword}"
            value, form = schema[keyword], KEYWORDS[keyword].value
            if form == "items":
                form = "schemas" if isinstance(value, list) else "schema"
            if form == "reference":
                parsed: Any = self._library.target(keyword, value, document, base, scope, document.place(where))
            elif form == "schema":
                parsed = child(where)
            elif form == "schemas":
                parsed = tuple(child(f"{where}/{index}") for index in range(len(value)))
            elif form == "map":
                parsed = {name: child(f"{where}/{escape_pointer(name)}") for name in value}
            elif form == "dependencies":
                parsed = {
                    name: parse_names(item, document.place(f"{where}/{escape_pointer(name)}"))
                    if isinstance(item, list)
                    else child(f"{where}/{escape_pointer(name)}")
                    for name, item in value.items()
                }
            else:
                parsed = parse_operand(form, value, document.place(where))
            keywords[keyword] = parsed
            self.report.append((place, keyword, _status(keyword, value, document)))
            if names := narrowed_by(keyword, value):
                self.narrowed[place, keyword] = names
        for keyword in schema:
            if keyword not in keywords:
                self.report.append((place, keyword, "annotation"))
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
        key = tuple((keyword, _key(value)) for keyword, value in keywords.items())
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node(len(self._nodes), place, keywords)
        return node


def _key(value: Any) -> Hashable:
    """A hashable form of a parsed keyword value; nodes and targets stand for themselves."""
    if isinstance(value, dict):
        return tuple((name, _key(item)) for name, item in value.items())
    if isinstance(value, (tuple, list)):
        return tuple(_key(item) for item in value)
    if isinstance(value, Target):
        return ("$ref", id(value.document), value.pointer, value.base, value.scope)
    if isinstance(value, Node):
        return value
    if isinstance(value, Constant):
        return ("constant", value.key, repr(value.value))
    return (type(value).__name__, value)


def _status(keyword: str, value: Any, document: Document) -> str:
    """What becomes of a keyword."""
    if keyword != "format":
        return "enforced"
    known = FORMATS.get(value)
    if known is not None:
        return "annotation" if known.openapi and not document.openapi else "enforced"
    return "enforced" if value in NUMBER_FORMATS else "any value" if value in FREE_FORMATS else "annotation"
