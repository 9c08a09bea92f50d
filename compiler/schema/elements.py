"""Arrays and objects part by part, each item and member between marks of its own, to any depth.

Where a template names a member twice, undeclared ones cannot be written so: an object that declares none is written as
JSON, and of one that declares some, only these are written. Arrays and objects inside of what may be anything, or of
their own kind, are JSON: the marks of parts are no brackets that a frame could begin with.

Where no mark says its kind, a part with no text in it is what may be empty there: an array before an object before a
string, as whoever reads knows nothing else (parameters.py). An empty array or object that this is not is JSON.

Leaves out   the marks (../grammar), one part (argument_rules.py).
Invariants   a rule is written once per union of shapes; one that recurs once for everything that it lies in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..errors import UnsupportedError
from ..ir.nodes import EMPTY, Expr, Ref, choice
from .array_rules import Items, items_expr
from .atoms import Conj
from .channel import Channel, Slot
from .encoding import IDENTIFIER
from .member_automata import array_is_plain
from .nodes import Constant
from .object_rules import Members, members_expr
from .quoted_rules import given_name
from .rules import Rules
from .scalar_rules import bracketed
from .shapes import Arrays, Constants, Objects, Shape, may_be_empty

Part = Callable[[Rules, Channel, Slot, Expr | None, Conj | Constant, str, tuple[Conj, ...]], Expr]
"""(writer, channel, slot, key or None, value, hint, what may stand in its place) → one part."""


def elements_expr(
    writer: Rules,
    channel: Channel,
    kind: str,
    union: tuple[Shape, ...],
    readable: tuple[Shape, ...],
    bare: bool,
    part: Part,
    hint: str,
) -> Expr:
    """The parts of an array or object of some shapes: a rule, or JSON.

    Args:
        readable: shapes that may stand in its place; a string inside spells no value that they have there.
        bare: whether the empty one is no text at all; else it is JSON.
    """
    memo, this = writer.elements, (kind, union, readable if len(readable) > 1 else union, bare)
    if this in memo.open:
        memo.recursions += 1
        return writer.alternatives({kind: union}, hint)
    inside = frozenset(memo.open)
    for around in (None, inside):
        known = memo.rules.get((this, around))
        if known is not None:
            memo.recursions += known in memo.recursive
            return Ref(known)
    before = memo.recursions
    memo.open.append(this)
    options: list[Expr] = []
    for shape in union:
        if not bare and may_be_empty(shape):
            assert isinstance(shape, Arrays | Objects)
            options.append(bracketed(writer, *(("[", [], "]") if kind == "array" else ("{", [], "}"))))
            shape = replace(shape, low=1)
            if shape.high == 0 or not writer.normaliser.lives(shape):
                continue
        options += _shape(writer, channel, shape, this[2], part, hint)
    memo.open.pop()
    options.sort(key=lambda option: option == EMPTY)
    rule = writer.rule(choice(*options) if options else writer.nothing(), hint, None)
    if memo.recursions > before:
        memo.recursive.add(rule.name)
        memo.rules[this, inside] = rule.name
    else:
        memo.rules[this, None] = rule.name
    return rule


def _shape(
    writer: Rules, channel: Channel, shape: Shape, readable: tuple[Shape, ...], part: Part, hint: str
) -> list[Expr]:
    assert channel.item is not None and channel.inner is not None
    item, inner = channel.item, channel.inner
    arrays = [other for other in readable if isinstance(other, Arrays)]
    # of one array without conditions on items the positions tell items apart
    apart = len(arrays) == 1 and array_is_plain(arrays[0])
    items = () if apart else tuple(dict.fromkeys(one for other in arrays for one in (*other.prefix, other.rest)))
    if isinstance(shape, Constants):
        raise _refusal()

    def one(value: Conj | Constant, hint: str) -> Expr:
        return part(writer, channel, item, None, value, hint, items)

    def named(writer: Rules, name: str, value: Conj) -> Expr:
        key = given_name(writer, name)
        if key is None:
            return writer.nothing()
        members = (pair for other in readable if isinstance(other, Objects) for pair in other.named)
        return part(writer, channel, inner, key, value, name, tuple(one for other, one in members if other == name))

    if isinstance(shape, Arrays):
        return [items_expr(writer, shape, Items(EMPTY, EMPTY, one), hint)]

    def opened(writer: Rules, key: Expr, value: Conj, hint: str) -> Expr:
        key = key if isinstance(key, Ref) else writer.rule(key, f"{hint}_key", None)
        return part(writer, channel, inner, key, value, hint, ((),))

    assert isinstance(shape, Objects)
    if channel.closed and shape.opened:
        if not shape.named:
            return [writer.alternatives({"object": (shape,)}, hint), *([EMPTY] if may_be_empty(shape) else [])]
        writer.restrictions.add("closed-arguments")
        shape = replace(shape, opened=())
        if not writer.normaliser.lives(shape):
            return []
    return [members_expr(writer, shape, Members(EMPTY, EMPTY, named, opened, (IDENTIFIER,)), hint)]


def _refusal() -> UnsupportedError:
    return UnsupportedError("arrays and objects given by enum or const cannot be written in this protocol")
