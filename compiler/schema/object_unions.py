"""Write a union of objects whose members stand in any order: one loop for each, and one register for all.

An alternative is a loop over its members. Every declared key of any alternative has the same bit in all of them, so
that the register holds which keys were read, whichever alternative the text turns out to be. Keys that all alternatives
require, with the same value, are marked as required, as in a single object. In front of its closing brace each
alternative has a mark that names the other keys it requires (../ir/nodes.py, `members`).

Alternatives that differ only in what they require are first cut into disjoint ones. Otherwise a state could have two
ends that ask for different keys, of which neither set contains the other, and no single test could say both. Which
alternatives are still possible is in the state of the automaton (../pushdown/union_ends.py).

Leaves out   single objects (object_rules.py); unions of objects that count their members or say what keys must be like.
Invariants   the values are the same. The subsets of alternatives that keys leave possible are bounded.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..errors import UnsupportedError
from ..ir import nodes as ir
from ..ir.nodes import EMPTY, Expr, choice, optional, sequence
from .absorb import MOST, absorbed
from .atoms import ANY, Conj, both
from .keywords import MAX_REGISTER_BITS, MAX_SUBSETS, REGISTER_KEYS, UNIONS
from .member_automata import object_is_plain, subsets
from .object_rules import key_matches, loop_over, may_have_register
from .required_unions import separated
from .rules import Rules
from .shapes import Objects, OpenKeys, Shape

_MOST_VALUES, _MOST_OPENED = 64, 6
"""Values of one key that are compared pair by pair, and kinds of undeclared members; with more there is no register."""

_MANY = 8
"""In declared order contained alternatives are left out from this many objects on, see `without_contained`."""

_MOST_NAMED = 1 << 14
"""Most alternatives times keys for which `without_contained` looks up values."""

_MOST_MEMBERS = 1024
"""Members of all alternatives into which a union is cut: a hundred keys, one of ten required, take two seconds."""


def union_expr(writer: Rules, shapes: list[Shape], hint: str) -> Expr | None:
    """A union of at least two objects; None where no register can keep their members."""
    if not may_have_register(writer) or UNIONS in writer.options.ruled_out:
        return None
    objects: list[Objects] = []
    for shape in shapes:
        if not isinstance(shape, Objects):  # a constant
            return None
        objects += [one for one in separated(shape) if writer.normaliser.lives(one)]
    names = list(dict.fromkeys(name for one in objects for name, _ in one.named))
    if len(objects) < 2 or not 2 <= len(names) <= MAX_REGISTER_BITS:
        return None
    if not all(object_is_plain(one) and one.key == ANY for one in objects):  # `_opened` does not look at `key`
        return None
    objects = _disjoint([_with_all_names(one, names) for one in objects])
    alike = set.intersection(*(set(one.named) for one in objects))  # what does not tell the alternatives apart
    required_by_all = {name for name, _ in alike if all(name in one.required for one in objects)}
    required = {name for one in objects for name in one.required}
    required_by_some = [name for name in names if name in required - required_by_all]
    if len(required_by_some) > ir.MOST_REQUIRED:
        return None
    bit = {name: n for n, name in enumerate(dict.fromkeys([*required_by_some, *names]))}
    count = _possible(writer, objects, names)
    if writer.subsets + count > MAX_SUBSETS:
        return None
    writer.subsets += count
    options: list[Expr] = []
    for one in objects:
        inside = loop_over(writer, one, hint, required_by_all, bit)
        if inside == EMPTY:
            options.append(EMPTY)
            continue
        ends = ir.members(sum(1 << bit[name] for name in one.required if name not in required_by_all))
        inside = sequence(inside, writer.blank, ends)
        options.append(inside if one.required or one.low else optional(inside))
    return writer.enclosed("{", choice(*options), "}")


def without_contained(writer: Rules, shapes: list[Shape]) -> list[Shape]:
    """The union without each object whose values another one all allows; the order of keys does not count.

    Where order is free nothing is lost. In declared order the orders are lost that such an object alone declares, so it
    is left out of `_MANY` objects or more only: their automaton would track a position in each of them. If an object
    counts its members or says what keys must be like, the union is returned as it was.
    """
    objects = [shape for shape in shapes if isinstance(shape, Objects)]
    if len(objects) < 2 or (len(objects) < _MANY and not may_have_register(writer)):
        return shapes
    if not all(object_is_plain(one) and one.key == ANY for one in objects):
        return shapes
    names = list(dict.fromkeys(name for one in objects for name, _ in one.named))
    if len(objects) > MOST or len(objects) * len(names) > _MOST_NAMED:
        return shapes
    first_with: dict[Shape, Objects] = {}
    for one in objects:
        writer.budget.check("")
        try:
            first_with.setdefault(_with_all_names(one, names), one)
        except UnsupportedError:  # a pattern that cannot be applied to a name: nobody asks for that otherwise
            return shapes
    check = partial(writer.budget.check, "")
    kept = {first_with[one] for one in absorbed("object", tuple(first_with), check)}
    return [shape for shape in shapes if not isinstance(shape, Objects) or shape in kept]


def _disjoint(objects: list[Objects]) -> list[Objects]:
    """The same union, where no object is in two of the alternatives that differ only in what they require.

    Of two such alternatives, one requires a key that the other may not have. While both are possible, this key was not
    read, so the first cannot end there. Of "requires a" and "requires b", the second becomes "requires b, has no a".
    Where that makes more than `_MOST_MEMBERS`, the union is returned as it was.
    """
    earlier_required: dict[Objects, list[tuple[str, ...]]] = {}  # alternative that requires nothing → keys before
    parts: list[Objects] = []
    for one in objects:
        earlier = earlier_required.setdefault(replace(one, required=(), low=one.low - len(one.required)), [])
        pieces = [one]
        for required in earlier:
            pieces = [piece for whole in pieces for piece in _without(whole, required)]
            if (len(parts) + len(pieces)) * len(one.named) > _MOST_MEMBERS:
                return objects
        earlier.append(one.required)
        parts += pieces
    return parts


def _without(shape: Objects, required: tuple[str, ...]) -> list[Objects]:
    """The objects of a plain shape that lack at least one of some keys, in disjoint parts.

    Part n has the first n of those keys that the shape does not require itself, and not the next one. There are none if
    it requires all of them.
    """
    parts: list[Objects] = []
    value_of, held = dict(shape.named), shape.required
    for name in required:
        if name in held:
            continue
        named = tuple((key, None if key == name else value) for key, value in shape.named)
        parts.append(replace(shape, named=named, required=held, low=max(shape.low, len(held))))
        if value_of[name] is None:
            break  # none of the objects has this key
        held = (*held, name)
    return parts


def _with_all_names(shape: Objects, names: list[str]) -> Objects:
    """The object with all of some keys declared: with the value that they have as undeclared ones, or None."""
    own = dict(shape.named)
    return replace(shape, named=tuple((name, own[name] if name in own else _opened(shape, name)) for name in names))


def _opened(shape: Objects, name: str) -> Conj:
    """What an undeclared key holds; None where it may not be there."""
    for one in shape.opened:
        if all(key_matches(match, name) for match in one.matched):
            if not any(key_matches(match, name) for match in one.unmatched):
                return one.value
    return None


def _possible(writer: Rules, objects: list[Objects], names: list[str]) -> int:
    """How many subsets of the alternatives members may leave possible, at most; no more are counted than there is room
    for."""
    everything = (1 << len(objects)) - 1
    leaves: set[int] = set()
    named = [dict(one.named) for one in objects]
    for name in names:
        by_value: dict[Conj, int] = {}
        for n, values in enumerate(named):
            value = values[name]
            if writer.normaliser.alive(value):
                by_value[value] = by_value.get(value, 0) | 1 << n
        leaves |= _common_values(writer, list(by_value.items()))
        if len(leaves) > MAX_SUBSETS:
            return len(leaves)
    undeclared: dict[tuple[OpenKeys, ...], int] = {}
    for n, one in enumerate(objects):
        if one.opened:
            undeclared[one.opened] = undeclared.get(one.opened, 0) | 1 << n
    if len(undeclared) > _MOST_OPENED:
        return MAX_SUBSETS + 1
    for some in subsets((1 << len(undeclared)) - 1):
        leaves.add(sum(bits for n, bits in enumerate(undeclared.values()) if some >> n & 1))
    found = {everything}
    todo = list(found)
    while todo and len(found) <= MAX_SUBSETS:
        some = todo.pop()
        more = {some & other for other in leaves} - found - {0}
        found |= more
        todo += more
    return len(found)


def _common_values(writer: Rules, groups: list[tuple[Conj, int]]) -> set[int]:
    """The sets of alternatives that may have a value in common: groups that do pair by pair are taken to do so.

    More sets than there is room for, so that the union is given up, where there are too many groups, and where several
    values are objects of many keys, which would be read beside each other in one frame.

    Args:
        groups: values of a key, and the alternatives that allow them, as bits.
    """
    if len(groups) > _MOST_VALUES:
        return set(range(MAX_SUBSETS + 1))
    found: dict[tuple[int, ...], int] = {}
    todo: list[tuple[tuple[int, ...], int]] = [((n,), bits) for n, (_, bits) in enumerate(groups)]
    meet = {(m, n): _meet(writer, groups[m][0], groups[n][0]) for n in range(len(groups)) for m in range(n)}
    keys = [own for value, _ in groups if (own := _keys_of(writer, value))]
    if len(keys) > 1 and len(set().union(*keys)) > REGISTER_KEYS:
        return set(range(MAX_SUBSETS + 1))
    while todo and len(found) <= MAX_SUBSETS:
        some, bits = todo.pop()
        found[some] = bits
        todo += [
            ((*some, n), bits | groups[n][1]) for n in range(some[-1] + 1, len(groups)) if all(meet[m, n] for m in some)
        ]
    return set(found.values())


def _keys_of(writer: Rules, value: Conj) -> set[str]:
    """The declared keys of the objects that a value may be."""
    objects = writer.normaliser.shapes(value).get("object", ()) if value is not None else ()
    return {name for one in objects if isinstance(one, Objects) for name, _ in one.named}


def _meet(writer: Rules, one: Conj, other: Conj) -> bool:
    """Whether two values may be equal."""
    try:
        return writer.normaliser.satisfiable(both(one, other))
    except UnsupportedError:  # nobody asks for such a value
        return True
