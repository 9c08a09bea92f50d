"""The defaults of tools' arguments, as far as a schema's own default meets it.

Leaves out   what they are for: see toolc.runtime.speculate.
Invariants   a default that its schema forbids, or of which that cannot be told, is left to the tool, as one is that
             stands deeper than _DEEPEST levels. Most are told by the type alone, without reading the schema. A tree is
             worked out once for a schema and a number of levels, so the work is linear though paths through references
             multiply; of a tree whose text would be too long, the deepest levels are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..budget import Budget
from ..errors import ToolcError
from ..specs import ToolSpec
from ..specs.exact_numbers import write_json
from .atoms import literal
from .nodes import Reader
from .normalise import Normaliser
from .operands import escape_pointer
from .references import Document, draft_of

_TELLING = frozenset(("default", "$ref", "properties", "items"))
_DEEPEST = 16  # levels of properties, items and references
_MOST = 1 << 18  # characters of the text of one tool's tree
_MOST_TOGETHER = 1 << 24  # of those of all tools
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


def defaults_of(tools: Sequence[ToolSpec], budget: Budget) -> list[str | None]:
    """Of each tool the JSON text of a tree of {default, properties, items}; None where there are no defaults."""
    judges: dict[int, _Judge] = {}  # of a document, by its id
    found: list[str | None] = []
    left = _MOST_TOGETHER
    for tool in tools:
        budget.check("")
        judge = judges.get(id(tool.document))
        if judge is None:
            judge = judges[id(tool.document)] = _Judge(tool.document, budget)
        at = tool.pointer if tool.document is not tool.schema else ""
        text = _text(tool.schema, at, judge, min(left, _MOST))
        left -= len(text or "")
        found.append(text)
    for judge in judges.values():
        judge.close()
    return found


_Tree = dict[str, tuple[Any, int]]
"""Of a schema: of {default, properties, items} what there is, each with the length of its text; parts may be shared."""


class _Judge:
    """Tells whether values meet the schemas of a document, which is read when it is first asked.

    Attributes:
        trees: pointer of a schema, levels that may be below it → its tree.
    """

    def __init__(self, document: Any, budget: Budget) -> None:
        self.document = document
        self.budget = budget
        self.trees: dict[tuple[str, int], _Tree] = {}
        self._met: dict[str, bool] = {}  # pointer of a schema → whether its default meets it
        self._known: tuple[Document, Reader, Normaliser] | None = None

    def meets(self, value: Any, schema: Any, at: str) -> bool:
        """Whether the default of the schema at a pointer surely meets it."""
        found = self._met.get(at)
        if found is None:
            found = self._met[at] = _surely_meets(value, schema) or self._meets(value, schema, at)
        return found

    def _meets(self, value: Any, schema: Any, at: str) -> bool:
        try:
            if self._known is None:
                reader = Reader(budget=self.budget)
                home = Document(self.document, draft=draft_of(self.document, ""))
                self._known = home, reader, Normaliser(reader, self.budget)
            home, reader, normaliser = self._known
            return normaliser.holds_all(literal(normaliser.final(reader.read(home, at, schema))), value)
        except (ToolcError, RecursionError):  # refused before, or dropped, or where nobody reads it; or too deep
            self.budget.check("")  # unless the time is over
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


def _text(schema: Any, at: str, judge: _Judge, most: int) -> str | None:
    """The text of the tree of a schema, with as many levels as fit."""
    for levels in range(_DEEPEST, -1, -1):
        tree = _tree(schema, at, judge, levels)
        if not tree:
            return None
        if _length(tree) <= most:
            return write_json(_plain(tree))
    return None


def _tree(schema: Any, at: str, judge: _Judge, levels: int) -> _Tree:
    """The tree of a schema at a pointer of the judge's document; empty where it says nothing."""
    if levels < 0 or not _may_tell(schema):
        return {}
    known = judge.trees.get((at, levels))
    if known is not None:
        return known
    judge.budget.check("")
    out: _Tree = {}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        target = reference[1:]
        out |= _tree(value_at(target, judge.document), target, judge, levels - 1)
    if "default" in schema:
        out["default"] = schema["default"], len(write_json(schema["default"]))
    if "default" in out and not judge.meets(out["default"][0], schema, at):
        del out["default"]
    properties = schema.get("properties")
    if isinstance(properties, dict):
        below = {}
        for name, one in properties.items():
            if _may_tell(one):
                tree = _tree(one, f"{at}/properties/{escape_pointer(name)}", judge, levels - 1)
                if tree:
                    below[name] = tree
        if below:
            out["properties"] = below, sum(len(name) + _length(tree) for name, tree in below.items())
    items = _tree(schema.get("items"), f"{at}/items", judge, levels - 1)
    if items and set(items) != {"default"}:  # the default of an item says nothing: items are there or not
        out["items"] = items, _length(items)
    judge.trees[at, levels] = out
    return out


def _length(tree: _Tree) -> int:
    """The characters of a tree's text, but for some of its punctuation."""
    return sum(len(keyword) + length for keyword, (_, length) in tree.items())


def _plain(tree: _Tree) -> dict[str, Any]:
    """What the text of a tree says."""
    found = {keyword: value for keyword, (value, _) in tree.items()}
    if "properties" in found:
        found["properties"] = {name: _plain(one) for name, one in found["properties"].items()}
    if "items" in found:
        found["items"] = _plain(found["items"])
    return found


def _may_tell(schema: Any) -> bool:
    """Whether a schema may hold a default; of most parameters, soon said, it does not."""
    return isinstance(schema, dict) and not _TELLING.isdisjoint(schema)


def value_at(pointer: str, document: Any) -> Any:
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
