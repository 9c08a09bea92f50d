"""Schemas as nodes: read once, checked, references resolved, equal schemas shared.

Leaves out   what the keywords mean: atoms.py turns a node into constraints.
Invariants   two nodes of one reader are the same object if their keywords are written alike (annotations aside);
             children are read before parents, without recursion; a reference is followed when it is asked for, so
             what nothing refers to is not read; keywords keep the order in which they are written.
OpenAPI      schemas are those of requests: a property that is ``readOnly`` is not sent, and not required either by any
             schema that speaks about the same object (``unsent`` of Context holds the names on the way down).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from ..budget import Budget
from ..errors import SchemaError, UnsupportedError
from ..regex import MOST_TIMES
from .formats import FORMATS
from .keywords import FREE_FORMATS, KEYWORDS, NUMBER_FORMATS
from .operands import Constant, escape_pointer, parse_names, parse_operand
from .patterns import is_supported
from .references import (
    Context,
    Document,
    Library,
    Loader,
    Target,
    base_in,
    check_identifier,
    draft_in,
    identifier_of,
    index_of,
    resolve,
)
from .report import narrowed_by
from .tags import TAGS, tags_of
from .values import MAX_NESTING, check_text, describe

__all__ = ["Constant", "Node", "Reader", "escape_pointer"]


PLAIN = frozenset(("type", "enum", "const", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum",
                   "exclusiveMaximum"))  # fmt: skip
"""Keywords that have no schemas in them, and of which neither shapes nor errors know where they stand."""

BESIDE = {"if": ("then", "else"), "contains": ("minContains", "maxContains")}
"""Keywords that mean something only beside others."""

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

OBJECT = ("object",)
"""The value of ``type`` where only objects are allowed."""

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

Waiting: TypeAlias = tuple[Active, Context]
"""What of a schema waits for its children: keywords, and the context inside of it."""

IN_PLACE = frozenset(("allOf", "anyOf", "oneOf", "then", "else", "dependencies", "dependentSchemas"))
"""Keywords that demand more of the same object."""


class Reader:
    """Reads schemas into shared nodes.

    Args:
        loader: gives the document at a URI, or None.
        relax: keywords that are dropped where they cannot be compiled. Of patterns, ``$refused`` then holds what is
            dropped by its keyword in the node, so that its complement is dropped as well: what is dropped only ever
            allows more.
        budget: limit on time.
        later: whether keywords and formats of later drafts hold.
        formats: those that are enforced; None: all.

    Attributes:
        report: (place, keyword, status) for every keyword met, in reading order.
        narrowed: (place, keyword) → the declared restrictions that may narrow it, where there are any.
    """

    def __init__(self, loader: Loader | None = None, relax: Collection[str] = (), budget: Budget | None = None,
        later: bool = False, formats: Collection[str] | None = None,
    ) -> None:  # fmt: skip
        self.relax = frozenset(relax)
        self.later = later
        self.formats = formats
        self.budget = budget or Budget(None, None, None, None)
        self.report: list[tuple[str, str, str]] = []
        self.narrowed: dict[tuple[str, str], tuple[str, ...]] = {}
        self._nodes: dict[Hashable, Node] = {}
        self._read: dict[Hashable, Node] = {}  # (number of the document, pointer, dynamic anchors, what is not sent) →
        self._known_read_only: dict[tuple[int, str, Context], bool] = {}
        self._honoured: set[tuple[str, str]] = set()  # (place, keyword) of what only OpenAPI enforces
        self._tagged: dict[Node, list[int]] = {}  # unions with a discriminator → its rows in the report
        self._narrowing: set[Node] = set()  # those of which it is enforced
        self._library = Library(loader)
        self._twins: dict[str, list[str]] = {}  # place of a node → the other places of equal schemas, where relaxed
        self._others: dict[Node, list[str]] = {}  # the same by node, always
        self._dropped: dict[str, dict[str, None]] = {}  # place → its keywords that are dropped
        self.true = self._intern({}, "#")
        self.false = self._intern({"false": True}, "#")

    # -- reading

    def read(self, document: Document, pointer: str, value: Any, context: Context | None = None) -> Node:
        """The node of the schema ``value`` at ``pointer``.

        Args:
            document: where it stands.
            pointer: where in the document.
            value: the schema.
            context: what it is read in; None: that of the document's root.
        """
        number = self._library.add(document)
        context = context or Context(document.uri, document.draft)
        start = (number, pointer, context.scope, context.unsent)
        anchored = bool(index_of(document).dynamic)
        stack: list[tuple[Any, str, Context, int, Waiting | None]] = [(value, pointer, context, 0, None)]
        while stack:
            self.budget.check("")
            value, at, around, depth, waiting = stack.pop()
            key = (number, at, around.scope, around.unsent)
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
            inside = _inside(value, around, document.place(at))
            if anchored:
                inside = inside._replace(scope=self._library.enter(around.scope, document, inside.base))
            if document.read_only and not (at == pointer and is_operation(at)):
                inside = inside._replace(unsent=around.unsent | self._read_only(document, at, value, inside))
            active = _active(value, inside.draft, self.later)
            children = _children(document, at, active)
            if not children:
                self._read[key] = self._build(document, number, at, value, active, inside)
                continue
            stack.append((value, at, around, depth, (active, inside)))
            children.reverse()
            member = inside._replace(unsent=frozenset())
            stack.extend(
                (child, where, inside if keyword in IN_PLACE else member, depth + 1, None)
                for child, where, keyword in children
            )
        return self._read[start]

    def _target(self, keyword: str, ref: Any, document: Document, inside: Context, place: str) -> Target | None:
        """Where a reference leads; None where that is a document that is not there, and references are relaxed."""
        try:
            return self._library.target(keyword, ref, document, inside, place)
        except UnsupportedError:
            if "$ref" not in self.relax:
                raise
            return None

    def follow(self, target: Target) -> Node:
        """The node that a reference leads to."""
        value = resolve(target.document, target.pointer)
        return self.read(target.document, target.pointer, value, target.context)

    def _build(
        self, document: Document, number: int, at: str, schema: dict[str, Any], active: Active, inside: Context
    ) -> Node:
        def child(where: str) -> Node:
            unsent: frozenset[str] = inside.unsent if keyword in IN_PLACE else frozenset()
            return self._read[number, where, inside.scope, unsent]

        keywords: dict[str, Any] = {}
        refused: dict[str, Hashable] = {}
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
                parsed = self._target(keyword, value, document, inside, f"{place}/{keyword}")
                if parsed is None:
                    refused[keyword] = value
                    self._drop(place, keyword)
                    continue
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
                    if self.formats is not None and value not in self.formats:
                        self.report.append((place, keyword, "annotation"))
                        continue
                    status = _format_status(value, document, inside.draft)
                    if status == "later" and not self.later:  # no keyword here: formulas.py asserts those of all drafts
                        self.report.append((place, keyword, "later"))
                        continue
                    status = "repaired" if status == "later" else status
            if self.later and KEYWORDS[keyword].since > inside.draft:
                status = "repaired"
            if keyword in self.relax and keyword in ("pattern", "patternProperties"):
                patterns = [parsed] if keyword == "pattern" else list(parsed)
                kept = [pattern for pattern in patterns if is_supported(pattern)]
                if len(kept) < len(patterns):
                    status = "dropped"
                    refused[keyword] = _key(parsed)
                    if keyword == "patternProperties":
                        keywords[keyword] = {pattern: parsed[pattern] for pattern in kept}
                    self._drop(place, keyword)
                    continue
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
        if refused:
            keywords["$refused"] = refused
            if "patternProperties" in refused:  # a key that may match what is dropped cannot be forbidden
                if "additionalProperties" in keywords:
                    self._drop(place, "additionalProperties")
                    refused["patternProperties"] = refused["patternProperties"], keywords["additionalProperties"]
                if "unevaluatedProperties" in keywords:  # every key is evaluated
                    self._drop(place, "unevaluatedProperties")
                keywords["additionalProperties"] = self.true
        if inside.draft <= 2019 and "contains" in keywords:
            keywords["$2019"] = True  # there contains does not evaluate items
        if document.openapi:
            self._openapi(document, at, schema, keywords)
        if inside.unsent:
            self._leave_out(keywords, inside.unsent)
        if len(active) < len(schema):
            known = {keyword for keyword, _, _ in active}
            for keyword in schema:
                if keyword not in known and (place, keyword) not in self._honoured:
                    beside = inside.draft <= 7 and "$ref" in known  # where nothing else holds
                    later = keyword in KEYWORDS and KEYWORDS[keyword].since > inside.draft and not beside
                    self.report.append((place, keyword, "later" if later else "annotation"))
        node = self._intern(keywords, place)
        if TAGS in keywords:
            self._tagged.setdefault(node, []).append(len(self.report))
            self.report.append((place, "discriminator", "enforced" if node in self._narrowing else "annotation"))
        if node.place != place:
            self._others.setdefault(node, []).append(place)
        if self.relax and node.place != place:
            self._twins.setdefault(node.place, []).append(place)
            for keyword in self._dropped.get(node.place, ()):
                self._drop(place, keyword)
        return node

    def places(self, node: Node) -> list[str]:
        """Where such a schema stands."""
        return list(dict.fromkeys([node.place, *self._others.get(node, ())]))

    def alike(self, places: Iterable[str]) -> list[str]:
        """Some places of nodes, and all others where equal schemas stand."""
        others = {node.place: more for node, more in self._others.items()}
        return list(dict.fromkeys(one for place in places for one in (place, *others.get(place, ()))))

    def drop(self, place: str, keyword: str) -> None:
        """Note that a keyword of the node of a place is dropped, wherever such a schema stands."""
        for one in (place, *self._twins.get(place, ())):
            self._drop(one, keyword)

    def _drop(self, place: str, keyword: str) -> None:
        here = self._dropped.setdefault(place, {})
        if keyword not in here:
            here[keyword] = None
            self.report.append((place, keyword, "dropped"))

    def _openapi(self, document: Document, at: str, schema: dict[str, Any], keywords: dict[str, Any]) -> None:
        """What OpenAPI adds: ``nullable``, ``discriminator``, formats of its own."""
        if "format" in keywords:
            keywords["$openapi"] = True
        if schema.get("nullable") is True and "type" in keywords and document.version.startswith("3.0"):
            keywords["type"] = tuple(sorted({*keywords["type"], "null"}))
            self._honour(document.place(at), "nullable")
        tags = tags_of(schema) if "discriminator" in schema and not {"oneOf", "anyOf"}.isdisjoint(keywords) else None
        if tags is not None:
            keywords[TAGS] = tags
            self._honoured.add((document.place(at), "discriminator"))

    def narrows(self, node: Node) -> None:
        """Report that the discriminator of a union is enforced, wherever such a schema stands."""
        self._narrowing.add(node)
        for index in self._tagged[node]:
            place, keyword, _ = self.report[index]
            self.report[index] = place, keyword, "enforced"

    def _honour(self, place: str, keyword: str) -> None:
        """Report a keyword that is enforced here and an annotation elsewhere."""
        if (place, keyword) not in self._honoured:
            self._honoured.add((place, keyword))
            self.report.append((place, keyword, "enforced"))

    # -- what requests do not carry

    def _read_only(self, document: Document, at: str, schema: dict[str, Any], inside: Context) -> frozenset[str]:
        """Names of the properties that a schema, or one that must hold beside it, declares as ``readOnly``."""
        names: set[str] = set()
        for home, where, one, context in self._conjuncts(document, at, schema, inside):
            properties = one.get("properties")
            for name, inner in properties.items() if isinstance(properties, dict) else ():
                below = f"{where}/properties/{escape_pointer(name)}"
                if isinstance(inner, dict) and self._is_read_only(home, below, inner, context):
                    names.add(name)
                    if inner.get("readOnly") is True:
                        self._honour(home.place(below), "readOnly")
        return frozenset(names)

    def _is_read_only(self, document: Document, at: str, schema: dict[str, Any], around: Context) -> bool:
        key = id(document), at, around
        found = self._known_read_only.get(key)
        if found is None:
            inside = _inside(schema, around, document.place(at))
            parts = self._conjuncts(document, at, schema, inside)
            found = self._known_read_only[key] = any(one.get("readOnly") is True for _, _, one, _ in parts)
        return found

    def _conjuncts(
        self, document: Document, at: str, schema: dict[str, Any], inside: Context
    ) -> list[tuple[Document, str, dict[str, Any], Context]]:
        """A schema and those that it says must hold beside it: members of ``allOf``, and what ``$ref`` leads to."""
        found: list[tuple[Document, str, dict[str, Any], Context]] = []
        seen: set[tuple[int, str]] = set()
        stack = [(document, at, schema, inside)]
        while stack:
            self.budget.check("")
            home, where, one, context = stack.pop()
            if (id(home), where) in seen:
                continue
            seen.add((id(home), where))
            ref, parts = one.get("$ref"), one.get("allOf")
            if isinstance(ref, str):
                target = self._target("$ref", ref, home, context, f"{home.place(where)}/$ref")
                value = None if target is None else resolve(target.document, target.pointer)
                if isinstance(value, dict) and target is not None:
                    within = _inside(value, target.context, target.document.place(target.pointer))
                    stack.append((target.document, target.pointer, value, within))
                if context.draft <= 7:
                    continue  # nothing beside it counts
            found.append((home, where, one, context))
            for index, part in enumerate(parts if isinstance(parts, list) else ()):
                if isinstance(part, dict):
                    below = f"{where}/allOf/{index}"
                    stack.append((home, below, part, _inside(part, context, home.place(below))))
        return found

    def _leave_out(self, keywords: dict[str, Any], unsent: frozenset[str]) -> None:
        """Members with these names are neither allowed nor required."""
        if "properties" in keywords:
            keywords["properties"] = {
                name: self.false if name in unsent else child for name, child in keywords["properties"].items()
            }
        if "required" in keywords:
            keywords["required"] = _without(keywords["required"], unsent)
        for keyword in {"dependencies", "dependentRequired"} & keywords.keys():
            keywords[keyword] = {
                name: _without(demand, unsent) if isinstance(demand, tuple) else demand
                for name, demand in keywords[keyword].items()
            }

    def of_type(self, name: str, place: str) -> Node:
        """The schema of all values of a type."""
        return self._intern({"type": (name,)}, place)

    def objects(self, place: str) -> Node:
        """The schema of any object, which a place demands without saying so."""
        return self.of_type("object", place)

    def part(self, node: Node, keywords: Collection[str]) -> Node:
        """A schema with some of its keywords, and with what belongs to them; without tags, which rule out no value."""
        kept = {*keywords, *(name for keyword in keywords for name in BESIDE.get(keyword, ()))}
        said = {name: value for name, value in node.keywords.items() if name in kept or name.startswith("$")}
        left_out = (*REFERENCES, TAGS)
        return self._intern({name: value for name, value in said.items() if name not in left_out}, node.place)

    def one_of(self, constants: tuple[Constant, ...], place: str) -> Node:
        """The schema of some values."""
        return self._intern({"enum": constants}, place)

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


def _inside(schema: dict[str, Any], around: Context, place: str) -> Context:
    """The context inside of a schema, but for dynamic anchors and what is not sent."""
    base, draft, _, _ = around
    if "$schema" not in schema and identifier_of(draft) not in schema:
        return around
    draft = draft_in(schema, draft, place)
    check_identifier(schema, draft, place)
    return around._replace(base=base_in(schema, base, draft, place), draft=draft)


_OPERATION = re.compile(
    r"/(?:paths/[^/]*|components/pathItems/[^/]*|documents/(?:[^/]*|.*/(?!properties/)[^/]*))"
    r"/(?:get|put|post|delete|options|head|patch|trace|query|additionalOperations/[^/]*)\Z"
)
"""Where operations stand: below paths, or where references from there lead."""


def is_operation(pointer: str) -> bool:
    """Whether an operation of an OpenAPI description stands there: what is read as its schema are its arguments."""
    return _OPERATION.match(pointer) is not None


def _without(names: tuple[str, ...], others: frozenset[str]) -> tuple[str, ...]:
    return tuple([name for name in names if name not in others])


@cache
def _forms(draft: int, later: bool) -> dict[str, str]:
    """What the keywords of a draft take; with ``later`` also those of later ones."""
    known = {keyword: known for keyword, known in KEYWORDS.items() if draft <= known.until}
    return {keyword: one.value for keyword, one in known.items() if later or one.since <= draft}


def _active(schema: dict[str, Any], draft: int, later: bool) -> Active:
    """The keywords of a schema that its draft gives a meaning, with their values and what these are."""
    if draft <= 7 and isinstance(schema.get("$ref"), str):
        return [("$ref", schema["$ref"], "reference")]
    forms = _forms(draft, later)
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


def _children(document: Document, at: str, active: Active) -> list[tuple[Any, str, str]]:
    """The sub-schemas of a schema, where they stand, and the keyword."""
    found: list[tuple[Any, str, str]] = []
    for keyword, value, form in active:
        if form == "schema":
            found.append((value, f"{at}/{keyword}", keyword))
        elif form == "schemas":
            if not isinstance(value, list) or not (value or keyword == "items"):
                place = document.place(f"{at}/{keyword}")
                raise SchemaError(place=place, found=describe(value), expected="a list of at least one schema")
            found += [(item, f"{at}/{keyword}/{index}", keyword) for index, item in enumerate(value)]
        elif form in ("map", "dependencies"):
            if not isinstance(value, dict):
                place = document.place(f"{at}/{keyword}")
                raise SchemaError(place=place, found=describe(value), expected="an object")
            for name, item in value.items():
                if not name.isascii():
                    check_text(name, document.place(f"{at}/{keyword}"))
                if form == "map" or not isinstance(item, list):
                    found.append((item, f"{at}/{keyword}/{escape_pointer(name)}", keyword))
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
        return ("$ref", id(value.document), value.pointer, value.context)
    return value if kind is Node or kind is str else (kind.__name__, value)


def _format_status(name: str, document: Document, draft: int) -> str:
    """What becomes of ``format``; "later": what later drafts define is an annotation."""
    known = FORMATS.get(name)
    if known is not None:
        if draft < known.since and not document.openapi:
            return "later"
        return "annotation" if known.openapi and not document.openapi else "enforced"
    return "enforced" if name in NUMBER_FORMATS else "any value" if name in FREE_FORMATS else "annotation"
