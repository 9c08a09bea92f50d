"""Build the graph by which a reader names the branches of unions, from the discriminators of a schema.

Leaves out   telling the branch of a value (toolc.runtime.calls.branches, which says what nodes are); which values a
             branch has (discriminator.py); references out of the document; what stands in ``patternProperties`` and
             ``prefixItems``, and beside them in ``additionalProperties`` and ``items``.
Invariants   a graph holds only schemas below which a discriminator names a branch; recursion is a cycle in it. Branches
             of a union without a discriminator are not told apart, so only a union of one schema and null is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote

from ..budget import Budget
from ..specs import ToolSpec
from .defaults import value_at
from .tags import tags_of

MOST_SCHEMAS = 20_000
"""Schemas of one tool that are looked through."""

MOST_NODES = 1_000
"""Nodes of one tool's graph; a larger one is left out."""

Node = dict[str, Any]


def unions_of(tools: Sequence[ToolSpec], budget: Budget) -> list[list[Node] | None]:
    """Of each tool the graph of its discriminators, whose first node is for its arguments; None without any, or if it
    passes MOST_SCHEMAS or MOST_NODES.

    Raises BudgetError: it took too many seconds.
    """
    says: dict[int, bool] = {}  # by the identity of a document
    found: list[list[Node] | None] = []
    for tool in tools:
        budget.check("")
        key = id(tool.document)
        if key not in says:
            says[key] = _discriminates(tool.document)
        found.append(_graph(tool.schema, tool.document, budget) if says[key] else None)
    return found


def _discriminates(document: Any) -> bool:
    """Whether anything in a document has a discriminator."""
    stack = [document]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if "discriminator" in value:
                return True
            stack += value.values()
        elif isinstance(value, list):
            stack += value
    return False


def _graph(schema: Any, document: Any, budget: Budget) -> list[Node] | None:
    schemas: list[Any] = [schema]
    number_of = {id(schema): 0}

    def number(one: Any) -> int:
        if id(one) not in number_of:
            number_of[id(one)] = len(schemas)
            schemas.append(one)
        return number_of[id(one)]

    nodes: list[Node] = []
    for one in schemas:
        budget.check("")
        if len(schemas) > MOST_SCHEMAS:
            return None
        nodes.append(_node(one, document, number) if isinstance(one, dict) else {})
    return _kept(nodes)


def _node(schema: dict[str, Any], document: Any, number: Callable[[Any], int]) -> Node:
    """The node of a schema; ``number`` gives those of others."""
    node: Node = {}
    also = [one for one in schema["allOf"] if isinstance(one, dict)] if isinstance(schema.get("allOf"), list) else []
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        also.append(value_at(unquote(reference[1:]), document))
    tags = tags_of(schema) if "discriminator" in schema else None
    options: list[list[Any]] = []
    for keyword in ("oneOf", "anyOf"):
        branches = schema.get(keyword)
        if not isinstance(branches, list):
            continue
        if tags is not None:
            for branch, some in zip(branches, getattr(tags, keyword), strict=True):
                if some:
                    name = unquote(branch["$ref"].rpartition("/")[2]).replace("~1", "/").replace("~0", "~")
                    options += [[tag.value, name, number(branch)] for tag in some]
        elif len(some := [one for one in branches if one != {"type": "null"}]) == 1:
            also += some
    if tags is not None and options:
        node["tag"] = [tags.name, options]
    if also:
        node["also"] = [number(one) for one in also]
    properties = schema.get("properties")
    if isinstance(properties, dict) and properties:
        node["members"] = {name: number(one) for name, one in properties.items()}
    for keyword, key, beside in (
        ("additionalProperties", "rest", "patternProperties"),
        ("items", "items", "prefixItems"),
    ):
        if isinstance(schema.get(keyword), dict) and not schema.get(beside):
            node[key] = number(schema[keyword])
    return node


def _below(node: Node) -> list[int]:
    found = [*node.get("also", ()), *node.get("members", {}).values()]
    found += [node[key] for key in ("rest", "items") if key in node]
    return found + [then for _, _, then in node.get("tag", ["", ()])[1]]


def _kept(nodes: list[Node]) -> list[Node] | None:
    """Those nodes that are a union with a discriminator or lead to one, numbered anew."""
    above: dict[int, list[int]] = {}
    for at, node in enumerate(nodes):
        for below in _below(node):
            above.setdefault(below, []).append(at)
    kept = dict.fromkeys(at for at, node in enumerate(nodes) if "tag" in node)
    todo = list(kept)
    for at in todo:
        more = [one for one in dict.fromkeys(above.get(at, ())) if one not in kept]
        kept.update(dict.fromkeys(more))
        todo += more
    if 0 not in kept or len(kept) > MOST_NODES:
        return None
    numbers = {at: number for number, at in enumerate(sorted(kept))}
    found: list[Node] = []
    for at in numbers:
        node = nodes[at]
        one: Node = {}
        if "tag" in node:
            name, options = node["tag"]
            one["tag"] = [name, [[tag, branch, numbers.get(then, -1)] for tag, branch, then in options]]
        if also := [numbers[below] for below in node.get("also", ()) if below in numbers]:
            one["also"] = also
        rest = node.get("rest") in numbers  # which other members are, but not the declared ones
        declared = {name: numbers.get(below, -1) for name, below in node.get("members", {}).items()}
        if members := {name: below for name, below in declared.items() if rest or below >= 0}:
            one["members"] = members
        one |= {key: numbers[node[key]] for key in ("rest", "items") if node.get(key) in numbers}
        found.append(one)
    return found
