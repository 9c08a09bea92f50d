"""Find what no text can have: members, items, branches and listed values of which a schema leaves nothing.

Leaves out   what is refused: what a value needs (normalise.py); what a
             tokenizer cannot write (../grammar/encodable.py).
Invariants   what is told is never written; ``false``, and ``not`` of everything, say so themselves and are not told. A
             place counts as written if it is so in any context: one schema may stand in many.
Cost         linear in the schemas explored; where all of them have a value only their branches and lists are looked at.
             Which keywords contradict each other is asked by leaving out one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from ..errors import BudgetError, UnsatisfiableError, UnsupportedError
from .atoms import Conj, Literal, conj
from .nodes import Node
from .normalise import Choice, Normaliser
from .shapes import Arrays, Constants, Objects, Shape
from .values import kind_of

MOST_EXPLAINED = 32
"""Places of one schema of which the keywords are sought that contradict each other; of others all are named."""

MOST_ASKED = 256
"""Branches and listed values of one schema of which it is asked whether they have a value after all."""

MOST_PLACES = 64
"""Places of one schema that are told."""

MOST_KEYWORDS = 24
"""Keywords of one place that are left out one by one to find those; of more, first many at once."""

MOST_LEFT_OUT = 128
"""Times that some of them are left out."""

_UNIONS = frozenset(("anyOf", "oneOf"))
_LISTS = frozenset(("enum", "const"))
_SAME = ("allOf", "$ref", "$dynamicRef", "$recursiveRef")
_REST = frozenset(("additionalProperties", "additionalItems", "items"))
_NAMING = frozenset(("properties", "patternProperties", "prefixItems", "items"))
_SILENT = frozenset(("then", "else", "minContains", "maxContains"))


_DENIED = re.compile(r"(?<!/properties)/(?:not|if)(?:/|$)")
"""Places whose schemas say what is not written, or when something else is."""


_LITERAL = re.compile(r"^/\^|\$/[a-z]*$")
"""Patterns that are written as JavaScript does in its code: an anchor stands inside of slashes."""

_NO_FORMATS = "--formats annotate enforces no format"
"""What to do where a format is a part of the contradiction: those who write it seldom mean it to be enforced."""

Path = tuple[str | int, ...]
"""Where something stands in a schema."""


class Unwritable(NamedTuple):
    """Something that no text has.

    Attributes:
        place: where it is declared.
        keywords: those that contradict each other.
        why: in words.
    """

    place: str
    keywords: tuple[str, ...]
    why: str


def explore(normaliser: Normaliser, root: Conj, place: str, said: Any) -> None:
    """Find every conj below ``root`` and settle which can be satisfied; UnsatisfiableError if ``root`` cannot.

    Args:
        root: the conj of a schema.
        place: where that stands.
        said: what stands there.
    """
    if root is None:
        found = f"a $ref to {said['$ref']}, which is false" if isinstance(said, dict) and "$ref" in said else None
        raise UnsatisfiableError("the schema is false: it allows no value", place=place, found=found)
    normaliser.explore(root)
    if not normaliser.alive(root):
        raise _Losses(normaliser).refusal(root)


def lost(normaliser: Normaliser, schemas: int = 1) -> list[Unwritable]:
    """What no text can have of all that was explored, below the roots of so many schemas."""
    return _Losses(normaliser, schemas).find(normaliser.explored, normaliser.choices)


class _Losses:
    """Finds what is lost among the schemas that a normaliser has explored."""

    def __init__(self, normaliser: Normaliser, schemas: int = 1) -> None:
        self._normaliser = normaliser
        self._most_explained = MOST_EXPLAINED * schemas
        self._most_asked = MOST_ASKED * schemas
        self._explained = 0
        self._asked = 0

    def find(self, explored: Iterable[tuple[Literal, ...]], choices: Iterable[Choice]) -> list[Unwritable]:
        """What no text has, in the order of the schemas.

        Args:
            explored: conjs of which it is settled whether they have a value.
            choices: the alternatives of those that have unions.
        """
        alive = self._normaliser.alive
        conjs = [one for one in explored if one]
        living = [one for one in conjs if alive(one)]
        found = [*self._values(living), *self._types(living), *self._branches(choices)]
        if len(living) < len(conjs):
            found += self._parts(living)
        return list(dict.fromkeys(found))

    # -- parts

    def _parts(self, living: list[tuple[Literal, ...]]) -> list[Unwritable]:
        """Members and items of which none can be written."""
        live: set[tuple[Node, Path]] = set()
        dead: dict[tuple[Node, Path], Conj] = {}
        for one in living:
            self._normaliser.budget.check("")
            nodes = self._nodes(one, unions=True)
            for shapes in self._normaliser.shapes(one).values():
                for shape in shapes:
                    if isinstance(shape, (Arrays, Objects)) and self._normaliser.lives(shape):
                        for node, path, value in _parts_of(shape, nodes):
                            if self._normaliser.alive(value):
                                live.add((node, path))
                            elif value is not None:
                                dead.setdefault((node, path), value)
        return [
            said
            for (node, path), value in dead.items()
            if (node, path) not in live
            for said in self._told(node, path, value)
        ]

    # -- branches of unions

    def _branches(self, choices: Iterable[Choice]) -> list[Unwritable]:
        """Branches of which no value is one. A union that holds anyway holds none: of its branches it is asked."""
        normaliser = self._normaliser
        offered: dict[Node, tuple[tuple[Literal, ...], frozenset[Node]]] = {}
        live: set[tuple[Node, Node]] = set()
        for one, kind, shape, nodes in choices:
            normaliser.budget.check("")
            if not normaliser.alive(one):
                continue
            for node in nodes:
                if node not in offered and not _UNIONS.isdisjoint(node.keywords):
                    offered[node] = one, frozenset(branch for _, branch in _branches_of(node))
            merged = shape is not None and shape not in normaliser.shapes(one).get(kind, ())
            if shape is not None and (merged or normaliser.lives(shape)):
                unions = [node for node in nodes if node in offered]
                live.update((node, branch) for node in unions for branch in nodes if branch in offered[node][1])
        return [
            said
            for node, (one, _) in offered.items()
            if not _DENIED.search(node.place)
            for path, branch in _branches_of(node)
            if (node, branch) not in live and not _says_never(branch) and self._asked < self._most_asked
            for said in self._verified(node, path, one, branch)
        ]

    # -- listed values

    def _values(self, living: list[tuple[Literal, ...]]) -> list[Unwritable]:
        """Values of ``enum`` of which something beside it allows none."""
        lists: dict[Node, tuple[tuple[Literal, ...], set[Hashable]]] = {}
        for one in living:
            for node in self._nodes(one):
                if len(node.keywords.get("enum", ())) > 1:
                    shapes = self._normaliser.shapes(one).values()
                    some = [shape.values for union in shapes for shape in union if isinstance(shape, Constants)]
                    keys = {constant.key for values in some for constant in values}
                    lists.setdefault(node, (one, set()))[1].update(keys)
        found: list[Unwritable] = []
        for node, (one, left) in lists.items():
            for index, constant in enumerate(node.keywords["enum"]):
                if constant.key not in left:
                    if self._asked < self._most_asked:
                        value = self._normaliser.reader.one_of((constant,), node.place)
                        found += self._verified(node, ("enum", index), one, value)
                    else:
                        found += self._told(node, ("enum", index), None)
        return found

    # -- types

    def _types(self, living: list[tuple[Literal, ...]]) -> list[Unwritable]:
        """Types of several of which no value is left; beside ``enum`` and ``const`` these say which there are."""
        normaliser = self._normaliser
        lists: dict[Node, tuple[tuple[Literal, ...], set[str]]] = {}
        for one in living:
            for node in self._nodes(one):
                if len(node.keywords.get("type", ())) > 1 and _LISTS.isdisjoint(node.keywords):
                    shapes = normaliser.shapes(one)
                    kinds = {kind for kind in shapes if kind != "string" or any(map(normaliser.lives, shapes[kind]))}
                    lists.setdefault(node, (one, set()))[1].update(kinds)
        found: list[Unwritable] = []
        for node, (one, left) in lists.items():
            for name in node.keywords["type"]:
                if ("number" if name == "integer" else name) not in left and self._asked < self._most_asked:
                    said = self._verified(node, ("type",), one, normaliser.reader.of_type(name, node.place))
                    found += [each._replace(why=f"{name}: {each.why}") for each in said]
        return found

    # -- why

    def _verified(self, node: Node, path: Path, one: tuple[Literal, ...], part: Node) -> list[Unwritable]:
        """What is told of a part of a conj that seems to have no value: nothing where it has one after all."""
        self._asked += 1
        try:
            for value in (conj(Literal(part)), conj(*one, Literal(part))):
                if not self._normaliser.satisfiable(value):
                    return self._told(node, path, value)
        except UnsupportedError:
            pass  # not known
        except BudgetError as error:
            self._too_many(error)
        return []

    def _too_many(self, error: BudgetError) -> None:
        """A part has too many alternatives to tell: nothing more is asked, as the next may have as many. Raises the
        error where it says that the time is over."""
        if self._normaliser.budget.is_late:
            raise error
        self._asked, self._explained = self._most_asked, self._most_explained

    def _told(self, node: Node, path: Path, value: Conj) -> list[Unwritable]:
        """What is told of a part of a schema that has no value, wherever such a schema stands."""
        self._normaliser.budget.check("", place=node.place)
        at, said = self._culprit(value)
        inside = len(self._normaliser.blamed(value)) > 1 if value else False
        homes = {at} if inside else {at, node.at(*path)}
        words = [key if home.place in homes else f"{key} at {home.place}" for home, key in said]
        why = f"no value meets {_listed(tuple(dict.fromkeys(words)))}" if words else "nothing beside it allows it"
        why = f"{why}, at {at}" if inside else why
        why += f" ({_NO_FORMATS})" if any(key == "format" for _, key in said) else ""
        places = [
            place + node.at(*path)[len(node.place) :] for place in self._normaliser.reader.places(node)[:MOST_PLACES]
        ]
        return [Unwritable(place, _keywords(said) or (str(path[0]),), why) for place in places]

    def refusal(self, one: Conj) -> UnsatisfiableError:
        """Why a conj has no value: the innermost place that explains it, and the keywords that contradict each other,
        with where they stand."""
        place, said = self._culprit(one)
        words = self._false_parts(self._innermost(one)[1]) if one else []
        words = words or [f"{keyword} at {home.at(keyword)}" for home, keyword in said]
        hint = "loosen what contradicts itself here"
        if any(_lists_no_array(home) for home, _ in said):
            hint = "give the items the enum; --repair reads it so"
        elif any(_LITERAL.search(home.keywords.get("pattern", "")) for home, keyword in said if keyword == "pattern"):
            hint = "write the pattern without the slashes around it, and a flag as (?i:…)"
        elif any(keyword == "format" for _, keyword in said):
            hint += f"; {_NO_FORMATS}"
        return UnsatisfiableError(
            "no value satisfies this schema",
            place=place,
            found=_listed(tuple(dict.fromkeys(words))) or None,
            hint=hint,
        )

    def _culprit(self, one: Conj) -> tuple[str, list[tuple[Node, str]]]:
        if not one:
            return "#", []
        place, one = self._innermost(one)
        said = [
            (node, keyword) for node in self._nodes(one) for keyword in node.keywords
            if keyword not in _SAME and keyword not in _SILENT and keyword != "false" and not keyword.startswith("$")
        ]  # fmt: skip
        negative = [literal for literal in one if not literal.positive]
        self._explained += 1
        many, asked = len(said) > MOST_KEYWORDS, 0
        size = len(said) // 2 if many else 1
        while size and self._explained <= self._most_explained:
            order = sorted(said, key=lambda some: not some[1].startswith("additional"))
            for start in range(0, len(order), size):
                left_out = order[start : start + size]
                fewer = [some for some in said if some not in left_out]
                if any(name in _NAMING and (node, rest) in fewer for node, name in left_out for rest in _REST):
                    continue  # what is said of all others would hold for these
                asked += 1
                if asked <= MOST_LEFT_OUT and self._is_empty(fewer, negative):
                    said = fewer
            size //= 2
        return place, said

    def _false_parts(self, one: tuple[Literal, ...]) -> list[str]:
        """Where the schemas of a conj demand what is false: that explains enough."""
        never = self._normaliser.reader.false
        found = []
        for node in self._nodes(one):
            for keyword in _SAME:
                value = node.keywords.get(keyword)
                if value is never:
                    found.append(f"false, to which {keyword} at {node.at(keyword)} leads")
                elif isinstance(value, tuple):
                    found += [f"false at {node.at(keyword, at)}" for at, part in enumerate(value) if part is never]
        return found

    def _innermost(self, one: tuple[Literal, ...]) -> tuple[str, tuple[Literal, ...]]:
        """The place and the conj furthest inside that explain why another one is empty."""
        place = one[-1].node.place
        chain = self._normaliser.blamed(one)
        for outer, inner in pairwise(chain):
            nodes = self._nodes(outer, unions=True)
            shapes = [shape for union in self._normaliser.shapes(outer).values() for shape in union]
            parts = (part for shape in shapes for part in _parts_of(shape, nodes))
            here = next((node.at(*path) for node, path, value in parts if value == inner), "")
            last = inner[-1].node
            place = here if here in self._normaliser.reader.places(last) else last.place  # by a reference
        return place, chain[-1]

    def _is_empty(self, said: list[tuple[Node, str]], negative: list[Literal]) -> bool:
        """Whether these keywords leave no value; False where that is not known."""
        kept: dict[Node, list[str]] = {}
        for node, keyword in said:
            kept.setdefault(node, []).append(keyword)
        parts = [Literal(self._normaliser.reader.part(node, keywords)) for node, keywords in kept.items()]
        try:
            one = conj(*parts, *negative)
            return not self._normaliser.satisfiable(one)
        except UnsupportedError:
            return False
        except BudgetError as error:
            self._too_many(error)
            return False

    # -- schemas

    def _nodes(self, one: tuple[Literal, ...], unions: bool = False) -> list[Node]:
        """The schemas that hold of the values of a conj; with ``unions`` those, too, of which some may hold."""
        found = dict.fromkeys(literal.node for literal in one if literal.positive)
        todo = list(found)
        for node in todo:
            for keyword in (*_SAME, *(("anyOf", "oneOf") if unions else ())):
                if keyword in node.keywords:
                    value = node.keywords[keyword]
                    values = value if isinstance(value, tuple) else (value,)
                    more = [one for one in values if isinstance(one, Node) and one not in found]  # else not looked at
                    found.update(dict.fromkeys(more))
                    todo += more
        return list(found)


def _lists_no_array(node: Node) -> bool:
    """Whether a schema of arrays lists values that are none, as if these were its items."""
    values = [one for key in ("enum", "const") for one in node.keywords.get(key, ())]
    kinds = {kind_of(one.value) for one in values}
    return node.keywords.get("type") == ("array",) and bool(values) and "array" not in kinds


def _keywords(said: list[tuple[Node, str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(keyword for _, keyword in said))


def _branches_of(node: Node) -> list[tuple[Path, Node]]:
    return [
        ((keyword, index), branch)
        for keyword in ("anyOf", "oneOf")
        for index, branch in enumerate(node.keywords.get(keyword, ()))
    ]


def _says_never(node: Node) -> bool:
    """Whether a schema is written to have no value."""
    if node.keywords.get("false"):
        return True
    return node.keywords.keys() == {"not"} and not node.keywords["not"].keywords


def _parts_of(shape: Shape, nodes: list[Node]) -> Iterator[tuple[Node, Path, Conj]]:
    """The parts of a shape that some schemas declare."""
    for node in nodes:
        if isinstance(shape, Objects):
            yield from ((node, path, value) for path, value in _members(shape, node))
        elif isinstance(shape, Arrays):
            yield from ((node, path, value) for path, value in _items(shape, node))


def _members(shape: Objects, node: Node) -> Iterator[tuple[Path, Conj]]:
    """(path, value) of the members of a shape that a schema declares."""
    named = dict(shape.named)
    for name, child in node.keywords.get("properties", {}).items():
        if name in named and not _says_never(child):
            yield ("properties", name), named[name]
    patterns = node.keywords.get("patternProperties", {})
    for pattern, child in patterns.items():
        if not _says_never(child):
            alike = [other for other, one in patterns.items() if one is child]
            texts = (pattern, "|".join(f"(?:{other})" for other in alike))  # as formulas.py joins them
            for opened in shape.opened:
                if any(match.pattern in texts for match in opened.matched):
                    yield ("patternProperties", pattern), opened.value
    child = node.keywords.get("additionalProperties")
    if isinstance(child, Node) and not _says_never(child):
        for opened in shape.opened:
            if not opened.matched:
                yield ("additionalProperties",), opened.value


def _items(shape: Arrays, node: Node) -> Iterator[tuple[Path, Conj]]:
    """(path, value) of the items of a shape that a schema declares."""
    items, prefix = node.keywords.get("items"), node.keywords.get("prefixItems", ())
    keyword = "prefixItems"
    if isinstance(items, tuple):
        keyword, prefix, items = "items", items, node.keywords.get("additionalItems")
    for index, child in enumerate(prefix):
        value = shape.prefix[index] if index < len(shape.prefix) else shape.rest
        if not _says_never(child):
            yield (keyword, index), value
    if isinstance(items, Node) and not _says_never(items):
        yield ("items" if keyword == "prefixItems" else "additionalItems",), shape.rest


def _listed(words: tuple[str, ...]) -> str:
    return " and ".join(words) if len(words) < 3 else ", ".join(words[:-1]) + " and " + words[-1]
