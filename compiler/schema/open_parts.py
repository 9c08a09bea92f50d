"""What may be anything, part by part: arrays and objects inside of each other to any depth.

Tags are no brackets, so recursion cannot go from tag to tag. But what ends a part begins with the byte that begins one.
A *rest* is what follows that byte inside of an array or object, up to and without the last byte of its end; then

    group: "<" rest ">"                                  from the first byte inside to the end: one bracketed group
    rest:  "/value" | … "raw\\">" RAW "</value>" "<" rest | … "list\\">" group "<" rest | …

Leaves out   the outermost array or object, whose end its template writes: its parts are a plain list.
Invariants   every part says its kind and no end repeats a key, else there are no such parts
             (../grammar/argument_encoding.py).
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.nodes import Expr, Ref, choice, optional, repeated, sequence, string
from .encoding import IDENTIFIER
from .quoted_rules import raw_key
from .rules import Rules
from .shapes import Strings

Parts = tuple[tuple[str, str, str, str, str], ...]
"""(parameter or item, kind of its value, before the key, between key and value, after the value) of every template."""

_OF = {"array": "item", "object": "parameter"}


def open_parts(writer: Rules, parts: Parts, kind: str, leaves: Callable[[], tuple[Expr, Expr]]) -> Expr:
    """The parts of an array or object that may hold anything, as a rule.

    Args:
        leaves: gives a raw string that is not empty, and of any other scalar.
    """
    known = writer.open_parts.get(kind)
    if known is not None:
        return known
    names = [Ref(name) for name in writer.state_rules(6, "anything")]
    group, rest, whole = (dict(zip(_OF, names[n : n + 2], strict=True)) for n in (0, 2, 4))
    key = raw_key(writer, IDENTIFIER, [Strings(1)], "open_key")
    assert key is not None
    raw, scalar = (writer.rule(leaf, "open_leaf", None) for leaf in leaves())
    writer.restrictions.add("open-keys")
    for outer, of in _OF.items():
        end = next(after for one, _, _, _, after in parts if one == of)
        inside, listed = [string(end[1:-1])], []
        for one, inner, before, between, after in parts:
            if one != of:
                continue
            name = [key, string(between)] if before else []
            value = {"text": optional(raw), "other": scalar}.get(inner)
            behind = sequence(*name, group[inner] if value is None else sequence(value, string(after)))
            first = before or between
            inside.append(sequence(string(first[1:]), behind, string(end[0]), rest[outer]))
            listed.append(sequence(string(first), behind))
        writer.set_rule(group[outer].name, sequence(string(end[0]), rest[outer], string(end[-1])))
        writer.set_rule(rest[outer].name, choice(*inside))
        writer.set_rule(whole[outer].name, repeated(choice(*listed), 0, None))
    writer.open_parts = whole
    return whole[kind]
