"""``unevaluatedProperties`` and ``unevaluatedItems``: what is evaluated depends on which sub-schemas hold.

Leaves out   everything else about the sub-schemas: they stay formulas.
Invariants   the alternatives of a schema say of every sub-schema that evaluates something whether it holds, so that in
             each of them it is known what is evaluated, and the keyword becomes plain members or items; together they
             are all values of the schema. Sub-schemas that evaluate nothing are not taken apart, nor those that only
             evaluate members that are evaluated whatever holds, nor schemas in which nothing is left to forbid.
Source       json-schema.org 2020-12 core, 11; in 2019-09 ``contains`` evaluates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from ..errors import BudgetError
from .atoms import (
    ANY,
    NEVER,
    NOTHING,
    All,
    Conj,
    Formula,
    Items,
    Literal,
    Matches,
    Members,
    Required,
    Some,
    absent,
    literal,
)
from .formulas import APPLICATORS, UNEVALUATED, formula, types_of
from .nodes import Node

MAX_ALTERNATIVES = 256

KEYWORD = {"object": "unevaluatedProperties", "array": "unevaluatedItems"}
_NAMELESS = {"patternProperties", "additionalProperties", "unevaluatedProperties"}
_EVALUATE = {
    "object": {"properties", "patternProperties", "additionalProperties", "unevaluatedProperties"},
    "array": {"items", "prefixItems", "contains", "unevaluatedItems"},
}

Alternative = tuple[tuple[Formula, ...], tuple[Node, ...]]


class Unevaluated:
    """Formulas of schemas with one of the two keywords.

    Args:
        settle: resolves the references of a node.
        in_place: the nodes that a node applies to the same value.
        any_of: makes the schema that is the union of some.
    """

    def __init__(
        self,
        settle: Callable[[Node], None],
        in_place: Callable[[Node], list[Node]],
        any_of: Callable[[tuple[Node, ...]], Node],
    ) -> None:
        self.settle = settle
        self.in_place = in_place
        self.any_of = any_of
        self._evaluates: dict[tuple[Node, str], bool] = {}
        self._known: dict[tuple[Node, str, frozenset[str]], list[Alternative]] = {}

    def formula(self, node: Node, kind: str) -> tuple[Formula, ...]:
        """The formula of a node that has the keyword for this kind."""
        if self._forbids_nothing(node, kind):
            return formula(node, kind)
        try:
            found = self.alternatives(node, kind)
        except RecursionError:
            raise BudgetError(
                f"schemas apply one another too deep beside {KEYWORD[kind]}",
                place=node.at(KEYWORD[kind]),
                hint="simplify this schema",
            ) from None
        return (Some(tuple(All(parts) for parts, _ in found)),)

    def alternatives(self, node: Node, kind: str, known: frozenset[str] = frozenset()) -> list[Alternative]:
        """What may hold of a node, and the sub-schemas that then apply; found once.

        Args:
            known: members that are evaluated whatever holds, if the node stands in one with the keyword.
        """
        key = (node, kind, known)
        if key not in self._known:
            self._known[key] = self._alternatives(*key)
        return self._known[key]

    def _alternatives(self, node: Node, kind: str, known: frozenset[str]) -> list[Alternative]:
        self.settle(node)
        keywords = node.keywords
        if keywords.get("false") or kind not in types_of(node)[0]:
            return [((NOTHING,), ())]
        if not self.evaluates(node, kind) or (kind == "object" and self._only(node, known)):
            return [((Literal(node),), ())]
        if self._forbids_nothing(node, kind):
            return [((Literal(node),), (node,))]
        own = formula(node, kind, (*UNEVALUATED, *APPLICATORS))
        found: list[Alternative] = [(own, (node,))]
        if KEYWORD[kind] in keywords:
            known = self._surely(node)
        for keyword in keywords:
            if keyword in APPLICATORS:
                for options in self._options(node, keyword, kind, known):
                    found = [_both(one, other) for one, other in product(found, options)]
                    if len(found) > MAX_ALTERNATIVES:
                        raise BudgetError(
                            f"which sub-schemas hold beside {KEYWORD[kind]} multiplies to more than "
                            f"{MAX_ALTERNATIVES} alternatives",
                            place=node.at(KEYWORD[kind]),
                            hint="simplify this schema",
                        )
        if KEYWORD[kind] in keywords:
            rest = literal(keywords[KEYWORD[kind]])
            found = [(parts + self._rest(nodes, node, kind, rest, known), nodes) for parts, nodes in found]
        return found

    def _forbids_nothing(self, node: Node, kind: str) -> bool:
        """Whether a node has the keyword, with a schema that takes anything."""
        return KEYWORD[kind] in node.keywords and literal(node.keywords[KEYWORD[kind]]) == ANY

    def evaluates(self, node: Node, kind: str) -> bool:
        """Whether a node, or one that it applies to the same value, has a keyword that evaluates."""
        key = (node, kind)
        known = self._evaluates.get(key)
        if known is None:
            self._evaluates[key] = False
            known = bool(_EVALUATE[kind] & set(node.keywords))
            known = known or any(self.evaluates(child, kind) for child in self.in_place(node))
            self._evaluates[key] = known
        return known

    def _only(self, node: Node, known: frozenset[str]) -> bool:
        """Whether a node, with all that it applies to the same value, evaluates no members but these."""
        return all(
            _NAMELESS.isdisjoint(one.keywords) and known.issuperset(one.keywords.get("properties", ()))
            for one in _reached(node, self.in_place)
        )

    def _surely(self, node: Node) -> frozenset[str]:
        """The members that a node evaluates whatever holds."""
        found = _reached(node, self._always)
        return frozenset(name for one in found for name in one.keywords.get("properties", ()))

    def _always(self, node: Node) -> list[Node]:
        """What a node applies to the same value whatever holds."""
        self.settle(node)
        children = (*node.keywords.get("allOf", ()), node.keywords.get("$ref"))
        return [child for child in children if isinstance(child, Node)]

    def _options(self, node: Node, keyword: str, kind: str, known: frozenset[str]) -> list[list[Alternative]]:
        """For each sub-schema of a keyword, the ways in which it holds or does not."""
        value = node.keywords[keyword]

        def fails(child: Node) -> Alternative:
            return (Literal(child, False),), ()

        def holds(child: Node) -> list[Alternative]:
            return self.alternatives(child, kind, known)

        if keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            return [holds(value)]
        if keyword == "allOf":
            return [holds(child) for child in value]
        if keyword == "not":
            return [[fails(value)]]
        if keyword == "anyOf":
            some: list[Alternative] = [((Some(tuple(Literal(child) for child in value)),), ())]
            more = [child for child in value if self.evaluates(child, kind)]
            if kind == "object":
                more = [child for child in more if not self._only(child, known)]
            return [some] + [[*holds(child), fails(child)] for child in more]
        if keyword == "oneOf":
            options: list[Alternative] = []
            for index, child in enumerate(value):
                others = tuple(Literal(other, False) for at, other in enumerate(value) if at != index)
                options += [(parts + others, nodes) for parts, nodes in holds(child)]
            return [options]
        if keyword == "if":
            yes, no = holds(value), [fails(value)]
            if "then" in node.keywords:
                yes = [_both(one, other) for one, other in product(yes, holds(node.keywords["then"]))]
            if "else" in node.keywords:
                no = [_both(one, other) for one, other in product(no, holds(node.keywords["else"]))]
            return [yes + no]
        found: list[list[Alternative]] = []
        for name, demand in value.items() if kind == "object" else ():
            there: list[Alternative] = [((Required((name,)),), ())]
            if isinstance(demand, Node):
                there = [(there[0][0] + parts, nodes) for parts, nodes in holds(demand)]
            else:
                there = [((Required((name, *demand)),), ())]
            found.append([((absent(name),), ()), *there])
        return found

    # -- what is left

    def _rest(
        self, nodes: tuple[Node, ...], owner: Node, kind: str, rest: Conj, known: frozenset[str]
    ) -> tuple[Formula, ...]:
        """The keyword of ``owner``, given the nodes that apply, and the members that are evaluated whatever holds."""
        if any(one is not owner and KEYWORD[kind] in one.keywords for one in nodes):
            return ()
        return self._members(nodes, rest, known) if kind == "object" else self._items(nodes, rest)

    def _members(self, nodes: tuple[Node, ...], rest: Conj, known: frozenset[str]) -> tuple[Formula, ...]:
        names = dict.fromkeys(sorted(known))
        patterns: dict[str, Matches] = {}
        for one in nodes:
            if "additionalProperties" in one.keywords:
                return ()
            names.update(dict.fromkeys(one.keywords.get("properties", ())))
            for pattern in one.keywords.get("patternProperties", ()):
                patterns.setdefault(pattern, Matches(pattern, one.at("patternProperties", pattern)))
        named = tuple((name, ANY) for name in names)
        return (Members(named, tuple((match, ANY) for match in patterns.values()), rest, declares=False),)

    def _items(self, nodes: tuple[Node, ...], rest: Conj) -> tuple[Formula, ...]:
        prefix, matched = 0, dict[Node, None]()
        for one in nodes:
            items = one.keywords.get("items")
            if isinstance(items, Node) or ("additionalItems" in one.keywords and isinstance(items, tuple)):
                return ()
            prefix = max(prefix, len(items or ()), len(one.keywords.get("prefixItems", ())))
            if "contains" in one.keywords and "$2019" not in one.keywords:
                matched.setdefault(one.keywords["contains"])
        if matched and rest != ANY:
            union = tuple(matched) if rest is NEVER else (*matched, rest[0].node)  # type: ignore[index]
            rest = literal(self.any_of(union))
        return (Items((ANY,) * prefix, rest),)


def _both(one: Alternative, other: Alternative) -> Alternative:
    """What holds in both, each once: schemas may apply one to the same value in many ways."""
    return tuple(dict.fromkeys(one[0] + other[0])), tuple(dict.fromkeys(one[1] + other[1]))


def _reached(node: Node, below: Callable[[Node], list[Node]]) -> Iterator[Node]:
    """A node and all that it leads to, each once."""
    todo, seen = [node], {node}
    for one in todo:
        yield one
        more = [child for child in dict.fromkeys(below(one)) if child not in seen]
        seen.update(more)
        todo += more
