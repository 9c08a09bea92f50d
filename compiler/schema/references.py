"""Documents, the identifiers inside them, and where references lead.

Leaves out   reading schemas (nodes.py).
Invariants   the draft of a schema is that of the resource around it: one beside its identifier, or the document's;
             nothing is fetched: a document that is not part of the input comes from the caller's loader, or is one of
             JSON Schema's own, or the reference is refused; a *scope* holds, for every dynamic anchor met on the way,
             the outermost schema that has it, so a dynamic reference is resolved when it is read.
Source       json-schema.org 2020-12 core, 8.2 and 9; RFC 3986.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from ..errors import SchemaError, UnsupportedError
from .keywords import KEYWORDS
from .operands import escape_pointer
from .values import describe

Loader: TypeAlias = Callable[[str], Any]
RECURSIVE = "$recursiveAnchor"


@dataclass(eq=False)
class Document:
    """A JSON document that holds schemas.

    Attributes:
        root: the parsed document.
        file: how errors name it; may be empty.
        prefix: pointer of ``root`` inside ``file``.
        draft: 4, 6, 7, 2019 or 2020, by ``$schema``; resources inside of it may name others.
        uri: where it was loaded from; empty for the input.
    """

    root: Any
    file: str = ""
    prefix: str = ""
    draft: int = 2020
    uri: str = ""
    index: Index | None = field(default=None, repr=False)

    @staticmethod
    def of(root: Any, file: str) -> Document:
        """A whole file, of the draft that it names."""
        return Document(root, file, draft=draft_of(root, f"{file}#"))

    def place(self, pointer: str) -> str:
        """How errors name a location."""
        return f"{self.file}#{self.prefix}{pointer}"

    @property
    def openapi(self) -> bool:
        """Whether this is an OpenAPI description, whose schemas have keywords of their own."""
        return isinstance(self.root, dict) and ("openapi" in self.root or "swagger" in self.root)

    @property
    def version(self) -> str:
        """The version of OpenAPI 3 that this is a description of; else empty."""
        return str(self.root.get("openapi", "")) if isinstance(self.root, dict) else ""

    @cached_property
    def read_only(self) -> bool:
        """Whether an OpenAPI description may mark properties as ``readOnly``, which requests do not carry."""
        stack = [self.root] if self.openapi else []
        while stack:
            value = stack.pop()
            if isinstance(value, dict):
                if value.get("readOnly") is True:
                    return True
                stack.extend(value.values())
            elif isinstance(value, list):
                stack.extend(value)
        return False


@dataclass
class Index:
    """Identifiers of one document.

    Attributes:
        pointer_of: URI of every schema with an identifier → pointer; with ``#name``, of every anchor.
        dynamic: URI of a resource → its dynamic anchors → pointer.
    """

    pointer_of: dict[str, str]
    dynamic: dict[str, dict[str, str]]


@dataclass(frozen=True)
class Anchor:
    """A dynamic anchor, and the schema that has it."""

    name: str
    document: Document
    pointer: str


Scope: TypeAlias = tuple[Anchor, ...]


class Context(NamedTuple):
    """What a schema is read in.

    Attributes:
        base: the URI that references start from.
        draft: of the resource.
        scope: the dynamic anchors in force.
        unsent: names that a member of the object may not have, nor has to, as a request does not carry them (OpenAPI).
    """

    base: str
    draft: int
    scope: Scope = ()
    unsent: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Target:
    """Where a reference leads: a value in a document, and what it is read in."""

    document: Document
    pointer: str
    context: Context


def draft_of(schema: Any, place: str, default: int = 2020) -> int:
    """The draft that ``$schema`` names; the default where there is none, or one that we do not know."""
    name = schema.get("$schema") if isinstance(schema, dict) else None
    if name is None:
        return default
    if not isinstance(name, str):
        raise SchemaError(place=f"{place}/$schema", found=describe(name), expected="a string")
    if any(mark in name for mark in _OLD_DRAFTS):
        raise UnsupportedError(
            "this draft is not supported", place=f"{place}/$schema", found=f'"{name}"', expected=_KNOWN_DRAFTS
        )
    return named_draft(name) or default


_OLD_DRAFTS = ("draft-00", "draft-01", "draft-02", "draft-03")
_KNOWN_DRAFTS = "one of the drafts 4, 6, 7, 2019-09 and 2020-12"


def named_draft(name: str) -> int | None:
    """The draft that a value of ``$schema`` names, if we know it."""
    marks = (("draft-04", 4), ("draft-06", 6), ("draft-07", 7), ("2019-09", 2019), ("2020-12", 2020))
    return next((draft for mark, draft in marks if mark in name), None)


def folder_loader(folder: Path, base: str = "") -> Loader:
    """A loader that takes ``base`` + path from a folder, and nothing from anywhere else."""
    top = folder.resolve()

    def load(uri: str) -> Any:
        if not uri.startswith(base):
            return None
        path = (top / uri[len(base) :].lstrip("/")).resolve()
        if not path.is_relative_to(top) or not path.is_file():
            return None
        return json.loads(path.read_text(encoding="utf-8"))

    return load


def identifier_of(draft: int) -> str:
    """The keyword with which a schema of a draft declares its identifier."""
    return "id" if draft == 4 else "$id"


def id_of(schema: Any, draft: int) -> str | None:
    """The identifier a schema declares, fragment-only ones (anchors of old drafts) included."""
    if not isinstance(schema, dict) or (draft <= 7 and isinstance(schema.get("$ref"), str)):
        return None
    name = schema.get(identifier_of(draft))
    return name if isinstance(name, str) else None


def draft_in(schema: Any, draft: int, place: str | None = None) -> int:
    """The draft inside a schema that stands where it is ``draft``: what its ``$schema`` names beside its identifier.

    Args:
        schema: the schema, or any other value.
        draft: of the resource around it.
        place: for the error where ``$schema`` has no sense; without it there is none, and the draft around it holds.
    """
    if not isinstance(schema, dict) or not isinstance(schema.get("$schema"), str):
        return draft
    own = named_draft(schema["$schema"]) or draft
    name = id_of(schema, own)
    if name is None or name.startswith("#"):
        return draft
    return own if place is None else draft_of(schema, place, draft)


def check_identifier(schema: dict[str, Any], draft: int, place: str) -> None:
    """Refuse an identifier that is no string."""
    keyword = identifier_of(draft)
    name = schema.get(keyword, "")
    if not isinstance(name, str) and not (draft <= 7 and isinstance(schema.get("$ref"), str)):
        raise SchemaError(place=f"{place}/{keyword}", found=describe(name), expected="an identifier as a string")


def base_in(schema: Any, base: str, draft: int, place: str) -> str:
    """The base inside a schema that stands at a place where the base is ``base``."""
    name = id_of(schema, draft)
    if name is None or name.startswith("#"):
        return base
    return _joined(base, name, f"{place}/{identifier_of(draft)}")[0]


def _joined(base: str, ref: str, place: str) -> tuple[str, str]:
    """What a reference at a place says where this is the base: a URI, and its fragment."""
    try:
        if ref.startswith("#"):
            return urldefrag(base + ref)
        urlsplit(ref)  # which is not asked where there is no base
        return urldefrag(urljoin(base, ref))
    except ValueError as error:
        what = str(error)
        raise SchemaError(place=place, found=describe(ref), expected="a URI reference", hint=what) from None


class Library:
    """The documents of one compile, and resolution in them."""

    def __init__(self, loader: Loader | None = None) -> None:
        self.documents: list[Document] = []
        self._loader = loader
        self._missing: set[str] = set()

    def add(self, document: Document) -> int:
        """The number of a document."""
        if document not in self.documents:
            self.documents.append(document)
        return self.documents.index(document)

    # -- dynamic scopes

    def enter(self, scope: Scope, document: Document, base: str) -> Scope:
        """The scope inside a resource."""
        anchors = index_of(document).dynamic.get(base)
        if not anchors:
            return scope
        known = {anchor.name for anchor in scope}
        new = [Anchor(name, document, at) for name, at in anchors.items() if name not in known]
        return (*scope, *new)

    # -- resolution

    def target(self, keyword: str, ref: Any, document: Document, context: Context, place: str) -> Target:
        """Where a reference leads that stands at a place, inside of a schema read in this context."""
        base, draft, scope, unsent = context
        if not isinstance(ref, str):
            raise SchemaError(place=place, found=describe(ref), expected="a reference as a string")
        uri, fragment = _joined(base, ref, place)
        fragment = unquote(fragment)
        home, root = self._find(uri, document, draft, ref, place)
        index = index_of(home)
        if not fragment or fragment.startswith("/"):
            pointer = root + fragment
            anchors = index.dynamic.get(uri, {})
            name = RECURSIVE if keyword == "$recursiveRef" and not fragment and RECURSIVE in anchors else ""
        else:
            found = index.pointer_of.get(f"{uri}#{fragment}")
            if found is None:
                near = [key.split("#")[1] for key in index.pointer_of if key.startswith(f"{uri}#")]
                raise _dangling(place, ref, ["#" + name for name in difflib.get_close_matches(fragment, near)])
            pointer = found
            dynamic = index.dynamic.get(uri, {}).get(fragment) == pointer
            name = fragment if keyword == "$dynamicRef" and dynamic else ""
        for anchor in scope:
            if name and anchor.name == name:
                home, pointer = anchor.document, anchor.pointer
                break
        try:
            outer, inner = _contexts_at(home, pointer)
        except KeyError as missing:
            raise _dangling(place, ref, missing.args[0]) from None
        return Target(home, pointer, outer._replace(scope=self.enter(scope, home, inner.base), unsent=unsent))

    def _find(self, uri: str, document: Document, draft: int, ref: str, place: str) -> tuple[Document, str]:
        """The document that has a URI, and the pointer of the schema there."""
        if not uri:
            return document, ""
        for one in (document, *self.documents):
            root = index_of(one).pointer_of.get(uri)
            if root is not None:
                return one, root
        value = None if self._loader is None or uri in self._missing else self._loader(uri)
        if value is None:
            value = metaschemas().get(uri)
        if value is None:
            self._missing.add(uri)
            raise UnsupportedError(
                "the reference leads outside the document",
                place=place,
                found=f'"{ref}"',
                expected="a reference into the same document",
                hint="put its file beside the spec or name its folder with --schemas, or copy the schema into $defs; "
                "--relax $ref takes any value",
            )
        loaded = Document(value, uri, "", draft_of(value, uri + "#", draft), uri)
        self.add(loaded)
        return loaded, ""


@cache
def metaschemas() -> dict[str, Any]:
    """The schemas of JSON Schema itself, of all drafts that are read, by their URIs: they need no file.

    Those of old drafts are found under https, too, as many write it.
    """
    found: dict[str, Any] = json.loads(Path(__file__).with_name("metaschemas.json").read_text(encoding="utf-8"))
    return {**{uri.replace("http://", "https://"): one for uri, one in found.items()}, **found}


def index_of(document: Document) -> Index:
    """The identifiers of a document, found once."""
    if document.index is None:
        document.index = _index(document)
    return document.index


def _index(document: Document) -> Index:
    pointer_of: dict[str, str] = {document.uri: ""} if document.uri else {}
    dynamic: dict[str, dict[str, str]] = {}
    stack: list[tuple[Any, str, str, int]] = [(document.root, "", document.uri, document.draft)]
    deep = _identifies_inside(document)
    while stack:
        value, at, outer, draft = stack.pop()
        if isinstance(value, list) and document.openapi:
            stack.extend((item, f"{at}/{number}", outer, draft) for number, item in enumerate(value))
        if not isinstance(value, dict):
            continue
        draft = draft_in(value, draft)
        base = base_in(value, outer, draft, document.place(at))
        name = id_of(value, draft)
        if name is not None and "#" in name and not name.endswith("#"):
            pointer_of.setdefault(f"{base}#{urldefrag(name)[1]}", at)
        if base != outer or not at:
            pointer_of.setdefault(base, at)
        if draft >= 2019 and isinstance(value.get("$anchor"), str):
            pointer_of.setdefault(f"{base}#{value['$anchor']}", at)
        if draft >= 2020 and isinstance(value.get("$dynamicAnchor"), str):
            pointer_of.setdefault(f"{base}#{value['$dynamicAnchor']}", at)
            dynamic.setdefault(base, {}).setdefault(value["$dynamicAnchor"], at)
        if draft == 2019 and value.get(RECURSIVE) is True and pointer_of.get(base) == at:
            dynamic.setdefault(base, {}).setdefault(RECURSIVE, at)
        if not deep:
            break
        children = _everything(value) if document.openapi else _schemas(value)
        stack.extend((child, at + path, base, draft) for child, path in children)
    return Index(pointer_of, dynamic)


def _identifies_inside(document: Document) -> bool:
    """False only if surely nothing below the root has an identifier, as in most documents."""
    marks = {identifier_of(document.draft), "$schema", "$anchor", "$dynamicAnchor", RECURSIVE}
    stack = [document.root]
    while stack:
        value = stack.pop()
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            if isinstance(one, list):
                stack.append(one)
            elif isinstance(one, dict):
                if not marks.isdisjoint(one):
                    return True
                stack.append(one)
    return False


def _everything(value: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    for key, item in value.items():
        if isinstance(item, (dict, list)) and key not in ("enum", "const"):
            yield item, f"/{escape_pointer(str(key))}"


def _schemas(schema: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    """The sub-schemas of a schema, also those that nothing uses."""
    for key, value in schema.items():
        if not isinstance(value, (dict, list)):
            continue
        known = KEYWORDS.get(key)
        form = known.value if known is not None else "map" if key in ("$defs", "definitions") else ""
        if form in ("schema", "items", "schemas") and isinstance(value, dict):
            yield value, f"/{key}"
        elif form in ("items", "schemas") and isinstance(value, list):
            yield from ((item, f"/{key}/{number}") for number, item in enumerate(value))
        elif form in ("map", "dependencies") and isinstance(value, dict):
            yield from ((item, f"/{key}/{escape_pointer(str(name))}") for name, item in value.items())


def _steps(document: Document, pointer: str) -> Iterator[tuple[Any, str]]:
    """The values on the way of a pointer, the root first; KeyError with the near misses where there is none."""
    value, at = document.root, ""
    yield value, at
    for raw in pointer.split("/")[1:]:
        step = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            if step not in value:
                near = difflib.get_close_matches(step, [str(key) for key in value], n=3)
                raise KeyError([f"#{at}/{escape_pointer(name)}" for name in near])
            value = value[step]
        elif isinstance(value, list):
            plain = step == "0" or (step.isascii() and step.isdigit() and step[0] != "0" and len(step) < 10)
            if not plain or int(step) >= len(value):
                raise KeyError([f"#{at}/{len(value) - 1}"] if value else [])
            value = value[int(step)]
        else:
            raise KeyError([f"#{at}"])
        at += "/" + raw
        yield value, at


def resolve(document: Document, pointer: str) -> Any:
    """The value at a pointer; KeyError with the near misses where there is none."""
    *_, (value, _) = _steps(document, pointer)
    return value


def _contexts_at(document: Document, pointer: str) -> tuple[Context, Context]:
    """What the value at a pointer stands in, and what stands inside of it; without dynamic anchors."""
    outer = inner = Context(document.uri, document.draft)
    for value, at in _steps(document, pointer):
        draft = draft_in(value, inner.draft)
        outer, inner = inner, Context(base_in(value, inner.base, draft, document.place(at)), draft)
    return outer, inner


def _dangling(place: str, ref: str, near: list[str]) -> SchemaError:
    near = [one for one in near if not one.endswith("/$ref")]  # the reference itself, for one
    hint = f"did you mean {' or '.join(near)}?" if near else "define it under $defs"
    hint = "write # for the whole document" if ref == "#/" else hint
    return SchemaError(place=place, found=f'"{ref}", which leads nowhere', expected="a reference", hint=hint)
