"""The defaults of tools' arguments, as far as a schema's own default meets it.

Leaves out   what they are for: see toolc.runtime.speculate.
Invariants   a default that its schema forbids, or of which that cannot be told, is left to the tool, as one is that
             stands deeper than _DEEPEST references. Most are told by the type alone, without reading the schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ToolcError
from ..specs import ToolSpec
from ..specs.exact_numbers import write_json
from .atoms import literal
from .nodes import Reader
from .normalise import Normaliser
from .operands import escape_pointer
from .references import Document, draft_of

_TELLING = frozenset(("default", "$ref", "properties", "items"))
_DEEPEST = 16  # references are followed so far
_SOON_TOLD = frozenset(("type", "enum", "anyOf", "default", "title", "description", "examples"))
_PLAIN: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}


def defaults_of(tools: Sequence[ToolSpec]) -> list[str | None]:
    """Of each tool the JSON text of a tree of {default, properties, items}; None where there are no defaults."""
    judges: dict[int, _Judge] = {}  # of a document, by its id
    found = []
    for tool in tools:
        judge = judges.setdefault(id(tool.document), _Judge(tool.document))
        tree = _tree(tool.schema, tool.pointer if tool.document is not tool.schema else "", judge, 0)
        found.append(None if tree is None else write_json(tree))
    for judge in judges.values():
        judge.close()
    return found


class _Judge:
    """Tells whether values meet the schemas of a document, which is read when it is first asked."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self._known: tuple[Document, Reader, Normaliser] | None = None

    def meets(self, value: Any, schema: Any, at: str) -> bool:
        """Whether a value surely meets the schema at a pointer."""
        if _surely_meets(value, schema):
            return True
        try:
            if self._known is None:
                reader = Reader()
                self._known = Document(self.document, draft=draft_of(self.document, "")), reader, Normaliser(reader)
            home, reader, normaliser = self._known
            return normaliser.holds_all(literal(normaliser.final(reader.read(home, at, schema))), value)
        except (ToolcError, RecursionError):  # refused before, or dropped, or where nobody reads it; or too deep
            return False

    def close(self) -> None:
        """Let go of what was read; see `Normaliser.close`."""
        if self._known is not None:
            self._known[2].close()


def _surely_meets(value: Any, schema: Any) -> bool:
    """Whether a value meets a schema of which that is soon told, as it is of most."""
    if not isinstance(schema, dict) or not _SOON_TOLD.issuperset(schema):
        return False
    kind, listed, some = schema.get("type"), schema.get("enum"), schema.get("anyOf")
    if kind is not None and not (isinstance(kind, str) and type(value) in _PLAIN.get(kind, ())):
        return False
    if listed is not None and not (isinstance(value, str) and value in listed):
        return False
    return some is None or any(_surely_meets(value, one) for one in some)


def _tree(schema: Any, at: str, judge: _Judge, depth: int) -> dict[str, Any] | None:
    """The tree of a schema at a pointer of the judge's document."""
    if depth > _DEEPEST or not _may_tell(schema):
        return None
    out: dict[str, Any] = {}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        target = reference[1:]
        out = _tree(_resolve(target, judge.document), target, judge, depth + 1) or {}
    if "default" in schema:
        out = {**out, "default": schema["default"]}
    if "default" in out and not judge.meets(out["default"], schema, at):
        del out["default"]
    properties = schema.get("properties")
    if isinstance(properties, dict):
        below = {}
        for name, one in properties.items():
            if _may_tell(one):
                tree = _tree(one, f"{at}/properties/{escape_pointer(name)}", judge, depth + 1)
                if tree:
                    below[name] = tree
        if below:
            out["properties"] = below
    items = _tree(schema.get("items"), f"{at}/items", judge, depth + 1)
    if items and set(items) != {"default"}:  # the default of an item says nothing: items are there or not
        out["items"] = items
    return out or None


def _may_tell(schema: Any) -> bool:
    """Whether a schema may hold a default; of most parameters, soon said, it does not."""
    return isinstance(schema, dict) and not _TELLING.isdisjoint(schema)


def _resolve(pointer: str, document: Any) -> Any:
    """What a JSON pointer leads to; None where it leads nowhere (the schema stage says so)."""
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(part)
        elif isinstance(document, list) and part.isdigit() and int(part) < len(document):
            document = document[int(part)]
        else:
            return None
    return document
