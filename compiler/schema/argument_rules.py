"""Write the arguments of a call that are not one object, as a channel says.

A raw text can be read as a string or as another value. Where a parameter allows both, what spells a value of another
type is that value, so a string may not be spelled like one: not ``null``, ``true`` or ``false`` where these may
stand, no number where numbers may stand (nothing but digits, with a fraction of zeros, where only integers may), and,
blanks aside, it may not begin with ``[`` or ``{`` where arrays or objects may stand. Whoever reads knows a parameter by
its name alone, so what may stand there is what any alternative of the arguments allows (parameters.py).

Leaves out   channels (channel.py), values as JSON or Python (writer.py), the marks around a parameter (../grammar),
             members (object_rules.py).
Invariants   what holds for a string (enum, pattern, length) holds for a raw one; the text that ends a parameter is
             never part of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..errors import UnsatisfiableError, UnsupportedError
from ..ir.nodes import EMPTY, Choice, Expr, Ref, Use, choice, optional, sequence, string
from .atoms import Conj, Literal
from .channel import Channel, Slot
from .elements import elements_expr
from .encoding import IDENTIFIER, Quote, is_name
from .member_automata import object_is_plain
from .nodes import Constant
from .object_rules import Members, members_expr
from .open_parts import open_parts
from .operands import escape_pointer
from .parameters import Beside, alternatives_of, empty_kind
from .quoted_rules import constants_inside, given_name, string_inside
from .request_rules import check_parted, quote_in_path, request_expr
from .required_unions import separated
from .rules import Rules
from .shapes import Constants, Objects, Shape, Strings, is_integral_shape
from .values import kind_of


def arguments_rule(writer: Rules, one: Conj, channel: Channel, hint: str, place: str) -> str:
    """The arguments that a conj allows, as the name of a rule."""
    union = writer.normaliser.shapes(one).get("object", ()) if one is not None else ()
    if any(isinstance(shape, Constants) for shape in union):
        raise UnsupportedError("arguments given by enum or const cannot be written in this protocol", place=place)
    if channel.closed and any(isinstance(shape, Objects) and shape.opened for shape in union):
        writer.restrictions.add("closed-arguments")
    living = alternatives_of(writer.normaliser, one, channel.closed)
    if channel.kind in ("positional", "request"):
        living = tuple(one for shape in living for one in separated(shape) if writer.normaliser.lives(one))
    if channel.kind == "positional":
        _check_positions(writer, living, place)
    if channel.kind in ("parameters", "keywords"):
        _check_names(living, hint, place)
    beside = Beside(writer.normaliser, living)
    options = [_arguments(writer, shape, channel, beside, hint, place) for shape in living]
    if not options:
        undeclared = alternatives_of(writer.normaliser, one, False)
        raise (
            no_arguments(place)
            if undeclared
            else UnsatisfiableError(
                "no arguments at all are allowed", place=place, hint="loosen what contradicts itself"
            )
        )
    return writer.rule(choice(*options), f"{hint}_arguments", place).name


def no_arguments(place: str) -> UnsatisfiableError:
    """The error of a tool that takes only arguments that it does not declare, where none of these can be written."""
    return UnsatisfiableError(
        "no arguments at all are allowed",
        place=place,
        hint="declare those that are needed, as no others can be written here, or choose another protocol",
    )


def _check_positions(writer: Rules, union: tuple[Objects, ...], place: str) -> None:
    """Alternatives of which each has the first of the same parameters."""
    names = list(dict.fromkeys(name for shape in union for name in _alive_names(writer, shape)))
    for shape in union:
        own = _alive_names(writer, shape)
        if own != names[: len(own)]:
            raise UnsupportedError("which arguments there may be cannot be said by their position", place=place)


def _check_names(union: tuple[Objects, ...], tool: str, place: str) -> None:
    """Refuse a parameter that no call can do without, and whose name cannot be written."""
    always = set.intersection(*(set(shape.required) for shape in union)) if union else set()
    for name in sorted(always):
        if not is_name(name):
            raise UnsupportedError(
                f"the parameter {name!r} of {tool!r} is required, and cannot be written in this protocol",
                place=f"{place}/properties/{escape_pointer(name)}",
                hint="a parameter's name has letters, digits, _ . - and characters beyond ASCII only",
            )


def _alive_names(writer: Rules, shape: Objects) -> list[str]:
    return [name for name, value in shape.named if writer.normaliser.alive(value)]


def _arguments(writer: Rules, shape: Objects, channel: Channel, beside: Beside, hint: str, place: str) -> Expr:
    if channel.kind == "request":
        if channel.request is None:
            raise UnsupportedError("the tool is no operation of an API", place=place, hint="choose another protocol")

        def value(writer: Rules, argument: str, one: Conj, name: str, part: str) -> Expr | None:
            return _in_request(writer, channel, one, beside.named(argument), name, part)

        return request_expr(writer, shape, channel.request, value, hint, place)
    if channel.kind == "positional":
        return _positional(writer, shape, channel, hint, place)
    if channel.kind == "keywords":
        return members_expr(writer, shape, Members(channel.comma, EMPTY, _keyword, _open_keyword, (IDENTIFIER,)), hint)

    def named(writer: Rules, name: str, value: Conj) -> Expr:
        key = given_name(writer, name)
        if key is None:
            return writer.nothing()
        return part_expr(writer, channel, channel.slot, key, value, name, beside.named(name))

    def opened(writer: Rules, key: Expr, value: Conj, hint: str) -> Expr:
        key = key if isinstance(key, Ref) else writer.rule(key, f"{hint}_key", None)
        return part_expr(writer, channel, channel.slot, key, value, hint, beside.opened(shape))

    return members_expr(writer, shape, Members(channel.comma, EMPTY, named, opened, (IDENTIFIER,)), hint)


def _keyword(writer: Rules, name: str, value: Conj) -> Expr:
    assert value is not None
    if given_name(writer, name) is None:
        return writer.nothing()
    return sequence(string(name + "="), writer.value(value, name))


def _open_keyword(writer: Rules, key: Expr, value: Conj, hint: str) -> Expr:
    assert value is not None
    return sequence(key, string("="), writer.value(value, hint))


def _positional(writer: Rules, shape: Objects, channel: Channel, hint: str, place: str) -> Expr:
    """Values in order: those up to the last required one, then as many more as there are."""
    if not object_is_plain(shape):
        raise UnsupportedError("which arguments there may be cannot be said by their position", place=place)
    writer.restrictions.add("positional")
    alive = [(name, value) for name, value in shape.named if writer.normaliser.alive(value)]
    if alive != list(shape.named[: len(alive)]):  # one that cannot be given would have to be left out before others
        raise UnsupportedError("an argument that has no value stands before others", place=place)
    needed = max([shape.low, *(n for n, (name, _) in enumerate(alive, 1) if name in shape.required)])
    text = EMPTY
    for n in range(len(alive) - 1, -1, -1):
        name, value = alive[n]
        assert value is not None
        text = sequence(channel.comma if n else EMPTY, writer.value(value, name), text)
        text = text if n < needed else optional(text)
    return text


def part_expr(
    writer: Rules,
    channel: Channel,
    slot: Slot,
    key: Expr | None,
    value: Conj | Constant,
    hint: str,
    beside: Sequence[Conj] = (),
) -> Expr:
    """One part, in every form that its value may have.

    Args:
        beside: what may stand in its place.
    """
    if isinstance(value, Constant):
        shapes: dict[str, tuple[Shape, ...]] = {kind_of(value.value): (Constants((value,)),)}
        return _part_expr(writer, channel, slot, key, shapes, hint, beside)
    assert value is not None
    with writer.within(value):
        if value:
            return _part_expr(writer, channel, slot, key, _living(writer, value), hint, (value, *beside))
        # what may be anything would recur without brackets
        channel = replace(channel, item=None)
        return _part_expr(writer, channel, slot, key, _living(writer, ()), hint, (value, *beside), bool(channel.parts))


def _part_expr(
    writer: Rules,
    channel: Channel,
    slot: Slot,
    key: Expr | None,
    shapes: dict[str, tuple[Shape, ...]],
    hint: str,
    beside: Sequence[Conj],
    in_parts: bool = False,
) -> Expr:
    """See `part_expr`.

    Args:
        shapes: of the value, by kind;  beside: what may stand in its place, it among them;  in_parts: whether arrays
            and objects of anything are written in parts.
    """
    others = {kind: union for kind, union in shapes.items() if kind != "string"}
    said = channel.says_kind(slot)
    readable = _beside(writer, beside)
    unlike = [] if said or "string" not in shapes else _spellings(writer, channel, readable)
    if unlike:
        writer.restrictions.add("raw-strings")
    texts, may_be_empty = _without_empty(_texts(writer, channel.raw, shapes.get("string", ()), unlike, hint))
    empty = "" if said or channel.item is None else empty_kind(writer.normaliser, beside)
    if empty and may_be_empty:
        writer.restrictions.add("raw-strings")
        may_be_empty = False
    bare = "" if () in beside else empty  # the kind of which the empty one is no text at all

    def leaves() -> tuple[Expr, Expr]:
        scalars = [_values(writer, channel, kind, others[kind], "open") for kind in ("null", "boolean", "number")]
        raw, _ = _without_empty(_texts(writer, channel.raw, shapes["string"], [], "open"))
        return choice(*raw), choice(*scalars)

    values = {
        kind: open_parts(writer, channel.parts, kind, leaves)
        if in_parts and kind in ("array", "object")
        else _values(writer, channel, kind, union, hint, readable.get(kind, union), said or kind == bare)
        for kind, union in others.items()
    }
    by_template: dict[tuple[str, str], list[Expr]] = {}
    for kind, found in (("string", texts), *((kind, [text]) for kind, text in values.items())):
        template = slot.text if kind == "string" else slot.of(kind)
        if found:
            by_template.setdefault((template, kind if channel.typed else ""), []).extend(found)
    options = [_use(writer, channel, template, key, some, kind, hint) for (template, kind), some in by_template.items()]
    if may_be_empty:  # apart, so that what ends the part tells whether there was a value (ir/nodes.py, Mark)
        options.append(_use(writer, channel, slot.text, key, [EMPTY], "string", hint))
    return choice(*options) if options else writer.nothing()


def _without_empty(texts: list[Expr]) -> tuple[list[Expr], bool]:
    """Raw strings without the empty one, and whether it was among them."""
    options = [one for text in texts for one in (text.options if isinstance(text, Choice) else (text,))]
    return [one for one in dict.fromkeys(options) if one != EMPTY], EMPTY in options


def _living(writer: Rules, value: tuple[Literal, ...]) -> dict[str, tuple[Shape, ...]]:
    """The shapes of a value that any text spells, by kind."""
    shapes = writer.normaliser.shapes(value)
    lives = {kind: tuple(one for one in union if writer.normaliser.lives(one)) for kind, union in shapes.items()}
    return {kind: union for kind, union in lives.items() if union}


def _beside(writer: Rules, beside: Iterable[Conj]) -> dict[str, tuple[Shape, ...]]:
    """The shapes but strings of what may stand in one place, by kind."""
    found: dict[str, dict[Shape, None]] = {}
    for one in dict.fromkeys(beside):
        for kind, union in _living(writer, one).items() if one is not None else ():
            found.setdefault(kind, {}).update(dict.fromkeys(union))
    return {kind: tuple(union) for kind, union in found.items() if kind != "string"}


def _in_request(
    writer: Rules, channel: Channel, value: Conj, beside: Sequence[Conj], name: str, part: str
) -> Expr | None:
    """The rule of a value in a part of a request; None where no value can be written there."""
    assert value is not None
    if part == "body":
        return writer.value(value, name)
    shapes = _living(writer, value)
    strings = shapes.get("string", ())
    if part == "path":  # an empty segment is another path
        strings = tuple(one for one in map(_not_empty, strings) if one is not None)
    others: dict[str, tuple[Shape, ...]] = {kind: shapes[kind] for kind in shapes if kind in ("boolean", "number")}
    readable = _beside(writer, (value, *beside))
    quote = channel.raw
    if part == "path" and channel.request is not None:
        check_parted(writer, channel.request.path, name, others)
        quote = quote_in_path(channel.request.path, name)
    unlike = _spellings(writer, channel, {kind: readable[kind] for kind in readable if kind != "null"})
    if unlike and strings:
        writer.restrictions.add("raw-strings")
    options = [_values(writer, channel, kind, union, name) for kind, union in others.items()]
    options += [text for text in _texts(writer, quote, strings, unlike, name) if text != EMPTY]
    return writer.rule(choice(*options), f"{name}_value", None) if options else None


def _not_empty(shape: Shape) -> Shape | None:
    if isinstance(shape, Constants):
        kept = tuple(constant for constant in shape.values if constant.value)
        return Constants(kept) if kept else None
    assert isinstance(shape, Strings)
    return replace(shape, low=max(1, shape.low)) if shape.high != 0 else None


def _use(
    writer: Rules, channel: Channel, template: str, key: Expr | None, options: list[Expr], kind: str, hint: str
) -> Expr:
    body = choice(*sorted(options, key=lambda option: option == EMPTY))  # the empty one last
    given = (key, writer.rule(body, f"{hint}_value", None), string(kind) if channel.typed else None)
    return Use(template, tuple([one for one in given if one is not None]))


def _values(
    writer: Rules,
    channel: Channel,
    kind: str,
    union: tuple[Shape, ...],
    hint: str,
    readable: tuple[Shape, ...] = (),
    bare: bool = True,
) -> Expr:
    if kind in ("null", "boolean"):
        spelled = [text for one in _constants(union) for text in channel.spellings(one)]
        return choice(*map(string, spelled))
    if channel.item is not None and kind in ("array", "object"):
        return elements_expr(writer, channel, kind, union, readable, bare, part_expr, hint)
    return writer.alternatives({kind: union}, hint)


def _constants(union: tuple[Shape, ...]) -> list[bool | None]:
    return [constant.value for shape in union if isinstance(shape, Constants) for constant in shape.values]


def _texts(writer: Rules, quote: Quote, union: tuple[Shape, ...], unlike: list[str], hint: str) -> list[Expr]:
    """The raw strings of some shapes, as alternatives, of which one may be empty."""
    options: dict[Expr, None] = {}
    for shape in union:
        if isinstance(shape, Constants):
            texts = [one.value for one in shape.values]
            texts = [text for text in texts if not any(re.fullmatch(one, text) for one in unlike)]
            inside = constants_inside(writer, quote, texts, hint)
        else:
            assert isinstance(shape, Strings)
            inside = string_inside(writer, quote, shape, hint, unlike)
        if inside is not None:
            options.setdefault(inside)
    return list(options)


def _spellings(writer: Rules, channel: Channel, others: Mapping[str, tuple[Shape, ...]]) -> list[str]:
    """Expressions for the texts that are read as a value of some shapes, blanks around them aside."""
    found: list[str] = []
    for kind, union in others.items():
        if kind in ("null", "boolean"):
            for value in _constants(union):
                found += [*channel.spellings(value), *channel.read.get(value, ())]
        elif kind == "number":
            whole = all(map(is_integral_shape, union))
            found.append(r"-?(?:0|[1-9][0-9]*)" + (r"(?:\.0*)?" if whole else r"(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?"))
        else:
            found.append(rf"\{'[' if kind == 'array' else '{'}[\s\S]*")
    return [rf"[ \t\n\r]*(?:{'|'.join(found)})[ \t\n\r]*"] if found else []
