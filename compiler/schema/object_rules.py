"""Objects as expressions: declared members in order, then undeclared ones.

Leaves out   which members there may be (member_automata.py), the rules of values (writer.py).
Invariants   what is written is linear in the shape, or in the states of its automaton; no declared key is matched as an
             undeclared one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cache

from ..ir import nodes as ir
from ..ir.nodes import EMPTY, Expr, choice, optional, repeated, sequence
from ..ir.printer import text_of
from ..regex import Look, Regex, concat, size, union
from . import strings
from .atoms import Conj, Matches, both
from .encoding import Quote
from .keywords import MAX_REGISTER_BITS, MAX_SUBSETS, REGISTER_KEYS
from .machine_rules import machine_expr
from .member_automata import Machine, Named, Open, Payload, Run, object_is_plain
from .patterns import content, searcher
from .quoted_rules import raw_key
from .required_unions import separated
from .rules import INLINE, Rules
from .scalar_rules import bracketed, key_expr, string_tail
from .shapes import Constants, Objects, OpenKeys, Shape, Strings

_SIZE_OF_ANY_KEY = size(concat(strings.QUOTE, strings.PLAIN_TAIL))
"""Keys whose expressions are no larger have a short name."""


@dataclass(frozen=True)
class Members:
    """How members stand beside each other.

    Attributes:
        comma: between two of them, perhaps nothing.
        blank: what may stand before the end.
        named: (writer, key, value) → a member whose key is declared.
        opened: (writer, key, value, hint) → one whose key is not.
        keys: the ways of writing an undeclared key; none: as a string of JSON, with its quotes.
    """

    comma: Expr
    blank: Expr
    named: Callable[[Rules, str, Conj], Expr]
    opened: Callable[[Rules, Expr, Conj, str], Expr]
    keys: tuple[Quote, ...]


def object_expr(writer: Rules, shape: Objects, hint: str, union: bool = False, free: bool = True) -> Expr:
    """An object.

    Args:
        union: other objects may stand in its place, too, so that its frame's register is not its own.
        free: whether subsets of its keys may be kept, where the order is free.
    """
    if not union and _fits_register(writer, shape):
        return _by_register(writer, shape, hint)
    if len(apart := _apart(writer, shape)) > 1:
        return choice(*[object_expr(writer, one, hint, True) for one in apart])
    bare, quotes = writer.encoding.bare_key, writer.encoding.quotes
    members = Members(writer.comma, writer.blank, _named, _opened, quotes if bare is None else (bare,))
    machine = _machine(writer, shape, free)
    if machine is not None:
        inside = _by_states(writer, shape, members, hint, machine)
        return writer.enclosed("{", inside, "}")
    inside, may_be_empty = _plain(writer, shape, members, hint)
    if inside == EMPTY:
        return bracketed(writer, "{", [], "}")
    inside = sequence(inside, writer.blank)
    return writer.enclosed("{", optional(inside) if may_be_empty else inside, "}")


def may_have_register(writer: Rules) -> bool:
    """Whether registers may keep which members objects have."""
    options = writer.options
    if options.key_order != "any" or not options.registers or writer.place_of_rule in options.ruled_out:
        return False  # a token could read a key without quotes together with the brace before it
    return not writer.encoding.sorted_too and writer.encoding.bare_key is None


def _fits_register(writer: Rules, shape: Objects) -> bool:
    """Whether a register keeps which members an object has: their order is free, and which are required says all."""
    if not may_have_register(writer) or not object_is_plain(shape):
        return False
    count = sum(writer.normaliser.alive(value) for _, value in shape.named)
    if count < 2 or count > MAX_REGISTER_BITS:
        return False
    return count > REGISTER_KEYS or _in_any_order(writer, shape) is None


def _by_register(writer: Rules, shape: Objects, hint: str) -> Expr:
    """An object as a loop over its members; marks behind the keys keep each at most once, and those required in."""
    inside = sequence(loop_over(writer, shape, hint, shape.required), writer.blank)
    return writer.enclosed("{", inside if shape.required or shape.low else optional(inside), "}")


def loop_over(
    writer: Rules, shape: Objects, hint: str, required: Collection[str], bits: dict[str, int] | None = None
) -> Expr:
    """At least one of the members of an object, in any order and number, with marks behind the keys.

    Args:
        required: keys whose marks say that every end asks for them.
        bits: of the keys in the register, where it is that of a union; in the order of the keys if absent.
    """
    options: list[Expr] = []
    for name, value in shape.named:
        if value is not None and writer.normaliser.alive(value):
            mark = ir.member(len(options) if bits is None else bits[name], name in required)
            options.append(sequence(key_expr(writer, name, None), mark, writer.colon, writer.value(value, name)))
    more = _open(writer, shape, Members(writer.comma, writer.blank, _named, _opened, writer.encoding.quotes), hint)
    if more is not None:
        options.append(more)
    if not options:
        return EMPTY
    writer.restrictions.add("minimal-escapes")
    one = writer.rule(choice(*options), f"{hint}_member", None)
    return sequence(one, repeated(sequence(writer.comma, one), 0, None))


def members_expr(writer: Rules, shape: Objects, members: Members, hint: str) -> Expr:
    """The members of an object with nothing around them, fit to be an alternative."""
    if len(apart := _apart(writer, shape)) > 1:
        return choice(*[members_expr(writer, one, members, hint) for one in apart])
    machine = _machine(writer, shape, True)
    if machine is not None:
        return _by_states(writer, shape, members, hint, machine)
    inside, may_be_empty = _plain(writer, shape, members, hint)
    return optional(inside) if may_be_empty else inside


def _apart(writer: Rules, shape: Objects) -> list[Objects]:
    """The objects to write: where keys may be in another order, too, that is said of those that are a list."""
    if not writer.encoding.sorted_too:
        return [shape]
    return [one for one in separated(shape) if writer.normaliser.lives(one)]


def _named(writer: Rules, name: str, value: Conj) -> Expr:
    assert value is not None
    return sequence(key_expr(writer, name, writer.encoding.bare_key), writer.colon, writer.value(value, name))


def _opened(writer: Rules, key: Expr, value: Conj, hint: str) -> Expr:
    assert value is not None
    return sequence(key, writer.colon, writer.value(value, hint))


def _plain(writer: Rules, shape: Objects, members: Members, hint: str) -> tuple[Expr, bool]:
    """The members of a plain shape, and whether there may be none; no members where there can be none but that."""
    required = set(shape.required)
    texts: list[tuple[Expr, bool]] = []
    alive: list[str] = []
    for name, value in shape.named:
        if writer.normaliser.alive(value):
            alive.append(name)
            texts.append((members.named(writer, name, value), name in required))
    more = _open(writer, shape, members, hint)
    if len(texts) + (more is not None) > 1:
        writer.in_declared_order()
    if texts:
        writer.restrictions.add("minimal-escapes")
    inside = in_order(writer, texts, more, members.comma, hint)
    if writer.encoding.sorted_too:
        order = sorted(range(len(texts)), key=lambda n: alive[n].lower())
        if order != list(range(len(texts))):
            other = in_order(writer, [texts[n] for n in order], more, members.comma, hint)
            inside = choice(inside, other)
    may_be_empty = not required and not shape.low
    return writer.nothing() if inside == EMPTY and not may_be_empty else inside, may_be_empty


def _open(writer: Rules, shape: Objects, members: Members, hint: str) -> Expr | None:
    """One member whose key is not declared; None where there is none."""
    options: list[Expr] = []
    for one in shape.opened:
        if writer.normaliser.alive(one.value):
            member = _open_member(writer, shape, one, members, 0, one.value, hint)
            if member is not None:
                options.append(member)
    if len(options) > 1:
        return writer.rule(choice(*options), hint if hint.endswith("_more") else f"{hint}_more", None)
    return options[0] if options else None


def _open_member(
    writer: Rules, shape: Objects, one: OpenKeys, members: Members, needs: int, value: Conj, hint: str
) -> Expr | None:
    """One member whose key is of a class, is not declared, and meets some needs (bits); None where no key can be
    written."""
    key, names = shape.key, {name: None for name, _ in shape.named}
    matched, unmatched = list(one.matched), list(one.unmatched)
    for bit, need in enumerate(shape.needs):
        if needs >> bit & 1:
            key = both(key, need.key)
            names.update(dict.fromkeys(need.names))
            for match in need.patterns:
                (matched if match.positive else unmatched).append(match)
    stem = hint if hint.endswith("_more") else f"{hint}_more"
    if members.keys:
        matches = (*(replace(m, positive=True) for m in matched), *(replace(m, positive=False) for m in unmatched))
        found = _quoted_key(writer, members.keys, key, tuple(dict.fromkeys(matches)), tuple(names), hint)
        writer.restrictions.add("open-keys")
        return None if found is None else members.opened(writer, found, value, stem)
    never = [strings.tails(names)] if names else []
    never += [content(match.pattern, match.place, True) for match in dict.fromkeys(unmatched)]
    ahead = [Look(union(*never), negative=True)] if never else []
    wanted = list(dict.fromkeys(matched))
    last = strings.PLAIN_TAIL
    if wanted and not key:
        last = content(wanted[0].pattern, wanted[0].place)
        del wanted[0]
    heads: list[Regex] = [Look(content(match.pattern, match.place, True)) for match in wanted]
    tails: list[Regex] = []
    if not key:
        tails.append(concat(*heads, last))
    else:
        for option in writer.normaliser.shapes(key).get("string", ()) if key is not None else ():
            if isinstance(option, Constants):
                tails.append(concat(*heads, strings.tails(one.value for one in option.values)))
            else:
                assert isinstance(option, Strings)
                more, last = string_tail(writer, option)
                tails.append(concat(*heads, *more, last))
    if not tails:
        return None
    writer.restrictions.update(("open-keys", "minimal-escapes"))
    regex = concat(strings.QUOTE, *ahead, union(*tails))
    terminal = writer.terminal(regex, f"{hint}_key" if size(regex) > _SIZE_OF_ANY_KEY else "KEY")
    return members.opened(writer, terminal, value, stem)


def _quoted_key(
    writer: Rules,
    quotes: tuple[Quote, ...],
    key: Conj,
    matches: tuple[Matches, ...],
    names: tuple[str, ...],
    hint: str,
) -> Expr | None:
    """An undeclared key between marks; None where there is none."""
    options: list[Strings | tuple[str, ...]] = []
    shapes: tuple[Shape, ...] = (Strings(),)
    if key:
        shapes = writer.normaliser.shapes(key).get("string", ())
    elif key is None:
        shapes = ()
    for shape in shapes:
        if isinstance(shape, Constants):
            texts = [one.value for one in shape.values if one.value not in names]
            options.append(tuple(text for text in texts if all(key_matches(m, text) == m.positive for m in matches)))
        else:
            assert isinstance(shape, Strings)
            options.append(replace(shape, patterns=shape.patterns + matches, excluded=shape.excluded + names))
    keys = (raw_key(writer, quote, options, f"{hint}_key") for quote in quotes)
    found = [key for key in keys if key is not None]
    return choice(*found) if found else None


def key_matches(match: Matches, text: str) -> bool:
    """Whether a pattern is found in a key, whether it should be or not."""
    return searcher(match.pattern, match.place)(text)


def in_order(writer: Rules, members: list[tuple[Expr, bool]], more: Expr | None, comma: Expr, hint: str) -> Expr:
    """Members in order, at least one of them, each but the required ones optional; then any number of ``more``."""
    pivot = next((index for index, (_, needed) in enumerate(members) if needed), None)
    if pivot is None:
        some = [member for member, _ in members]
        if more is not None:
            one = more if len(text_of(more)) <= INLINE else writer.rule(more, f"{hint}_open", None)
            some.append(sequence(one, repeated(sequence(comma, one), 0, None)))
        return _choose(writer, some, comma, hint)
    parts = [optional(sequence(member, comma)) for member, _ in members[:pivot]]
    parts.append(members[pivot][0])
    behind = [(sequence(comma, member), needed) for member, needed in members[pivot + 1 :]]
    parts += [member if needed else optional(member) for member, needed in behind]
    if more is not None:
        parts.append(repeated(sequence(comma, more), 0, None))
    return sequence(*parts)


def _choose(writer: Rules, members: list[Expr], comma: Expr, hint: str) -> Expr:
    """Some of the members in order, at least one: from each on that one and perhaps some behind it, or only these."""
    rest = members[-1] if members else EMPTY
    for member in members[-2::-1]:
        if len(text_of(rest)) > INLINE:
            rest = writer.rule(rest, f"{hint}_rest", None)
        rest = choice(sequence(member, optional(sequence(comma, rest))), rest)
    return rest


def _machine(writer: Rules, shape: Objects, free: bool) -> Machine | None:
    """The automaton of an object whose members are more than a list; None where they are one. See `object_expr`."""
    any_order = _in_any_order(writer, shape) if free else None
    if any_order is not None:
        writer.subsets += len(any_order.moves)
        return any_order
    if object_is_plain(shape):
        return None
    machine = writer.normaliser.object_machine(shape)
    assert machine is not None, "a shape that does not live is not written"
    if shape.named and len(shape.named) + len(shape.opened) > 1:
        writer.in_declared_order()
    return machine


def _in_any_order(writer: Rules, shape: Objects) -> Machine | None:
    """The automaton of an object whose order is free; None where it is not, or the subsets of its keys are too many."""
    if writer.options.key_order != "any" or not shape.named:
        return None
    found = writer.normaliser.any_order_machine(shape)
    too_many = found is None or (writer.subsets > 0 and writer.subsets + len(found.moves) > MAX_SUBSETS)
    return None if too_many else found


def subsets_fit(writer: Rules, shapes: list[Objects]) -> bool:
    """Whether the subsets of keys of the objects of a union may be kept: a state knows which of all their keys were
    read, and what else each of them counts."""
    if writer.options.key_order != "any":
        return True
    states = 1 << len({name for one in shapes for name, _ in one.named})
    for one in shapes:
        machine = writer.normaliser.any_order_machine(one) if one.named else None
        if machine is None and one.named:
            return False
        if machine is not None:
            states *= -(-len(machine.moves) >> len(one.named)) or 1
    return writer.subsets + states <= MAX_SUBSETS


def _by_states(writer: Rules, shape: Objects, members: Members, hint: str, machine: Machine) -> Expr:
    """Members as rules, one for each state of the object's automaton."""
    if shape.named:
        writer.restrictions.add("minimal-escapes")

    def text(payload: Payload) -> Expr:
        if isinstance(payload, Named):
            return members.named(writer, payload.name, payload.value)
        assert isinstance(payload, Open)
        opened = shape.opened[payload.index]
        member = _open_member(writer, shape, opened, members, payload.needs, payload.value, hint)
        return writer.nothing() if member is None else member

    @cache  # many members lead to the same few
    def run(payload: Run, started: bool) -> Expr:
        more = _open(writer, shape, members, hint) or writer.nothing()
        if len(text_of(more)) > INLINE // 2:
            more = writer.rule(more, f"{hint}_open", None)
        if started:
            return repeated(sequence(members.comma, more), payload.low, payload.high)
        high = None if payload.high is None else payload.high - 1
        return sequence(more, repeated(sequence(members.comma, more), max(payload.low - 1, 0), high))

    return machine_expr(writer, machine, text, hint, members.comma, members.blank, run)
