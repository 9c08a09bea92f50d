"""Schemas as nodes: read once, checked, references resolved, equal schemas shared.

Leaves out   what the keywords mean: atoms.py turns a node into constraints.
Invariants   two nodes of one reader are the same object if their keywords are written alike (annotations aside);
             children are read before parents, without recursion; a reference is followed when it is asked for, so
             what nothing refers to is not read; keywords keep the order in which they are written.
"""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from ..errors import SchemaError, UnsupportedError
from .keywords import KEYWORDS, TYPES
from .values import MAX_NESTING, check_value, describe, exact, freeze


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


@dataclass(frozen=True)
class Target:
    """Where a ``$ref`` leads: a value in a document, and the base there."""

    document: Document
    pointer: str
    base: str


@dataclass(eq=False)
class Document:
    """A JSON document that holds schemas.

    Attributes:
        root: the parsed document.
        file: how errors name it; may be empty.
        prefix: pointer of ``root`` inside ``file``.
        draft: 4, 6, 7, 2019 or 2020, by ``$schema``.
    """

    root: Any
    file: str = ""
    prefix: str = ""
    draft: int = 2020
    resources: dict[str, str] | None = field(default=None, repr=False)

    def place(self, pointer: str) -> str:
        """How errors name a location."""
        return f"{self.file}#{self.prefix}{pointer}"


def draft_of(schema: Any, place: str) -> int:
    """The draft that ``$schema`` names; 2020 where there is none, or one that we do not know."""
    name = schema.get("$schema") if isinstance(schema, dict) else None
    if name is None:
        return 2020
    if not isinstance(name, str):
        raise SchemaError(place=f"{place}/$schema", found=describe(name), expected="a string")
    for mark, draft in (("draft-03", 4), ("draft-04", 4), ("draft-06", 6), ("draft-07", 7), ("2019-09", 2019)):
        if mark in name:
            return draft
    return 2020


def escape_pointer(step: str) -> str:
    """One step of a JSON pointer."""
    return step.replace("~", "~0").replace("/", "~1")


def _id_of(schema: Any, draft: int) -> str | None:
    """The identifier a schema declares, fragment-only ones (anchors of old drafts) included."""
    name = schema.get("id" if draft == 4 else "$id") if isinstance(schema, dict) else None
    return name if isinstance(name, str) else None


Child = tuple[Any, str]


class Reader:
    """Reads schemas into shared nodes.

    Attributes:
        report: (place, keyword, status) for every keyword met, in reading order.
    """

    def __init__(self) -> None:
        self.report: list[tuple[str, str, str]] = []
        self._nodes: dict[Hashable, Node] = {}
        self._read: dict[tuple[int, str], Node] = {}
        self._documents: list[Document] = []
        self.true = self._intern({}, "#")
        self.false = self._intern({"false": True}, "#")

    # -- reading

    def read(self, document: Document, pointer: str, value: Any, base: str) -> Node:
        """The node of the schema ``value`` at ``pointer``; ``base`` is the URI that references there start from."""
        if document not in self._documents:
            self._documents.append(document)
        number = self._documents.index(document)
        stack = [(value, pointer, base, 0, False)]
        while stack:
            value, at, base, depth, ready = stack.pop()
            key = (number, at)
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
            name = _id_of(value, document.draft)
            inside = base if name is None or name.startswith("#") else urljoin(base, urldefrag(name)[0])
            if ready:
                self._read[key] = self._build(document, number, at, value, inside)
                continue
            stack.append((value, at, base, depth, True))
            children = list(self._children(document, at, value))
            stack.extend((child, where, inside, depth + 1, False) for child, where in reversed(children))
        return self._read[(number, pointer)]

    def follow(self, target: Target) -> Node:
        """The node that a reference leads to."""
        value = resolve(target.document, target.pointer)
        return self.read(target.document, target.pointer, value, target.base)

    def _active(self, document: Document, schema: dict[str, Any]) -> Iterator[str]:
        """The keywords of a schema that its draft gives a meaning."""
        if document.draft <= 7 and "$ref" in schema and isinstance(schema["$ref"], str):
            yield "$ref"
            return
        for keyword in schema:
            known = KEYWORDS.get(keyword)
            old = keyword == "additionalItems" and isinstance(schema.get("items"), list)
            if known and (old or known.since <= document.draft <= known.until):
                yield keyword

    def _children(self, document: Document, at: str, schema: dict[str, Any]) -> Iterator[Child]:
        for keyword in self._active(document, schema):
            value, where = schema[keyword], f"{at}/{escape_pointer(keyword)}"
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

    def _build(self, document: Document, number: int, at: str, schema: dict[str, Any], base: str) -> Node:
        keywords: dict[str, Any] = {}
        active = set()
        for keyword in self._active(document, schema):
            active.add(keyword)
            where = f"{at}/{escape_pointer(keyword)}"
            child = self._read
            value, form = schema[keyword], KEYWORDS[keyword].value
            if form == "items":
                form = "schemas" if isinstance(value, list) else "schema"
            if keyword == "$ref":
                parsed: Any = self._target(document, base, value, document.place(where))
            elif form == "schema":
                parsed = child[(number, where)]
            elif form == "schemas":
                parsed = tuple(child[(number, f"{where}/{index}")] for index in range(len(value)))
            elif form == "map":
                parsed = {name: child[(number, f"{where}/{escape_pointer(name)}")] for name in value}
            elif form == "dependencies":
                parsed = {
                    name: _names(item, document.place(f"{where}/{escape_pointer(name)}"))
                    if isinstance(item, list)
                    else child[(number, f"{where}/{escape_pointer(name)}")]
                    for name, item in value.items()
                }
            else:
                parsed = _parse(form, value, document.place(where))
            keywords[keyword] = parsed
            self.report.append((document.place(at), keyword, KEYWORDS[keyword].status))
        for keyword in schema:
            if keyword not in active:
                self.report.append((document.place(at), keyword, "annotation"))
        return self._intern(keywords, document.place(at))

    def _intern(self, keywords: dict[str, Any], place: str) -> Node:
        key = tuple((keyword, _key(value)) for keyword, value in keywords.items())
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node(len(self._nodes), place, keywords)
        return node

    # -- references

    def _target(self, document: Document, base: str, ref: Any, place: str) -> Target:
        if not isinstance(ref, str):
            raise SchemaError(place=place, found=describe(ref), expected="a reference as a string")
        if ref.startswith("#") and not base:
            uri, fragment = "", ref[1:]
        else:
            uri, fragment = urldefrag(urljoin(base, ref))
        fragment = unquote(fragment)
        root = "" if uri == _root_base(document) or not uri else self._resources(document).get(uri)
        if root is None:
            if uri.startswith(("http://json-schema.org/", "https://json-schema.org/")) or ":" in uri or uri:
                raise UnsupportedError(
                    "the reference leads outside the document",
                    place=place,
                    found=f'"{ref}"',
                    expected="a reference into the same document",
                    hint="copy the other schema into $defs",
                )
        assert root is not None
        if not fragment or fragment.startswith("/"):
            target = Target(document, root + fragment, uri or base)
        else:
            anchor = self._resources(document).get(f"{uri}#{fragment}")
            if anchor is None:
                near = [key.split("#")[1] for key in self._resources(document) if key.startswith(f"{uri}#")]
                raise _dangling(place, ref, ["#" + name for name in difflib.get_close_matches(fragment, near)])
            target = Target(document, anchor, uri or base)
        try:
            resolve(document, target.pointer)
        except KeyError as missing:
            raise _dangling(place, ref, missing.args[0]) from None
        return target

    def _resources(self, document: Document) -> dict[str, str]:
        """URI → pointer of every schema of the document that has an identifier, and ``URI#name`` of every anchor."""
        if document.resources is None:
            found: dict[str, str] = {}
            stack: list[tuple[Any, str, str]] = [(document.root, "", "")]
            while stack:
                value, at, base = stack.pop()
                if isinstance(value, dict):
                    name = _id_of(value, document.draft)
                    if name is not None and name.startswith("#"):
                        found.setdefault(f"{base}{name}", at)
                    elif name is not None:
                        base = urljoin(base, urldefrag(name)[0])
                        found.setdefault(base, at)
                    if isinstance(value.get("$anchor"), str):
                        found.setdefault(f"{base}#{value['$anchor']}", at)
                    for key, item in value.items():
                        if isinstance(item, (dict, list)) and key not in ("enum", "const"):
                            stack.append((item, f"{at}/{escape_pointer(str(key))}", base))
                elif isinstance(value, list):
                    for index, item in enumerate(value):
                        stack.append((item, f"{at}/{index}", base))
            document.resources = found
        return document.resources


def _root_base(document: Document) -> str:
    name = _id_of(document.root, document.draft)
    return "" if name is None or name.startswith("#") else urldefrag(name)[0]


def resolve(document: Document, pointer: str) -> Any:
    """The value at a pointer; KeyError with the near misses where there is none."""
    value, at = document.root, ""
    for raw in pointer.split("/")[1:]:
        step = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            if step not in value:
                near = difflib.get_close_matches(step, [str(key) for key in value], n=3)
                raise KeyError([f"#{at}/{escape_pointer(name)}" for name in near])
            value = value[step]
        elif isinstance(value, list):
            if not step.isascii() or not step.isdigit() or int(step) >= len(value):
                raise KeyError([f"#{at}/{len(value) - 1}"] if value else [])
            value = value[int(step)]
        else:
            raise KeyError([f"#{at}"])
        at += "/" + raw
    return value


def _dangling(place: str, ref: str, near: list[str]) -> SchemaError:
    hint = f"did you mean {' or '.join(near)}?" if near else "define it under $defs"
    return SchemaError(place=place, found=f'"{ref}", which leads nowhere', expected="a reference", hint=hint)


# -- values of keywords


def _key(value: Any) -> Hashable:
    """A hashable form of a parsed keyword value; nodes and targets stand for themselves."""
    if isinstance(value, dict):
        return tuple((name, _key(item)) for name, item in value.items())
    if isinstance(value, (tuple, list)):
        return tuple(_key(item) for item in value)
    if isinstance(value, Target):
        return ("$ref", id(value.document), value.pointer, value.base)
    if isinstance(value, Node):
        return value
    if isinstance(value, Constant):
        return ("constant", value.key, repr(value.value))
    return (type(value).__name__, value)


@dataclass(frozen=True)
class Constant:
    """A value of ``enum`` or ``const``, compared as JSON does."""

    key: Hashable
    value: Any = field(compare=False)


def _names(value: Any, place: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        hint = None
        if isinstance(value, bool):
            hint = "name the required properties in a list beside properties"
        raise SchemaError(place=place, found=describe(value), expected="a list of strings", hint=hint)
    for index, name in enumerate(value):
        if not isinstance(name, str):
            raise SchemaError(place=f"{place}/{index}", found=describe(name), expected="a string")
    return tuple(dict.fromkeys(value))


def _number(value: Any, place: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)) and type(value).__name__ != "Decimal":
        hint = None
        if isinstance(value, str):
            try:
                hint = f"write {value.strip()} without quotes" if float(value) == float(value) else None
            except ValueError:
                pass
        raise SchemaError(place=place, found=describe(value), expected="a number", hint=hint)
    check_value(value, place)
    return exact(value)


def _parse(form: str, value: Any, place: str) -> Any:
    """The parsed value of a keyword without sub-schemas."""
    if form in ("text", "pattern"):
        if not isinstance(value, str):
            raise SchemaError(place=place, found=describe(value), expected="a string")
        return value
    if form == "names":
        return _names(value, place)
    if form == "name lists":
        if not isinstance(value, dict):
            raise SchemaError(place=place, found=describe(value), expected="an object")
        return {name: _names(item, f"{place}/{escape_pointer(name)}") for name, item in value.items()}
    if form == "flag":
        if not isinstance(value, bool):
            raise SchemaError(place=place, found=describe(value), expected="true or false")
        return value
    if form == "count":
        number = _number(value, place)
        if not isinstance(number, int) or number < 0:
            raise SchemaError(place=place, found=describe(value), expected="a whole number, at least 0")
        return number
    if form in ("number", "positive"):
        number = _number(value, place)
        if form == "positive" and number <= 0:
            raise SchemaError(place=place, found=describe(value), expected="a number above 0")
        return number
    if form == "exclusive":
        return value if isinstance(value, bool) else _number(value, place)
    if form == "type":
        names = value if isinstance(value, list) else [value]
        for name in names:
            if name not in TYPES or not isinstance(name, str):
                near = difflib.get_close_matches(str(name), TYPES, n=1)
                raise SchemaError(
                    place=place,
                    found=describe(name),
                    expected="one of " + ", ".join(TYPES),
                    hint=f"did you mean {near[0]}?" if near else None,
                )
        return tuple(sorted(set(names)))
    if form == "enum":
        if not isinstance(value, list):
            raise SchemaError(place=place, found=describe(value), expected="a list of values")
        check_value(value, place)
        return tuple({constant.key: constant for constant in (Constant(freeze(v), v) for v in value)}.values())
    assert form == "const", form
    check_value(value, place)
    return (Constant(freeze(value), value),)
