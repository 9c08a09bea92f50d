"""Tell which branch of a union each value of a call's arguments is, where a discriminator names it.

Leaves out   whether the value meets the branch, which masks see to; making the graph (compiler/schema/branch_names.py);
             checking its form (../format/meta.py).
Graph        A list of nodes; the first is for the arguments. A node has any of these keys:
             ``tag``: [property, [[value, branch, node or -1], …]]: the property says the branch, whose node goes on;
             ``also``: nodes for the same value; ``members``: name → node, or -1 where no branch is named below;
             ``rest``: the node of all other members;
             ``items``: the node of the items of an array.
Invariants   the time is linear in the containers of the value, times the nodes that hold for each; where unions lie in
             each other, the name is that of the innermost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def branches_of(nodes: Sequence[Mapping[str, Any]], arguments: Mapping[str, Any]) -> dict[str, str]:
    """JSON pointer of a value in the arguments → name of its branch; shorter pointers first."""
    found: dict[str, str] = {}
    seen: set[tuple[int, str]] = set()
    stack: list[tuple[int, Any, str]] = [(0, arguments, "")]
    while stack:
        number, value, at = stack.pop()
        if (number, at) in seen or not isinstance(value, (Mapping, list)):
            continue
        seen.add((number, at))
        node = nodes[number]
        stack += [(other, value, at) for other in node.get("also", ())]
        if isinstance(value, list):
            if "items" in node:
                stack += [
                    (node["items"], item, f"{at}/{index}")
                    for index, item in enumerate(value)
                    if isinstance(item, (Mapping, list))
                ]
            continue
        name, options = node.get("tag", ("", ()))
        for tag, branch, then in options:
            if value.get(name) == tag:
                found[at] = branch
                if then >= 0:
                    stack.append((then, value, at))
        members, rest = node.get("members", {}), node.get("rest")
        for key, inner in value.items():
            below = members.get(key, rest)
            if below is not None and below >= 0 and isinstance(inner, (Mapping, list)):
                stack.append((below, inner, f"{at}/{key.replace('~', '~0').replace('/', '~1')}"))
    return dict(sorted(found.items(), key=lambda item: (item[0].count("/"), item[0])))
